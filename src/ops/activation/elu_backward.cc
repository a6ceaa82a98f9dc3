// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// aclnnEluBackward: contract and plan. The formula and the reference are in elu_backward.h.
#include "ops/activation/elu_backward.h"

#include "ops/operators.h"

namespace anyacl {
namespace {

using namespace contract;  // the words of the table

enum { kGradOutput, kAlpha, kScale, kInputScale, kIsResult, kSelfOrResult, kGradInput };

Table EluBackwardTable() {
  return {
      .op = "aclnnEluBackward",
      .stem = "elu_backward",
      .summary = "Gradient of the ELU activation, from its input or from its result.",
      .formulas =
          {"isResult, x <= 0:       gradInput = gradOutput * inputScale * (x + alpha*scale)",
           "not isResult, x <= 0:   gradInput = gradOutput * inputScale * alpha*scale * exp(x*inputScale)",
           "x > 0 or NaN:           gradInput = gradOutput * scale",
           "x = selfOrResult"},
      .args = {Input("gradOutput", "gradient of the forward result"),
               ScalarArg("alpha", "saturation of the negative side"),
               ScalarArg("scale", "factor of the whole function"),
               ScalarArg("inputScale", "factor of the input on the negative side"),
               Bool("isResult", "selfOrResult is the forward result, not the forward input"),
               Input("selfOrResult", "forward input or forward result"),
               Output("gradInput", "gradient of the forward input")},
      .rules = {NotNull("gradOutput"), NotNull("alpha"), NotNull("scale"), NotNull("inputScale"),
                NotNull("selfOrResult"), NotNull("gradInput"),
                Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining,
                              Product::kInference})),
                SameDType("selfOrResult", "gradOutput"),
                DTypes("gradOutput", {{{DType::kF32}}, {{DType::kF16}}, {{DType::kBF16}, kNewer}}),
                ScalarConverts("alpha", DType::kF32),
                ScalarConverts("scale", DType::kF32),
                ScalarConverts("inputScale", DType::kF32),
                ResultConverts("gradOutput", "gradInput"),
                DTypes("gradInput", {{{DType::kF32}}, {{DType::kF16}}, {{DType::kBF16}, kNewer},
                                     {{DType::kF64}}, {{DType::kC64}}, {{DType::kC128}}}),
                SameShape("selfOrResult", "gradOutput"),
                SameShape("gradInput", "gradOutput"),
                Rank("gradOutput", 0, 8),
                Require("alpha", "alpha >= 0").If("isResult")},
      .notes = {"The result is rounded to gradOutput's dtype first and then converted to gradInput's; "
                "complex results have the imaginary part 0.",
                "gradInput may be gradOutput or selfOrResult itself.",
                "Empty tensors succeed and write nothing; alpha is checked for them too."},
  };
}

Status PlanEluBackward(Values values, PlanBuilder& plan) {
  const Tensor& dy = *values[kGradOutput].tensor;
  if (dy.empty()) {
    plan.Nothing();
    return {};
  }
  auto& params = plan.MakeParams<EluBackwardParams>();
  params.count = dy.numel();
  params.dtype = dy.dtype;
  params.out_dtype = values[kGradInput].tensor->dtype;
  params.is_result = values[kIsResult].flag;
  params.scale = values[kScale].scalar->AsFloat();
  params.input_scale = values[kInputScale].scalar->AsFloat();
  params.negcoef = values[kAlpha].scalar->AsFloat() * params.scale;
  plan.BindElementwise(
      {{kGradOutput, params.dy}, {kSelfOrResult, params.x}, {kGradInput, params.dx}});
  return plan.ChooseKernel();
}

}  // namespace

Operator MakeEluBackward(const Entry&) {
  return {.contract = Contract(EluBackwardTable()), .plan = PlanEluBackward, .family = "activation"};
}

}  // namespace anyacl
