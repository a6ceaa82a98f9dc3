// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// LayerNorm in its three forms, and its gradient.
#include <fmt/format.h>

#include <limits>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/norm/norm_rules.h"
#include "ops/norm/row_norm.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using norm::Float3;
using norm::Float3Beside;
using norm::Float3Wide;
using norm::SameOrFloat;

constexpr Products kProductsOf = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::k200I, Product::kTraining});
constexpr Products kFastProducts = Of({Product::kAscend950, Product::kA3, Product::kA2});
constexpr Products kBackwardProducts =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining});

enum { kInput, kShape, kWeight, kBias, kEps, kOut, kMean, kRstd, kImplMode };

std::string ShapeLength(Values values, Product) { return norm::OneToEight(*values[kShape].ints); }

std::string HalfMode(Values values, Product) {
  if (values[kImplMode].integer != 2) return "";
  for (int arg : {kInput, kWeight, kBias}) {
    if (values[arg].given() && values[arg].tensor->dtype != DType::kF16) {
      return fmt::format("must not be 2 unless all inputs are FLOAT16, got {}", Name(values[arg].tensor->dtype));
    }
  }
  return "";
}

int64_t CountOf(const IntArray& dims) { return Numel(Dims(std::span<const int64_t>(dims.values))); }

// Rows in front of the normalised axes.
int64_t RowsOf(const Tensor& input, const IntArray& shape) {
  Dims leading;
  for (int i = 0; i < input.rank() - static_cast<int>(shape.values.size()); ++i) leading.push_back(input.dims[i]);
  return Numel(leading);
}

Status PlanLayerNorm(Values values, PlanBuilder& plan) {
  const Tensor& x = *values[kInput].tensor;
  const int64_t rows = RowsOf(x, *values[kShape].ints);
  const int64_t count = CountOf(*values[kShape].ints);
  // Statistics without elements are not asked for, whatever their shape.
  const auto wanted = [&](int arg) { return values[arg].given() && !values[arg].tensor->empty(); };
  if (rows == 0) return {};
  if (count == 0) {
    if (wanted(kMean)) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kMean, 0));
    if (wanted(kRstd)) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kRstd, std::numeric_limits<double>::quiet_NaN()));
    return {};
  }
  const DType computed = norm::ComputeTypeOf(x.dtype);
  const Operand input = plan.TensorOperand(kInput), out = plan.TensorOperand(kOut);
  const DType stored = StoredType(computed, {input, out});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(kInput, input, stored));
  for (int arg : {kWeight, kBias}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(kOut, out, stored);
  for (int arg : {kMean, kRstd}) {
    if (wanted(arg)) dense.Write(arg);
  }
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = norm::DenseRows(rows, count);
  params.wide = computed == DType::kF64;
  params.stored = stored;
  params.eps = norm::Attribute(values[kEps].real, params.wide);
  dense.Bind(kInput, params.x);
  dense.Bind(kWeight, params.gamma);
  dense.Bind(kBias, params.beta);
  dense.BindOut(kOut, params.y);
  dense.BindOut(kMean, params.mean);
  dense.BindOut(kRstd, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  return dense.Finish();
}

Operator MakeLayerNorm(const Entry& entry) {
  const std::string_view name = entry.op;
  const bool fast = name == "aclnnFastLayerNorm";
  const bool has_mode = name == "aclnnLayerNormWithImplMode";
  Table table = TableOf(entry, "row_norm",
                        fast       ? "Layer normalisation whose result has the dtype of its input."
                        : has_mode ? "Layer normalisation with a mode that the original trades precision by; here all are exact."
                                   : "Layer normalisation over the trailing axes.",
                        {.optional = {"weightOptional", "biasOptional", "meanOutOptional", "rstdOutOptional"}});
  table.formulas = {"mean, var = of each row over the trailing axes; rstd = 1 / sqrt(var + eps)",
                    "out = (input - mean) * rstd * weight + bias"};
  table.notes = {"Statistics and arithmetic are FLOAT (DOUBLE for a DOUBLE input) with one rounding of each output.",
                 "A row without elements has mean 0 and rstd NaN."};
  Describe(&table, "input", "numbers to normalise");
  Describe(&table, "normalizedShape", "the trailing dims that make a row");
  Describe(&table, "weightOptional", "factor of each position in a row; null means ones");
  Describe(&table, "biasOptional", "summand of each position in a row; null means zeros");
  Describe(&table, "eps", "added to the variance");
  Describe(&table, "out", "the normalised rows");
  Describe(&table, "meanOutOptional", "mean of each row");
  Describe(&table, "rstdOutOptional", "reciprocal standard deviation of each row");
  AddNullRules(&table);
  Add(&table, {Supported(fast ? kFastProducts : kProductsOf), DTypes("input", Float3Wide()), DTypes("weightOptional", Float3Wide()),
               SameOrFloat("weightOptional", "input"), DTypes("biasOptional", Float3Wide()), SameOrFloat("biasOptional", "input"),
               SameDType("biasOptional", "weightOptional"), DTypes("out", Float3Wide()), DTypes("meanOutOptional", Float3Wide()),
               DTypes("rstdOutOptional", Float3Wide())});
  if (fast) Add(&table, {SameDType("out", "input")});
  else Add(&table, {Float3Beside("out", "input")});
  Add(&table, {Float3Beside("meanOutOptional", "input"), Float3Beside("rstdOutOptional", "input"), Rank("input", 1, 8),
               Rank("meanOutOptional", 0, 8), Rank("rstdOutOptional", 0, 8), norm::NormalizedShape("normalizedShape", ShapeLength),
               Tail("normalizedShape", "input"), ShapeOf("weightOptional", "normalizedShape"),
               ShapeOf("biasOptional", "normalizedShape"), SameShape("out", "input"),
               KeepDimsOrEmpty("meanOutOptional", "input", "normalizedShape"),
               KeepDimsOrEmpty("rstdOutOptional", "input", "normalizedShape"), SameShape("rstdOutOptional", "meanOutOptional")});
  if (has_mode) {
    Describe(&table, "implMode", "0 precision, 1 performance, 2 keeps FLOAT16; all compute the same");
    Add(&table, {OneOf("implMode", {0, 1, 2}), Custom("implMode", "must not be 2 unless all inputs are FLOAT16", HalfMode)});
  }
  return {.contract = Contract(std::move(table)), .plan = PlanLayerNorm, .family = "norm"};
}

// ---- gradient ----

enum {
  kGradOut,
  kX,
  kGradShape,
  kGivenMean,
  kGivenRstd,
  kGamma,
  kBeta,
  kMask,
  kGradInput,
  kGradWeight,
  kGradBias
};

std::string GradShapeLength(Values values, Product) { return norm::OneToEight(*values[kGradShape].ints); }

std::string OneMeanPerRow(Values values, Product) {
  const int64_t rows = RowsOf(*values[kX].tensor, *values[kGradShape].ints);
  const Tensor& mean = *values[kGivenMean].tensor;
  return mean.numel() == rows ? "" : fmt::format("must have an element for each of {} rows, got shape {}", rows, ToString(mean.dims));
}

template <int kArg>
std::string OnePerColumn(Values values, Product) {
  const int64_t count = CountOf(*values[kGradShape].ints);
  if (!values[kArg].given() || values[kArg].tensor->numel() == count) return "";
  return fmt::format("must have {} elements, got shape {}", count, ToString(values[kArg].tensor->dims));
}

Status PlanLayerNormBackward(Values values, PlanBuilder& plan) {
  const auto& mask = values[kMask].bools->values;
  const Tensor& x = *values[kX].tensor;
  const int64_t rows = RowsOf(x, *values[kGradShape].ints);
  const int64_t count = CountOf(*values[kGradShape].ints);
  if (count == 0 || !(mask[0] || mask[1] || mask[2])) return {};
  if (rows == 0) {
    if (mask[1]) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kGradWeight, 0));
    if (mask[2]) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kGradBias, 0));
    return {};
  }
  const DType computed = norm::ComputeTypeOf(x.dtype);
  const Operand dy = plan.TensorOperand(kGradOut), input = plan.TensorOperand(kX);
  const Operand dx = mask[0] ? plan.TensorOperand(kGradInput) : input;
  const DType stored = StoredType(computed, {dy, input, dx});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(kGradOut, dy, stored));
  ANYACL_RETURN_IF_ERROR(dense.Read(kX, input, stored));
  for (int arg : {kGivenMean, kGivenRstd, kGamma}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  if (mask[0]) dense.Write(kGradInput, dx, stored);
  for (int i : {1, 2}) {
    if (mask[i]) dense.Write(kGradInput + i);
  }
  auto& params = plan.MakeParams<norm::RowNormBackwardParams>();
  params.shape = norm::DenseRows(rows, count);
  params.wide = computed == DType::kF64;
  params.stored = stored;
  dense.Bind(kGradOut, params.dy);
  dense.Bind(kX, params.x);
  dense.Bind(kGivenMean, params.mean);
  dense.Bind(kGivenRstd, params.rstd);
  dense.Bind(kGamma, params.gamma);
  dense.BindOut(kGradInput, params.dx);
  dense.BindOut(kGradWeight, params.dgamma);
  dense.BindOut(kGradBias, params.dbeta);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm_backward"));
  return dense.Finish();
}

Operator MakeLayerNormBackward(const Entry& entry) {
  Table table = TableOf(entry, "row_norm_backward", "Gradients of layer normalisation: input, weight and bias.",
                        {.optional = {"weightOptional", "biasOptional", "gradInputOut", "gradWeightOut", "gradBiasOut"}});
  table.formulas = {"u = (input - mean) * rstd, p = gradOut * weight",
                    "gradInputOut = rstd * (p - avg(p) - u * avg(p * u)), avg over the row",
                    "gradWeightOut = sum over the rows of gradOut * u, gradBiasOut = sum over the rows of gradOut"};
  table.notes = {"mean and rstd are taken as given. biasOptional is checked and not used.",
                 "Without rows gradWeightOut and gradBiasOut are cleared."};
  Describe(&table, "gradOut", "gradient of the forward result");
  Describe(&table, "input", "forward input");
  Describe(&table, "normalizedShape", "the trailing dims that make a row");
  Describe(&table, "mean", "mean of each row");
  Describe(&table, "rstd", "reciprocal standard deviation of each row");
  Describe(&table, "weightOptional", "factor of each position in a row; null means ones");
  Describe(&table, "outputMask", "which of gradInputOut, gradWeightOut, gradBiasOut are wanted");
  AddNullRules(&table);
  Add(&table, {Length("outputMask", 3), NotNull("gradInputOut").If("outputMask", 0), NotNull("gradWeightOut").If("outputMask", 1),
               NotNull("gradBiasOut").If("outputMask", 2), Supported(kBackwardProducts)});
  for (const char* arg : {"gradOut", "input", "mean", "rstd"}) Add(&table, {DTypes(arg, Float3Wide())});
  Add(&table, {SameDType("gradOut", "input"), Float3Beside("mean", "input"), Float3Beside("rstd", "input"),
               DTypes("weightOptional", Float3Wide()), SameOrFloat("weightOptional", "input"), DTypes("biasOptional", Float3Wide()),
               Float3Beside("biasOptional", "input")});
  for (const char* arg : {"gradInputOut", "gradWeightOut", "gradBiasOut"}) {
    Add(&table, {DTypes(arg, Float3Wide()), Float3Beside(arg, "input")});
  }
  Add(&table, {Rank("gradOut", 0, 8), Rank("input", 1, 8), Rank("mean", 0, 8), Rank("rstd", 0, 8),
               norm::NormalizedShape("normalizedShape", GradShapeLength), Rank("gradInputOut", 0, 8).If("outputMask", 0),
               Rank("gradWeightOut", 0, 8).If("outputMask", 1), Rank("gradBiasOut", 0, 8).If("outputMask", 2),
               Tail("normalizedShape", "input"), ShapeOf("weightOptional", "normalizedShape"),
               ShapeOf("biasOptional", "normalizedShape"), SameShape("gradOut", "input"), SameShape("rstd", "mean"),
               Custom("mean", "must have an element for each row", OneMeanPerRow), SameShape("gradInputOut", "input").If("outputMask", 0),
               Custom("gradWeightOut", "must have an element for each position of a row", OnePerColumn<kGradWeight>).If("outputMask", 1),
               Custom("gradBiasOut", "must have an element for each position of a row", OnePerColumn<kGradBias>).If("outputMask", 2)});
  return {.contract = Contract(std::move(table)), .plan = PlanLayerNormBackward, .family = "norm"};
}

}  // namespace

void DeclareLayerNorm(Declarations& declarations) {
  for (const char* op : {"aclnnLayerNorm", "aclnnLayerNormWithImplMode", "aclnnFastLayerNorm"}) declarations.Add(op, MakeLayerNorm);
  declarations.Add("aclnnLayerNormBackward", MakeLayerNormBackward);
}

}  // namespace anyacl
