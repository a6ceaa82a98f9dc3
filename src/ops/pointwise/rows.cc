// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/pointwise/rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "ops/table.h"

namespace anyacl::pointwise {
namespace {

using namespace contract;
using anyacl::Add;

constexpr DTypeSet kLargeUnsigned = {DType::kU16, DType::kU32, DType::kU64};
constexpr DTypeSet kWholeTypes = kIntegerTypes | types::kBool;

bool Holds(const std::vector<const char*>& names, const char* name) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return std::strcmp(one, name) == 0; });
}

std::vector<TypeRow> RowsOf(const Types& types) { return contract::RowsOf(types.newest, types.others); }

Types Both(const Types& a, const Types& b) { return {a.newest & b.newest, a.others & b.others}; }

bool IsTensorArg(const Entry::Arg& arg) { return IsTensor(arg.kind); }

// Which arguments are what: the result is the last tensor of a plain form and the first of an in-place form.
Form FormOf(const Row& row, const Entry& entry) {
  Form form{.row = row, .operands = {}, .names = {}, .scalars = {}, .result = -1, .in_place = false, .out = nullptr};
  form.in_place = std::strncmp(entry.op, "aclnnInplace", 12) == 0;
  const int count = static_cast<int>(entry.args.size());
  for (int i = 0; i < count; ++i) {
    const Entry::Arg& arg = entry.args[i];
    if (!IsTensorArg(arg) || Holds(row.ignored, arg.name)) continue;
    if (row.written && !form.in_place ? std::strcmp(arg.name, row.written) == 0 : form.result < 0 || !form.in_place) {
      form.result = i;
    }
  }
  form.out = entry.args[form.result].name;
  std::vector<int> in_header;
  for (int i = 0; i < count; ++i) {
    const Entry::Arg& arg = entry.args[i];
    if (Holds(row.ignored, arg.name)) continue;
    if (arg.kind == ArgKind::kScalar && Holds(row.scalars, arg.name)) {
      form.scalars.push_back(i);
    } else if ((IsTensorArg(arg) && (form.in_place || i != form.result)) || arg.kind == ArgKind::kScalar) {
      in_header.push_back(i);
      form.names.push_back(arg.name);
    }
  }
  for (size_t k = 0; k < in_header.size(); ++k) {
    form.operands.push_back(in_header[row.order.empty() ? k : static_cast<size_t>(row.order[k])]);
  }
  return form;
}

// The rules of a row about one form of it, in the documents' order.
class TableMaker {
 public:
  TableMaker(const Form& form, const Entry& entry) : form_(form), row_(form.row), entry_(entry) {}

  Table Make() {
    ArgRoles roles{.in_out = {}, .optional = row_.optional, .outputs = {}, .inputs = {}};
    (form_.in_place ? roles.in_out : roles.outputs).push_back(form_.out);
    for (const char* name : form_.names) {
      const ArgKind kind = KindOf(name);
      if (IsTensor(kind) && name != form_.out) roles.inputs.push_back(name);
    }
    for (const char* name : row_.ignored) roles.inputs.push_back(name);
    Table table = TableOf(entry_, "pointwise", row_.summary, roles);
    table.formulas = row_.texts;
    FindDeduction(&table);
    AddNullRules(&table, form_.in_place ? std::vector<const char*>() : row_.null_order);
    if (row_.first_rules) Put(row_.first_rules(form_));
    if (row_.products.bits != kAllProducts.bits) Put({Supported(row_.products)});
    if (row_.empty == Empty::kNulls) AcceptEmpty();
    OperandTypes();
    if (row_.empty == Empty::kAllButDeduction) {
      Ranks();
      Shapes();
      AcceptEmpty();
      Deductions();
    } else if (row_.empty == Empty::kTypesAndRank) {
      Ranks();
      AcceptEmpty();
      Deductions();
      Shapes();
    } else {
      Deductions();
      Ranks();
      if (row_.empty == Empty::kAllButShape) AcceptEmpty();
      Shapes();
    }
    FormatRules();
    Add(&table, std::move(rules_));
    if (row_.rules) Add(&table, row_.rules(form_));
    return table;
  }

 private:
  void Put(std::vector<Rule> rules) {
    for (Rule& rule : rules) rules_.push_back(std::move(rule));
  }
  ArgKind KindOf(const char* name) const {
    for (const Entry::Arg& arg : entry_.args) {
      if (std::strcmp(arg.name, name) == 0) return arg.kind;
    }
    throw std::logic_error(std::string(entry_.op) + " has no argument " + name);
  }
  bool IsTensorName(const char* name) const { return IsTensor(KindOf(name)); }
  bool Decides(size_t k) const { return !(row_.aside >> k & 1); }
  size_t Deciding() const {
    size_t count = 0;
    for (size_t k = 0; k < form_.names.size(); ++k) count += Decides(k);
    return count;
  }
  bool Deduces() const { return row_.as == DType::kUndefined && !row_.equal_types; }
  // A floating partner takes the large unsigned types along on the newest product.
  bool Joins() const { return Deduces() && Deciding() > 1 && row_.types.newest.Has(DType::kF32); }

  void FindDeduction(Table* table) {
    if (row_.as != DType::kUndefined) return;
    for (const bool tensors : {true, false}) {
      for (size_t k = 0; k < form_.names.size(); ++k) {
        if (Decides(k) && IsTensorName(form_.names[k]) == tensors) table->deduce.from.push_back(form_.names[k]);
      }
    }
    table->deduce.out = form_.out;
    if (row_.zero_dim) table->deduce.zero_dim = kOnly950;
    table->deduce.whole = row_.whole;
    table->deduce.truth = row_.truth;
  }

  void AcceptEmpty() {
    for (const char* name : form_.names) {
      if (IsTensorName(name) && !Holds(row_.optional, name)) Put({AcceptIfEmpty({name})});
    }
  }

  Types TypesOf(size_t k) const {
    if (!row_.own.empty()) return row_.own[k];
    Types types = row_.types;
    if (Joins() && Decides(k)) types.newest = types.newest | kLargeUnsigned;
    return types;
  }

  // What an in-place form can hold: integers only where they are computed as such.
  Types InPlace(Types types) const {
    if (row_.any_in_place) return types;
    const bool floats = row_.whole != DType::kUndefined || row_.whole_as_result;
    if (floats) {
      for (DType t : kWholeTypes.List()) {
        types.newest.Remove(t);
        types.others.Remove(t);
      }
    }
    if (row_.truth != DType::kUndefined) {
      types.newest.Remove(DType::kBool);
      types.others.Remove(DType::kBool);
    }
    if (Joins() && row_.result == Result::kConverts) {  // alone they are not computed, and no floating partner leaves them what they are
      const Types kept = row_.computed.empty() ? row_.types : row_.computed;
      types = Both(types, {kept.newest, kept.others});
    }
    return row_.results.empty() ? types : Both(types, row_.results);
  }

  void OperandTypes() {
    for (size_t k = 0; k < form_.names.size(); ++k) {
      const char* const name = form_.names[k];
      if (!IsTensorName(name)) {
        if (!Decides(k) && row_.scalar_types.empty()) Put({ScalarStaysComplex(name)});
        if (!row_.scalar_types.empty()) Put({ScalarDTypes(name, RowsOf(row_.scalar_types))});
        continue;
      }
      const bool is_result = form_.in_place && std::strcmp(name, form_.out) == 0;
      Put({DTypes(name, RowsOf(is_result ? InPlace(TypesOf(k)) : TypesOf(k)))});
      if (row_.equal_types && k > 0 && Decides(k)) Put({SameDType(name, FirstDeciding())});
    }
  }

  const char* FirstDeciding() const {
    for (size_t k = 0; k < form_.names.size(); ++k) {
      if (Decides(k)) return form_.names[k];
    }
    return nullptr;
  }

  void Deductions() {
    if (Deduces() && Deciding() > 1) {
      Put({contract::Deduces(RowsOf(row_.computed.empty() ? row_.types : row_.computed))});
    }
    for (const char* name : row_.scalars) Put({row_.real_scalars ? ScalarStaysComplex(name) : ScalarFits(name)});
    const bool separate = !form_.in_place;
    switch (row_.result) {
      case Result::kConverts:
        if (!row_.results.empty() && separate) Put({DTypes(form_.out, RowsOf(row_.results))});
        Put({DeducedConverts(form_.out)});
        break;
      case Result::kSame:
        if (separate) Put({SameDType(form_.out, FirstDeciding())});
        break;
      case Result::kListed:
        if (separate) Put({DTypes(form_.out, RowsOf(row_.results)), DeducedStaysComplex(form_.out)});
        break;
      case Result::kAny:
        if (separate) Put({DTypes(form_.out, RowsOf(row_.results))});
        break;
      case Result::kPairs:
        if (separate) Put({DTypeRows({FirstDeciding(), form_.out}, row_.pairs)});
        break;
    }
  }

  std::vector<const char*> Tensors() const {
    std::vector<const char*> names;
    for (const char* name : form_.names) {
      if (IsTensorName(name)) names.push_back(name);
    }
    if (!form_.in_place) names.push_back(form_.out);
    return names;
  }

  void Ranks() {
    if (row_.any_rank || (form_.in_place && row_.any_rank_in_place)) return;
    for (const char* name : Tensors()) Put({Rank(name, row_.min_rank, 8).Code(row_.shape_code)});
  }

  void Shapes() {
    std::vector<const char*> inputs;
    for (const char* name : form_.names) {
      if (IsTensorName(name)) inputs.push_back(name);
    }
    if (row_.own_shape) return;
    if (inputs.size() == 1 || row_.same_shape) {
      for (const char* name : Tensors()) {
        if (std::strcmp(name, inputs[0]) != 0) Put({SameShape(name, inputs[0]).Code(row_.shape_code)});
      }
      return;
    }
    Put({Broadcast(form_.out, inputs).Code(row_.shape_code)});
  }

  void FormatRules() {
    const std::vector<const char*> names = Tensors();
    const bool same = row_.formats == Formats::kSame || row_.formats == Formats::kSameAndPublic;
    const bool is_public = row_.formats == Formats::kPublic || row_.formats == Formats::kSameAndPublic;
    if (same && names.size() > 1) Put({SameFormat(names)});
    if (!is_public) return;
    for (const char* name : names) Put({PublicFormat(name)});
  }

  const Form& form_;
  const Row& row_;
  const Entry& entry_;
  std::vector<Rule> rules_;
};

bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }

Status PlanForm(Values values, PlanBuilder& plan) {
  const Form& form = plan.op().As<Form>();
  const Row& row = form.row;
  const auto args = plan.op().contract.args();
  for (const int arg : form.operands) {
    if (!row.runs_empty && args[arg].is_tensor() && values[arg].given() && values[arg].tensor->empty()) return {};
  }
  plan.RequireApart(form.result);
  PassCall call{.form = form, .values = values, .plan = plan, .formula = row.formula, .computed = row.as, .inputs = {},
                .out = plan.TensorOperand(form.result), .scalars = {}, .options = {.keep_inputs = 0, .cut_result = row.round_result}};
  if (row.as == DType::kUndefined) call.computed = plan.op().contract.Deduced(values);
  if (row.whole_as_result && kWholeTypes.Has(call.computed)) call.computed = call.out.dtype;
  for (size_t i = 0; i < form.scalars.size(); ++i) {
    if (!values[form.scalars[i]].given()) continue;
    call.SetScalar(static_cast<int>(i), *values[form.scalars[i]].scalar, row.keep_scalars ? DType::kUndefined : call.computed);
  }
  for (const int arg : form.operands) {
    if (!values[arg].given()) continue;
    if (!args[arg].is_tensor()) {
      call.inputs.push_back(call.Constant(*values[arg].scalar, row.keep_scalars ? DType::kUndefined : call.computed));
      continue;
    }
    const Operand tensor = plan.TensorOperand(arg);
    if (row.keep_zero_dim && tensor.dims.rank() == 0 && IsHalf(call.computed)) {
      call.options.keep_inputs |= 1u << call.inputs.size();
    }
    call.inputs.push_back(tensor);
  }
  return row.plan ? row.plan(call) : call.Run();
}

}  // namespace

const Value& PassCall::Arg(const char* name) const { return values[plan.op().contract.ArgIndex(name)]; }

void PassCall::SetScalar(int i, const Scalar& value, DType as) {
  if (scalars.size() <= static_cast<size_t>(i)) scalars.resize(i + 1);
  // Whole numbers of a kept scalar are converted like those of any other.
  const bool whole = IsInteger(computed) || computed == DType::kBool;
  scalars[i] = {value, as == DType::kUndefined && whole ? computed : as};
}

// Inputs come last, so that scalars of the formula may still be added.
Operand PassCall::Constant(const Scalar& value, DType as) {
  int constants = 0;
  for (const Operand& input : inputs) constants += IsConstant(input);
  scalars.resize(kMaxScalars);
  SetScalar(kMaxScalars - 1 - constants, value, as);
  return ConstantOperand(kMaxScalars - 1 - constants);
}

Status PassCall::Run() { return AddPass(plan, formula, computed, inputs, out, scalars, options); }

void Declare(Declarations* declarations, Row row) {
  const auto shared = std::make_shared<const Row>(std::move(row));
  for (const char* prefix : {"aclnn", "aclnnInplace"}) {
    const std::string op = std::string(prefix) + shared->name;
    const auto entries = Entries();
    const auto named = [&](const Entry& entry) { return op == entry.op; };
    if (std::none_of(entries.begin(), entries.end(), named)) continue;
    declarations->Add(op, [shared](const Entry& entry) {
      auto form = std::make_shared<Form>(FormOf(*shared, entry));
      Table table = TableMaker(*form, entry).Make();
      return Operator{.contract = Contract(std::move(table)), .plan = PlanForm, .family = form->row.family, .row = form};
    });
  }
}

}  // namespace anyacl::pointwise
