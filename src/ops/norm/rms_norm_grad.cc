// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// aclnnRmsNormGrad: contract and plan. Formula and reference are in rms_norm_grad.h.
#include "ops/norm/rms_norm_grad.h"

#include <fmt/format.h>

#include "core/codes.h"
#include "ops/operators.h"

namespace anyacl {
namespace {

using namespace contract;  // the words of the table

enum { kDy, kX, kRstd, kGamma, kDxOut, kDgammaOut };

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;
constexpr Products kProductsWithTable =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});

// Axes of x in front of gamma's.
int LeadingAxes(Values values) { return values[kX].tensor->rank() - values[kGamma].tensor->rank(); }

int64_t Rows(Values values) {
  Dims leading;
  for (int i = 0; i < LeadingAxes(values); ++i) leading.push_back(values[kX].tensor->dims[i]);
  return Numel(leading);
}

std::string GammaFits(Values values, Product) {
  const Tensor& gamma = *values[kGamma].tensor;
  if (LeadingAxes(values) >= 0) return "";
  return fmt::format("must not have more dims than x, got gamma {} and x {}", ToString(gamma.dims),
                     ToString(values[kX].tensor->dims));
}

std::string LastDimNotZero(Values values, Product) {
  const Dims& dims = values[kDy].tensor->dims;
  return dims[dims.rank() - 1] != 0 ? "" : fmt::format("must not end in a dim of 0, got {}", ToString(dims));
}

// Three shapes name the rows: the leading dims of x, those with ones behind (as aclnnRmsNorm returns
// them), and a shorter list when the leading dims it leaves out are all 1.
std::string RstdNamesRows(Values values, Product) {
  const Dims& rstd = values[kRstd].tensor->dims;
  const Dims& x = values[kX].tensor->dims;
  const int leading = LeadingAxes(values);
  bool fits = true;
  for (int i = 0; i < leading; ++i) fits = fits && (i < rstd.rank() ? rstd[i] == x[i] : x[i] == 1);
  if (fits && Numel(rstd) == Rows(values)) return "";
  return fmt::format("must have the {} leading dims of x and {} elements, got rstd {} and x {}", leading,
                     Rows(values), ToString(rstd), ToString(x));
}

std::string GammaIsTail(Values values, Product) {
  const Dims& gamma = values[kGamma].tensor->dims;
  const Dims& x = values[kX].tensor->dims;
  bool equal = true;
  for (int i = 0; i < gamma.rank(); ++i) equal = equal && gamma[i] == x[LeadingAxes(values) + i];
  if (equal) return "";
  return fmt::format("must equal the trailing dims of x, got gamma {} and x {}", ToString(gamma), ToString(x));
}

std::string RowsUnlessNewest(Values values, Product product) {
  if (product == Product::kAscend950 || Rows(values) != 0) return "";
  return fmt::format("must have rows on {}, got {}", Name(product), ToString(values[kX].tensor->dims));
}

Rule Nd(const char* arg) {  // tags that are treated as ND
  return Formats(arg, {Format::kND, Format::kNCHW, Format::kNHWC, Format::kNCL, Format::kNCDHW});
}

Table RmsNormGradTable() {
  constexpr int32_t kShape = code::kTiling;  // this operator reports every shape mistake as 561002
  return {
      .op = "aclnnRmsNormGrad",
      .stem = "rms_norm_grad",
      .summary = "Gradients of root mean square normalisation: input and gamma.",
      .formulas = {"u = x * rstd[row]",
                   "dxOut = rstd[row] * (dy*gamma - u * mean over the row of dy*gamma*u)",
                   "dgammaOut = sum over the rows of dy*u"},
      .args = {Input("dy", "gradient of the forward result"),
               Input("x", "forward input"),
               Input("rstd", "reciprocal root mean square of each row, as aclnnRmsNorm returns it"),
               Input("gamma", "scale of each column"),
               Output("dxOut", "gradient of x"),
               Output("dgammaOut", "gradient of gamma")},
      .rules = {NotNull("dy"), NotNull("x"), NotNull("rstd"), NotNull("gamma"), NotNull("dxOut"),
                NotNull("dgammaOut"),
                Supported(kProductsWithTable),
                DTypeRows({"dy", "x", "rstd", "gamma", "dxOut", "dgammaOut"},
                          {{{F32, F32, F32, F32, F32, F32}, kProductsWithTable},
                           {{F16, F16, F32, F16, F16, F32}, kProductsWithTable},
                           {{F16, F16, F32, F32, F16, F32}, kNewer},
                           {{BF16, BF16, F32, BF16, BF16, F32}, kNewer},
                           {{BF16, BF16, F32, F32, BF16, F32}, kNewer}}),
                Nd("dy"), Nd("x"), Nd("rstd"), Nd("gamma"), Nd("dxOut"), Nd("dgammaOut"),
                AcceptIfEmpty({"dxOut", "dgammaOut"}),
                Rank("x", 1, 8).Code(kShape),
                Rank("gamma", 1, 8).Code(kShape),
                Custom("gamma", "must not have more dims than x", GammaFits).Code(kShape),
                SameShape("dy", "x").Code(kShape),
                SameShape("dxOut", "dy").Code(kShape),
                Custom("dy", "must not end in a dim of 0", LastDimNotZero).Code(kShape),
                Custom("rstd", "must have the leading dims of x (ones may follow, or be left out)",
                       RstdNamesRows).Code(kShape),
                Custom("gamma", "must equal the trailing dims of x", GammaIsTail).Code(kShape),
                SameShape("dgammaOut", "gamma").Code(kShape),
                Custom("x", "must have rows, except on Ascend 950", RowsUnlessNewest).Code(kShape)},
      .result_pointers = ResultPointers::kAfterNullChecks,
      .notes = {"rstd is the reciprocal root mean square; it is taken as given.",
                "dgammaOut is summed over all rows. With no rows at all every element of it is NaN on "
                "Ascend 950; the other products refuse such a call.",
                "When dxOut and dgammaOut are both empty the call succeeds without further checks."},
  };
}

Status PlanRmsNormGrad(Values values, PlanBuilder& plan) {
  if (values[kDxOut].tensor->empty() && values[kDgammaOut].tensor->empty()) {
    plan.Nothing();
    return {};
  }
  auto& params = plan.MakeParams<RmsNormGradParams>();
  params.rows = Rows(values);
  params.cols = values[kGamma].tensor->numel();
  params.dtype = values[kDy].tensor->dtype;
  params.gamma_dtype = values[kGamma].tensor->dtype;
  if (params.rows > 0) {
    plan.BindContiguous({kDy, params.dy});
    plan.BindContiguous({kX, params.x});
    plan.BindContiguous({kRstd, params.rstd});
    plan.BindContiguous({kGamma, params.gamma});
    plan.BindContiguous({kDxOut, params.dx});
  }
  plan.BindContiguous({kDgammaOut, params.dgamma});
  return plan.ChooseKernel(params.scratch);
}

}  // namespace

Operator MakeRmsNormGrad(const Entry&) {
  return {.contract = Contract(RmsNormGradTable()), .plan = PlanRmsNormGrad, .family = "norm"};
}

}  // namespace anyacl
