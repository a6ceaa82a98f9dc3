// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Soft-max of the last axis behind a scale, a mask or a bias, as attention has it.
#include <fmt/format.h>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/softmax/softmax.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DType F32 = DType::kF32, BF16 = DType::kBF16;
constexpr double kMasked = -10000;  // and not -inf: a row that is masked everywhere is uniform

// The step that computes rows of `shape`; y is for gradients.
Status Rows(PlanBuilder& plan, softmax::Kind kind, const Dims& shape, const Operand& x, const Operand* y, const Operand& out) {
  auto& params = plan.MakeParams<softmax::Params>();
  params.kind = kind;
  params.count = shape[shape.rank() - 1];
  params.rows = Numel(shape) / params.count;
  plan.Bind(x, params.x);
  if (y) plan.Bind(*y, params.y);
  plan.Bind(out, params.out);
  return plan.ChooseKernel("softmax");
}

// out = mask ? masked : scale * x
Status ScaledOrMasked(PlanBuilder& plan, const Operand& x, int mask, double scale, double masked, const Operand& out) {
  const ScalarUse scalars[] = {{Scalar::Of(DType::kF64, scale)}, {Scalar::Of(DType::kF64, masked)}};
  const Operand scaled = plan.ScratchOperand("scaled", F32, x.dims);
  const Operand factors[] = {x, ConstantOperand(0)}, chosen[] = {plan.TensorOperand(mask), ConstantOperand(1), scaled};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kMul, F32, factors, scaled, scalars));
  return AddPass(plan, Formula::kWhere, F32, chosen, out, scalars);
}

// ---- ScaledMaskedSoftmax ----

struct Forward {
  enum { kX, kMask, kScale, kFix, kY };
};
struct Backward {
  enum { kGrad, kY, kMask, kScale, kFix, kOut };
};

template <int kMask, int kX>
std::string MaskFits(Values values, Product) {
  const Dims& mask = values[kMask].tensor->dims;
  const Dims& x = values[kX].tensor->dims;
  bool fits = true;
  for (int i = 0; i < 4; ++i) fits = fits && (mask[i] == x[i] || mask[i] == 1);
  return fits ? "" : fmt::format("must broadcast to {}, got {}", ToString(x), ToString(mask));
}
template <int kX>
std::string HasColumns(Values values, Product) {
  const Dims& x = values[kX].tensor->dims;
  return x[3] > 0 ? "" : fmt::format("must not end in a dim of 0, got {}", ToString(x));
}
template <int kFix>
std::string NoFix(Values values, Product) {
  return values[kFix].flag ? "must be false, got true" : "";
}

// Rules of both; `alike` have dtype and shape of the first argument.
void AddMaskedRules(Table* table, const std::vector<const char*>& alike, CustomCheck mask_fits, CustomCheck has_columns, CustomCheck no_fix) {
  const char* const x = table->args[0].name;
  Describe(table, "mask", "true where a number is masked; broadcast");
  Describe(table, "scale", "factor of the numbers");
  Describe(table, "fixTriuMask", "must be false");
  AddNullRules(table);
  Add(table, {Supported(kNewer), DTypes(x, RowsOf(types::kFloat3)), DTypes("mask", {{{DType::kBool}}})});
  for (const char* arg : alike) Add(table, {SameDType(arg, x)});
  Add(table, {Rank(x, 4, 4), Rank("mask", 4, 4)});
  for (const char* arg : alike) Add(table, {SameShape(arg, x)});
  Add(table, {Custom("mask", "must broadcast to the shape of the numbers", mask_fits), Custom(x, "must not end in a dim of 0", has_columns),
              Custom("fixTriuMask", "must be false", no_fix)});
}

Status PlanForward(Values values, PlanBuilder& plan) {
  using F = Forward;
  const Tensor& x = *values[F::kX].tensor;
  if (x.empty()) return {};
  const Operand masked = plan.ScratchOperand("masked", F32, x.dims);
  Dense dense(plan, values, F32);
  dense.Write(F::kY);
  ANYACL_RETURN_IF_ERROR(ScaledOrMasked(plan, plan.TensorOperand(F::kX), F::kMask, values[F::kScale].real, kMasked, masked));
  ANYACL_RETURN_IF_ERROR(Rows(plan, softmax::Kind::kSoftmax, x.dims, masked, nullptr, dense.Written(F::kY)));
  return dense.Finish();
}

Operator MakeScaledMaskedSoftmax(const Entry& entry) {
  using F = Forward;
  Table table = TableOf(entry, "softmax", "Soft-max of the last axis behind a scale and a mask.", {.outputs = {"y"}});
  table.formulas = {"z = mask ? -10000 : scale * x", "y = exp(z - m) / sum of exp(z - m), m = largest z of the row"};
  table.notes = {"A row that is masked everywhere is uniform."};
  Describe(&table, "x", "numbers");
  Describe(&table, "y", "rows that add up to one");
  AddMaskedRules(&table, {"y"}, MaskFits<F::kMask, F::kX>, HasColumns<F::kX>, NoFix<F::kFix>);
  return {.contract = Contract(std::move(table)), .plan = PlanForward, .family = "softmax"};
}

Status PlanBackward(Values values, PlanBuilder& plan) {
  using B = Backward;
  const Tensor& grad = *values[B::kGrad].tensor;
  if (grad.empty()) return {};
  Operand g, y;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, B::kGrad, 0, F32, &g));
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, B::kY, 0, F32, &y));
  const Operand gradient = plan.ScratchOperand("gradient", F32, grad.dims);
  ANYACL_RETURN_IF_ERROR(Rows(plan, softmax::Kind::kSoftmaxBackward, grad.dims, g, &y, gradient));
  Dense dense(plan, values, F32);
  dense.Write(B::kOut);
  ANYACL_RETURN_IF_ERROR(ScaledOrMasked(plan, gradient, B::kMask, values[B::kScale].real, 0, dense.Written(B::kOut)));
  return dense.Finish();
}

Operator MakeScaledMaskedSoftmaxBackward(const Entry& entry) {
  using B = Backward;
  Table table = TableOf(entry, "softmax", "Gradient of the soft-max behind a scale and a mask.", {.outputs = {"out"}});
  table.formulas = {"out = mask ? 0 : scale * y * (gradOutput - sum of gradOutput * y over the row)"};
  Describe(&table, "gradOutput", "gradient of the forward result");
  Describe(&table, "y", "the forward result");
  Describe(&table, "out", "gradient of the forward input");
  AddMaskedRules(&table, {"y", "out"}, MaskFits<B::kMask, B::kGrad>, HasColumns<B::kGrad>, NoFix<B::kFix>);
  return {.contract = Contract(std::move(table)), .plan = PlanBackward, .family = "softmax"};
}

// ---- MaskedSoftmaxWithRelPosBias ----

struct Biased {
  enum { kX, kMask, kBias, kScale, kMode, kOut };
};

// x as [B, W, N, S1, S2]: W windows, of as many masks; one without a mask.
int64_t WindowsOf(Values values) {
  const Dims& x = values[Biased::kX].tensor->dims;
  if (x.rank() == 5) return x[1];
  if (!values[Biased::kMask].given()) return 1;
  const Dims& mask = values[Biased::kMask].tensor->dims;
  return mask[mask.rank() == 5 ? 1 : 0];
}
bool EndsLike(const Dims& a, const Dims& b) { return a[a.rank() - 2] == b[b.rank() - 2] && a[a.rank() - 1] == b[b.rank() - 1]; }

std::string WindowMask(Values values, Product) {
  if (!values[Biased::kMask].given()) return "";
  const Dims& x = values[Biased::kX].tensor->dims;
  const Dims& mask = values[Biased::kMask].tensor->dims;
  const int64_t windows = WindowsOf(values);
  const bool fits = (mask == Dims{windows, mask[mask.rank() - 2], mask[mask.rank() - 1]} ||
                     mask == Dims{windows, 1, mask[mask.rank() - 2], mask[mask.rank() - 1]} ||
                     mask == Dims{1, windows, 1, mask[mask.rank() - 2], mask[mask.rank() - 1]}) &&
                    EndsLike(mask, x) && (x.rank() == 5 || (windows > 0 && x[0] % windows == 0));
  return fits ? "" : fmt::format("must be [W, S1, S2], [W, 1, S1, S2] or [1, W, 1, S1, S2] for the windows of x {}, got {}", ToString(x), ToString(mask));
}
std::string HeadBias(Values values, Product) {
  const Dims& x = values[Biased::kX].tensor->dims;
  const Dims& bias = values[Biased::kBias].tensor->dims;
  const int64_t heads = x[x.rank() - 3];
  bool fits = EndsLike(bias, x) && bias[bias.rank() - 3] == heads;
  for (int i = 0; i < bias.rank() - 3; ++i) fits = fits && bias[i] == 1;
  return fits ? "" : fmt::format("must be [N, S1, S2], with ones in front or not, for x {}, got {}", ToString(x), ToString(bias));
}

// Row-major dims in front of the last two, spelled out anew: strides of axes of 1 do not matter.
Operand As(Operand operand, const Dims& dims, const Dims& strides) {
  operand.dims = dims;
  operand.strides = strides;
  return operand;
}

Status PlanBiased(Values values, PlanBuilder& plan) {
  using B = Biased;
  const Tensor& tensor = *values[B::kX].tensor;
  if (values[B::kOut].tensor->empty()) return {};
  const int64_t windows = WindowsOf(values);
  const auto split = [&](int arg) {
    const Operand x = plan.TensorOperand(arg);
    if (x.dims.rank() == 5) return x;
    return As(x, {x.dims[0] / windows, windows, x.dims[1], x.dims[2], x.dims[3]},
              {x.strides[0] * windows, x.strides[0], x.strides[1], x.strides[2], x.strides[3]});
  };
  // An axis of windows or heads in front of the last two.
  const auto spread = [&](int arg, bool of_windows, int64_t count) {
    const Operand t = plan.TensorOperand(arg);
    const int rank = t.dims.rank(), axis = of_windows ? (rank == 5 ? 1 : 0) : rank - 3;
    return As(t, {1, of_windows ? count : 1, of_windows ? 1 : count, t.dims[rank - 2], t.dims[rank - 1]},
              {0, of_windows ? t.strides[axis] : 0, of_windows ? 0 : t.strides[axis], t.strides[rank - 2], t.strides[rank - 1]});
  };
  const Operand x = split(B::kX);
  const Operand sum = plan.ScratchOperand("sum", F32, x.dims);
  const ScalarUse scale[] = {{Scalar::Of(DType::kF64, values[B::kScale].real)}};
  const Operand summands[] = {spread(B::kBias, false, x.dims[2]), x};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kAdd, F32, summands, sum, scale));
  if (values[B::kMask].given()) {
    const Operand masked[] = {sum, spread(B::kMask, true, windows)};
    ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kPlus, F32, masked, sum));
  }
  Dense dense(plan, values, F32);
  dense.Write(B::kOut);
  ANYACL_RETURN_IF_ERROR(Rows(plan, softmax::Kind::kSoftmax, tensor.dims, sum, nullptr, dense.Written(B::kOut)));
  return dense.Finish();
}

Operator MakeBiased(const Entry& entry) {
  constexpr int32_t kShape = code::kTiling;
  Table table = TableOf(entry, "softmax", "Soft-max of the last axis behind a scale, a mask per window and a bias per head.",
                        {.optional = {"attenMaskOptional"}, .outputs = {"out"}});
  table.formulas = {"z = scaleValue * x + attenMask + relativePosBias", "out = exp(z - m) / sum of exp(z - m), m = largest z of the row"};
  table.notes = {"x is [B * W, N, S1, S2], whose window is the index modulo W, or [B, W, N, S1, S2].", "innerPrecisionMode is not looked at."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "numbers");
  Describe(&table, "attenMaskOptional", "summand of each window; null means zeros");
  Describe(&table, "relativePosBias", "summand of each head");
  Describe(&table, "scaleValue", "factor of x");
  Describe(&table, "out", "rows that add up to one");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"x", "attenMaskOptional", "relativePosBias", "out"};
  std::vector<TypeRow> rows;
  for (DType t : types::kFloat3.List()) rows.push_back({std::vector<DType>(tensors.size(), t), t == BF16 ? kNewer : kAllProducts});
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})), DTypeRows(tensors, rows).Code(kShape),
               AcceptIfEmpty({"out"}), Rank("x", 4, 5).Code(kShape), NotEmpty("x").Code(kShape), SameShape("out", "x").Code(kShape),
               Rank("attenMaskOptional", 3, 5).Code(kShape), Rank("relativePosBias", 3, 5).Code(kShape),
               Custom("attenMaskOptional", "must be [W, S1, S2], [W, 1, S1, S2] or [1, W, 1, S1, S2]", WindowMask).Code(kShape),
               Custom("relativePosBias", "must be [N, S1, S2], with ones in front or not", HeadBias).Code(kShape)});
  return {.contract = Contract(std::move(table)), .plan = PlanBiased, .family = "softmax"};
}

}  // namespace

void DeclareMaskedSoftmax(Declarations& declarations) {
  declarations.Add("aclnnScaledMaskedSoftmax", MakeScaledMaskedSoftmax);
  declarations.Add("aclnnScaledMaskedSoftmaxBackward", MakeScaledMaskedSoftmaxBackward);
  declarations.Add("aclnnMaskedSoftmaxWithRelPosBias", MakeBiased);
}

}  // namespace anyacl
