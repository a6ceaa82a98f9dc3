// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Connectionist temporal classification: how probable labels are whose times nobody knows, and the gradient of that.
#include "ops/loss/ctc.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "ops/dense.h"
#include "ops/loss/loss.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using namespace loss;

// Where the arguments that both have stand.
struct Places {
  int x, targets, steps, labels, blank, zero_infinity;
};
constexpr Places kForward = {0, 1, 2, 3, 4, 5}, kBackward = {1, 2, 3, 4, 7, 8};
enum { kNll = 6, kAlpha = 7 };
enum { kGradOut = 0, kGivenNll = 5, kGivenAlpha = 6, kOut = 9 };

using Lengths = std::vector<int64_t>;

int64_t Most(const Lengths& lengths) { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }
int64_t StepsOf(const Dims& x) { return x[0]; }
int64_t SamplesOf(const Dims& x) { return x.rank() == 3 ? x[1] : 1; }  // [T, C]: one
int64_t ClassesOf(const Dims& x) { return x[x.rank() - 1]; }

// ---- rules ----------------------------------------------------------------------------------------------------------

template <const Places& kAt>
std::string CheckSteps(Values v, Product) {
  const Dims& x = v[kAt.x].tensor->dims;
  return StepsOf(x) > 0 ? "" : fmt::format("must have steps of time, got shape {}", ToString(x));
}

template <const Places& kAt>
std::string CheckBlank(Values v, Product) {
  const int64_t classes = ClassesOf(v[kAt.x].tensor->dims), blank = v[kAt.blank].integer;
  return blank >= 0 && blank < classes ? "" : fmt::format("must be 0 to {}, got {}", classes - 1, blank);
}

std::string WrongLengths(const Lengths& lengths, int64_t count, int64_t most) {
  if (static_cast<int64_t>(lengths.size()) != count) return fmt::format("must have an entry per sample, {} of them, got {}", count, lengths.size());
  for (const int64_t one : lengths) {
    if (one < 0 || one > most) return fmt::format("must have entries from 0 to {}, got {}", most, one);
  }
  return "";
}
template <const Places& kAt>
std::string CheckInputLengths(Values v, Product) {
  const Dims& x = v[kAt.x].tensor->dims;
  const int64_t most = std::min<int64_t>(StepsOf(x), std::numeric_limits<int32_t>::max());
  return WrongLengths(v[kAt.steps].ints->values, SamplesOf(x), most);
}
template <const Places& kAt>
std::string CheckTargetLengths(Values v, Product) {
  return WrongLengths(v[kAt.labels].ints->values, SamplesOf(v[kAt.x].tensor->dims), std::numeric_limits<int32_t>::max() / 4);
}

template <const Places& kAt>
std::string CheckTargets(Values v, Product) {
  const Lengths& lengths = v[kAt.labels].ints->values;
  const Dims& targets = v[kAt.targets].tensor->dims;
  const int64_t samples = SamplesOf(v[kAt.x].tensor->dims), all = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (targets.rank() == 1) return targets[0] == all ? "" : fmt::format("must have the {} elements that targetLengths adds up to, got {}", all, targets[0]);
  if (targets.rank() == 2 && targets[0] == samples && targets[1] >= Most(lengths)) return "";
  return fmt::format("must have {} rows of {} or more labels, or all one behind the other, got shape {}", samples, Most(lengths), ToString(targets));
}

// Forward: one state per row of alpha, or their number rounded up to a multiple of 8, as older products have it.
std::string CheckAlpha(Values v, Product product) {
  const Dims &x = v[kForward.x].tensor->dims, &alpha = v[kAlpha].tensor->dims;
  const int64_t states = 2 * Most(v[kForward.labels].ints->values) + 1, rounded = (states + 7) / 8 * 8;
  const Dims want = {SamplesOf(x), StepsOf(x), rounded}, newest = {SamplesOf(x), StepsOf(x), states};
  if (alpha == want || (product == Product::kAscend950 && alpha == newest)) return "";
  return fmt::format("must have shape {}, got {}", ToString(want), ToString(alpha));
}
std::string CheckGivenAlpha(Values v, Product) {
  const Dims &x = v[kBackward.x].tensor->dims, &alpha = v[kGivenAlpha].tensor->dims;
  const int64_t states = 2 * Most(v[kBackward.labels].ints->values) + 1;
  if (alpha.rank() == 3 && alpha[0] == SamplesOf(x) && alpha[1] == StepsOf(x) && alpha[2] >= states) return "";
  return fmt::format("must have shape {} or more in the last axis, got {}", ToString(Dims{SamplesOf(x), StepsOf(x), states}), ToString(alpha));
}

template <const Places& kAt, int kArg>
std::string CheckPerSample(Values v, Product) {
  const Dims& x = v[kAt.x].tensor->dims;
  const Dims want = x.rank() == 3 ? Dims{SamplesOf(x)} : Dims();
  return v[kArg].tensor->dims == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(v[kArg].tensor->dims));
}

template <const Places& kAt>
void AddCommonRules(Table* table, int least_rank) {
  constexpr DTypeSet kLabels = {DType::kI32, DType::kI64, DType::kBool, DType::kF32, DType::kF16};
  const std::vector<TypeRow> floats = {{{DType::kF32}}, {{DType::kF64}}, {{DType::kF16}, kNewer}, {{DType::kBF16}, kNewer}};
  Describe(table, "inputLengths", "how many steps of time each sample has");
  Describe(table, "targetLengths", "how many labels");
  Describe(table, "zeroInfinity", "samples that cannot have their labels have loss 0");
  AddNullRules(table);
  Add(table, {DTypes("logProbs", floats), DTypes("targets", RowsOf(kLabels)), Rank("logProbs", least_rank, 3),
              Custom("logProbs", "must have steps of time", CheckSteps<kAt>), Custom("blank", "must be a class", CheckBlank<kAt>),
              Custom("inputLengths", "must have an entry per sample, of 0 to the steps of logProbs", CheckInputLengths<kAt>),
              Custom("targetLengths", "must have an entry per sample", CheckTargetLengths<kAt>),
              Custom("targets", "must have a row per sample, or all labels one behind the other", CheckTargets<kAt>)});
}

// ---- plans ----------------------------------------------------------------------------------------------------------

DType ComputedOf(const Tensor& t) { return t.dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

Status ReadCommon(const Places& at, Values v, Dense* dense) {
  ANYACL_RETURN_IF_ERROR(dense->Read(at.x));
  return v[at.targets].tensor->empty() ? Status() : dense->Read(at.targets, DType::kI64);
}

// Calls add(fill) for one step after the other; fill(&ctc) gives it its samples.
template <class AddStep>
Status ForEachStep(const Places& at, Values v, Dense& dense, const AddStep& add) {
  const Tensor &x = *v[at.x].tensor, &targets = *v[at.targets].tensor;
  const Lengths &steps = v[at.steps].ints->values, &labels = v[at.labels].ints->values;
  const bool rows = targets.rank() == 2;
  int64_t before = 0;  // labels of the samples before this step
  for (int64_t first = 0; first < SamplesOf(x.dims); first += kCtcSamples) {
    const int64_t count = std::min(kCtcSamples, SamplesOf(x.dims) - first);
    ANYACL_RETURN_IF_ERROR(add([&](Ctc* ctc) {
      ctc->steps = StepsOf(x.dims);
      ctc->samples = SamplesOf(x.dims);
      ctc->classes = ClassesOf(x.dims);
      ctc->blank = v[at.blank].integer;
      ctc->first = first;
      ctc->count = count;
      ctc->first_target = rows ? first * targets.dims[1] : before;
      ctc->target_stride = rows ? targets.dims[1] : 0;
      for (int64_t i = 0; i < count; ++i) {
        ctc->lengths[i][0] = static_cast<int32_t>(steps[first + i]);
        ctc->lengths[i][1] = static_cast<int32_t>(labels[first + i]);
      }
      ctc->wide = ComputedOf(x) == DType::kF64;
      ctc->zero_infinity = v[at.zero_infinity].flag;
      dense.Bind(at.x, ctc->x);
      dense.Bind(at.targets, ctc->targets);
    }));
    before = std::accumulate(labels.begin(), labels.begin() + first + count, int64_t{0});
  }
  return {};
}

Status PlanForward(Values v, PlanBuilder& plan) {
  const Tensor& x = *v[kForward.x].tensor;
  if (x.empty()) return {};
  Dense dense(plan, v, ComputedOf(x));
  ANYACL_RETURN_IF_ERROR(ReadCommon(kForward, v, &dense));
  dense.Write(kNll);
  dense.Write(kAlpha);
  ANYACL_RETURN_IF_ERROR(ForEachStep(kForward, v, dense, [&](const auto& fill) {
    auto& params = plan.MakeParams<CtcParams>();
    fill(&params.ctc);
    params.width = v[kAlpha].tensor->dims[2];
    dense.BindOut(kNll, params.nll);
    dense.BindOut(kAlpha, params.alpha);
    return plan.ChooseKernel("ctc");
  }));
  return dense.Finish();
}

Status PlanBackward(Values v, PlanBuilder& plan) {
  const Tensor& x = *v[kBackward.x].tensor;
  if (x.empty()) return {};
  Dense dense(plan, v, ComputedOf(x));
  ANYACL_RETURN_IF_ERROR(ReadCommon(kBackward, v, &dense));
  for (const int arg : {kGradOut, kGivenNll}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(kOut);
  const int64_t most_states = 2 * Most(v[kBackward.labels].ints->values) + 1;
  const int64_t numbers = CtcTaskNumbers(StepsOf(x.dims), most_states, ClassesOf(x.dims));
  const int64_t tasks = CtcTasks(numbers, std::min(kCtcSamples, SamplesOf(x.dims)));
  const auto room = plan.Book("alpha and beta", tasks * numbers * static_cast<int64_t>(SizeOf(ComputedOf(x))));
  ANYACL_RETURN_IF_ERROR(ForEachStep(kBackward, v, dense, [&](const auto& fill) {
    auto& params = plan.MakeParams<CtcBackwardParams>();
    fill(&params.ctc);
    params.most_states = most_states;
    dense.Bind(kGradOut, params.gradient);
    dense.Bind(kGivenNll, params.nll);
    dense.BindOut(kOut, params.out);
    plan.BindScratch(room, params.scratch);
    return plan.ChooseKernel("ctc_backward");
  }));
  return dense.Finish();
}

Operator MakeForward(const Entry& entry) {
  Table table = TableOf(entry, "ctc", "How improbable labels are whose times nobody knows: the negative logarithm of their probability.");
  table.formulas = {"negLogLikelihoodOut = -ln(sum over all ways through time that leave the labels of the product of their probabilities)",
                    "logAlphaOut[n, t, s] = ln(probability of the labels up to state s at times up to t)"};
  table.notes = {"A label that is no class has probability 0. What no state or time of a sample has is -inf in logAlphaOut."};
  AddCommonRules<kForward>(&table, 2);
  Add(&table, {Custom("negLogLikelihoodOut", "must have an element per sample", CheckPerSample<kForward, kNll>),
               Custom("logAlphaOut", "must have shape [N, T, 2 S + 1] (Ascend 950), or the last axis rounded up to a multiple of 8", CheckAlpha),
               SameDType("negLogLikelihoodOut", "logProbs"), SameDType("logAlphaOut", "logProbs")});
  return {.contract = Contract(std::move(table)), .plan = PlanForward, .family = "loss"};
}

Operator MakeBackward(const Entry& entry) {
  Table table = TableOf(entry, "ctc_backward", "Gradient of CtcLoss for scores whose log-softmax logProbs is.");
  table.formulas = {"out[t, n, c] = gradOut[n] * (e^logProbs[t, n, c] - probability of being in a state of c at time t, if the labels are given)"};
  table.notes = {"logAlpha is computed again from logProbs: 16 bits of it would not do. Samples that cannot have their labels give NaN, or 0 if zeroInfinity."};
  AddCommonRules<kBackward>(&table, 3);
  for (const char* arg : {"gradOut", "negLogLikelihood", "logAlpha", "out"}) Add(&table, {SameDType(arg, "logProbs")});
  Add(&table, {Custom("gradOut", "must have an element per sample", CheckPerSample<kBackward, kGradOut>),
               Custom("negLogLikelihood", "must have an element per sample", CheckPerSample<kBackward, kGivenNll>),
               Custom("logAlpha", "must have shape [N, T, L] with L of 2 S + 1 or more", CheckGivenAlpha), SameShape("out", "logProbs")});
  return {.contract = Contract(std::move(table)), .plan = PlanBackward, .family = "loss"};
}

}  // namespace

void DeclareCtc(Declarations& declarations) {
  declarations.Add("aclnnCtcLoss", MakeForward);
  declarations.Add("aclnnCtcLossBackward", MakeBackward);
}

}  // namespace anyacl
