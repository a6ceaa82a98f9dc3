// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The words of the table language.
#include "contract/contract.h"
#include "core/codes.h"

namespace anyacl::contract {

Rule NotNull(const char* arg) { return {.kind = RuleKind::kNotNull, .args = {arg}}; }

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

Rule AcceptIfEmpty(std::vector<const char*> outputs) {
  return {.kind = RuleKind::kAcceptIfEmpty, .args = std::move(outputs)};
}

Rule Custom(const char* arg, const char* text, CustomCheck check) {
  return {.kind = RuleKind::kCustom, .args = {arg}, .check = check, .text = text};
}

int32_t Contract::CodeOf(const Rule& rule) const {
  if (rule.code != 0) return rule.code;
  switch (rule.kind) {
    case RuleKind::kNotNull:
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
