// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Element-wise losses and their gradients: a formula of the pointwise engine, and where a loss is a mean or a sum, a
// reduction behind it. A row says which formula, what its contract is and which divisor a mean has.
#include "ops/loss/loss.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using namespace loss;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble;

enum class Divisor {
  kTogether,  // of a mean: elements of all operands together
  kSelf,      // ... of self
};

struct Row {
  const char* op;
  Formula formula;
  const char* summary;
  const char* text;
  std::vector<Rule> (*rules)();
  Products products = kFive;
  Formula log_formula = Formula::kCopy;  // where logTarget is true
  Divisor divisor = Divisor::kTogether;
  bool weight_in_gradient = false;       // the formula has no place for it
  const char* aside = "";                // a tensor whose numbers do not count
};

// An operator: its row, and where its arguments stand.
struct Form {
  const Row* row;
  std::vector<int> inputs;  // tensors, as the header names them
  int self = -1, weight = -1, aside = -1, reduction = -1, beta = -1, log_target = -1, out = -1;
  bool is_gradient = false;
  bool keeps_axes = false;  // a reduction takes the first axis only
};

// --- rules -----------------------------------------------------------------------------------------------------------

Rule Floats(const char* name) { return DTypes(name, RowsOf(kNewest, types::kFloat3)); }
Rule Reduction() { return OneOf("reduction", {kNone, kMean, kSum}); }
Rule ReductionOrBatch() { return OneOf("reduction", {kNone, kMean, kSum, kBatchMean}); }
Rule AnyRank(const char* name) { return Rank(name, 0, 8); }

// The shape of the first kCount arguments together; absent ones are passed over.
template <int kCount>
bool Together(Values v, Dims* dims) {
  const Dims* given[kCount];
  size_t count = 0;
  for (int i = 0; i < kCount; ++i) {
    if (v[i].given()) given[count++] = &v[i].tensor->dims;
  }
  return BroadcastDims({given, count}, dims);
}

template <int kCount>
std::string CheckFits(Values v, Product) {
  Dims dims;
  if (Together<kCount>(v, &dims)) return "";
  std::string got;
  for (int i = 0; i < kCount; ++i) got += (got.empty() ? "" : " and ") + ToString(v[i].tensor->dims);
  return "must broadcast with the other tensors, got shapes " + got;
}
template <int kCount>
Rule Fits(const char* name) {
  return Custom(name, "must broadcast with the other tensors", CheckFits<kCount>);
}

// What a reduction leaves.
enum class Left { kNoDims, kOneElement, kWithoutFirst };

Dims WithoutFirst(const Dims& dims) {
  Dims rest;
  for (int i = 1; i < dims.rank(); ++i) rest.push_back(dims[i]);
  return rest;
}

template <int kCount, int kReduction, int kOut, Left kLeft>
std::string CheckResult(Values v, Product) {
  Dims want;
  if (!Together<kCount>(v, &want)) return "must have a shape, got operands that do not broadcast";
  const Dims& got = v[kOut].tensor->dims;
  if (v[kReduction].integer != kNone) {
    if (kLeft == Left::kOneElement) {
      return Numel(got) == 1 ? "" : fmt::format("must have one element for reduction {}, got shape {}", v[kReduction].integer, ToString(got));
    }
    want = kLeft == Left::kNoDims ? Dims() : WithoutFirst(want);
  }
  return got == want ? "" : fmt::format("must have shape {} for reduction {}, got {}", ToString(want), v[kReduction].integer, ToString(got));
}
template <int kCount, int kReduction, int kOut, Left kLeft>
Rule Result(const char* name) {
  return Custom(name,
                kLeft == Left::kNoDims        ? "must have the shape of the operands together, or no dims for a mean or sum"
                : kLeft == Left::kOneElement ? "must have the shape of the operands together, or one element for a mean or sum"
                                             : "must have the shape of the operands together, without the first axis for a mean or sum",
                CheckResult<kCount, kReduction, kOut, kLeft>);
}

template <int kBeta>
std::string CheckBeta(Values v, Product) {
  const double beta = v[kBeta].real;
  return beta >= 0 ? "" : fmt::format("must be 0 or more, got {}", beta);
}
template <int kBeta>
Rule BetaIsValid() {
  return Custom("beta", "must be 0 or more", CheckBeta<kBeta>);
}

// Whole differences are exact; a mean of them would not be. Older products refuse more.
std::string CheckL1Types(Values v, Product product) {
  enum { kSelf, kTarget, kReduction };
  const bool self_whole = IsInteger(v[kSelf].tensor->dtype), target_whole = IsInteger(v[kTarget].tensor->dtype);
  if (v[kReduction].integer == kMean && self_whole && target_whole) return "must be floating for a mean where target is not, got INT64";
  if (v[kReduction].integer == kNone && self_whole && !target_whole && product != Product::kAscend950) {
    return "must be floating where target is, got " + Name(v[kSelf].tensor->dtype);
  }
  return "";
}

std::vector<Rule> MseRules() {
  return {Floats("self"), Floats("target"), Floats("out"), Reduction(), AnyRank("self"), AnyRank("target"), Fits<2>("self"),
          Result<2, 2, 3, Left::kNoDims>("out")};
}
std::vector<Rule> MseOutRules() {
  return {Floats("self"), Floats("target"), Floats("out"), Reduction(), AnyRank("self"), AnyRank("target"), Fits<2>("self"),
          Result<2, 2, 3, Left::kWithoutFirst>("out")};
}
std::vector<Rule> MseBackwardRules() {
  return {SameDType("gradOutput", "self"), SameDType("target", "self"), Floats("self"), Floats("out"), Reduction(), AnyRank("gradOutput"),
          AnyRank("self"), AnyRank("target"), Broadcast("out", {"gradOutput", "self", "target"})};
}
std::vector<Rule> L1Rules() {
  const DTypeSet whole = {DType::kI64};
  return {Reduction(), DTypes("self", RowsOf(kNewest | whole, types::kFloat3 | whole)), DTypes("target", RowsOf(kNewest | whole, types::kFloat3 | whole)),
          Custom("self", "must be floating where a mean, or the target, needs it", CheckL1Types), DeducedConverts("out"),
          AnyRank("self"), AnyRank("target"), Fits<2>("self"), Result<2, 2, 3, Left::kNoDims>("out")};
}
std::vector<Rule> L1BackwardRules() {
  return {Reduction(), Floats("gradOutput"), Floats("self"), Floats("target"), DeducedConverts("gradInput"), AnyRank("gradOutput"), AnyRank("self"),
          AnyRank("target"), Broadcast("gradInput", {"gradOutput", "self", "target"})};
}
std::vector<Rule> SmoothL1Rules() {
  return {Floats("self"), Floats("target"), DeducedConverts("result"), Reduction(), AnyRank("self"), AnyRank("target"), Fits<2>("self"),
          Result<2, 2, 4, Left::kOneElement>("result"), BetaIsValid<3>()};
}
std::vector<Rule> SmoothL1BackwardRules() {
  return {Floats("gradOut"), Floats("self"), Floats("target"), Floats("gradInput"), AnyRank("gradOut"), AnyRank("self"), AnyRank("target"), Reduction(),
          BetaIsValid<4>(), Broadcast("gradInput", {"gradOut", "self", "target"})};
}
std::vector<Rule> BceRules() {
  return {Floats("self"), Floats("target"), Floats("out"), Floats("weight"), SameDType("target", "self"), SameDType("weight", "self"),
          SameDType("out", "self"), AnyRank("self"), SameShape("target", "self"), Broadcast("self", {"self", "weight"}), Reduction(),
          Result<2, 3, 4, Left::kOneElement>("out")};
}
std::vector<Rule> BceBackwardRules() {
  return {AnyRank("gradOutput"), AnyRank("self"), AnyRank("target"), AnyRank("weightOptional"), Floats("self"), Floats("gradOutput"), Floats("target"),
          Floats("out"), Floats("weightOptional"), SameFormat({"self", "target", "weightOptional"}), Reduction(), AcceptIfEmpty({"self"}),
          Broadcast("self", {"self", "target", "weightOptional"}), Broadcast("self", {"self", "gradOutput"}), SameShape("out", "self")};
}
std::vector<Rule> BceWithLogitsRules() {
  return {Floats("self"), Floats("target"), Floats("weightOptional"), Floats("posWeightOptional"), Floats("out"), SameDType("out", "target"),
          Reduction(), AnyRank("self"), AnyRank("target"), AnyRank("weightOptional"), AnyRank("posWeightOptional"), SameShape("self", "target"),
          Broadcast("target", {"target", "weightOptional", "posWeightOptional"}), Result<2, 4, 5, Left::kOneElement>("out")};
}
std::vector<Rule> BceWithLogitsGradientRules(const char* out) {
  return {AnyRank("gradOutput"), AnyRank("self"), AnyRank("target"), AnyRank("weightOptional"), AnyRank("posWeightOptional"), Floats("gradOutput"),
          Floats("self"), Floats("target"), Floats("weightOptional"), Floats("posWeightOptional"), Floats(out), SameDType(out, "target"),
          SameFormat({"self", "target", out}), Reduction(), AcceptIfEmpty({"self"}), SameShape("target", "self"), SameShape(out, "self"),
          Broadcast("self", {"self", "gradOutput"}), Broadcast("self", {"self", "weightOptional", "posWeightOptional"})};
}
std::vector<Rule> BceWithLogitsBackwardRules() { return BceWithLogitsGradientRules("out"); }
std::vector<Rule> BceTargetRules() { return BceWithLogitsGradientRules("gradTarget"); }
std::vector<Rule> SoftMarginRules() {
  return {Floats("self"), Floats("target"), Floats("out"), AnyRank("self"), AnyRank("target"), Fits<2>("self"), Result<2, 2, 3, Left::kNoDims>("out"),
          Reduction()};
}
std::vector<Rule> SoftMarginBackwardRules() {
  return {Floats("gradOutput"), Floats("self"), Floats("target"), Floats("out"), AnyRank("gradOutput"), AnyRank("self"), AnyRank("target"),
          Broadcast("out", {"gradOutput", "self", "target"}), Reduction()};
}
std::vector<Rule> KlDivRules() {
  return {Floats("self"), Floats("target"), DeducedConverts("out"), AnyRank("self"), AnyRank("target"), ReductionOrBatch(), Fits<2>("self"),
          Result<2, 2, 4, Left::kOneElement>("out")};
}

// The gradient must not have more elements than self and target together.
std::string CheckGradientFits(Values v, Product) {
  enum { kGradient, kSelf, kTarget };
  Dims dims, all;
  const Dims *two[] = {&v[kSelf].tensor->dims, &v[kTarget].tensor->dims}, *three[] = {two[0], two[1], &v[kGradient].tensor->dims};
  if (!BroadcastDims(two, &dims)) return "must broadcast to the shape of self and target, got shapes of those that do not fit";
  if (BroadcastDims(three, &all) && all == dims) return "";
  return fmt::format("must broadcast to the shape of self and target, got {} and {}", ToString(*three[2]), ToString(dims));
}
Rule GradientFits() { return Custom("gradOutput", "must broadcast to the shape of self and target", CheckGradientFits); }

std::vector<Rule> KlDivBackwardRules() {
  return {ResultConverts("self", "out"), Floats("gradOutput"), Floats("self"), Floats("target"), Floats("out"), AnyRank("gradOutput"), AnyRank("self"),
          AnyRank("target"), GradientFits(), SameShape("out", "self"), ReductionOrBatch()};
}
std::vector<Rule> KlDivTargetRules() {
  return {Floats("gradOutput"), Floats("self"), Floats("target"), SameDType("gradTarget", "target"), AnyRank("gradOutput"), AnyRank("self"),
          AnyRank("target"), GradientFits(), SameShape("gradTarget", "target"), PublicFormat("gradOutput"), PublicFormat("self"), PublicFormat("target"),
          PublicFormat("gradTarget"), ReductionOrBatch()};
}

constexpr Products kNoTraining = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
constexpr Products kNoInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

const Row kRows[] = {
    {.op = "aclnnMseLoss", .formula = Formula::kMseLoss, .summary = "Squared differences, their mean or their sum.",
     .text = "loss = (self - target)^2", .rules = MseRules},
    {.op = "aclnnMseLossOut", .formula = Formula::kMseLoss, .summary = "Squared differences, or their mean or sum along the first axis.",
     .text = "loss = (self - target)^2", .rules = MseOutRules},
    {.op = "aclnnMseLossBackward", .formula = Formula::kMseLossBackward, .summary = "Gradient of the squared differences.",
     .text = "out = 2 * (self - target) * gradOutput / n, n = elements of self for a mean, else 1", .rules = MseBackwardRules, .products = kNoTraining,
     .divisor = Divisor::kSelf},
    {.op = "aclnnL1Loss", .formula = Formula::kL1Loss, .summary = "Absolute differences, their mean or their sum.", .text = "loss = |self - target|",
     .rules = L1Rules},
    {.op = "aclnnL1LossBackward", .formula = Formula::kL1LossBackward, .summary = "Gradient of the absolute differences.",
     .text = "gradInput = sign(self - target) * gradOutput / n, n = elements for a mean, else 1", .rules = L1BackwardRules},
    {.op = "aclnnSmoothL1Loss", .formula = Formula::kSmoothL1Loss, .summary = "Absolute differences, squared where they are small; their mean or sum.",
     .text = "loss = |d| < beta ? d^2 / (2 beta) : |d| - beta / 2, d = self - target", .rules = SmoothL1Rules},
    {.op = "aclnnSmoothL1LossBackward", .formula = Formula::kSmoothL1LossBackward, .summary = "Gradient of the smooth absolute differences.",
     .text = "gradInput = (d <= -beta ? -1 : d >= beta ? 1 : d / beta) * gradOut / n, d = self - target, n = elements of self for a mean, else 1",
     .rules = SmoothL1BackwardRules, .divisor = Divisor::kSelf},
    {.op = "aclnnBinaryCrossEntropy", .formula = Formula::kBceLoss, .summary = "Cross entropy of probabilities with targets, its mean or its sum.",
     .text = "loss = -weight * (target * max(ln(self), -100) + (1 - target) * max(ln(1 - self), -100))", .rules = BceRules},
    {.op = "aclnnBinaryCrossEntropyBackward", .formula = Formula::kBceBackward, .summary = "Gradient of the binary cross entropy.",
     .text = "out = gradOutput * weight * (self - target) / max(self * (1 - self), 1e-12) / n, n = elements for a mean, else 1",
     .rules = BceBackwardRules},
    {.op = "aclnnBinaryCrossEntropyWithLogits", .formula = Formula::kBceWithLogits,
     .summary = "Binary cross entropy of the sigmoids of numbers with targets, its mean or its sum.",
     .text = "loss = weight * ((1 - target) * self + (1 + (posWeight - 1) * target) * (ln(1 + e^-|self|) + max(-self, 0)))",
     .rules = BceWithLogitsRules},
    {.op = "aclnnBinaryCrossEntropyWithLogitsBackward", .formula = Formula::kBceWithLogitsBackward,
     .summary = "Gradient of the binary cross entropy of sigmoids.",
     .text = "out = gradOutput * weight * ((posWeight * target + 1 - target) * sigmoid(self) - posWeight * target) / n, n = elements for a mean, else 1",
     .rules = BceWithLogitsBackwardRules, .weight_in_gradient = true},
    {.op = "aclnnBinaryCrossEntropyWithLogitsTargetBackward", .formula = Formula::kBceTargetGradient,
     .summary = "Gradient of the binary cross entropy of sigmoids for its targets.",
     .text = "gradTarget = gradOutput * weight * (ln(sigmoid(-self)) - posWeight * ln(sigmoid(self))) / n, n = elements for a mean, else 1",
     .rules = BceTargetRules, .products = kNewer, .aside = "target"},
    {.op = "aclnnSoftMarginLoss", .formula = Formula::kSoftMarginLoss, .summary = "Logistic loss of numbers with targets 1 and -1, its mean or its sum.",
     .text = "loss = ln(1 + e^(-target * self))", .rules = SoftMarginRules},
    {.op = "aclnnSoftMarginLossBackward", .formula = Formula::kSoftMarginLossBackward, .summary = "Gradient of the logistic loss.",
     .text = "out = -target * sigmoid(-target * self) * gradOutput / n, n = elements for a mean, else 1", .rules = SoftMarginBackwardRules,
     .products = kNoInference},
    {.op = "aclnnKlDiv", .formula = Formula::kKlDiv, .summary = "Kullback-Leibler divergence of log-probabilities from targets; reduction 3 divides its sum by the batch.",
     .text = "loss = target * (ln(target) - self), or e^target * (target - self) with logTarget", .rules = KlDivRules, .log_formula = Formula::kKlDivLog},
    {.op = "aclnnKlDivBackward", .formula = Formula::kKlDivBackward, .summary = "Gradient of the Kullback-Leibler divergence.",
     .text = "out = -target * gradOutput / n, or -e^target * gradOutput / n with logTarget; n = elements for a mean, dim 0 of self for reduction 3, else 1; "
             "summed where self was broadcast",
     .rules = KlDivBackwardRules, .products = kNewer, .log_formula = Formula::kKlDivLogBackward, .aside = "self"},
    {.op = "aclnnKlDivTargetBackward", .formula = Formula::kKlDivTargetBackward, .summary = "Gradient of the Kullback-Leibler divergence for its targets.",
     .text = "gradTarget = gradOutput * (ln(target) + 1 - self) / n, or gradOutput * e^target * (target - self + 1) / n with logTarget; n = elements for a "
             "mean, dim 0 of self for reduction 3, else 1; summed where target was broadcast",
     .rules = KlDivTargetRules, .products = kNewer, .log_formula = Formula::kKlDivLogTargetBackward},
};

// --- plans -----------------------------------------------------------------------------------------------------------

DType ComputedOf(const Form& form, Values v) {
  bool whole = true, wide = false;
  for (const int arg : form.inputs) {
    if (!v[arg].given()) continue;
    whole = whole && IsInteger(v[arg].tensor->dtype);
    wide = wide || v[arg].tensor->dtype == DType::kF64;
  }
  return wide ? DType::kF64 : whole ? DType::kI64 : DType::kF32;
}

// What a mean is divided by.
double DivisorOf(const Form& form, Values v, const Dims& together) {
  const Dims& self = v[form.self].tensor->dims;
  switch (v[form.reduction].integer) {
    case kMean:
      return static_cast<double>(Numel(form.row->divisor == Divisor::kSelf ? self : together));
    case kBatchMean:
      return self.rank() == 0 ? 1 : static_cast<double>(self[0]);
    default:
      return 1;
  }
}

// Axes of `from` that `to` has not, or with one element only.
uint64_t RepeatedAxes(const Dims& from, const Dims& to) {
  uint64_t axes = 0;
  const int missing = from.rank() - to.rank();
  for (int i = 0; i < from.rank(); ++i) {
    if (i < missing || (to[i - missing] == 1 && from[i] != 1)) axes |= uint64_t{1} << i;
  }
  return axes;
}

// The operands of the formula; absent weights are 1, which is scalar kOne.
constexpr int kOne = 2;
Status Operands(const Form& form, Values v, PlanBuilder& plan, DType computed, const Dims& together, std::vector<Operand>* inputs) {
  for (const int arg : form.inputs) {
    if (arg == form.aside || (form.row->weight_in_gradient && arg == form.weight)) continue;
    inputs->push_back(v[arg].given() ? plan.TensorOperand(arg) : ConstantOperand(kOne));
  }
  if (!form.row->weight_in_gradient || !v[form.weight].given()) return {};
  const Operand weighted = plan.ScratchOperand("weighted gradient", computed, together);
  const Operand factors[] = {(*inputs)[0], plan.TensorOperand(form.weight)};
  (*inputs)[0] = weighted;
  return AddPass(plan, Formula::kMul, computed, factors, weighted);
}

Status PlanLoss(Values v, PlanBuilder& plan) {
  const Form& form = plan.op().As<Form>();
  const int64_t reduction = v[form.reduction].integer;
  if (form.is_gradient && v[form.self].tensor->empty()) return {};
  std::vector<const Dims*> shapes;
  for (const int arg : form.inputs) {
    if (v[arg].given()) shapes.push_back(&v[arg].tensor->dims);
  }
  Dims together;
  BroadcastDims(shapes, &together);
  const bool reduces = !form.is_gradient && reduction != kNone;
  if (!reduces && v[form.out].tensor->empty()) return {};
  const DType computed = ComputedOf(form, v);
  const bool log = form.log_target >= 0 && v[form.log_target].flag;
  const Formula formula = log ? form.row->log_formula : form.row->formula;
  const double divisor = DivisorOf(form, v, together);
  const double beta = form.beta < 0 ? 0 : v[form.beta].real;
  const ScalarUse scalars[] = {{Scalar::Of(DType::kF64, divisor)}, {Scalar::Of(DType::kF64, beta)}, {Scalar::OfInt(1)}};
  std::vector<Operand> inputs;
  ANYACL_RETURN_IF_ERROR(Operands(form, v, plan, computed, together, &inputs));

  const Operand out = plan.TensorOperand(form.out);
  if (!reduces && out.dims == together) {
    plan.RequireApart(form.out);
    return AddPass(plan, formula, computed, inputs, out, scalars);
  }
  const Operand terms = plan.ScratchOperand("terms", computed, together);
  ANYACL_RETURN_IF_ERROR(AddPass(plan, formula, computed, inputs, terms, scalars));
  reduction::Fold fold{.op = reduction::Op::kSum};
  if (form.is_gradient) return reduction::AddReduceInto(plan, fold, terms, RepeatedAxes(together, out.dims), computed, form.out);
  const bool first_only = form.keeps_axes && together.rank() > 0;
  const uint64_t axes = first_only ? 1 : (uint64_t{1} << together.rank()) - 1;
  if (reduction != kSum) {
    fold.finish = reduction::Finish::kDivide;
    fold.divisor = first_only ? static_cast<double>(together[0]) : divisor;
  }
  return reduction::AddReduceInto(plan, fold, terms, axes, computed, form.out);
}

// --- operators -------------------------------------------------------------------------------------------------------

Form FormOf(const Row& row, const Entry& entry) {
  Form form{.row = &row, .inputs = {}};
  for (int i = 0; i < static_cast<int>(entry.args.size()); ++i) {
    const std::string_view name = entry.args[i].name;
    if (name == "self") form.self = i;
    if (name == row.aside) form.aside = i;
    if (name == "reduction") form.reduction = i;
    if (name == "beta") form.beta = i;
    if (name == "logTarget") form.log_target = i;
    if (name == "weightOptional") form.weight = i;
    if (name == "gradOutput" || name == "gradOut") form.is_gradient = true;
    if (entry.args[i].kind == ArgKind::kOutput) form.out = i;
    else if (IsTensor(entry.args[i].kind)) form.inputs.push_back(i);
  }
  form.keeps_axes = std::string_view(entry.op) == "aclnnMseLossOut";
  return form;
}

Operator MakeLoss(const Row& row, const Entry& entry) {
  const auto form = std::make_shared<const Form>(FormOf(row, entry));
  ArgRoles roles;
  for (const Entry::Arg& arg : entry.args) {
    const std::string_view name = arg.name;
    if (name == "weight" || name.ends_with("Optional")) roles.optional.push_back(arg.name);
  }
  Table table = TableOf(entry, "pointwise", row.summary, roles);
  table.formulas = {row.text};
  for (const int arg : form->inputs) table.deduce.from.push_back(entry.args[arg].name);
  table.deduce.out = entry.args[form->out].name;
  if (form->is_gradient) table.notes = {"Without elements in self nothing is written."};
  else table.notes = {"reduction: 0 every element, 1 their mean, 2 their sum. The mean of no elements is NaN, their sum 0."};
  AddNullRules(&table);
  Add(&table, {Supported(row.products)});
  Add(&table, row.rules());
  return {.contract = Contract(std::move(table)), .plan = PlanLoss, .family = "loss", .row = form};
}

}  // namespace

void DeclareLoss(Declarations& declarations) {
  for (const Row& row : kRows) {
    declarations.Add(row.op, [&row](const Entry& entry) { return MakeLoss(row, entry); });
  }
  DeclareClassLosses(declarations);
  DeclareCtc(declarations);
  DeclareChamfer(declarations);
  DeclareLabelMargin(declarations);
  DeclareVocabularyLosses(declarations);
}

}  // namespace anyacl
