// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// aclnnGroupNormBackward: contract and plan. Formula and reference are in group_norm_backward.h.
#include "ops/norm/group_norm_backward.h"

#include "core/codes.h"
#include "ops/operators.h"
#include "plan/layout.h"

namespace anyacl {
namespace {

using namespace contract;  // the words of the table

enum {
  kGradOut,
  kInput,
  kMean,
  kRstd,
  kGamma,
  kN,
  kC,
  kHxW,
  kGroup,
  kOutputMask,
  kGradInput,
  kGradGammaOut,
  kGradBetaOut
};

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;

Table GroupNormBackwardTable() {
  return {
      .op = "aclnnGroupNormBackward",
      .stem = "group_norm_backward",
      .summary = "Gradients of group normalisation: input, gamma and beta.",
      .formulas =
          {"xhat = (input - mean[n,g]) * rstd[n,g], over [N, C, HxW] in group groups",
           "gradBetaOut[c]  = sum over n, s of gradOut",
           "gradGammaOut[c] = sum over n, s of gradOut * xhat",
           "gradInput = rstd * (gamma*gradOut - avg(gamma*gradOut) - xhat * avg(gamma*gradOut*xhat))",
           "avg: mean over the (n, g) group"},
      .args = {Input("gradOut", "gradient of the forward result"),
               Input("input", "forward input"),
               Input("mean", "mean of each (n, group)"),
               Input("rstd", "reciprocal standard deviation of each (n, group)"),
               Input("gamma", "scale of each channel; null means ones").Optional(),
               Int("N", "samples"),
               Int("C", "channels"),
               Int("HxW", "elements of one channel of one sample"),
               Int("group", "number of groups"),
               Mask("outputMask", "which of gradInput, gradGammaOut, gradBetaOut are wanted"),
               Output("gradInput", "gradient of input").Optional(),
               Output("gradGammaOut", "gradient of gamma").Optional(),
               Output("gradBetaOut", "gradient of beta").Optional()},
      .rules = {NotNull("gradOut"), NotNull("input"), NotNull("mean"), NotNull("rstd"),
                NotNull("outputMask").Code(code::kInvalid),
                Length("outputMask", 3),
                NotNull("gradInput").If("outputMask", 0),
                NotNull("gradGammaOut").If("outputMask", 1),
                NotNull("gradBetaOut").If("outputMask", 2),
                Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})),
                DTypes("gradOut", {{{F32}}, {{F16}}, {{BF16}, kNewer}}),
                SameDType("input", "gradOut"),
                SameDType("gradInput", "gradOut").If("outputMask", 0),
                DTypeRows({"gradOut", "mean"}, {{{F32, F32}},
                                                {{F16, F16}},
                                                {{F16, F32}, kOnly950},
                                                {{BF16, BF16}, kNewer},
                                                {{BF16, F32}, kOnly950}}),
                SameDType("rstd", "mean"),
                SameDType("gamma", "mean"),
                SameDType("gradGammaOut", "mean").If("outputMask", 1),
                SameDType("gradBetaOut", "mean").If("outputMask", 2),
                Require("group", "group > 0"),
                Require("C", "C % group == 0"),
                Require("N", "N >= 0"), Require("C", "C >= 0"), Require("HxW", "HxW >= 0"),
                Rank("gradOut", 0, 8),
                NumelIs("gradOut", "N*C*HxW"),
                NumelIs("input", "N*C*HxW"),
                NumelIs("mean", "N*group"),
                NumelIs("rstd", "N*group"),
                NumelIs("gamma", "C"),
                SameShape("gradInput", "input").If("outputMask", 0),
                SameShape("gradGammaOut", "gamma", "C").If("outputMask", 1),
                SameShape("gradBetaOut", "gamma", "C").If("outputMask", 2)},
      .notes = {"The gradient is the mathematical one; the factor `mean` of some published formulas is "
                "a misprint.",
                "An output whose mask is false is neither checked nor written.",
                "An empty batch (N or HxW is 0) clears gradGammaOut and gradBetaOut.",
                "Channels-last input (an NCHW view with the strides of NHWC) runs without packing."},
  };
}

Status PlanGroupNormBackward(Values values, PlanBuilder& plan) {
  auto& params = plan.MakeParams<GroupNormBackwardParams>();
  const std::vector<unsigned char>& mask = values[kOutputMask].bools->values;
  params.n = values[kN].integer;
  params.c = values[kC].integer;
  params.hxw = values[kHxW].integer;
  params.groups = values[kGroup].integer;
  params.dtype = values[kGradOut].tensor->dtype;
  params.param_dtype = values[kMean].tensor->dtype;
  const bool has_elements = params.n != 0 && params.hxw != 0;
  if (params.c == 0 || !((mask[0] && has_elements) || mask[1] || mask[2])) {
    plan.Nothing();
    return {};
  }
  if (has_elements) {
    // The inputs alone decide: an output that is not wanted must not change the bits of the others.
    const ChannelShape shape{params.n, params.c, params.hxw};
    const Tensor& x = *values[kInput].tensor;
    const bool is_row_major_too = params.c == 1 || params.hxw == 1;
    params.channels_last = !is_row_major_too && IsChannelsLast(*values[kGradOut].tensor, shape) &&
                           IsChannelsLast(x, shape);
    if (params.channels_last) {
      plan.BindAsIs({kGradOut, params.dy});
      plan.BindAsIs({kInput, params.x});
      if (mask[0]) {
        plan.BindInOrderOf(x, {kGradInput, params.dx},
                           IsChannelsLast(*values[kGradInput].tensor, shape));
      }
    } else {
      plan.BindContiguous({kGradOut, params.dy});
      plan.BindContiguous({kInput, params.x});
      if (mask[0]) plan.BindContiguous({kGradInput, params.dx});
    }
    plan.BindContiguous({kMean, params.mean});
    plan.BindContiguous({kRstd, params.rstd});
    if (values[kGamma].given()) plan.BindContiguous({kGamma, params.gamma});
  }
  if (mask[1]) plan.BindContiguous({kGradGammaOut, params.dgamma});
  if (mask[2]) plan.BindContiguous({kGradBetaOut, params.dbeta});
  return plan.ChooseKernel(params.scratch);
}

}  // namespace

Operator MakeGroupNormBackward(const Entry&) {
  return {.contract = Contract(GroupNormBackwardTable()), .plan = PlanGroupNormBackward, .family = "norm"};
}

}  // namespace anyacl
