// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/codes.h"

namespace anyacl::contract {
namespace {

// A wrong table is a programming error that the tests meet at once; a user never does.
[[noreturn]] void BadTable(const char* op, const std::string& what) {
  std::fprintf(stderr, "%s: bad contract table: %s\n", op, what.c_str());
  std::abort();
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

bool RowMatches(const TypeRow& row, const std::vector<int>& args, Values values, Product product) {
  if (!row.products.Has(product)) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& value = values[args[i]];
    if (value.given() && value.tensor->dtype != row.types[i]) return false;
  }
  return true;
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
      return "aclTensor";
    case ArgKind::kScalar:
      return "aclScalar";
    case ArgKind::kBoolArray:
      return "aclBoolArray";
    case ArgKind::kIntArray:
      return "aclIntArray";
    default:
      return "value";
  }
}

}  // namespace

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

Contract::Contract(Table table) : table_(std::move(table)) {
  int tensors = 0;
  for (const Arg& arg : table_.args) {
    variables_.push_back(arg.name);
    tensor_index_.push_back(tensors);
    tensors += arg.is_tensor();
  }
  for (const SizeName& size : table_.sizes) {
    variables_.push_back(size.name);
    size_args_.push_back(ArgIndex(size.arg));
  }
  bool nulls = true;
  for (const Rule& rule : table_.rules) {
    resolved_.push_back(Resolve(rule));
    nulls = nulls && rule.kind == RuleKind::kNotNull && !rule.when.arg;
    if (nulls) ++null_rules_;
  }
}

Contract::Resolved Contract::Resolve(const Rule& rule) const {
  const auto argument = [this](const char* name) {
    const int index = ArgIndex(name);
    if (index < 0) BadTable(table_.op, fmt::format("no argument '{}'", name));
    return index;
  };
  Resolved names;
  names.kind = rule.kind;
  for (const char* arg : rule.args) names.args.push_back(argument(arg));
  if (!names.args.empty()) {
    names.first = names.args[0];
    names.first_is_handle = table_.args[names.first].is_handle();
  }
  if (names.args.size() > 1) names.second = names.args[1];
  if (rule.when.arg) names.when_arg = argument(rule.when.arg);
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
  return table_.args[arg].kind == ArgKind::kBoolArray ? values[arg].bools->values.size()
                                                      : values[arg].ints->values.size();
}

bool Contract::HoldsShape(const Resolved& names, const Tensor& tensor, Values values) const {
  if (tensor.rank() != static_cast<int>(names.formulas.size())) return false;
  for (int i = 0; i < tensor.rank(); ++i) {
    if (!Equals(names, i, tensor.dims[i], values)) return false;
  }
  return true;
}

bool Contract::Holds(int index, Values values, Product product) const {
  const Resolved& names = resolved_[index];
  if (names.kind == RuleKind::kSupported) return table_.rules[index].products.Has(product);
  const Value& first = values[names.first];
  if (names.kind == RuleKind::kNotNull) return first.given();
  if (names.first_is_handle && !first.given()) return true;  // optional and absent
  const Rule& rule = table_.rules[index];
  switch (names.kind) {
    case RuleKind::kDTypeRows:
      if (names.second < 0) return names.dtypes[static_cast<int>(product)].Has(first.tensor->dtype);
      for (const TypeRow& row : rule.rows) {
        if (RowMatches(row, names.args, values, product)) return true;
      }
      return false;
    case RuleKind::kSameDType:
      return !values[names.second].given() ||
             first.tensor->dtype == values[names.second].tensor->dtype;
    case RuleKind::kConvertsTo:
      return ConvertsTo(values[names.second].tensor->dtype, first.tensor->dtype);
    case RuleKind::kScalarConvertsTo:
      return ConvertsTo(first.scalar->dtype, rule.dtype);
    case RuleKind::kPublicFormat:
      return !IsPrivate(first.tensor->format);
    case RuleKind::kFormats:
      return std::find(rule.formats.begin(), rule.formats.end(), first.tensor->format) !=
             rule.formats.end();
    case RuleKind::kRank:
      return first.tensor->rank() >= rule.min && first.tensor->rank() <= rule.max;
    case RuleKind::kSameShape:
      if (!values[names.second].given()) return HoldsShape(names, *first.tensor, values);
      return first.tensor->dims == values[names.second].tensor->dims;
    case RuleKind::kShape:
      return HoldsShape(names, *first.tensor, values);
    case RuleKind::kNumel:
      return Equals(names, 0, first.tensor->numel(), values);
    case RuleKind::kLength:
      return LengthOf(names.first, values) == static_cast<size_t>(rule.min);
    case RuleKind::kRequire:
      return HoldsFormula(names, values);
    case RuleKind::kCustom:
      return rule.check(values, product).empty();
    default:
      return true;
  }
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

std::string Contract::Broken(int index, Values values, Product product) const {
  const Rule& rule = table_.rules[index];
  const Resolved& names = resolved_[index];
  const auto value_of = [&](int variable) { return Lookup(variable, values); };
  const std::string must = Describe(rule, product);
  if (rule.kind == RuleKind::kSupported) return must;
  const Value& first = values[names.args[0]];
  const auto name = [&](int i) { return table_.args[names.args[i]].name; };
  const auto shape = [&](int i) {
    const Value& v = values[names.args[i]];
    return v.given() ? ToString(v.tensor->dims) : std::string("null");
  };
  const auto wanted = [&] {
    std::vector<std::string> sizes;
    for (const Formula& f : names.formulas) sizes.push_back(Show(f.Evaluate(value_of)));
    return fmt::format("[{}]", fmt::join(sizes, ", "));
  };
  switch (rule.kind) {
    case RuleKind::kNotNull:
      return must;
    case RuleKind::kDTypeRows: {
      std::vector<std::string> got;
      for (int arg : names.args) {
        got.push_back(values[arg].given() ? Name(values[arg].tensor->dtype) : "null");
      }
      return fmt::format("{}, got {}", must,
                         got.size() == 1 ? got[0] : fmt::format("({})", fmt::join(got, ", ")));
    }
    case RuleKind::kSameDType:
      return fmt::format("{}, got {} {} and {} {}", must, name(0), Name(first.tensor->dtype), name(1),
                         Name(values[names.args[1]].tensor->dtype));
    case RuleKind::kConvertsTo:
      return fmt::format("{}, got {} {} and {} {}", must, name(0), Name(first.tensor->dtype), name(1),
                         Name(values[names.args[1]].tensor->dtype));
    case RuleKind::kScalarConvertsTo:
      return fmt::format("{}, got {}", must, Name(first.scalar->dtype));
    case RuleKind::kPublicFormat:
    case RuleKind::kFormats:
      return fmt::format("{}, got {}", must, Name(first.tensor->format));
    case RuleKind::kRank:
      return fmt::format("{}, got shape {} with {}", must, shape(0), first.tensor->rank());
    case RuleKind::kSameShape:
      if (!values[names.args[1]].given()) return fmt::format("{}, so {}, got {}", must, wanted(), shape(0));
      return fmt::format("{}, got {} {} and {} {}", must, name(0), shape(0), name(1), shape(1));
    case RuleKind::kShape:
      return fmt::format("{} = {}, got {}", must, wanted(), shape(0));
    case RuleKind::kNumel:
      return fmt::format("{} must have {} = {} elements, got shape {} with {}", name(0), rule.formula,
                         Show(names.formulas[0].Evaluate(value_of)), shape(0),
                         first.tensor->numel() == kOverflow ? "too many"
                                                            : std::to_string(first.tensor->numel()));
    case RuleKind::kLength:
      return fmt::format("{}, got {}", must, LengthOf(names.first, values));
    case RuleKind::kRequire:
      return fmt::format("{}, got {}", must, ValuesOf(names.formulas[0], values));
    case RuleKind::kCustom:
      return fmt::format("{} {}", name(0), rule.check(values, product));
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
    case RuleKind::kSupported:
      return fmt::format("not available on {}", Name(product));
    case RuleKind::kDTypeRows: {
      std::vector<std::string> rows;
      for (const TypeRow& row : rule.rows) {
        if (row.products.Has(product)) rows.push_back(RowText(row));
      }
      const std::string names = rule.args.size() == 1
                                    ? arg
                                    : fmt::format("dtypes of ({})", fmt::join(rule.args, ", "));
      text = fmt::format("{} must be {} on {}", names, Join(rows), Name(product));
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
    if (values[i].state != Value::State::kDead || !IsWanted(static_cast<int>(i), values)) [[likely]] {
      continue;
    }
    return Status(code::kInvalid,
                  fmt::format("{}: {} is not a live {}: it was destroyed or is no such handle",
                              table_.op, table_.args[i].name, NounOf(table_.args[i].kind)));
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
      const auto empty = [&](int arg) { return values[arg].tensor->empty(); };
      if (std::all_of(names.args.begin(), names.args.end(), empty)) return {};
      continue;
    }
    if (Holds(i, values, product)) [[likely]] continue;
    if (broken_rule) *broken_rule = i;
    return Status(CodeOf(table_.rules[i]), fmt::format("{}: {}", table_.op, Broken(i, values, product)));
  }
  return {};
}

Status Contract::Check(Values values, Product product, int* broken_rule) const {
  return CheckRange(values, product, 0, Size(), broken_rule);
}

}  // namespace anyacl::contract
