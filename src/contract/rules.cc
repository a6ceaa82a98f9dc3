// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The words of the table language.
#include "contract/contract.h"
#include "core/codes.h"

namespace anyacl::contract {

Rule NotNull(const char* arg) { return {.kind = RuleKind::kNotNull, .args = {arg}}; }
Rule NotGiven(const char* arg) { return {.kind = RuleKind::kNotGiven, .args = {arg}}; }

Rule OneGiven(std::vector<const char*> args) { return {.kind = RuleKind::kOneGiven, .args = std::move(args)}; }

Rule Supported(Products products) {
  return {.kind = RuleKind::kSupported, .args = {}, .products = products};
}

Rule DTypes(const char* arg, std::vector<TypeRow> rows) {
  return {.kind = RuleKind::kDTypeRows, .args = {arg}, .rows = std::move(rows)};
}

Rule DTypeRows(std::vector<const char*> args, std::vector<TypeRow> rows) {
  return {.kind = RuleKind::kDTypeRows, .args = std::move(args), .rows = std::move(rows)};
}

Rule SameDType(const char* arg, const char* other) {
  return {.kind = RuleKind::kSameDType, .args = {arg, other}};
}

Rule ResultConverts(const char* from, const char* to) {
  return {.kind = RuleKind::kConvertsTo, .args = {to, from}};
}

Rule ScalarConverts(const char* scalar, DType to) {
  return {.kind = RuleKind::kScalarConvertsTo, .args = {scalar}, .dtype = to};
}

Rule PublicFormat(const char* arg) { return {.kind = RuleKind::kPublicFormat, .args = {arg}}; }

Rule Formats(const char* arg, std::vector<Format> formats) {
  return {.kind = RuleKind::kFormats, .args = {arg}, .formats = std::move(formats)};
}

Rule Rank(const char* arg, int min, int max) {
  return {.kind = RuleKind::kRank, .args = {arg}, .min = min, .max = max};
}

Rule SameShape(const char* arg, const char* other, const char* otherwise) {
  return {.kind = RuleKind::kSameShape, .args = {arg, other}, .otherwise = otherwise};
}

Rule ShapeIs(const char* arg, const char* dims) {
  return {.kind = RuleKind::kShape, .args = {arg}, .formula = dims};
}

Rule NumelIs(const char* arg, const char* formula) {
  return {.kind = RuleKind::kNumel, .args = {arg}, .formula = formula};
}

Rule Length(const char* array, int length) {
  return {.kind = RuleKind::kLength, .args = {array}, .min = length, .max = length};
}

Rule Require(const char* arg, const char* condition) {
  return {.kind = RuleKind::kRequire, .args = {arg}, .formula = condition};
}

Rule Deduces(std::vector<TypeRow> rows) {
  return {.kind = RuleKind::kDeduces, .args = {}, .rows = std::move(rows)};
}

Rule DeducedConverts(const char* arg) { return {.kind = RuleKind::kDeducedConverts, .args = {arg}}; }

Rule DeducedStaysComplex(const char* arg) { return {.kind = RuleKind::kDeducedStaysComplex, .args = {arg}}; }

Rule ScalarFits(const char* scalar) { return {.kind = RuleKind::kScalarFits, .args = {scalar}}; }

Rule ScalarStaysComplex(const char* scalar) { return {.kind = RuleKind::kScalarStaysComplex, .args = {scalar}}; }

Rule ScalarDTypes(const char* scalar, std::vector<TypeRow> rows) {
  return {.kind = RuleKind::kScalarDTypes, .args = {scalar}, .rows = std::move(rows)};
}

Rule Broadcast(const char* result, std::vector<const char*> inputs) {
  inputs.insert(inputs.begin(), result);
  return {.kind = RuleKind::kBroadcast, .args = std::move(inputs)};
}

Rule SameFormat(std::vector<const char*> args) {
  return {.kind = RuleKind::kSameFormat, .args = std::move(args)};
}

Rule PlainStorage(const char* arg) { return {.kind = RuleKind::kPlainStorage, .args = {arg}}; }

Rule OneOf(const char* arg, std::vector<int64_t> values) {
  return {.kind = RuleKind::kOneOf, .args = {arg}, .numbers = std::move(values)};
}

Rule Dim(const char* arg, const char* tensor) {
  return {.kind = RuleKind::kDim, .args = {arg, tensor}};
}

Rule DimsOf(const char* array, const char* tensor) {
  return {.kind = RuleKind::kDims, .args = {array, tensor}};
}

Rule SameLength(const char* list, const char* other) {
  return {.kind = RuleKind::kSameLength, .args = {list, other}};
}

Rule DTypeArg(const char* arg, std::vector<TypeRow> rows) {
  return {.kind = RuleKind::kDTypeArg, .args = {arg}, .rows = std::move(rows)};
}

Rule DTypeIs(const char* tensor, const char* arg, const char* otherwise) {
  Rule rule = {.kind = RuleKind::kDTypeIs, .args = {tensor, arg}};
  if (otherwise) rule.args.push_back(otherwise);
  return rule;
}

Rule Reduced(const char* result, const char* tensor, std::vector<const char*> args, ShapeRule shape, NoAxes none) {
  args.insert(args.begin(), {result, tensor});
  return {.kind = RuleKind::kReduced,
          .args = std::move(args),
          .min = static_cast<int>(shape),
          .max = none == NoAxes::kAreNone};
}

Rule ReducesElements(const char* tensor, std::vector<const char*> args) {
  args.insert(args.begin(), tensor);
  return {.kind = RuleKind::kReduces, .args = std::move(args)};
}

Rule Tail(const char* part, const char* whole) { return {.kind = RuleKind::kTail, .args = {part, whole}}; }

Rule KeepDims(const char* arg, const char* whole, const char* tail) {
  return {.kind = RuleKind::kKeepDims, .args = {arg, whole, tail}};
}

Rule KeepDimsOrEmpty(const char* arg, const char* whole, const char* tail) {
  Rule rule = KeepDims(arg, whole, tail);
  rule.min = 1;
  return rule;
}

Rule ShapeOf(const char* tensor, const char* array) { return {.kind = RuleKind::kShapeOf, .args = {tensor, array}}; }

Rule NotEmpty(const char* tensor) { return {.kind = RuleKind::kNotEmpty, .args = {tensor}}; }

Rule EvenAxis(const char* whole, const char* dim) {
  Rule rule{.kind = RuleKind::kEvenAxis, .args = {whole}};
  if (dim) rule.args.push_back(dim);
  return rule;
}

Rule Halved(const char* half, const char* whole, const char* dim) {
  Rule rule{.kind = RuleKind::kHalved, .args = {half, whole}};
  if (dim) rule.args.push_back(dim);
  return rule;
}

Rule AcceptIfEmpty(std::vector<const char*> outputs) {
  return {.kind = RuleKind::kAcceptIfEmpty, .args = std::move(outputs)};
}

Rule Custom(const char* arg, const char* text, CustomCheck check) {
  return {.kind = RuleKind::kCustom, .args = {arg}, .check = check, .text = text};
}

std::vector<TypeRow> RowsOf(DTypeSet newest, DTypeSet others) {
  std::vector<TypeRow> rows;
  for (DType t : (newest | others).List()) {
    unsigned bits = 0;
    if (newest.Has(t)) bits |= kOnly950.bits;
    if (others.Has(t)) bits |= kAllProducts.bits & ~kOnly950.bits;
    if (t == DType::kBF16) bits &= kNewer.bits;
    rows.push_back({{t}, {bits}});
  }
  return rows;
}

std::vector<TypeRow> RowsOf(DTypeSet types) { return RowsOf(types, types); }

int32_t Contract::CodeOf(const Rule& rule) const {
  if (rule.code != 0) return rule.code;
  switch (rule.kind) {
    case RuleKind::kNotNull:
    case RuleKind::kOneGiven:
      return code::kNull;
    case RuleKind::kSupported:
      return code::kNoKernel;
    case RuleKind::kAcceptIfEmpty:
      return 0;
    default:
      return code::kInvalid;
  }
}

}  // namespace anyacl::contract
