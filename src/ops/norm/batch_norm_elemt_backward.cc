// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// aclnnBatchNormElemtBackward: contract and plan. Formula and reference are in
// batch_norm_elemt_backward.h.
#include "ops/norm/batch_norm_elemt_backward.h"

#include "ops/operators.h"
#include "plan/layout.h"

namespace anyacl {
namespace {

using namespace contract;  // the words of the table

enum { kGradOut, kInput, kMean, kInvstd, kWeight, kSumDy, kSumDyXmu, kCounter, kGradInput };

const std::vector<TypeRow> kTypes = {{{DType::kF32}}, {{DType::kF16}}, {{DType::kBF16}, kNewer}};

Table BatchNormElemtBackwardTable() {
  return {
      .op = "aclnnBatchNormElemtBackward",
      .stem = "batch_norm_elemt_backward",
      .summary = "Input gradient of a synchronised batch normalisation, from the reduced sums.",
      .formulas = {"count = sum of all elements of counter",
                   "gradInput = ((gradOut - sumDy/count) - (input - mean) * sumDyXmu/count * invstd^2)",
                   "            * invstd * weight"},
      .args = {Input("gradOut", "gradient of the forward result"),
               Input("input", "forward input; dim 1 is the channel"),
               Input("mean", "mean of each channel"),
               Input("invstd", "reciprocal standard deviation of each channel"),
               Input("weight", "scale of each channel; null means ones").Optional(),
               Input("sumDy", "sum of gradOut of each channel, over all ranks"),
               Input("sumDyXmu", "sum of gradOut * (input - mean) of each channel, over all ranks"),
               Input("counter", "elements per channel of each rank; all entries are added up"),
               Output("gradInput", "gradient of input")},
      .sizes = {{"C", "input", 1}},
      .rules = {NotNull("gradOut"), NotNull("input"), NotNull("mean"), NotNull("invstd"),
                NotNull("sumDy"), NotNull("sumDyXmu"), NotNull("counter"), NotNull("gradInput"),
                Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})),
                DTypes("gradOut", kTypes), DTypes("input", kTypes), DTypes("mean", kTypes),
                DTypes("invstd", kTypes), DTypes("weight", kTypes), DTypes("sumDy", kTypes),
                DTypes("sumDyXmu", kTypes),
                DTypes("counter", {{{DType::kI32}}, {{DType::kF16}}, {{DType::kF32}}}),
                DTypes("gradInput", kTypes),
                PublicFormat("gradOut"), PublicFormat("input"), PublicFormat("gradInput"),
                Rank("input", 2, 8),
                Rank("gradOut", 0, 8), Rank("gradInput", 0, 8), Rank("counter", 0, 8),
                Require("input", "C > 0"),
                SameShape("gradOut", "input"), SameShape("gradInput", "input"),
                ShapeIs("mean", "C"), ShapeIs("invstd", "C"), ShapeIs("weight", "C"),
                ShapeIs("sumDy", "C"), ShapeIs("sumDyXmu", "C")},
      .notes = {"The factor invstd * weight multiplies the whole difference; some published formulas lack "
                "the parentheses.",
                "counter is summed over all its elements; a total of 0 divides by zero as IEEE says.",
                "Every tensor may have its own dtype; arithmetic is FLOAT32 with one rounding at the end.",
                "Any dense order of the axes that gradOut, input and gradInput share runs without packing."},
  };
}

Status PlanBatchNormElemtBackward(Values values, PlanBuilder& plan) {
  const Tensor& x = *values[kInput].tensor;
  if (x.empty()) {
    plan.Nothing();
    return {};
  }
  auto& params = plan.MakeParams<BatchNormElemtBackwardParams>();
  const auto operand = [&](int arg, BatchNormElemtBackwardParams::Operand& to) {
    to.dtype = values[arg].tensor->dtype;
    plan.BindContiguous({arg, to.data});
  };
  operand(kMean, params.mean);
  operand(kInvstd, params.invstd);
  if (values[kWeight].given()) operand(kWeight, params.weight);
  operand(kSumDy, params.sum_dy);
  operand(kSumDyXmu, params.sum_dy_xmu);
  params.counter_count = values[kCounter].tensor->numel();
  params.counter.dtype = values[kCounter].tensor->dtype;
  if (params.counter_count > 0) plan.BindContiguous({kCounter, params.counter.data});
  params.dy.dtype = values[kGradOut].tensor->dtype;
  params.x.dtype = x.dtype;
  params.dx_dtype = values[kGradInput].tensor->dtype;
  const bool as_it_lies = plan.BindElementwise(
      {{kGradOut, params.dy.data}, {kInput, params.x.data}, {kGradInput, params.dx}});
  params.c = x.dims[1];
  params.inner = ElementsInside(as_it_lies ? x : RowMajor(x), 1);
  params.outer = x.numel() / params.c / params.inner;
  return plan.ChooseKernel(params.scratch);
}

}  // namespace

Operator MakeBatchNormElemtBackward(const Entry&) {
  return {.contract = Contract(BatchNormElemtBackwardTable()), .plan = PlanBatchNormElemtBackward, .family = "norm"};
}

}  // namespace anyacl
