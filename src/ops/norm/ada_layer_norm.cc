// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// LayerNorm of the last axis with a scale and a shift for each sample, and its gradients. x is [B..., S, H]: B samples of S rows.
#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/norm/norm_rules.h"
#include "ops/norm/row_norm.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using norm::Float3;
using norm::SameOrFloat;

constexpr DType F32 = DType::kF32;

int64_t LastDim(const Dims& dims) { return dims[dims.rank() - 1]; }
int64_t RowsPerSample(const Dims& dims) { return dims[dims.rank() - 2]; }

// [B..., H] or [B..., 1, H]
template <int kArg, int kX>
std::string OnePerSample(Values values, Product) {
  const Dims& dims = values[kArg].tensor->dims;
  const Dims& x = values[kX].tensor->dims;
  const int samples = x.rank() - 2;
  bool fits = dims.rank() == samples + 1 || (dims.rank() == samples + 2 && dims[samples] == 1);
  for (int i = 0; fits && i < samples; ++i) fits = dims[i] == x[i];
  if (fits && LastDim(dims) == LastDim(x)) return "";
  return fmt::format("must be [B..., H] or [B..., 1, H] for an input [B..., S, H], got {} and {}", ToString(dims), ToString(x));
}
constexpr char kOnePerSample[] = "must be [B..., H] or [B..., 1, H] for an input [B..., S, H]";

// The shape of x with 1 for its last dim.
template <int kArg, int kX>
std::string OnePerRow(Values values, Product) {
  Dims wanted = values[kX].tensor->dims;
  wanted[wanted.rank() - 1] = 1;
  const Dims& dims = values[kArg].tensor->dims;
  return dims == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(dims));
}
constexpr char kOnePerRow[] = "must have the shape of the input with 1 for its last dim";

template <int kArg, int kX>
std::string OnePerColumn(Values values, Product) {
  const Dims& dims = values[kArg].tensor->dims;
  const Dims wanted = {LastDim(values[kX].tensor->dims)};
  return dims == wanted ? "" : fmt::format("must have shape [H] = {}, got {}", ToString(wanted), ToString(dims));
}
constexpr char kOnePerColumn[] = "must have shape [H]";

void DescribeCommon(Table* table) {
  Describe(table, "scale", "of each sample: 1 + scale is a factor of each position in a row");
  Describe(table, "shift", "of each sample: summand of each position in a row");
  Describe(table, "weightOptional", "factor of each position in a row; null means ones");
  Describe(table, "biasOptional", "summand of each position in a row; null means zeros");
}

// ---- forward ----

struct Ada {
  enum { kX, kScale, kShift, kWeight, kBias, kEpsilon, kOut, kMean, kRstd };
};

Status PlanAdaLayerNorm(Values values, PlanBuilder& plan) {
  using A = Ada;
  const Dims& dims = values[A::kX].tensor->dims;
  const bool has_statistics = static_cast<int>(values.size()) > A::kMean;
  Dense dense(plan, values, F32);
  for (int arg : {A::kX, A::kScale, A::kShift, A::kWeight, A::kBias}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(A::kOut);
  if (has_statistics) {
    dense.Write(A::kMean);
    dense.Write(A::kRstd);
  }
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = norm::DenseRows(Numel(dims) / LastDim(dims), LastDim(dims));
  params.scale_rows = RowsPerSample(dims);
  params.eps = norm::Attribute(values[A::kEpsilon].real, false);
  dense.Bind(A::kX, params.x);
  dense.Bind(A::kScale, params.scale);
  dense.Bind(A::kShift, params.shift);
  dense.Bind(A::kWeight, params.gamma);
  dense.Bind(A::kBias, params.beta);
  dense.BindOut(A::kOut, params.y);
  dense.BindOut(A::kMean, params.mean);
  dense.BindOut(A::kRstd, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  return dense.Finish();
}

Operator MakeAdaLayerNorm(const Entry& entry) {
  using A = Ada;
  const bool v2 = std::string_view(entry.op) == "aclnnAdaLayerNormV2";
  std::vector<const char*> optional = {"weightOptional", "biasOptional"};
  if (v2) optional.insert(optional.end(), {"meanOutOptional", "rstdOutOptional"});
  Table table = TableOf(entry, "row_norm",
                        v2 ? "Layer normalisation with a scale and a shift for each sample; gives the statistics, too."
                           : "Layer normalisation with a scale and a shift for each sample.",
                        {.optional = optional});
  table.formulas = {"mean, var = of each row (the last axis) of x; rstd = 1 / sqrt(var + epsilon)",
                    "out = ((x - mean) * rstd * weight + bias) * (1 + scale) + shift"};
  DescribeCommon(&table);
  Describe(&table, "x", "[B..., S, H], numbers to normalise");
  Describe(&table, "epsilon", "added to the variance");
  Describe(&table, "out", "the result");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", Float3()), SameDType("scale", "x"), SameDType("shift", "x"),
               SameDType("biasOptional", "weightOptional")});
  for (const char* arg : {"weightOptional", "biasOptional"}) Add(&table, {v2 ? SameOrFloat(arg, "x") : SameDType(arg, "x")});
  Add(&table, {SameDType("out", "x")});
  if (v2) {
    Describe(&table, "meanOutOptional", "mean of each row");
    Describe(&table, "rstdOutOptional", "reciprocal standard deviation of each row");
    Add(&table, {SameDType("meanOutOptional", "x"), SameDType("rstdOutOptional", "x")});
  }
  Add(&table, {Rank("x", 2, 8), NotEmpty("x"), Custom("scale", kOnePerSample, OnePerSample<A::kScale, A::kX>),
               Custom("shift", kOnePerSample, OnePerSample<A::kShift, A::kX>),
               Custom("weightOptional", kOnePerColumn, OnePerColumn<A::kWeight, A::kX>),
               Custom("biasOptional", kOnePerColumn, OnePerColumn<A::kBias, A::kX>), SameShape("out", "x")});
  if (v2) {
    Add(&table, {Custom("meanOutOptional", kOnePerRow, OnePerRow<A::kMean, A::kX>),
                 Custom("rstdOutOptional", kOnePerRow, OnePerRow<A::kRstd, A::kX>)});
  }
  return {.contract = Contract(std::move(table)), .plan = PlanAdaLayerNorm, .family = "norm"};
}

// ---- gradient ----

struct AdaGrad {
  enum {
    kDy, kX, kShape, kRstd, kMean, kScale, kShift, kWeight, kBias, kDx, kDscale, kDshift, kDweight, kDbias
  };
};

std::string LastDimNamed(Values values, Product) {
  const int64_t named = values[AdaGrad::kShape].ints->values[0];
  const Dims& dims = values[AdaGrad::kX].tensor->dims;
  return named == LastDim(dims) ? "" : fmt::format("must be [{}], the last dim of input {}, got [{}]", LastDim(dims), ToString(dims), named);
}
std::string HasColumns(Values values, Product) {
  const Dims& dims = values[AdaGrad::kX].tensor->dims;
  return LastDim(dims) > 0 ? "" : fmt::format("must not end in a dim of 0, got {}", ToString(dims));
}
// Gradients of coefficients have their dtype; where there are none, that of input or FLOAT.
template <int kArg>
std::string CoefficientDType(Values values, Product) {
  using A = AdaGrad;
  const DType got = values[kArg].tensor->dtype, x = values[A::kX].tensor->dtype;
  for (int arg : {A::kWeight, A::kBias}) {
    if (!values[arg].given()) continue;
    const DType wanted = values[arg].tensor->dtype;
    return got == wanted ? "" : fmt::format("must be {}, the dtype of the coefficients, got {}", Name(wanted), Name(got));
  }
  return got == x || got == F32 ? "" : fmt::format("must be {} or FLOAT, got {}", Name(x), Name(got));
}
template <int kArg>
std::string CountOfColumns(Values values, Product) {
  const Dims& dims = values[kArg].tensor->dims;
  const int64_t columns = LastDim(values[AdaGrad::kX].tensor->dims);
  return Numel(dims) == columns ? "" : fmt::format("must have {} elements, got {}", columns, ToString(dims));
}

Status PlanAdaLayerNormBackward(Values values, PlanBuilder& plan) {
  using A = AdaGrad;
  const int outputs[] = {A::kDx, A::kDscale, A::kDshift, A::kDweight, A::kDbias};
  const Tensor& x = *values[A::kX].tensor;
  bool any = false;
  for (int arg : outputs) any = any || values[arg].given();
  if (!any) return {};
  if (x.empty()) {
    for (int arg : outputs) {
      if (values[arg].given()) ANYACL_RETURN_IF_ERROR(FillOutput(plan, arg, 0));
    }
    return {};
  }
  Dense dense(plan, values, F32);
  for (int arg : {A::kDy, A::kX, A::kRstd, A::kMean, A::kScale, A::kWeight, A::kBias}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (int arg : outputs) dense.Write(arg);
  auto& params = plan.MakeParams<norm::RowNormBackwardParams>();
  params.shape = norm::DenseRows(x.numel() / LastDim(x.dims), LastDim(x.dims));
  params.scale_rows = RowsPerSample(x.dims);
  dense.Bind(A::kDy, params.dy);
  dense.Bind(A::kX, params.x);
  dense.Bind(A::kMean, params.mean);
  dense.Bind(A::kRstd, params.rstd);
  dense.Bind(A::kWeight, params.gamma);
  dense.Bind(A::kBias, params.beta);
  dense.Bind(A::kScale, params.scale);
  dense.BindOut(A::kDx, params.dx);
  dense.BindOut(A::kDweight, params.dgamma);
  dense.BindOut(A::kDbias, params.dbeta);
  dense.BindOut(A::kDscale, params.dscale);
  dense.BindOut(A::kDshift, params.dshift);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm_backward"));
  return dense.Finish();
}

Operator MakeAdaLayerNormBackward(const Entry& entry) {
  using A = AdaGrad;
  const std::vector<const char*> outputs = {"gradInputOut", "gradScaleOut", "gradShiftOut", "gradWeightOut", "gradBiasOut"};
  std::vector<const char*> optional = {"weightOptional", "biasOptional"};
  optional.insert(optional.end(), outputs.begin(), outputs.end());
  Table table = TableOf(entry, "row_norm_backward", "Gradients of layer normalisation with a scale and a shift for each sample.",
                        {.optional = optional});
  table.formulas = {"u = (input - mean) * rstd, q = gradOut * (1 + scale), p = q * weight",
                    "gradInputOut = rstd * (p - avg(p) - u * avg(p * u)), avg over the row",
                    "gradScaleOut = sum over the rows of a sample of gradOut * (u * weight + bias), gradShiftOut = ... of gradOut",
                    "gradWeightOut = sum over all rows of q * u, gradBiasOut = sum over all rows of q"};
  table.notes = {"mean and rstd are taken as given; rstd comes first. shift is checked and not used.",
                 "Every output may be null; then it is not computed.", "Without rows the sums are cleared."};
  DescribeCommon(&table);
  Describe(&table, "gradOut", "gradient of the forward result");
  Describe(&table, "input", "forward input, [B..., S, H]");
  Describe(&table, "normalizedShape", "[H]");
  Describe(&table, "mean", "mean of each row");
  Describe(&table, "rstd", "reciprocal standard deviation of each row");
  AddNullRules(&table, {"gradOut", "input", "normalizedShape", "mean", "rstd"});
  Add(&table, {Supported(kNewer), DTypes("gradOut", Float3()), SameDType("input", "gradOut"), SameOrFloat("rstd", "gradOut"),
               SameOrFloat("mean", "gradOut"), SameDType("scale", "gradOut"), SameDType("shift", "gradOut"),
               SameOrFloat("weightOptional", "gradOut"), SameOrFloat("biasOptional", "gradOut"), SameDType("biasOptional", "weightOptional"),
               SameDType("gradInputOut", "input"), SameDType("gradScaleOut", "scale"), SameDType("gradShiftOut", "shift")});
  static constexpr char kCoefficientDType[] = "must have the dtype of weightOptional and biasOptional; without them that of input or FLOAT";
  Add(&table, {Custom("gradWeightOut", kCoefficientDType, CoefficientDType<A::kDweight>),
               Custom("gradBiasOut", kCoefficientDType, CoefficientDType<A::kDbias>), Rank("input", 2, 8), SameShape("gradOut", "input"),
               SameShape("rstd", "mean"), Length("normalizedShape", 1), Custom("normalizedShape", "must be the last dim of input", LastDimNamed),
               Custom("input", "must not end in a dim of 0", HasColumns),
               Custom("weightOptional", kOnePerColumn, OnePerColumn<A::kWeight, A::kX>),
               Custom("biasOptional", kOnePerColumn, OnePerColumn<A::kBias, A::kX>),
               Custom("scale", kOnePerSample, OnePerSample<A::kScale, A::kX>), Custom("shift", kOnePerSample, OnePerSample<A::kShift, A::kX>),
               Custom("mean", kOnePerRow, OnePerRow<A::kMean, A::kX>), SameShape("gradInputOut", "input"), SameShape("gradScaleOut", "scale"),
               SameShape("gradShiftOut", "shift"), Custom("gradWeightOut", "must have H elements", CountOfColumns<A::kDweight>),
               Custom("gradBiasOut", "must have H elements", CountOfColumns<A::kDbias>)});
  return {.contract = Contract(std::move(table)), .plan = PlanAdaLayerNormBackward, .family = "norm"};
}

}  // namespace

void DeclareAdaLayerNorm(Declarations& declarations) {
  for (const char* op : {"aclnnAdaLayerNorm", "aclnnAdaLayerNormV2"}) declarations.Add(op, MakeAdaLayerNorm);
  declarations.Add("aclnnAdaLayerNormBackward", MakeAdaLayerNormBackward);
}

}  // namespace anyacl
