// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Losses of classes: the negative logarithm of a sample's own, and cross entropy, which takes the logarithms itself.
#include "ops/loss/nll.h"

#include <fmt/format.h>

#include <string_view>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/loss/loss.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/softmax/softmax.h"
#include "ops/table.h"

namespace anyacl {

using namespace contract;
using namespace loss;
using pointwise::DenseInput;
using pointwise::DenseOutput;
using pointwise::FinishOutput;

namespace {

Rule Floats(const char* name) { return DTypes(name, RowsOf(types::kFloat3 | types::kDouble, types::kFloat3)); }
Rule Reduction() { return OneOf("reduction", {kNone, kMean, kSum}); }

// ---- shapes: classes are axis 1, of one sample without an axis of its own axis 0 ------------------------------------

int ClassAxis(const Dims& self) { return self.rank() == 1 ? 0 : 1; }
Dims SamplesOf(const Dims& self) {
  Dims samples;
  for (int i = 0; i < self.rank(); ++i) {
    if (i != ClassAxis(self)) samples.push_back(self[i]);
  }
  return samples;
}

template <int kSelf, int kTarget>
std::string CheckTarget(Values v, Product) {
  const Dims &self = v[kSelf].tensor->dims, &target = v[kTarget].tensor->dims, want = SamplesOf(self);
  if (target != want) return fmt::format("must have shape {}, got {}", ToString(want), ToString(target));
  if (self[ClassAxis(self)] == 0 && Numel(target) > 0) return fmt::format("must be empty where there are no classes, got {}", ToString(target));
  return "";
}

template <int kSelf, int kWeight>
std::string CheckWeight(Values v, Product) {
  const Dims &self = v[kSelf].tensor->dims, &weight = v[kWeight].tensor->dims, want = {self[ClassAxis(self)]};
  return weight == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(weight));
}

// One number per sample, or one.
template <int kSelf, int kReduction, int kOut, int kMostDims>
std::string CheckPerSample(Values v, Product) {
  const Dims &self = v[kSelf].tensor->dims, &out = v[kOut].tensor->dims;
  if (v[kReduction].integer == kNone && self.rank() > 1) {
    const Dims want = SamplesOf(self);
    return out == want ? "" : fmt::format("must have shape {} for reduction 0, got {}", ToString(want), ToString(out));
  }
  return Numel(out) == 1 && out.rank() <= kMostDims ? "" : fmt::format("must have one element, got shape {}", ToString(out));
}

template <int kArg>
std::string CheckOne(Values v, Product) {
  return v[kArg].tensor->numel() == 1 ? "" : "must have one element, got shape " + ToString(v[kArg].tensor->dims);
}

constexpr const char* kTargetText = "must have the shape of self without its classes";
constexpr const char* kWeightText = "must have one element per class";
constexpr const char* kPerSampleText = "must have the shape of target, or one element for a mean or sum";

// ---- plans ----------------------------------------------------------------------------------------------------------

DType ComputedOf(const Tensor& t) { return t.dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

Operand ClassesLast(const Operand& operand) { return AxisLast(operand, ClassAxis(operand.dims)); }

// Empty tensors have no memory.
void BindGiven(PlanBuilder& plan, const Operand& operand, View& view) {
  if (Numel(operand.dims) > 0) plan.Bind(operand, view);
}

Status PlanNll(Values v, PlanBuilder& plan) {
  enum { kSelf, kTarget, kWeight, kReduction, kIgnoreIndex, kOut, kTotal };
  const Tensor& self = *v[kSelf].tensor;
  const DType computed = ComputedOf(self);
  const Operand out = DenseOutput(plan, kOut, 0, computed), total = DenseOutput(plan, kTotal, 0, computed);
  auto& params = plan.MakeParams<NllParams>();
  params.samples = v[kTarget].tensor->numel();
  params.classes = self.dims[ClassAxis(self.dims)];
  params.ignored = v[kIgnoreIndex].integer;
  params.reduction = v[kReduction].integer;
  params.wide = computed == DType::kF64;
  params.single = self.rank() == 1;
  BindGiven(plan, ClassesLast(plan.TensorOperand(kSelf)), params.x);
  BindGiven(plan, plan.TensorOperand(kTarget), params.target);
  BindGiven(plan, plan.TensorOperand(kWeight), params.weight);
  if (Numel(out.dims) > 0) plan.Bind(out, params.out);
  plan.Bind(total, params.total);
  plan.Scratch("sums", NllParts(params.samples) * 8, params.parts);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("nll"));
  ANYACL_RETURN_IF_ERROR(FinishOutput(plan, kOut, 0, out));
  return FinishOutput(plan, kTotal, 0, total);
}

Status PlanNllBackward(Values v, PlanBuilder& plan) {
  enum { kGradOutput, kSelf, kTarget, kWeight, kReduction, kIgnoreIndex, kTotal, kOut };
  const Tensor& self = *v[kSelf].tensor;
  if (self.empty()) return {};
  const DType computed = ComputedOf(self);
  const Operand result = plan.TensorOperand(kOut);
  const bool direct = !plan.Overlaps(result, /*exact_too=*/true);
  const Operand out = direct ? result : plan.ScratchOperand("gradient", computed, result.dims);
  const pointwise::ScalarUse zero[] = {{Scalar::OfInt(0)}};
  ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, pointwise::Formula::kFill, computed, {}, out, zero));
  const Operand target = plan.TensorOperand(kTarget);
  Operand gradient = plan.TensorOperand(kGradOutput);
  if (Numel(gradient.dims) == 1) gradient.dims = gradient.strides = Dims();
  auto& params = plan.MakeParams<NllBackwardParams>();
  params.samples = Numel(target.dims);
  params.classes = self.dims[ClassAxis(self.dims)];
  params.ignored = v[kIgnoreIndex].integer;
  params.mean = v[kReduction].integer == kMean;
  params.wide = computed == DType::kF64;
  plan.Bind(pointwise::BroadcastTo(gradient, target.dims), params.gradient);
  plan.Bind(target, params.target);
  plan.Bind(plan.TensorOperand(kWeight), params.weight);
  if (params.mean) plan.Bind(plan.TensorOperand(kTotal), params.total);
  plan.Bind(ClassesLast(out), params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("nll_backward"));
  return direct ? Status() : pointwise::AddCopy(plan, out, result);
}

// ---- contracts ------------------------------------------------------------------------------------------------------

void DescribeClasses(Table* table) {
  Describe(table, "target", "the class of each sample; those that do not exist count as ignored");
  Describe(table, "ignoreIndex", "a class whose samples do not count");
}

Operator MakeNll(const Entry& entry) {
  const bool planes = std::string_view(entry.op) == "aclnnNLLLoss2d";
  Table table = TableOf(entry, "nll", "Negative logarithm of the probability of each sample's class, its mean or its sum.", {});
  table.formulas = {"l = -weight[target] * self[target], 0 for ignored samples", "totalWeightOut = sum of weight[target] over samples that count",
                    "out = l, its sum, or its sum / totalWeightOut"};
  table.notes = {"Without a reduction totalWeightOut is 0, but the sample's own weight where self has no axis of samples."};
  DescribeClasses(&table);
  AddNullRules(&table);
  Add(&table, {Supported(kFive)});
  const auto targets = RowsOf({DType::kI64, DType::kI32, DType::kU8});
  if (planes) Add(&table, {Floats("self")});
  Add(&table, {SameDType("weight", "self"), ResultConverts("self", "out"), ResultConverts("self", "totalWeightOut")});
  if (!planes) Add(&table, {Floats("self")});
  Add(&table, {DTypes("target", targets), Reduction(), planes ? Rank("self", 4, 4) : Rank("self", 1, 2), Custom("target", kTargetText, CheckTarget<0, 1>),
               Custom("weight", kWeightText, CheckWeight<0, 2>),
               Custom("out", kPerSampleText, planes ? CheckPerSample<0, 3, 5, 8> : CheckPerSample<0, 3, 5, 1>),
               Custom("totalWeightOut", "must have one element", CheckOne<6>)});
  return {.contract = Contract(std::move(table)), .plan = PlanNll, .family = "loss"};
}

Operator MakeNllBackward(const Entry& entry) {
  const bool planes = std::string_view(entry.op) == "aclnnNLLLoss2dBackward";
  Table table = TableOf(entry, "nll_backward", "Gradient of the negative logarithm of the probability of each sample's class.",
                        {.inputs = {"totalWeight"}});
  table.formulas = {"out = 0, but -weight[target] * gradOutput at each sample's class; divided by totalWeight for a mean"};
  DescribeClasses(&table);
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining}))});
  if (planes) Add(&table, {Floats("self")});
  for (const char* arg : {"gradOutput", "weight", "totalWeight"}) Add(&table, {SameDType(arg, "self")});
  if (planes) Add(&table, {SameDType("out", "self")});
  else Add(&table, {ResultConverts("self", "out"), Floats("self")});
  Add(&table, {DTypes("target", RowsOf({DType::kI64, DType::kI32, DType::kU8}))});
  if (!planes) Add(&table, {Reduction()});
  Add(&table, {planes ? Rank("self", 4, 4) : Rank("self", 1, 2), Custom("target", kTargetText, CheckTarget<1, 2>),
               Custom("weight", kWeightText, CheckWeight<1, 3>),
               Custom("gradOutput", kPerSampleText, planes ? CheckPerSample<1, 4, 0, 8> : CheckPerSample<1, 4, 0, 1>),
               Custom("totalWeight", "must have one element", CheckOne<6>), SameShape("out", "self")});
  if (planes) Add(&table, {Reduction()});
  return {.contract = Contract(std::move(table)), .plan = PlanNllBackward, .family = "loss"};
}

// ---- cross entropy --------------------------------------------------------------------------------------------------

// The reduction's text; absent it is "mean".
int64_t ReductionOf(const Value& v) {
  const std::string_view text = v.given() ? v.text : "mean";
  return text == "none" ? kNone : text == "mean" ? kMean : text == "sum" ? kSum : -1;
}
template <int kArg>
std::string CheckReduction(Values v, Product) {
  return ReductionOf(v[kArg]) >= 0 ? "" : fmt::format("must be none, mean or sum, got {}", v[kArg].text);
}
template <int kArg>
std::string CheckSmoothing(Values v, Product) {
  return v[kArg].real >= 0 && v[kArg].real <= 1 ? "" : fmt::format("must be 0 to 1, got {}", v[kArg].real);
}
// [N], or one element.
template <int kInput, int kReduction, int kOut>
std::string CheckLoss(Values v, Product) {
  const Dims& out = v[kOut].tensor->dims;
  if (ReductionOf(v[kReduction]) != kNone) {
    return Numel(out) == 1 ? "" : fmt::format("must have one element for a mean or sum, got shape {}", ToString(out));
  }
  const Dims want = {v[kInput].tensor->dims[0]};
  return out == want ? "" : fmt::format("must have shape {} without a reduction, got {}", ToString(want), ToString(out));
}

template <int kReduction, int kSmoothing>
void AddAttributeRules(Table* table) {
  Add(table, {Custom("reductionOptional", "must be none, mean or sum", CheckReduction<kReduction>).Code(code::kTiling),
              Custom("labelSmoothing", "must be 0 to 1", CheckSmoothing<kSmoothing>).Code(code::kTiling)});
}

Status PlanCrossEntropy(Values v, PlanBuilder& plan) {
  enum { kInput, kTarget, kWeight, kReduction, kIgnoreIndex, kSmoothing, kLseScale, kReturnZ, kLoss, kLogProb };
  const Tensor& input = *v[kInput].tensor;
  const int64_t reduction = ReductionOf(v[kReduction]);
  if (input.empty() && reduction == kNone) return {};
  const Operand log_prob = DenseOutput(plan, kLogProb, 0, DType::kF32), out = DenseOutput(plan, kLoss, 0, DType::kF32);
  if (!input.empty()) {
    Operand x;
    ANYACL_RETURN_IF_ERROR(DenseInput(plan, kInput, 0, DType::kF32, &x));
    auto& rows = plan.MakeParams<softmax::Params>();
    rows.kind = softmax::Kind::kLogSoftmax;
    rows.rows = input.dims[0];
    rows.count = input.dims[1];
    plan.Bind(x, rows.x);
    plan.Bind(log_prob, rows.out);
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("softmax"));
  }
  auto& params = plan.MakeParams<NllParams>();
  params.samples = input.dims[0];
  params.classes = input.dims[1];
  params.ignored = v[kIgnoreIndex].integer;
  params.reduction = reduction;
  params.smoothing = v[kSmoothing].real;
  BindGiven(plan, log_prob, params.x);
  BindGiven(plan, plan.TensorOperand(kTarget), params.target);
  if (v[kWeight].given()) plan.Bind(plan.TensorOperand(kWeight), params.weight);
  plan.Bind(out, params.out);
  plan.Scratch("sums", NllParts(params.samples) * 8, params.parts);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("nll"));
  ANYACL_RETURN_IF_ERROR(FinishOutput(plan, kLoss, 0, out));
  return FinishOutput(plan, kLogProb, 0, log_prob);
}

Operator MakeCrossEntropyLoss(const Entry& entry) {
  Table table = TableOf(entry, "nll", "Cross entropy of the soft-max of rows with the rows' classes, its mean or its sum.",
                        {.optional = {"weightOptional", "reductionOptional"}, .outputs = {"lossOut", "logProbOut"}, .inputs = {"zlossOut", "lseForZlossOut"}});
  table.formulas = {"logProbOut = ln(softmax(input)) of each row",
                    "l = -(1 - labelSmoothing) * weight[target] * logProb[target] - labelSmoothing / C * sum of weight * logProb, 0 for ignored rows",
                    "lossOut = l, its sum, or its sum / sum of weight[target] over rows that count"};
  table.notes = {"reductionOptional: none, mean (also when it is null) or sum.", "zlossOut and lseForZlossOut are not touched; lseSquareScaleForZloss and returnZloss have no effect."};
  table.sizes = {{"N", "input", 0}, {"C", "input", 1}};
  DescribeClasses(&table);
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("input", RowsOf(types::kFloat3)), DTypes("target", RowsOf({DType::kI64, DType::kI32})),
               DTypes("weightOptional", RowsOf({DType::kF32})), SameDType("lossOut", "input"), SameDType("logProbOut", "input"),
               Rank("input", 2, 2).Code(code::kTiling), Require("input", "C > 0").Code(code::kTiling), ShapeIs("target", "N").Code(code::kTiling),
               ShapeIs("weightOptional", "C").Code(code::kTiling)});
  AddAttributeRules<3, 5>(&table);
  Add(&table, {Custom("lossOut", "must have one element per row, or one for a mean or sum", CheckLoss<0, 3, 8>).Code(code::kTiling),
               SameShape("logProbOut", "input").Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanCrossEntropy, .family = "loss"};
}

Status PlanCrossEntropyGrad(Values v, PlanBuilder& plan) {
  enum { kGradLoss, kLogProb, kTarget, kWeight, kGradZ, kLse, kReduction, kIgnoreIndex, kSmoothing, kLseScale, kOut };
  const Tensor& log_prob = *v[kLogProb].tensor;
  if (log_prob.empty()) return {};
  Dense dense(plan, v, DType::kF32);
  for (const int arg : {kGradLoss, kLogProb, kWeight}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  ANYACL_RETURN_IF_ERROR(dense.Read(kTarget, DType::kI64));
  dense.Write(kOut);
  auto& params = plan.MakeParams<CrossEntropyGradParams>();
  params.samples = log_prob.dims[0];
  params.classes = log_prob.dims[1];
  params.ignored = v[kIgnoreIndex].integer;
  params.reduction = ReductionOf(v[kReduction]);
  params.smoothing = v[kSmoothing].real;
  dense.Bind(kGradLoss, params.gradient);
  dense.Bind(kLogProb, params.log_prob);
  dense.Bind(kTarget, params.target);
  dense.Bind(kWeight, params.weight);
  dense.BindOut(kOut, params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("cross_entropy_grad"));
  return dense.Finish();
}

Operator MakeCrossEntropyGrad(const Entry& entry) {
  const std::vector<const char*> optional = {"weightOptional", "gradZlossOptional", "lseForZlossOptional", "reductionOptional"};
  Table table = TableOf(entry, "cross_entropy_grad", "Gradient of the cross entropy of rows with their classes.", {.optional = optional, .outputs = {"out"}});
  table.formulas = {"a = g * (1 - labelSmoothing) * weight[target], b = g * labelSmoothing / C; g is gradLoss, divided by the sum of weight[target] for a mean",
                    "out[n, c] = exp(logProb[n, c]) * (a + b * sum of weight) - (c == target ? a : 0) - b * weight[c], 0 in ignored rows"};
  table.notes = {"reductionOptional: none, mean (also when it is null) or sum.", "gradZlossOptional, lseForZlossOptional and lseSquareScaleForZloss have no effect."};
  table.sizes = {{"N", "logProb", 0}, {"C", "logProb", 1}};
  DescribeClasses(&table);
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("gradLoss", RowsOf(types::kFloat3)), SameDType("logProb", "gradLoss"),
               DTypes("target", RowsOf({DType::kI64, DType::kI32})), DTypes("weightOptional", RowsOf({DType::kF32})), SameDType("out", "gradLoss"),
               Rank("logProb", 2, 2).Code(code::kTiling), Require("logProb", "C > 0").Code(code::kTiling), ShapeIs("target", "N").Code(code::kTiling),
               ShapeIs("weightOptional", "C").Code(code::kTiling)});
  AddAttributeRules<6, 8>(&table);
  Add(&table, {Custom("gradLoss", "must have one element per row, or one for a mean or sum", CheckLoss<1, 6, 0>).Code(code::kTiling),
               SameShape("out", "logProb").Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanCrossEntropyGrad, .family = "loss"};
}

}  // namespace

void DeclareClassLosses(Declarations& declarations) {
  for (const char* op : {"aclnnNLLLoss", "aclnnNLLLoss2d"}) declarations.Add(op, MakeNll);
  for (const char* op : {"aclnnNLLLossBackward", "aclnnNLLLoss2dBackward"}) declarations.Add(op, MakeNllBackward);
  declarations.Add("aclnnCrossEntropyLoss", MakeCrossEntropyLoss);
  declarations.Add("aclnnCrossEntropyLossGrad", MakeCrossEntropyGrad);
}

}  // namespace anyacl
