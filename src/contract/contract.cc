// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/codes.h"
#include "core/inline_vector.h"
#include "core/promotion.h"

namespace anyacl::contract {
namespace {

// Complex numbers stay complex, floating ones do not become integers; BOOL takes whole numbers.
bool ScalarFitsInto(DType scalar, DType computed) {
  if (computed == DType::kBool) return IsInteger(scalar) || scalar == DType::kBool;
  if (computed == DType::kC32) return true;
  return ConvertsTo(scalar, computed);
}

// A wrong table is a programming error that the tests meet at once; a user never does.
[[noreturn]] void BadTable(const char* op, const std::string& what) {
  std::fprintf(stderr, "%s: bad contract table: %s\n", op, what.c_str());
  std::abort();
}

bool IsAboutScalars(RuleKind kind) {
  return kind == RuleKind::kScalarConvertsTo || kind == RuleKind::kScalarFits || kind == RuleKind::kScalarStaysComplex || kind == RuleKind::kScalarDTypes;
}

// Not about the entries of a list one by one.
bool IsAboutTheWhole(RuleKind kind) {
  return kind == RuleKind::kNotNull || kind == RuleKind::kOneGiven || kind == RuleKind::kLength ||
         kind == RuleKind::kSameLength || kind == RuleKind::kRequire || kind == RuleKind::kCustom ||
         kind == RuleKind::kNotGiven;
}

std::vector<std::string> SplitDims(const char* list) {
  std::vector<std::string> dims;
  std::string current;
  for (const char* c = list;; ++c) {
    if (*c && *c != ',') {
      current += *c;
      continue;
    }
    if (!current.empty()) dims.push_back(current);
    current.clear();
    if (!*c) return dims;
  }
}

std::string Show(Number value) {
  return fmt::format("{}", static_cast<double>(value));
}

std::string RowText(const TypeRow& row) {
  if (row.types.size() == 1) return Name(row.types[0]);
  std::vector<std::string> names;
  for (DType t : row.types) names.push_back(Name(t));
  return fmt::format("({})", fmt::join(names, ", "));
}

const char* NounOf(ArgKind kind) {
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
    case ArgKind::kInOut:
      return "aclTensor";
    case ArgKind::kInputList:
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      return "aclTensorList";
    case ArgKind::kScalar:
      return "aclScalar";
    case ArgKind::kScalarList:
      return "aclScalarList";
    case ArgKind::kFloatArray:
      return "aclFloatArray";
    case ArgKind::kBoolArray:
      return "aclBoolArray";
    case ArgKind::kIntArray:
      return "aclIntArray";
    default:
      return "value";
  }
}

// The entry of a list that is null or dead, or -1.
int FirstAbsent(ArgKind kind, const Value& value) {
  const auto find = [](const auto& items) {
    const auto found = std::find(items.begin(), items.end(), nullptr);
    return found == items.end() ? -1 : static_cast<int>(found - items.begin());
  };
  return kind == ArgKind::kScalarList ? find(value.scalars->scalars) : find(value.tensors->tensors);
}

// An axis as the tables mean it; a 0-dim tensor counts as having one.
bool IsAxis(int64_t axis, int rank) {
  const int64_t axes = std::max(rank, 1);
  return axis >= -axes && axis < axes;
}

// An integer argument that names a dtype; kUndefined for what no dtype has.
DType NamedDType(int64_t number) {
  const auto dtype = static_cast<DType>(number);
  return static_cast<int64_t>(dtype) == number ? dtype : DType::kUndefined;
}

std::string NameOfNumber(int64_t number) {
  const auto dtype = static_cast<DType>(number);
  return static_cast<int64_t>(dtype) == number ? Name(dtype) : fmt::format("dtype {}", number);
}

std::string RowNames(const std::vector<TypeRow>& rows, Product product) {
  std::vector<std::string> names;
  for (const TypeRow& row : rows) {
    if (row.products.Has(product)) names.push_back(RowText(row));
  }
  return Join(names);
}

// The last dims of `whole` are those of `tail`.
bool EndsWith(const Dims& whole, const Dims& tail) {
  const int leading = whole.rank() - tail.rank();
  return leading >= 0 && std::equal(tail.begin(), tail.end(), whole.begin() + leading);
}

// `whole` with ones at its end.
Dims KeptDims(Dims whole, int ones) {
  for (int i = std::max(0, whole.rank() - ones); i < whole.rank(); ++i) whole[i] = 1;
  return whole;
}

}  // namespace

uint64_t AxisBits(std::span<const int64_t> axes, int rank) {
  uint64_t bits = 0;
  if (rank == 0) return 0;
  for (const int64_t axis : axes) bits |= uint64_t{1} << (axis < 0 ? axis + rank : axis);
  return bits;
}

bool BroadcastDims(std::span<const Dims* const> shapes, Dims* result) {
  int rank = 0;
  for (const Dims* dims : shapes) rank = std::max(rank, dims->rank());
  *result = Dims();
  for (int axis = 0; axis < rank; ++axis) result->push_back(1);
  for (const Dims* dims : shapes) {
    const int missing = rank - dims->rank();
    for (int axis = 0; axis < dims->rank(); ++axis) {
      const int64_t here = (*dims)[axis];
      int64_t& size = (*result)[missing + axis];
      if (here == size || here == 1) continue;
      if (size != 1) return false;
      size = here;
    }
  }
  return true;
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

Contract::Contract(Table table) : table_(std::move(table)) {
  for (const Arg& arg : table_.args) {
    variables_.push_back(arg.name);
    has_lists_ = has_lists_ || arg.is_list();
  }
  for (const SizeName& size : table_.sizes) {
    variables_.push_back(size.name);
    size_args_.push_back(Argument(size.arg));
    if (!table_.args[size_args_.back()].is_tensor()) BadTable(table_.op, fmt::format("'{}' has no dims", size.arg));
  }
  for (const char* name : table_.deduce.from) deduce_from_.push_back(Argument(name));
  if (table_.deduce.out) deduce_out_ = Argument(table_.deduce.out);
  bool nulls = true;
  for (const Rule& rule : table_.rules) {
    resolved_.push_back(Resolve(rule));
    nulls = nulls && rule.kind == RuleKind::kNotNull && !rule.when.arg;
    if (nulls) ++null_rules_;
  }
}

int Contract::Argument(const char* name) const {
  const int index = ArgIndex(name);
  if (index < 0) BadTable(table_.op, fmt::format("no argument '{}'", name));
  return index;
}

Contract::Resolved Contract::Resolve(const Rule& rule) const {
  Resolved names;
  names.kind = rule.kind;
  names.alone = rule.alone;
  for (const char* arg : rule.args) names.args.push_back(Argument(arg));
  if (!names.args.empty()) {
    names.first = names.args[0];
    names.first_is_handle = table_.args[names.first].is_handle();
    const Arg& first = table_.args[names.first];
    names.first_is_tensor = (first.is_tensor() || first.is_tensor_list()) && !IsAboutTheWhole(rule.kind);
    names.first_is_scalar = IsAboutScalars(rule.kind);
  }
  if (names.args.size() > 1) {
    names.second = names.args[1];
    names.second_is_tensor = table_.args[names.second].is_tensor() || table_.args[names.second].is_tensor_list();
  }
  if (rule.when.arg) names.when_arg = Argument(rule.when.arg);
  names.when_bit = rule.when.bit;
  for (const TypeRow& row : rule.rows) {
    for (Product p : kProducts) {
      if (row.products.Has(p)) names.dtypes[static_cast<int>(p)].Add(row.types[0]);
    }
  }
  std::vector<std::string> texts;
  if (rule.kind == RuleKind::kShape) texts = SplitDims(rule.formula);
  if (rule.kind == RuleKind::kSameShape && rule.otherwise) texts = SplitDims(rule.otherwise);
  if (rule.kind == RuleKind::kNumel || rule.kind == RuleKind::kRequire) texts = {rule.formula};
  for (const std::string& text : texts) {
    names.formulas.emplace_back(text, variables_);
    const std::string& error = names.formulas.back().error();
    if (!error.empty()) BadTable(table_.op, fmt::format("'{}': {}", text, error));
    for (const int variable : names.formulas.back().variables()) {
      names.whole = names.whole && IsWhole(variable);
    }
  }
  return names;
}

int Contract::ArgIndex(const char* name) const {
  for (size_t i = 0; i < table_.args.size(); ++i) {
    if (std::strcmp(table_.args[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

Number Contract::Lookup(int variable, Values values) const {
  const int args = static_cast<int>(table_.args.size());
  if (variable < args) {
    const Value& value = values[variable];
    switch (table_.args[variable].kind) {
      case ArgKind::kInt:
        return value.integer;
      case ArgKind::kReal:
        return value.real;
      case ArgKind::kBool:
        return value.flag;
      case ArgKind::kScalar:
        return value.given() ? value.scalar->AsFloat() : 0;
      default:
        return 0;
    }
  }
  const int axis = table_.sizes[variable - args].axis;
  const Value& value = values[size_args_[variable - args]];
  return value.given() && axis < value.tensor->rank() ? value.tensor->dims[axis] : 0;
}

bool Contract::IsWhole(int variable) const {
  const size_t index = static_cast<size_t>(variable);
  return index >= table_.args.size() || table_.args[index].kind == ArgKind::kInt;
}

int64_t Contract::LookupWhole(int variable, Values values) const {
  const int args = static_cast<int>(table_.args.size());
  if (variable < args) return values[variable].integer;
  const int axis = table_.sizes[variable - args].axis;
  const Value& value = values[size_args_[variable - args]];
  return value.given() && axis < value.tensor->rank() ? value.tensor->dims[axis] : 0;
}

bool Contract::Equals(const Resolved& names, int formula, int64_t size, Values values) const {
  const Formula& want = names.formulas[formula];
  int64_t whole;
  if (names.whole &&
      want.EvaluateWhole([&](int v) { return LookupWhole(v, values); }, &whole)) [[likely]] {
    return whole == size;
  }
  return want.Evaluate([&](int v) { return Lookup(v, values); }) == static_cast<Number>(size);
}

bool Contract::HoldsFormula(const Resolved& names, Values values) const {
  const Formula& condition = names.formulas[0];
  bool holds;
  if (names.whole &&
      condition.HoldsWhole([&](int v) { return LookupWhole(v, values); }, &holds)) [[likely]] {
    return holds;
  }
  return condition.Holds([&](int v) { return Lookup(v, values); });
}

bool Contract::Applies(const Resolved& names, Values values) {
  if (names.when_arg < 0) [[likely]] return true;
  const Value& value = values[names.when_arg];
  if (names.when_bit < 0) return value.flag;
  return value.given() && static_cast<size_t>(names.when_bit) < value.bools->values.size() &&
         value.bools->values[names.when_bit] != 0;
}

size_t Contract::LengthOf(int arg, Values values) const {
  const Value& value = values[arg];
  switch (table_.args[arg].kind) {
    case ArgKind::kBoolArray:
      return value.bools->values.size();
    case ArgKind::kIntArray:
      return value.ints->values.size();
    case ArgKind::kFloatArray:
      return value.floats->values.size();
    case ArgKind::kScalarList:
      return value.scalars->scalars.size();
    default:
      return value.tensors->tensors.size();
  }
}

const Tensor* Contract::TensorAt(int arg, int item, Values values) const {
  const Value& value = values[arg];
  if (!value.given()) return nullptr;
  if (!table_.args[arg].is_tensor_list()) [[likely]] return value.tensor;
  const auto& tensors = value.tensors->tensors;
  return static_cast<size_t>(item) < tensors.size() ? tensors[item] : nullptr;
}

const Scalar* Contract::ScalarAt(int arg, int item, Values values) const {
  const Value& value = values[arg];
  if (!value.given()) return nullptr;
  if (table_.args[arg].kind != ArgKind::kScalarList) [[likely]] return value.scalar;
  const auto& scalars = value.scalars->scalars;
  return static_cast<size_t>(item) < scalars.size() ? scalars[item] : nullptr;
}

int Contract::Items(const Resolved& names, Values values) const {
  if (IsAboutTheWhole(names.kind)) return 1;
  const std::vector<int>& args =
      names.kind == RuleKind::kDeduces || names.kind == RuleKind::kDeducedConverts ||
              names.kind == RuleKind::kDeducedStaysComplex
          ? deduce_from_ : names.args;
  for (const int arg : args) {
    const bool is_list = table_.args[arg].is_list() && values[arg].given();
    if (is_list && names.alone) return LengthOf(arg, values) == 0 ? 0 : 1;
    if (is_list) return static_cast<int>(LengthOf(arg, values));
  }
  return 1;
}

std::string Contract::NameAt(int arg, int item) const {
  const Arg& a = table_.args[arg];
  return a.is_list() ? fmt::format("{}[{}]", a.name, item) : a.name;
}

DType Contract::Deduced(Values values, int item) const {
  const DType common = Common(values, item);
  if (common == DType::kBool && table_.deduce.truth != DType::kUndefined) return table_.deduce.truth;
  const bool whole = IsInteger(common) || common == DType::kBool;
  return whole && table_.deduce.whole != DType::kUndefined ? table_.deduce.whole : common;
}

DType Contract::Common(Values values, int item) const {
  const Tensor* const out = deduce_out_ < 0 ? nullptr : TensorAt(deduce_out_, item, values);
  const DType wanted = out ? out->dtype : DType::kUndefined;
  const Tensor* first = nullptr;  // the operands so far, as one of them that has dims if there is one
  DType result = DType::kUndefined;
  for (const int arg : deduce_from_) {
    const ArgKind kind = table_.args[arg].kind;
    if (kind == ArgKind::kScalar || kind == ArgKind::kScalarList) {
      if (const Scalar* const scalar = ScalarAt(arg, item, values)) {
        result = PromoteScalar(result, scalar->dtype, wanted);
      }
      continue;
    }
    const Tensor* const t = TensorAt(arg, item, values);
    if (!t) continue;
    if (!first) {
      first = t;
      result = t->dtype;
      continue;
    }
    const DType plain = Promote(result, t->dtype);
    if ((first->rank() == 0) == (t->rank() == 0)) {
      result = plain;
      continue;
    }
    const DType relaxed =
        t->rank() == 0 ? PromoteZeroDim(result, t->dtype) : PromoteZeroDim(t->dtype, result);
    result = table_.deduce.zero_dim.Has(CurrentProduct()) || relaxed == wanted ? relaxed : plain;
    if (first->rank() == 0) first = t;
  }
  return result;
}

bool Contract::HoldsNull(const Resolved& names, Values values) const {
  const Value& value = values[names.first];
  if (!value.given()) return false;
  const ArgKind kind = table_.args[names.first].kind;
  return names.alone || !table_.args[names.first].is_list() || FirstAbsent(kind, value) < 0;
}

bool Contract::HoldsDims(const Resolved& names, Values values) const {
  const std::vector<int64_t>& axes = values[names.first].ints->values;
  const int rank = values[names.second].tensor->rank();
  uint64_t seen = 0;
  for (const int64_t axis : axes) {
    if (!IsAxis(axis, rank)) return false;
    const uint64_t bit = uint64_t{1} << (axis < 0 ? axis + std::max(rank, 1) : axis);
    if (seen & bit) return false;
    seen |= bit;
  }
  return true;
}

uint64_t Contract::ReducedAxes(const Rule& rule, const Resolved& names, size_t first, Values values) const {
  const int rank = values[names.args[first]].tensor->rank();
  const uint64_t all = (uint64_t{1} << rank) - 1;
  int flags = 0;
  bool none = rule.kind == RuleKind::kReduced && rule.max != 0;
  const std::vector<int64_t>* axes = nullptr;
  for (size_t i = first + 1; i < names.args.size(); ++i) {
    const Value& value = values[names.args[i]];
    switch (table_.args[names.args[i]].kind) {
      case ArgKind::kInt:
        return IsAxis(value.integer, rank) ? AxisBits({&value.integer, 1}, rank) : 0;
      case ArgKind::kIntArray:
        if (value.given()) axes = &value.ints->values;
        break;
      default:
        if (++flags == 2) none = value.flag;
    }
  }
  if (!axes || axes->empty()) return none ? 0 : all;
  for (const int64_t axis : *axes) {
    if (!IsAxis(axis, rank)) return 0;  // another rule says so
  }
  return AxisBits(*axes, rank);
}

Dims Contract::ReducedDims(const Rule& rule, const Resolved& names, Values values) const {
  const Dims& from = values[names.second].tensor->dims;
  const uint64_t axes = ReducedAxes(rule, names, 1, values);
  bool keep = false;
  for (size_t i = names.args.size(); i-- > 2;) {
    if (table_.args[names.args[i]].kind == ArgKind::kBool) keep = values[names.args[i]].flag;  // the first of them
  }
  Dims dims;
  for (int i = 0; i < from.rank(); ++i) {
    if (!(axes >> i & 1)) dims.push_back(from[i]);
    else if (keep) dims.push_back(1);
  }
  return dims;
}

bool Contract::HoldsReduced(const Rule& rule, const Resolved& names, Values values) const {
  const Tensor& result = *values[names.first].tensor;
  const Tensor& from = *values[names.second].tensor;
  const auto shape = static_cast<ShapeRule>(rule.min);
  const Value* const axes = names.args.size() > 2 ? &values[names.args[2]] : nullptr;
  const bool loose =
      shape == ShapeRule::kLoose || (shape == ShapeRule::kLooseForAll && (!axes || !axes->given() || axes->ints->values.empty()));
  if (loose && from.empty()) return true;
  const Dims want = ReducedDims(rule, names, values);
  return result.dims == want || (loose && result.numel() == 1 && Numel(want) == 1);
}

Dims Contract::DimsOfArg(int arg, int item, Values values) const {
  if (table_.args[arg].kind != ArgKind::kIntArray) return TensorAt(arg, item, values)->dims;
  return Dims(std::span<const int64_t>(values[arg].ints->values));
}

int Contract::AxisAt(int dim, const Tensor& tensor, Values values) {
  const int64_t axis = dim < 0 ? -1 : values[dim].integer;
  return static_cast<int>(axis < 0 ? axis + tensor.rank() : axis);
}

Dims Contract::HalvedDims(int dim, const Tensor& tensor, Values values) {
  Dims dims = tensor.dims;
  const int axis = AxisAt(dim, tensor, values);
  if (axis >= 0 && axis < dims.rank()) dims[axis] /= 2;
  return dims;
}

// "FLOAT16 and UINT16", of the operands.
std::string Contract::DeductionText(Values values, int item) const {
  std::vector<std::string> parts;
  for (const int arg : deduce_from_) {
    const ArgKind kind = table_.args[arg].kind;
    if (kind == ArgKind::kScalar || kind == ArgKind::kScalarList) {
      const Scalar* const scalar = ScalarAt(arg, item, values);
      if (scalar) parts.push_back(fmt::format("{} {}", NameAt(arg, item), Name(scalar->dtype)));
    } else if (const Tensor* const t = TensorAt(arg, item, values)) {
      parts.push_back(fmt::format("{} {}", NameAt(arg, item), Name(t->dtype)));
    }
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

bool Contract::HoldsShape(const Resolved& names, const Tensor& tensor, Values values) const {
  if (tensor.rank() != static_cast<int>(names.formulas.size())) return false;
  for (int i = 0; i < tensor.rank(); ++i) {
    if (!Equals(names, i, tensor.dims[i], values)) return false;
  }
  return true;
}

bool Contract::Holds(int index, int item, Values values, Product product) const {
  const Resolved& names = resolved_[index];
  const Rule& rule = table_.rules[index];
  const DTypeSet& set = names.dtypes[static_cast<int>(product)];
  if (names.first < 0) {  // rules about the call as a whole
    if (names.kind == RuleKind::kSupported) return rule.products.Has(product);
    return set.Has(Common(values, item));
  }
  if (names.kind == RuleKind::kNotNull) return HoldsNull(names, values);
  if (names.kind == RuleKind::kOneGiven) {
    return std::any_of(names.args.begin(), names.args.end(), [&](int arg) { return values[arg].given(); });
  }
  if (names.first_is_handle && !values[names.first].given()) {  // optional and absent
    return names.kind != RuleKind::kCustom || rule.max == 0 || rule.check(values, product).empty();
  }
  if (names.kind == RuleKind::kNotGiven) return rule.max != 0 && HasNothing(names.first, values);
  const Value& first = values[names.first];
  const Tensor* const tensor =
      names.first_is_tensor ? TensorAt(names.first, item, values) : nullptr;
  const Tensor* const other =
      names.second_is_tensor ? TensorAt(names.second, item, values) : nullptr;
  const Scalar* const scalar = names.first_is_scalar ? ScalarAt(names.first, item, values) : nullptr;
  // An entry of a list that is null, or beyond the end of the shorter one of two lists. Custom rules speak of whole lists.
  if (names.kind != RuleKind::kCustom && ((names.first_is_tensor && !tensor) || (names.first_is_scalar && !scalar))) return true;
  switch (names.kind) {
    case RuleKind::kDTypeRows:
      if (names.second < 0) return set.Has(tensor->dtype);
      for (const TypeRow& row : rule.rows) {
        if (RowMatches(row, names, item, values, product)) return true;
      }
      return false;
    case RuleKind::kSameDType:
      return !other || tensor->dtype == other->dtype;
    case RuleKind::kConvertsTo:
      return !other || ConvertsTo(other->dtype, tensor->dtype);
    case RuleKind::kScalarConvertsTo:
      return ConvertsTo(scalar->dtype, rule.dtype);
    case RuleKind::kDeducedConverts:
      return ConvertsTo(Deduced(values, item), tensor->dtype) ||
             (tensor->dtype == DType::kC32 && Deduced(values, item) == DType::kC64);
    case RuleKind::kDeducedStaysComplex:
      return !IsComplex(Deduced(values, item)) || IsComplex(tensor->dtype);
    case RuleKind::kScalarFits:
      return ScalarFitsInto(scalar->dtype, Deduced(values, item));
    case RuleKind::kScalarStaysComplex:
      return !IsComplex(scalar->dtype) || IsComplex(Deduced(values, item));
    case RuleKind::kScalarDTypes:
      return set.Has(scalar->dtype);
    case RuleKind::kPublicFormat:
      return !IsPrivate(tensor->format);
    case RuleKind::kFormats:
      return std::find(rule.formats.begin(), rule.formats.end(), tensor->format) !=
             rule.formats.end();
    case RuleKind::kSameFormat:
      return std::all_of(names.args.begin(), names.args.end(), [&](int arg) {
        const Tensor* const t = TensorAt(arg, item, values);
        return !t || t->format == tensor->format;
      });
    case RuleKind::kPlainStorage:
      return !tensor || !IsPrivate(tensor->format) || tensor->storage == tensor->dims;
    case RuleKind::kRank:
      return tensor->rank() >= rule.min && tensor->rank() <= rule.max;
    case RuleKind::kSameShape:
      if (!other) return !rule.otherwise || HoldsShape(names, *tensor, values);
      return tensor->dims == other->dims;
    case RuleKind::kBroadcast: {
      Dims dims;
      return BroadcastOf(names, item, values, &dims) && dims == tensor->dims;
    }
    case RuleKind::kShape:
      return HoldsShape(names, *tensor, values);
    case RuleKind::kNumel:
      return Equals(names, 0, tensor->numel(), values);
    case RuleKind::kLength:
      return LengthOf(names.first, values) == static_cast<size_t>(rule.min);
    case RuleKind::kSameLength:
      return !values[names.second].given() ||
             LengthOf(names.first, values) == LengthOf(names.second, values);
    case RuleKind::kOneOf:
      return std::find(rule.numbers.begin(), rule.numbers.end(), first.integer) != rule.numbers.end();
    case RuleKind::kDim:
      return !other || IsAxis(first.integer, other->rank());
    case RuleKind::kDims:
      return !other || HoldsDims(names, values);
    case RuleKind::kDTypeArg:
      return set.Has(NamedDType(first.integer)) || (rule.max != 0 && first.integer == static_cast<int64_t>(DType::kUndefined));
    case RuleKind::kDTypeIs: {
      const int64_t named = values[names.second].integer;
      const Tensor* const otherwise = names.args.size() > 2 ? TensorAt(names.args[2], item, values) : nullptr;
      if (otherwise && named == static_cast<int64_t>(DType::kUndefined)) return tensor->dtype == otherwise->dtype;
      return static_cast<int64_t>(tensor->dtype) == named;
    }
    case RuleKind::kReduced:
      return !other || HoldsReduced(rule, names, values);
    case RuleKind::kReduces: {
      const uint64_t axes = ReducedAxes(rule, names, 0, values);
      for (int i = 0; i < tensor->rank(); ++i) {
        if ((axes >> i & 1) && tensor->dims[i] == 0) return false;
      }
      return true;
    }
    case RuleKind::kRequire:
      return HoldsFormula(names, values);
    case RuleKind::kTail:
      return EndsWith(other->dims, DimsOfArg(names.first, item, values));
    case RuleKind::kShapeOf:
      return tensor->dims == DimsOfArg(names.second, item, values);
    case RuleKind::kKeepDims:
      if (rule.min && tensor->empty()) return true;
      return tensor->dims == KeptDims(other->dims, DimsOfArg(names.args[2], item, values).rank());
    case RuleKind::kNotEmpty:
      return !tensor->empty();
    case RuleKind::kEvenAxis: {
      const int axis = AxisAt(names.second, *tensor, values);
      return axis >= 0 && axis < tensor->rank() && tensor->dims[axis] % 2 == 0;
    }
    case RuleKind::kHalved:
      return tensor->dims == HalvedDims(names.args.size() > 2 ? names.args[2] : -1, *other, values);
    case RuleKind::kCustom:
      return rule.check(values, product).empty();
    default:
      return true;
  }
}

bool Contract::RowMatches(const TypeRow& row, const Resolved& names, int item, Values values,
                          Product product) const {
  if (!row.products.Has(product)) return false;
  for (size_t i = 0; i < names.args.size(); ++i) {
    const Tensor* const t = TensorAt(names.args[i], item, values);
    if (t && t->dtype != row.types[i]) return false;
  }
  return true;
}

// Of all arguments of the rule but the first.
bool Contract::BroadcastOf(const Resolved& names, int item, Values values, Dims* dims) const {
  InlineVector<const Dims*, 8> shapes;
  for (size_t i = 1; i < names.args.size(); ++i) {
    const Tensor* const t = TensorAt(names.args[i], item, values);
    if (t) shapes.push_back(&t->dims);
  }
  return BroadcastDims(shapes, dims);
}

std::string Contract::ValuesOf(const Formula& formula, Values values) const {
  std::string text;
  for (int variable : formula.variables()) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}={}", variables_[variable], Show(Lookup(variable, values)));
    const int size = variable - static_cast<int>(table_.args.size());
    if (size < 0) continue;
    text += fmt::format(" (dim {} of {})", table_.sizes[size].axis, table_.sizes[size].arg);
  }
  return text;
}

std::string Contract::Broken(int index, int item, Values values, Product product) const {
  const Rule& rule = table_.rules[index];
  const Resolved& names = resolved_[index];
  const auto value_of = [&](int variable) { return Lookup(variable, values); };
  const std::string must = Describe(rule, product);
  if (rule.kind == RuleKind::kSupported || rule.kind == RuleKind::kOneGiven) return must;
  if (rule.kind == RuleKind::kDeduces) return fmt::format("{}, got {}", must, DeductionText(values, item));
  const Value& first = values[names.args[0]];
  const auto name = [&](int i) { return NameAt(names.args[i], item); };
  const auto tensor = [&](int i) { return TensorAt(names.args[i], item, values); };
  const auto scalar = [&] {  // "DOUBLE", or "DOUBLE in scalars[3]"
    const std::string dtype = Name(ScalarAt(names.first, item, values)->dtype);
    return table_.args[names.first].is_list() ? fmt::format("{} in {}", dtype, name(0)) : dtype;
  };
  const auto shape = [&](int i) { return tensor(i) ? ToString(tensor(i)->dims) : std::string("null"); };
  const auto each = [&](size_t begin, auto&& word_of) {
    std::vector<std::string> words;
    for (size_t i = begin; i < names.args.size(); ++i) {
      if (tensor(static_cast<int>(i))) words.push_back(fmt::format("{} {}", name(static_cast<int>(i)), word_of(static_cast<int>(i))));
    }
    return fmt::format("{}", fmt::join(words, " and "));
  };
  const auto wanted = [&] {
    std::vector<std::string> sizes;
    for (const Formula& f : names.formulas) sizes.push_back(Show(f.Evaluate(value_of)));
    return fmt::format("[{}]", fmt::join(sizes, ", "));
  };
  switch (rule.kind) {
    case RuleKind::kNotNull:
      if (!first.given()) return must;
      return fmt::format("{}[{}] must not be null", rule.args[0],
                         FirstAbsent(table_.args[names.first].kind, first));
    case RuleKind::kDTypeRows: {
      std::vector<std::string> got;
      for (size_t i = 0; i < names.args.size(); ++i) {
        const Tensor* const t = tensor(static_cast<int>(i));
        got.push_back(t ? Name(t->dtype) : "null");
      }
      const bool in_list = table_.args[names.first].is_list();
      return fmt::format("{}, got {}{}", must,
                         got.size() == 1 ? got[0] : fmt::format("({})", fmt::join(got, ", ")),
                         in_list ? fmt::format(" in {}", name(0)) : "");
    }
    case RuleKind::kSameDType:
    case RuleKind::kConvertsTo:
      return fmt::format("{}, got {}", must, each(0, [&](int i) { return Name(tensor(i)->dtype); }));
    case RuleKind::kDeducedConverts:
      return fmt::format("{} must have a dtype that {} converts to, which {} are computed in, got {}", name(0),
                         Name(Deduced(values, item)), DeductionText(values, item), Name(tensor(0)->dtype));
    case RuleKind::kDeducedStaysComplex:
      return fmt::format("{}, got {} for {}", must, Name(tensor(0)->dtype), DeductionText(values, item));
    case RuleKind::kScalarStaysComplex:
    case RuleKind::kScalarFits:
      return fmt::format("{}, got {} for {}", must, scalar(), Name(Deduced(values, item)));
    case RuleKind::kScalarConvertsTo:
    case RuleKind::kScalarDTypes:
      return fmt::format("{}, got {}", must, scalar());
    case RuleKind::kPublicFormat:
    case RuleKind::kFormats:
      return fmt::format("{}, got {}", must, Name(tensor(0)->format));
    case RuleKind::kPlainStorage:
      return fmt::format("{}, got {} with storage {} and shape {}", must, Name(tensor(0)->format),
                         ToString(tensor(0)->storage), shape(0));
    case RuleKind::kSameFormat:
      return fmt::format("{}, got {}", must, each(0, [&](int i) { return Name(tensor(i)->format); }));
    case RuleKind::kRank:
      return fmt::format("{}, got shape {} with {}", must, shape(0), tensor(0)->rank());
    case RuleKind::kSameShape:
      if (!tensor(1)) return fmt::format("{}, so {}, got {}", must, wanted(), shape(0));
      return fmt::format("{}, got {}", must, each(0, shape));
    case RuleKind::kBroadcast: {
      Dims dims;
      if (BroadcastOf(names, item, values, &dims)) {
        return fmt::format("{} must have the shape {} that {} broadcast to, got {}", name(0), ToString(dims),
                           each(1, shape), shape(0));
      }
      return fmt::format("{} must have shapes that broadcast, got {}",
                         fmt::join(std::vector<const char*>(rule.args.begin() + 1, rule.args.end()), " and "), each(1, shape));
    }
    case RuleKind::kShape:
      return fmt::format("{} = {}, got {}", must, wanted(), shape(0));
    case RuleKind::kNumel:
      return fmt::format("{} must have {} = {} elements, got shape {} with {}", name(0), rule.formula,
                         Show(names.formulas[0].Evaluate(value_of)), shape(0),
                         tensor(0)->numel() == kOverflow ? "too many"
                                                         : std::to_string(tensor(0)->numel()));
    case RuleKind::kLength:
      return fmt::format("{}, got {}", must, LengthOf(names.first, values));
    case RuleKind::kSameLength:
      return fmt::format("{}, got {} and {}", must, LengthOf(names.first, values),
                         LengthOf(names.second, values));
    case RuleKind::kOneOf:
      return fmt::format("{}, got {}", must, first.integer);
    case RuleKind::kDim:
      return fmt::format("{}, got {} for shape {}", must, first.integer, shape(1));
    case RuleKind::kDims:
      return fmt::format("{}, got [{}] for shape {}", must, fmt::join(first.ints->values, ", "), shape(1));
    case RuleKind::kDTypeArg:
      return fmt::format("{}, got {}", must, NameOfNumber(first.integer));
    case RuleKind::kDTypeIs:
      return fmt::format("{}, got {} {} and {} {}", must, name(0), Name(tensor(0)->dtype), rule.args[1],
                         NameOfNumber(values[names.second].integer));
    case RuleKind::kReduced:
      return fmt::format("{} = {}, got {}", must, ToString(ReducedDims(rule, names, values)), shape(0));
    case RuleKind::kReduces:
      return fmt::format("{}, got shape {}", must, shape(0));
    case RuleKind::kRequire:
      return fmt::format("{}, got {}", must, ValuesOf(names.formulas[0], values));
    case RuleKind::kTail:
    case RuleKind::kKeepDims:
      return fmt::format("{}, got {} and {} {}", must, ToString(DimsOfArg(names.first, item, values)), rule.args[1], shape(1));
    case RuleKind::kShapeOf:
      return fmt::format("{} = {}, got {}", must, ToString(DimsOfArg(names.second, item, values)), shape(0));
    case RuleKind::kNotEmpty:
      return fmt::format("{}, got shape {}", must, shape(0));
    case RuleKind::kEvenAxis:
      if (names.second < 0) return fmt::format("{}, got shape {}", must, shape(0));
      return fmt::format("{}, got shape {} and {} {}", must, shape(0), rule.args[1], values[names.second].integer);
    case RuleKind::kHalved: {
      const int dim = names.args.size() > 2 ? names.args[2] : -1;
      return fmt::format("{} = {}, got {}", must, ToString(HalvedDims(dim, *tensor(1), values)), shape(0));
    }
    case RuleKind::kCustom:
      return fmt::format("{} {}", rule.args[0], rule.check(values, product));
    default:
      return must;
  }
}

std::string Contract::Describe(const Rule& rule, Product product) const {
  const char* arg = rule.args.empty() ? "" : rule.args[0];
  std::string text;
  switch (rule.kind) {
    case RuleKind::kNotNull:
      text = fmt::format("{} must not be null", arg);
      break;
    case RuleKind::kOneGiven:
      return fmt::format("{} must not all be null", fmt::join(rule.args, " and "));
    case RuleKind::kNotGiven:
      text = fmt::format("{} must be null{}", arg, rule.max ? " or empty" : "");
      break;
    case RuleKind::kSupported:
      return fmt::format("not available on {}", Name(product));
    case RuleKind::kDTypeRows: {
      const std::string names = rule.args.size() == 1
                                    ? arg
                                    : fmt::format("dtypes of ({})", fmt::join(rule.args, ", "));
      text = fmt::format("{} must be {} on {}", names, RowNames(rule.rows, product), Name(product));
      break;
    }
    case RuleKind::kSameDType:
      text = fmt::format("{} must have the dtype of {}", arg, rule.args[1]);
      break;
    case RuleKind::kConvertsTo:
      text = fmt::format("{} must have a dtype that {} converts to", arg, rule.args[1]);
      break;
    case RuleKind::kScalarConvertsTo:
      text = fmt::format("{} must convert to {}", arg, Name(rule.dtype));
      break;
    case RuleKind::kPublicFormat:
      text = fmt::format("{} must have a public format", arg);
      break;
    case RuleKind::kFormats: {
      std::vector<std::string> names;
      for (Format f : rule.formats) names.push_back(Name(f));
      text = fmt::format("{} must have format {}", arg, Join(names));
      break;
    }
    case RuleKind::kRank:
      text = rule.min == 0 ? fmt::format("{} must have at most {} dims", arg, rule.max)
                           : fmt::format("{} must have {} to {} dims", arg, rule.min, rule.max);
      break;
    case RuleKind::kSameShape:
      text = rule.otherwise ? fmt::format("{} must have the shape of {}, or [{}] when that is null",
                                          arg, rule.args[1], rule.otherwise)
                            : fmt::format("{} must have the shape of {}", arg, rule.args[1]);
      break;
    case RuleKind::kShape:
      text = fmt::format("{} must have shape [{}]", arg, rule.formula);
      break;
    case RuleKind::kNumel:
      text = fmt::format("{} must have {} elements", arg, rule.formula);
      break;
    case RuleKind::kLength:
      text = fmt::format("{} must have {} entries", arg, rule.min);
      break;
    case RuleKind::kRequire:
      text = fmt::format("requires {}", rule.formula);
      break;
    case RuleKind::kDeduces:
      text = fmt::format("{} must have dtypes that are computed together in {} on {}",
                         fmt::join(table_.deduce.from, " and "), RowNames(rule.rows, product), Name(product));
      break;
    case RuleKind::kDeducedConverts:
      text = fmt::format("{} must have a dtype that the dtype of {} converts to", arg,
                         fmt::join(table_.deduce.from, " with "));
      break;
    case RuleKind::kDeducedStaysComplex:
      text = fmt::format("{} must be complex where {} is", arg, fmt::join(table_.deduce.from, " or "));
      break;
    case RuleKind::kScalarFits:
      text = fmt::format("{} must convert to the dtype that {} are computed in", arg,
                         fmt::join(table_.deduce.from, " and "));
      break;
    case RuleKind::kScalarStaysComplex:
      text = fmt::format("{} must be real where {} are computed in real numbers", arg, fmt::join(table_.deduce.from, " and "));
      break;
    case RuleKind::kScalarDTypes:
    case RuleKind::kDTypeArg:
      text = fmt::format("{} must be {}{} on {}", arg, rule.max ? "undefined, " : "", RowNames(rule.rows, product),
                         Name(product));
      break;
    case RuleKind::kBroadcast:
      text = fmt::format("{} must have the shape that {} broadcast to", arg,
                         fmt::join(std::vector<const char*>(rule.args.begin() + 1, rule.args.end()), " and "));
      break;
    case RuleKind::kSameFormat:
      text = fmt::format("{} must have the same format", fmt::join(rule.args, " and "));
      break;
    case RuleKind::kPlainStorage:
      text = fmt::format("{} must have a storage of its shape when its format is private", arg);
      break;
    case RuleKind::kOneOf:
      text = fmt::format("{} must be one of {}", arg, fmt::join(rule.numbers, ", "));
      break;
    case RuleKind::kDim:
      text = fmt::format("{} must be an axis of {}", arg, rule.args[1]);
      break;
    case RuleKind::kDims:
      text = fmt::format("{} must be axes of {}, none twice", arg, rule.args[1]);
      break;
    case RuleKind::kSameLength:
      text = fmt::format("{} must have as many entries as {}", arg, rule.args[1]);
      break;
    case RuleKind::kDTypeIs:
      text = fmt::format("{} must have the dtype that {} names", arg, rule.args[1]);
      if (rule.args.size() > 2) text += fmt::format(", or that of {} when it names none", rule.args[2]);
      break;
    case RuleKind::kReduced: {
      const bool all = rule.args.size() == 2;
      text = all ? fmt::format("{} must have the shape of {} without its axes, []", arg, rule.args[1])
                 : fmt::format("{} must have the shape of {} without the axes of {}", arg, rule.args[1], rule.args[2]);
      if (rule.args.size() > 3) text += fmt::format(", or with 1 in their place when {} is true", rule.args[3]);
      if (rule.min == static_cast<int>(ShapeRule::kLoose)) text += "; one element may have any rank";
      if (rule.min == static_cast<int>(ShapeRule::kLooseForAll)) text += "; one element may have any rank if no axes are named";
      break;
    }
    case RuleKind::kReduces:
      text = fmt::format("{} must have elements along the axes that are reduced", arg);
      break;
    case RuleKind::kTail:
      text = fmt::format("{} must be the trailing dims of {}", arg, rule.args[1]);
      break;
    case RuleKind::kShapeOf:
      text = fmt::format("{} must have the shape {}", arg, rule.args[1]);
      break;
    case RuleKind::kKeepDims:
      text = fmt::format("{} must have the shape of {} with 1 for each axis of {}{}", arg, rule.args[1], rule.args[2],
                         rule.min ? ", or no elements" : "");
      break;
    case RuleKind::kNotEmpty:
      text = fmt::format("{} must have no dim of 0", arg);
      break;
    case RuleKind::kEvenAxis:
      text = rule.args.size() < 2 ? fmt::format("{} must have an even last dim", arg)
                                  : fmt::format("{} must have an even size along {}", arg, rule.args[1]);
      break;
    case RuleKind::kHalved:
      text = rule.args.size() < 3
                 ? fmt::format("{} must have the shape of {} with half the last dim", arg, rule.args[1])
                 : fmt::format("{} must have the shape of {} with half the size along {}", arg, rule.args[1], rule.args[2]);
      break;
    case RuleKind::kAcceptIfEmpty:
      return fmt::format("when {} are all empty the call succeeds and does nothing",
                         fmt::join(rule.args, ", "));
    case RuleKind::kCustom:
      text = fmt::format("{} {}", arg, rule.text);
      break;
  }
  if (rule.when.arg) {
    text += rule.when.bit < 0 ? fmt::format(" when {} is true", rule.when.arg)
                              : fmt::format(" when {}[{}] is true", rule.when.arg, rule.when.bit);
  }
  return text;
}

// Absent, or without elements; of a list, every entry.
bool Contract::IsEmpty(int arg, Values values) const {
  if (!values[arg].given()) return true;
  const int count = table_.args[arg].is_list() ? static_cast<int>(LengthOf(arg, values)) : 1;
  for (int item = 0; item < count; ++item) {
    const Tensor* const t = TensorAt(arg, item, values);
    if (t && !t->empty()) return false;
  }
  return true;
}

bool Contract::HasNothing(int arg, Values values) const {
  const Arg& a = table_.args[arg];
  if (a.is_tensor() || a.is_tensor_list()) return IsEmpty(arg, values);
  return a.is_array() && LengthOf(arg, values) == 0;
}

// False for an output whose mask bit is not set: the documents promise not to look at it.
bool Contract::IsWanted(int arg, Values values) const {
  for (size_t i = 0; i < table_.rules.size(); ++i) {
    const Rule& rule = table_.rules[i];
    if (rule.kind == RuleKind::kNotNull && rule.when.arg && resolved_[i].args[0] == arg) {
      return Applies(resolved_[i], values);
    }
  }
  return true;
}

// A dead or foreign handle is refused wherever it stands, before anything is read through it.
Status Contract::LiveHandles(Values values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const Arg& arg = table_.args[i];
    int dead = -1;
    if (arg.is_list() && values[i].given()) {
      dead = arg.kind == ArgKind::kScalarList ? values[i].scalars->dead : values[i].tensors->dead;
    }
    if ((values[i].state != Value::State::kDead && dead < 0) ||
        !IsWanted(static_cast<int>(i), values)) [[likely]] {
      continue;
    }
    const char* const noun =
        dead < 0 ? NounOf(arg.kind) : arg.kind == ArgKind::kScalarList ? "aclScalar" : "aclTensor";
    return Status(code::kInvalid,
                  fmt::format("{}: {} is not a live {}: it was destroyed or is no such handle", table_.op,
                              dead < 0 ? arg.name : NameAt(static_cast<int>(i), dead), noun));
  }
  return {};
}

Status Contract::CheckRange(Values values, Product product, int begin, int end,
                            int* broken_rule) const {
  if (broken_rule) *broken_rule = -1;
  if (begin == 0) ANYACL_RETURN_IF_ERROR(LiveHandles(values));
  for (int i = begin; i < end; ++i) {
    const Resolved& names = resolved_[i];
    if (!Applies(names, values)) continue;
    if (names.kind == RuleKind::kAcceptIfEmpty) {
      const auto empty = [&](int arg) { return IsEmpty(arg, values); };
      if (std::all_of(names.args.begin(), names.args.end(), empty)) return {};
      continue;
    }
    const int items = has_lists_ ? Items(names, values) : 1;
    for (int item = 0; item < items; ++item) {
      if (Holds(i, item, values, product)) [[likely]] continue;
      if (broken_rule) *broken_rule = i;
      return Status(CodeOf(table_.rules[i]),
                    fmt::format("{}: {}", table_.op, Broken(i, item, values, product)));
    }
  }
  return {};
}

Status Contract::Check(Values values, Product product, int* broken_rule) const {
  return CheckRange(values, product, 0, Size(), broken_rule);
}

}  // namespace anyacl::contract
