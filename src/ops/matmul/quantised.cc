// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products whose second operand has 8 or 4 bits per number.
#include <fmt/format.h>

#include <utility>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/matmul/dequantise.h"
#include "ops/matmul/families.h"
#include "ops/matmul/product.h"
#include "ops/matmul/weight_layout.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::matmul {
namespace {

using namespace contract;

enum { kX, kWeight, kScale, kOffset, kQuantScale, kQuantOffset, kBias, kGroup };

int64_t Last(const Dims& dims) { return dims[dims.rank() - 1]; }

int OutputOf(Values v) { return static_cast<int>(v.size()) - 1; }

// 32 bits hold eight numbers.
int64_t PackOf(DType weight) { return weight == DType::kI32 ? 8 : 1; }
int64_t ColumnsOf(Values v) { return v[kWeight].tensor->dims[1] * PackOf(v[kWeight].tensor->dtype); }

// Which factors a number of the weight has.
enum class Factors { kOne, kPerColumn, kPerGroup, kOther };

Factors FactorsOf(Values v) {
  const Dims& scale = v[kScale].tensor->dims;
  const int64_t n = ColumnsOf(v), k = v[kX].tensor->dims[1], group = v[kGroup].integer;
  if (scale == Dims{1} || scale == Dims{1, 1}) return Factors::kOne;
  if (scale == Dims{n} || scale == Dims{1, n}) return Factors::kPerColumn;
  const bool groups = group > 0 && scale.rank() == 2 && scale[1] == n && scale[0] == k / group + (k % group != 0);
  return groups ? Factors::kPerGroup : Factors::kOther;
}

// ---- rules ----

std::string WrongX(Values v, Product) {
  const Dims &x = v[kX].tensor->dims, &weight = v[kWeight].tensor->dims;
  return weight[0] == x[1] ? "" : fmt::format("must have as many columns as weight has rows, got {} and {}", ToString(x), ToString(weight));
}

std::string OddWeight(Values v, Product) {
  const Tensor& weight = *v[kWeight].tensor;
  if (weight.dtype != DType::kI4 || (Last(weight.dims) % 2 == 0 && weight.offset == 0)) return "";
  return fmt::format("must have an even last dim and no offset in INT4, got {} and {}", ToString(weight.dims), weight.offset);
}

std::string WrongScale(Values v, Product) {
  if (FactorsOf(v) != Factors::kOther) return "";
  return fmt::format("must have shape [1], [n] or [k / antiquantGroupSize, n] for k = {}, n = {} and groups of {}, got {}", v[kX].tensor->dims[1],
                     ColumnsOf(v), v[kGroup].integer, ToString(v[kScale].tensor->dims));
}

std::string WrongGroup(Values v, Product) {
  const int64_t group = v[kGroup].integer, k = v[kX].tensor->dims[1];
  if (FactorsOf(v) != Factors::kPerGroup) return group == 0 ? "" : fmt::format("must be 0 unless scales are per group, got {}", group);
  if (group >= 32 && group <= k - 1 && group % 32 == 0) return "";
  return fmt::format("must be a multiple of 32 below k = {}, got {}", k, group);
}

constexpr char kStrides[] = "must be dense or have its last two axes exchanged, as weight has";
bool IsDense(const Tensor& t) { return IsContiguous(t); }
bool IsExchanged(const Tensor& t) {
  Dims matrices;
  bool exchanged = false;
  return t.rank() == 2 && NzMatrices(t, &matrices, &exchanged) && (exchanged || t.dims[0] == 1 || t.dims[1] == 1);
}
template <int kArg>
std::string WrongStrides(Values v, Product) {
  if (!v[kArg].given()) return "";
  const Tensor &t = *v[kArg].tensor, &weight = *v[kWeight].tensor;
  const bool fits = (IsDense(t) && (kArg == kWeight || t.rank() == 1 || IsDense(weight))) ||
                    (IsExchanged(t) && (kArg == kWeight || IsExchanged(weight)));
  return fits ? "" : fmt::format("{}, got shape {} with strides {}", kStrides, ToString(t.dims), ToString(t.strides));
}

std::string WrongBias(Values v, Product product) {
  if (!v[kBias].given()) return "";
  const DType bias = v[kBias].tensor->dtype, x = v[kX].tensor->dtype;
  const bool wide = x == DType::kBF16 && bias == DType::kF32;
  const bool needs_wide = x == DType::kBF16 && product != Product::kAscend950;
  if (wide || (bias == x && !needs_wide)) return "";
  return fmt::format("must be {}, or FLOAT with BF16 x, got {}", Name(x), Name(bias));
}
std::string WrongBiasShape(Values v, Product) {
  if (!v[kBias].given()) return "";
  const Dims& bias = v[kBias].tensor->dims;
  const int64_t n = ColumnsOf(v);
  return bias == Dims{n} || bias == Dims{1, n} ? "" : fmt::format("must have shape [{}] or [1, {}], got {}", n, n, ToString(bias));
}
std::string WrongOutput(Values v, Product) {
  const Dims wanted = {v[kX].tensor->dims[0], ColumnsOf(v)}, got = v[OutputOf(v)].tensor->dims;
  return got == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(got));
}

// ---- plan ----

// The weight in x's dtype, in the order in which it lies.
Status DequantisedWeight(Values v, PlanBuilder& plan, Operand* result) {
  const Tensor& weight = *v[kWeight].tensor;
  Operand raw;
  ANYACL_RETURN_IF_ERROR(WeightOperand(plan, kWeight, &raw));
  const bool along_k = raw.strides[0] < raw.strides[1] && weight.dtype != DType::kI32;
  const int64_t pack = PackOf(weight.dtype), k = weight.dims[0], n = ColumnsOf(v);
  *result = plan.ScratchOperand("weight", v[kX].tensor->dtype, along_k ? Dims{n, k} : Dims{k, n});
  Dense factors(plan, v, DType::kF32);
  ANYACL_RETURN_IF_ERROR(factors.Read(kScale));
  ANYACL_RETURN_IF_ERROR(factors.Read(kOffset));
  auto& params = plan.MakeParams<DequantiseParams>();
  params.rows = k;
  params.columns = n;
  params.row_step = raw.strides[0] * pack;
  params.column_step = raw.strides[1] * pack;
  params.pack = pack;
  params.bits = weight.dtype == DType::kI8 ? 8 : 4;
  params.dtype = result->dtype;
  const Factors kind = FactorsOf(v);
  params.row_group = kind == Factors::kPerGroup ? v[kGroup].integer : k;
  params.column_group = kind == Factors::kOne ? n : 1;
  params.scale_row = kind == Factors::kPerGroup ? n : 0;
  params.scale_column = kind == Factors::kOne ? 0 : 1;
  if (along_k) {
    std::swap(params.rows, params.columns);
    std::swap(params.row_step, params.column_step);
    std::swap(params.row_group, params.column_group);
    std::swap(params.scale_row, params.scale_column);
  }
  plan.Bind(raw, params.weight);
  factors.Bind(kScale, params.scale);
  factors.Bind(kOffset, params.offset);
  plan.Bind(*result, params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("dequantise"));
  if (along_k) *result = Transposed(*result);
  return {};
}

Status PlanQuantised(Values v, PlanBuilder& plan) {
  const Operand out = plan.TensorOperand(OutputOf(v));
  Operand weight;
  ANYACL_RETURN_IF_ERROR(DequantisedWeight(v, plan, &weight));
  const Operand product = plan.ScratchOperand("product", DType::kF32, out.dims);
  plan.RequireApart(OutputOf(v));
  ANYACL_RETURN_IF_ERROR(AddProduct(plan, plan.TensorOperand(kX), weight, product));
  if (!v[kBias].given()) return pointwise::AddCopy(plan, product, out);
  const Operand bias = plan.TensorOperand(kBias);
  return AddScaledSum(plan, product, 1, &bias, 1, out);
}

// `nz`: the weight must be in FRACTAL_NZ.
Operator MakeQuantised(const Entry& entry, bool nz) {
  Table table = TableOf(entry, "dequantise", "Product with a weight of 8 or 4 bits per number, which has scales and offsets.",
                        {.optional = {"antiquantOffsetOptional", "quantScaleOptional", "quantOffsetOptional", "biasOptional"}, .outputs = {"y"}});
  table.formulas = {"y = x @ ((weight + antiquantOffset) * antiquantScale) + bias"};
  table.notes = {"The weight is rounded to the dtype of x before the product, which is summed in FLOAT.",
                 "An INT32 holds eight signed numbers of 4 bits along the last axis, an INT4 weight two in each byte; the low bits come first.",
                 "Results in INT8 (quantScale, quantOffset) and weights in FLOAT8 or FLOAT4 are not supported."};
  AddNullRules(&table);
  const DTypeSet halves = {DType::kF16, DType::kBF16};
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})).Code(code::kRuntime),
               DTypes("x", RowsOf(halves)), DTypes("weight", RowsOf(nz ? DTypeSet{DType::kI8} : DTypeSet{DType::kI8, DType::kI4, DType::kI32})),
               SameDType("antiquantScale", "x"), SameDType("antiquantOffsetOptional", "x"), SameDType("y", "x"),
               NotGiven("quantScaleOptional").OrEmpty(), NotGiven("quantOffsetOptional").OrEmpty(),
               Custom("biasOptional", "must have the dtype of x, or be FLOAT with BF16", WrongBias), Rank("x", 2, 2), Rank("weight", 2, 2),
               Rank("antiquantScale", 1, 2), Rank("y", 2, 2)});
  for (const char* arg : {"x", "weight", "antiquantScale", "antiquantOffsetOptional", "biasOptional", "y"}) Add(&table, {NotEmpty(arg)});
  for (const char* arg : {"x", "antiquantScale", "antiquantOffsetOptional", "biasOptional", "y"}) Add(&table, {PublicFormat(arg)});
  if (nz) Add(&table, {Formats("weight", {Format::kFractalNZ})});
  Add(&table, {Custom("weight", "must be dense or have its last two axes exchanged", WrongStrides<kWeight>),
               Custom("weight", "must be in no private format but FRACTAL_NZ, and then INT8 with the storage of its image",
                      [](Values v, Product) {
                        const Tensor& t = *v[kWeight].tensor;
                        if (t.format == Format::kFractalNZ && t.dtype != DType::kI8) return "must be INT8 in FRACTAL_NZ, got " + Name(t.dtype);
                        return WrongWeight(t);
                      }),
               Custom("weight", "must have an even last dim and no offset in INT4", OddWeight), Custom("x", "must have as many columns as weight has rows", WrongX),
               Custom("antiquantScale", "must have one element, one per column or one per group and column", WrongScale),
               SameShape("antiquantOffsetOptional", "antiquantScale"), Custom("antiquantScale", kStrides, WrongStrides<kScale>),
               Custom("antiquantOffsetOptional", kStrides, WrongStrides<kOffset>),
               Custom("antiquantGroupSize", "must be a multiple of 32 below k for scales per group, else 0", WrongGroup),
               Custom("biasOptional", "must have an element per column", WrongBiasShape), Custom("y", "must have shape [m, n]", WrongOutput)});
  return {.contract = Contract(std::move(table)), .plan = PlanQuantised, .family = "matmul"};
}

}  // namespace

void DeclareQuantised(Declarations& declarations) {
  declarations.Add("aclnnWeightQuantBatchMatmulV2", [](const Entry& e) { return MakeQuantised(e, false); });
  declarations.Add("aclnnWeightQuantBatchMatmulV3", [](const Entry& e) { return MakeQuantised(e, false); });
  declarations.Add("aclnnWeightQuantBatchMatmulNz", [](const Entry& e) { return MakeQuantised(e, true); });
}

}  // namespace anyacl::matmul
