// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Optimizers: each is one step of ops/optim/update.h, with its own names for the arguments and its own conventions of what a
// step counts from.
#include <fmt/format.h>

#include <cmath>

#include "core/codes.h"
#include "ops/operators.h"
#include "ops/optim/update.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using optim::AmpParams;
using optim::Array;
using optim::Correction;
using optim::Method;
using optim::Number;
using optim::UpdateParams;

constexpr DTypeSet kF32 = {DType::kF32};

std::vector<TypeRow> Floats() { return RowsOf(types::kFloat3 | types::kDouble, types::kFloat3); }
std::vector<TypeRow> Steps() { return RowsOf({DType::kF32, DType::kI64}); }

// ---- plans ----------------------------------------------------------------------------------------------------------

// Arguments with the arrays of a step, -1 where there is none.
struct Arrays {
  int var, m, v, extra, grad;
};

// Binds the arrays of one step; `item` of lists.
void BindArrays(PlanBuilder& plan, UpdateParams& params, const Arrays& at, int item = 0) {
  const auto describe = [&](int arg, Array& array) {
    if (arg >= 0) array.dtype = plan.TensorOf(arg, item).dtype;
    params.wide = params.wide || array.dtype == DType::kF64;
  };
  describe(at.var, params.var);
  describe(at.m, params.m);
  describe(at.v, params.v);
  describe(at.extra, params.extra);
  describe(at.grad, params.grad);
  params.count = plan.TensorOf(at.var, item).numel();
  const PlanBuilder::Slot var(at.var, params.var.data, item), grad(at.grad, params.grad.data, item);
  const PlanBuilder::Slot m(at.m, params.m.data, item), v(at.v, params.v.data, item), extra(at.extra, params.extra.data, item);
  if (at.extra >= 0) plan.BindElementwise({var, m, v, extra, grad});
  else if (at.v >= 0) plan.BindElementwise({var, m, v, grad});
  else if (at.m >= 0) plan.BindElementwise({var, m, grad});
  else plan.BindElementwise({var, grad});
}

// A number that lies on the device.
void BindNumber(PlanBuilder& plan, int arg, Number& number, int item = 0) {
  const Operand operand = plan.TensorOperand(arg, item);
  number.dtype = operand.dtype;
  plan.Bind(operand, number.data);
}

Status PlanApplyAdam(Values v, PlanBuilder& plan) {
  enum { kVar, kM, kV, kBeta1Power, kBeta2Power, kLr, kBeta1, kBeta2, kEpsilon, kGrad, kUseLocking, kUseNesterov };
  if (v[kVar].tensor->empty()) return {};
  auto& params = plan.MakeParams<UpdateParams>();
  BindArrays(plan, params, {kVar, kM, kV, -1, kGrad});
  BindNumber(plan, kBeta1Power, params.beta1_power);
  BindNumber(plan, kBeta2Power, params.beta2_power);
  BindNumber(plan, kLr, params.lr);
  BindNumber(plan, kBeta1, params.beta1);
  BindNumber(plan, kBeta2, params.beta2);
  BindNumber(plan, kEpsilon, params.eps);
  params.correction = Correction::kPowers;
  params.corrects_rate = true;
  params.nesterov = v[kUseNesterov].flag;
  return plan.ChooseKernel("update");
}

Status PlanApplyAdamW(Values v, PlanBuilder& plan) {
  enum { kVar, kM, kV, kBeta1Power, kBeta2Power, kLr, kDecay, kBeta1, kBeta2, kEps, kGrad, kMax, kAmsgrad, kMaximize };
  if (v[kVar].tensor->empty()) return {};
  auto& params = plan.MakeParams<UpdateParams>();
  params.amsgrad = v[kAmsgrad].flag;
  BindArrays(plan, params, {kVar, kM, kV, params.amsgrad ? kMax : -1, kGrad});
  BindNumber(plan, kBeta1Power, params.beta1_power);
  BindNumber(plan, kBeta2Power, params.beta2_power);
  BindNumber(plan, kLr, params.lr);
  BindNumber(plan, kDecay, params.decay);
  BindNumber(plan, kBeta1, params.beta1);
  BindNumber(plan, kBeta2, params.beta2);
  BindNumber(plan, kEps, params.eps);
  params.correction = Correction::kBefore;
  params.maximize = v[kMaximize].flag;
  return plan.ChooseKernel("update");
}

Status PlanApplyAdamWV2(Values v, PlanBuilder& plan) {
  enum { kVar, kM, kV, kMax, kGrad, kStep, kLr, kBeta1, kBeta2, kDecay, kEps, kAmsgrad, kMaximize };
  if (v[kVar].tensor->empty()) return {};
  auto& params = plan.MakeParams<UpdateParams>();
  params.amsgrad = params.keeps_max = v[kAmsgrad].flag;
  BindArrays(plan, params, {kVar, kM, kV, params.amsgrad ? kMax : -1, kGrad});
  BindNumber(plan, kStep, params.step);
  params.lr.value = v[kLr].real;
  params.beta1.value = v[kBeta1].real;
  params.beta2.value = v[kBeta2].real;
  params.decay.value = v[kDecay].real;
  params.eps.value = v[kEps].real;
  params.correction = Correction::kStep;
  params.step_offset = 1;
  params.maximize = v[kMaximize].flag;
  return plan.ChooseKernel("update");
}

Status PlanEmaAdam(Values v, PlanBuilder& plan) {
  enum { kGrad, kVar, kM, kV, kS, kStep, kLr, kEmaDecay, kBeta1, kBeta2, kEps, kMode, kBiasCorrection, kDecay };
  if (v[kVar].tensor->empty()) return {};
  auto& params = plan.MakeParams<UpdateParams>();
  BindArrays(plan, params, {kVar, kM, kV, kS, kGrad});
  BindNumber(plan, kStep, params.step);
  params.lr.value = v[kLr].real;
  params.beta1.value = v[kBeta1].real;
  params.beta2.value = v[kBeta2].real;
  params.eps.value = v[kEps].real;
  (v[kMode].integer == 0 ? params.l2 : params.decay.value) = v[kDecay].real;
  params.ema = v[kEmaDecay].real;
  params.has_ema = true;
  params.correction = v[kBiasCorrection].flag ? Correction::kStep : Correction::kNone;
  return plan.ChooseKernel("update");
}

bool HasEntries(const Value& list) { return list.given() && !list.tensors->tensors.empty(); }
bool HasElements(const Value& tensor) { return tensor.given() && !tensor.tensor->empty(); }

Status PlanFusedAdamw(Values v, PlanBuilder& plan) {
  enum { kParams, kGrads, kM, kV, kMax, kSteps, kGradScale, kFoundInf, kLr, kBeta1, kBeta2, kDecay, kEps, kAmsgrad, kMaximize };
  const auto& entries = v[kParams].tensors->tensors;
  for (int item = 0; item < static_cast<int>(entries.size()); ++item) {
    if (entries[item]->empty()) continue;
    auto& params = plan.MakeParams<UpdateParams>();
    params.amsgrad = params.keeps_max = v[kAmsgrad].flag;
    BindArrays(plan, params, {kParams, kM, kV, params.amsgrad ? kMax : -1, kGrads}, item);
    BindNumber(plan, kSteps, params.step, item);
    if (v[kGradScale].given()) BindNumber(plan, kGradScale, params.grad_scale);
    if (v[kFoundInf].given()) BindNumber(plan, kFoundInf, params.found_inf);
    params.lr.value = v[kLr].real;
    params.beta1.value = v[kBeta1].real;
    params.beta2.value = v[kBeta2].real;
    params.decay.value = v[kDecay].real;
    params.eps.value = v[kEps].real;
    params.correction = Correction::kStep;
    params.step_offset = 1;
    params.maximize = v[kMaximize].flag;
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("update"));
  }
  return {};
}

Status PlanFusedSgd(Values v, PlanBuilder& plan) {
  enum { kParams, kGrads, kBuffers, kGradScale, kDecay, kMomentum, kLr, kDampening, kNesterov, kMaximize, kFirstStep };
  const auto& entries = v[kParams].tensors->tensors;
  for (int item = 0; item < static_cast<int>(entries.size()); ++item) {
    if (entries[item]->empty()) continue;
    auto& params = plan.MakeParams<UpdateParams>();
    params.method = Method::kSgd;
    BindArrays(plan, params, {kParams, HasEntries(v[kBuffers]) ? kBuffers : -1, -1, -1, kGrads}, item);
    if (HasElements(v[kGradScale])) BindNumber(plan, kGradScale, params.grad_scale);
    params.lr.value = v[kLr].real;
    params.l2 = v[kDecay].real;
    params.momentum = v[kMomentum].real;
    params.dampening = v[kDampening].real;
    params.nesterov = v[kNesterov].flag;
    params.maximize = v[kMaximize].flag;
    params.first_step = v[kFirstStep].flag;
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("update"));
  }
  return {};
}

Status PlanAmp(Values v, PlanBuilder& plan) {
  enum { kScale, kTracker, kFound, kGrowth, kBackoff, kInterval, kNewScale, kNewTracker };
  auto& params = plan.MakeParams<AmpParams>();
  plan.Bind(plan.TensorOperand(kScale), params.scale);
  plan.Bind(plan.TensorOperand(kTracker), params.tracker);
  plan.Bind(plan.TensorOperand(kFound), params.found);
  plan.Bind(plan.TensorOperand(kNewScale), params.new_scale);
  plan.Bind(plan.TensorOperand(kNewTracker), params.new_tracker);
  params.dtype = v[kScale].tensor->dtype;
  params.growth = v[kGrowth].real;
  params.backoff = v[kBackoff].real;
  params.interval = v[kInterval].integer;
  return plan.ChooseKernel("amp_update");
}

// ---- contracts ------------------------------------------------------------------------------------------------------

constexpr const char* kAdamw =
    "var = var (1 - lr weightDecay); m += (g - m)(1 - beta1); v = beta2 v + (1 - beta2) g^2; "
    "var -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)";

Operator Made(Table table, Status (*plan)(Values, PlanBuilder&)) { return {.contract = Contract(std::move(table)), .plan = plan, .family = "optim"}; }

Operator MakeApplyAdam(const Entry& entry) {
  Table table = TableOf(entry, "update", "A step of Adam in place, with the powers of beta1 and beta2 as given.", {.in_out = {"varRef", "m", "v"}});
  table.formulas = {"m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2",
                    "var -= lr sqrt(1 - beta2Power) / (1 - beta1Power) * n / (sqrt(v) + epsilon), n = m, or beta1 m + (1 - beta1) g with useNesterov"};
  table.notes = {"useLocking has no effect."};
  AddNullRules(&table);
  for (const char* arg : {"varRef", "m", "v"}) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  const std::vector<const char*> numbers = {"beta1Power", "beta2Power", "lr", "beta1", "beta2", "epsilon"};
  for (const char* arg : numbers) Add(&table, {DTypes(arg, RowsOf(kF32))});
  Add(&table, {DTypes("grad", RowsOf(types::kFloat3))});
  for (const char* arg : {"m", "v", "grad"}) Add(&table, {SameDType(arg, "varRef"), SameShape(arg, "varRef")});
  for (const char* arg : numbers) Add(&table, {NumelIs(arg, "1")});
  Add(&table, {Rank("varRef", 0, 8)});
  return Made(std::move(table), PlanApplyAdam);
}

Operator MakeApplyAdamW(const Entry& entry) {
  Table table = TableOf(entry, "update", "A step of AdamW in place; beta1Power and beta2Power are those of the step before.",
                        {.in_out = {"varRef", "mRef", "vRef"}, .optional = {"maxGradNormOptional"}});
  table.formulas = {"var = var (1 - lr weightDecay); m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2",
                    "var -= lr m / (1 - beta1Power beta1) / (sqrt(u / (1 - beta2Power beta2)) + eps), u = v, or max(maxGradNorm, v) with amsgrad"};
  table.notes = {"g is -grad with maximize. maxGradNormOptional and the powers are not written."};
  AddNullRules(&table);
  Add(&table, {NotNull("maxGradNormOptional").If("amsgrad"),
               Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining}))});
  const std::vector<const char*> numbers = {"beta1Power", "beta2Power", "lr", "weightDecay", "beta1", "beta2", "eps"};
  std::vector<const char*> all = {"mRef", "vRef"};
  all.insert(all.end(), numbers.begin(), numbers.end());
  all.insert(all.end(), {"grad", "maxGradNormOptional"});
  Add(&table, {DTypes("varRef", RowsOf(types::kFloat3))});
  for (const char* arg : all) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  for (const char* arg : all) Add(&table, {SameDType(arg, "varRef")});
  for (const char* arg : {"mRef", "vRef", "grad", "maxGradNormOptional"}) Add(&table, {SameShape(arg, "varRef")});
  for (const char* arg : numbers) Add(&table, {NumelIs(arg, "1")});
  Add(&table, {Rank("varRef", 0, 8)});
  return Made(std::move(table), PlanApplyAdamW);
}

Operator MakeApplyAdamWV2(const Entry& entry) {
  Table table = TableOf(entry, "update", "A step of AdamW in place; step counts those that were made.",
                        {.in_out = {"varRef", "mRef", "vRef", "maxGradNormOptionalRef"}, .optional = {"maxGradNormOptionalRef"}});
  table.formulas = {kAdamw, "t = step + 1; with amsgrad max = max(max, v) stands for v"};
  table.notes = {"g is -grad with maximize. step is not written. Each state is rounded to its own dtype."};
  for (const char* arg : {"varRef", "mRef", "vRef"}) Add(&table, {NotNull(arg)});
  Add(&table, {NotNull("maxGradNormOptionalRef").If("amsgrad"), NotNull("grad"), NotNull("step"), Supported(kNewer)});
  for (const char* arg : {"varRef", "mRef", "vRef", "maxGradNormOptionalRef", "grad"}) Add(&table, {DTypes(arg, Floats())});
  Add(&table, {DTypes("step", Steps())});
  for (const char* arg : {"mRef", "vRef", "maxGradNormOptionalRef", "grad"}) Add(&table, {SameShape(arg, "varRef")});
  Add(&table, {NumelIs("step", "1"), Rank("varRef", 0, 8)});
  return Made(std::move(table), PlanApplyAdamWV2);
}

Operator MakeEmaAdam(const Entry& entry) {
  const std::vector<const char*> arrays = {"grad", "varRef", "mRef", "vRef", "sRef"};
  Table table = TableOf(entry, "update", "A step of Adam in place, and an exponential moving average of what it makes.",
                        {.in_out = {"varRef", "mRef", "vRef", "sRef"}});
  table.formulas = {"g = grad, plus weightDecay var in mode 0; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2",
                    "u = m / c1 / (sqrt(v / c2) + eps), plus weightDecay var in mode 1; var -= lr u; s = emaDecay s + (1 - emaDecay) var",
                    "c1 = 1 - beta1^step and c2 = 1 - beta2^step with biasCorrection, else 1"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  for (const char* arg : arrays) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  Add(&table, {DTypes("step", RowsOf({DType::kI64}))});
  for (size_t k = 1; k < arrays.size(); ++k) {
    Add(&table, {SameDType(arrays[k], "grad").Code(code::kTiling), SameShape(arrays[k], "grad").Code(code::kTiling)});
  }
  Add(&table, {NumelIs("step", "1").Code(code::kTiling), OneOf("mode", {0, 1}).Code(code::kTiling), Rank("grad", 0, 8).Code(code::kTiling)});
  return Made(std::move(table), PlanEmaAdam);
}

// ---- lists ----------------------------------------------------------------------------------------------------------

std::string CheckAnyParams(Values v, Product) { return HasEntries(v[0]) ? "" : "must have at least one entry, got none"; }

std::string CheckMaxGiven(Values v, Product) {
  enum { kMax = 4, kAmsgrad = 13 };
  return v[kAmsgrad].flag && !HasEntries(v[kMax]) ? "must be false without maxExpAvgSqsRef, got true" : "";
}
std::string CheckMaxLength(Values v, Product) {
  enum { kParams, kMax = 4 };
  if (!HasEntries(v[kMax]) || v[kMax].tensors->tensors.size() == v[kParams].tensors->tensors.size()) return "";
  return fmt::format("must have as many entries as paramsRef, got {} and {}", v[kMax].tensors->tensors.size(), v[kParams].tensors->tensors.size());
}

// Of a list that may be absent.
template <int kList>
std::string CheckEntries(Values v, Product) {
  for (const Tensor* t : v[kList].tensors->tensors) {
    if (!t) return "must have no null entry, got one";
  }
  return "";
}
template <int kList>
Rule NoNullEntries(const char* name) {
  return Custom(name, "must have no null entry", CheckEntries<kList>).Code(code::kNull);
}

// Of lists with as many entries as the first one, or none.
template <int kList, int kFirst>
std::string CheckLikeFirst(Values v, Product) {
  if (!HasEntries(v[kList])) return "";
  for (size_t i = 0; i < v[kFirst].tensors->tensors.size(); ++i) {
    const Tensor &own = *v[kList].tensors->tensors[i], &first = *v[kFirst].tensors->tensors[i];
    if (own.dtype != first.dtype) return fmt::format("must have the dtypes of paramsRef, got {} and {} at entry {}", Name(own.dtype), Name(first.dtype), i);
    if (own.dims != first.dims) {
      return fmt::format("must have the shapes of paramsRef, got {} and {} at entry {}", ToString(own.dims), ToString(first.dims), i);
    }
  }
  return "";
}

std::string CheckOneType(Values v, Product) {
  for (const Tensor* t : v[0].tensors->tensors) {
    if (t->dtype != v[0].tensors->tensors[0]->dtype) {
      return fmt::format("must have one dtype, got {} and {}", Name(v[0].tensors->tensors[0]->dtype), Name(t->dtype));
    }
  }
  return "";
}
std::string CheckSteps(Values v, Product) {
  enum { kSteps = 5 };
  const auto& steps = v[kSteps].tensors->tensors;
  for (const Tensor* t : steps) {
    if (t->dtype != steps[0]->dtype) return fmt::format("must have one dtype, got {} and {}", Name(steps[0]->dtype), Name(t->dtype));
    if (t->numel() != 1) return fmt::format("must have one element in each entry, got shape {}", ToString(t->dims));
  }
  return "";
}

Operator MakeFusedAdamw(const Entry& entry) {
  Table table = TableOf(entry, "update", "A step of AdamW in place for every entry of lists; stateSteps count those that were made.",
                        {.in_out = {"paramsRef", "expAvgsRef", "expAvgSqsRef", "maxExpAvgSqsRef"},
                         .optional = {"maxExpAvgSqsRef", "gradScaleOptional", "foundInfOptional"}});
  table.formulas = {kAdamw, "t = step + 1; with amsgrad max = max(max, v) stands for v"};
  table.notes = {"g is grad / gradScaleOptional, negated with maximize; grads are not written.", "Nothing is written where foundInfOptional is 1.",
                 "maxExpAvgSqsRef may be empty where amsgrad is false."};
  Add(&table, {Require("lr", "lr >= 0"), Require("beta1", "beta1 >= 0"), Require("beta2", "beta2 >= 0"), Require("weightDecay", "weightDecay >= 0"),
               Custom("amsgrad", "must be false without maxExpAvgSqsRef", CheckMaxGiven)});
  AddNullRules(&table);
  Add(&table, {NoNullEntries<4>("maxExpAvgSqsRef"), Supported(kNewer), Custom("paramsRef", "must have at least one entry", CheckAnyParams), SameLength("grads", "paramsRef"),
               SameLength("expAvgsRef", "paramsRef"), SameLength("expAvgSqsRef", "paramsRef"), SameLength("stateSteps", "paramsRef"),
               Custom("maxExpAvgSqsRef", "must have as many entries as paramsRef", CheckMaxLength), DTypes("paramsRef", Floats()),
               Custom("paramsRef", "must have one dtype", CheckOneType), DTypes("stateSteps", Steps()), DTypes("gradScaleOptional", Floats()),
               DTypes("foundInfOptional", Floats()), Custom("grads", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<1, 0>),
               Custom("expAvgsRef", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<2, 0>),
               Custom("expAvgSqsRef", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<3, 0>),
               Custom("maxExpAvgSqsRef", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<4, 0>), Rank("paramsRef", 0, 8),
               Custom("stateSteps", "must have one dtype and one element in each entry", CheckSteps), NumelIs("gradScaleOptional", "1"),
               NumelIs("foundInfOptional", "1")});
  return Made(std::move(table), PlanFusedAdamw);
}

constexpr double kNoMomentum = 1e-6;

std::string CheckNesterov(Values v, Product) {
  enum { kMomentum = 5, kDampening = 7, kNesterov = 8 };
  if (!v[kNesterov].flag || (v[kMomentum].real > 0 && std::fabs(v[kDampening].real) < kNoMomentum)) return "";
  return fmt::format("must be false without momentum or with dampening, got momentum {} and dampening {}", v[kMomentum].real, v[kDampening].real);
}
std::string CheckBuffers(Values v, Product) {
  enum { kBuffers = 2, kMomentum = 5 };
  const bool needed = std::fabs(v[kMomentum].real) >= kNoMomentum;
  if (needed == HasEntries(v[kBuffers])) return "";
  return fmt::format("must be 0 without momentumBufferListOptionalRef and only then, got {}", v[kMomentum].real);
}
std::string CheckBufferLength(Values v, Product) {
  enum { kParams, kGrads, kBuffers };
  const size_t entries = v[kParams].tensors->tensors.size();
  if (!HasEntries(v[kBuffers]) || v[kBuffers].tensors->tensors.size() == entries) return "";
  return fmt::format("must have as many entries as paramsRef, got {} and {}", v[kBuffers].tensors->tensors.size(), entries);
}
std::string CheckGradScale(Values v, Product) {
  enum { kGradScale = 3 };
  return v[kGradScale].tensor->numel() <= 1 ? "" : "must have one element, or none, got shape " + ToString(v[kGradScale].tensor->dims);
}

Operator MakeFusedSgd(const Entry& entry) {
  Table table = TableOf(entry, "update", "A step of stochastic gradient descent in place for every entry of lists.",
                        {.in_out = {"paramsRef", "gradsRef", "momentumBufferListOptionalRef"}, .optional = {"momentumBufferListOptionalRef", "gradScaleOptional"}});
  table.formulas = {"grad = grad / gradScale; h = grad, negated with maximize, plus weightDecay param",
                    "buf = isFirstStep ? h : momentum buf + (1 - dampening) h; d = nesterov ? h + momentum buf : buf; without buffers d = h", "param -= lr d"};
  table.notes = {"Empty lists of buffers and an empty gradScaleOptional count as absent."};
  Add(&table, {Require("weightDecay", "weightDecay >= 0"), Require("momentum", "momentum >= 0"), Require("lr", "lr >= 0"),
               Custom("nesterov", "must be false without momentum or with dampening", CheckNesterov),
               Custom("momentum", "must be 0 without momentumBufferListOptionalRef and only then", CheckBuffers),
               Require("dampening", "dampening >= 0")});
  AddNullRules(&table);
  const DTypeSet newest = types::kFloat3 | types::kDouble;
  Add(&table, {NoNullEntries<2>("momentumBufferListOptionalRef"), Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})),
               Custom("paramsRef", "must have at least one entry", CheckAnyParams), SameLength("gradsRef", "paramsRef"),
               Custom("momentumBufferListOptionalRef", "must have as many entries as paramsRef", CheckBufferLength), DTypes("paramsRef", RowsOf(newest, types::kFloat3)),
               Custom("paramsRef", "must have one dtype", CheckOneType), DTypes("gradScaleOptional", Floats()), Rank("paramsRef", 0, 8),
               Custom("gradsRef", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<1, 0>),
               Custom("momentumBufferListOptionalRef", "must have the dtypes and shapes of paramsRef", CheckLikeFirst<2, 0>),
               Custom("gradScaleOptional", "must have one element, or none", CheckGradScale)});
  return Made(std::move(table), PlanFusedSgd);
}

// ---- loss scale -----------------------------------------------------------------------------------------------------

std::string CheckInterval(Values v, Product) {
  enum { kInterval = 5 };
  const int64_t interval = v[kInterval].integer;
  return interval >= 1 && interval <= INT32_MAX ? "" : fmt::format("must be 1 to 2147483647, got {}", interval);
}

Operator MakeAmpUpdateScale(const Entry& entry) {
  Table table = TableOf(entry, "amp_update", "The next factor of losses, which grows after a number of steps and shrinks after one with infinities.",
                        {.outputs = {"updatedScale", "updatedGrowthTracker"}});
  table.formulas = {"foundInf is not 0: updatedScale = currentScale * backoffFactor, updatedGrowthTracker = 0",
                    "growthTracker + 1 == growthInterval: updatedScale = currentScale * growthFactor if that is finite, updatedGrowthTracker = 0",
                    "else updatedScale = currentScale, updatedGrowthTracker = growthTracker + 1"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("currentScale", RowsOf(types::kFloat3)), DTypes("growthTracker", RowsOf({DType::kI32})),
               SameDType("foundInf", "currentScale"), SameDType("updatedScale", "currentScale"), DTypes("updatedGrowthTracker", RowsOf({DType::kI32}))});
  for (const char* arg : {"currentScale", "growthTracker", "foundInf", "updatedScale", "updatedGrowthTracker"}) {
    Add(&table, {NumelIs(arg, "1").Code(code::kTiling)});
  }
  Add(&table, {Custom("growthInterval", "must be 1 to 2147483647", CheckInterval).Code(code::kTiling)});
  return Made(std::move(table), PlanAmp);
}

}  // namespace

void DeclareOptim(Declarations& declarations) {
  declarations.Add("aclnnAmpUpdateScale", MakeAmpUpdateScale);
  declarations.Add("aclnnApplyAdam", MakeApplyAdam);
  declarations.Add("aclnnApplyAdamW", MakeApplyAdamW);
  declarations.Add("aclnnApplyAdamWV2", MakeApplyAdamWV2);
  declarations.Add("aclnnApplyFusedEmaAdam", MakeEmaAdam);
  declarations.Add("aclnnFusedAdamw", MakeFusedAdamw);
  declarations.Add("aclnnFusedSgd", MakeFusedSgd);
}

}  // namespace anyacl
