// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Weights in FRACTAL_NZ: operators that bring them there, and products with them.
#include <fmt/format.h>

#include "ops/matmul/families.h"
#include "ops/matmul/product.h"
#include "ops/matmul/rules.h"
#include "ops/matmul/weight_layout.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::matmul {
namespace {

using namespace contract;

constexpr DTypeSet kHalves = {DType::kF16, DType::kBF16};
constexpr Format kNz = Format::kFractalNZ;
const Products kWithInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});

// ---- conversions ----

// Whole matrices, or ones with the last two axes exchanged, whose image can be addressed.
std::string WrongMatrices(const Tensor& t) {
  Dims matrices;
  bool exchanged = false;
  if (!NzMatrices(t, &matrices, &exchanged)) {
    return fmt::format("must be dense or have its last two axes exchanged, got shape {} with strides {}", ToString(t.dims), ToString(t.strides));
  }
  return Numel(NzStorage(matrices, t.dtype)) == kOverflow ? fmt::format("must fit into 63 bits when it is padded, got {}", ToString(t.dims)) : "";
}

Status PlanTransform(Values v, PlanBuilder& plan) {
  if (v[0].tensor->empty()) return {};
  const Operand tensor = plan.TensorOperand(0);
  Dims dims;
  bool exchanged = false;
  NzMatrices(*v[0].tensor, &dims, &exchanged);
  const Operand matrices = plan.ScratchOperand("weight", tensor.dtype, dims);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, exchanged ? Transposed(tensor) : tensor, matrices));
  return PackNz(plan, matrices, tensor);
}

void BecomeNz(Tensor* weight) {
  Dims matrices;
  bool exchanged = false;
  if (!NzMatrices(*weight, &matrices, &exchanged)) return;
  weight->storage = NzStorage(matrices, weight->dtype);
  weight->format = kNz;
}

Operator MakeTransform(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Lays a weight out as FRACTAL_NZ, where it is.", {.in_out = {"mmWeightRef"}});
  table.notes = {"The memory needs room for the padded matrix: rows and columns rounded up to 16, columns of INT8 to 32.",
                 "The aclTensor is another one after phase 1: its format is FRACTAL_NZ, its storage shape that of the image; its shape stays."};
  AddNullRules(&table);
  Add(&table, {Supported(kWithInference), DTypes("mmWeightRef", RowsOf({DType::kF16, DType::kBF16, DType::kI8, DType::kU8})),
               Formats("mmWeightRef", {Format::kND}), Rank("mmWeightRef", 2, 6),
               Custom("mmWeightRef", "must be dense or have its last two axes exchanged", [](Values v, Product) { return WrongMatrices(*v[0].tensor); })});
  return {.contract = Contract(std::move(table)), .plan = PlanTransform, .family = "matmul", .relabel = BecomeNz};
}

// Source and target are one shape, but that an NZ target may also be described by its storage.
std::string CastFits(Values v, Product) {
  const Tensor &from = *v[0].tensor, &to = *v[1].tensor;
  if (to.format != kNz) {
    if (from.dims == to.dims) return "";
    return fmt::format("must have the shape {} of srcTensor, got {}", ToString(from.dims), ToString(to.dims));
  }
  const Dims storage = NzStorage(from.dims, from.dtype);
  if (Numel(storage) != kOverflow && (from.dims == to.dims || to.dims == storage) && Numel(to.storage) == Numel(storage)) return "";
  return fmt::format("must have the FRACTAL_NZ storage {} of srcTensor {}, got shape {} and storage {}", ToString(storage), ToString(from.dims),
                     ToString(to.dims), ToString(to.storage));
}

constexpr char kCastTags[] = "must be in no private format but FRACTAL_NZ";
template <int kArg>
std::string CastTag(Values v, Product) {
  const Tensor& t = *v[kArg].tensor;
  if (!IsPrivate(t.format)) return "";
  if (t.format != kNz) return fmt::format("{}, got {}", kCastTags, Name(t.format));
  if (!IsContiguous(t) || t.offset != 0) return fmt::format("must be dense in FRACTAL_NZ, got strides {} and offset {}", ToString(t.strides), t.offset);
  return kArg == 0 ? WrongNz(t) : "";
}

Status PlanCast(Values v, PlanBuilder& plan) {
  Operand from = plan.TensorOperand(0);
  const Operand to = plan.TensorOperand(1);
  const bool to_nz = v[1].tensor->format == kNz;
  plan.RequireApart(1);
  if (v[0].tensor->format == kNz) {
    ANYACL_RETURN_IF_ERROR(WeightOperand(plan, 0, &from));
  } else if (to_nz && !from.row_major()) {
    const Operand dense = plan.ScratchOperand("dense matrices", from.dtype, from.dims);
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, dense));
    from = dense;
  }
  return to_nz ? PackNz(plan, from, to) : pointwise::AddCopy(plan, from, to);
}

Operator MakeCast(const Entry& entry) {
  Table table = TableOf(entry, "copy", "The same numbers in another format: FRACTAL_NZ or a public one.");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("srcTensor", RowsOf(types::kFloat3 | DTypeSet{DType::kI8, DType::kU8, DType::kI32})), SameDType("dstTensor", "srcTensor"),
               Rank("srcTensor", 2, 6), NotEmpty("srcTensor"), Custom("srcTensor", kCastTags, CastTag<0>), Custom("dstTensor", kCastTags, CastTag<1>),
               Custom("dstTensor", "must have the shape of srcTensor, in FRACTAL_NZ the storage of its image", CastFits)});
  return {.contract = Contract(std::move(table)), .plan = PlanCast, .family = "matmul"};
}

// ---- products ----

template <int kArg>
std::string IsNz(Values v, Product) {
  const Tensor& t = *v[kArg].tensor;
  return t.format == kNz ? WrongNz(t) : fmt::format("must be in FRACTAL_NZ, got {}", Name(t.format));
}
template <int kArg>
std::string HasNzRank(Values v, Product) {
  const Tensor& t = *v[kArg].tensor;
  if (t.storage.rank() == t.rank() + 2) return "";
  return fmt::format("must have a storage of {} dims, got {}", t.rank() + 2, ToString(t.storage));
}
template <int kArg>
std::string IsWide(Values v, Product) {
  const Dims& dims = v[kArg].tensor->dims;
  const int64_t k = dims[dims.rank() - 2], n = dims[dims.rank() - 1];
  return k != 1 && n != 1 ? "" : fmt::format("must have more than one row and column, got {}", ToString(dims));
}

template <int kArg>
void AddNzRules(Table* table, int rank) {
  const char* const weight = table->args[kArg].name;
  Add(table, {Rank(weight, rank, rank), Custom(weight, "must be a whole FRACTAL_NZ matrix", IsNz<kArg>),
              Custom(weight, "must have a storage of two dims more than its view", HasNzRank<kArg>),
              Custom(weight, "must have more than one row and column", IsWide<kArg>)});
}

// FLOAT weights are known before 950 only.
std::vector<TypeRow> WeightTypes() { return RowsOf(kHalves, types::kFloat3); }

std::string NotMixed(Values v, Product) {
  const DType a = v[0].tensor->dtype, b = v[1].tensor->dtype;
  if (a == b || a == DType::kF32 || b == DType::kF32) return "";
  return fmt::format("must not be {} with self in {}", Name(b), Name(a));
}
std::string KeepsPrecision(Values v, Product) {
  if (v[3].integer != 0 || v[0].tensor->dtype != DType::kF32 || v[2].tensor->dtype != DType::kF16) return "";
  return "must not be FLOAT16 for FLOAT self and cubeMathType 0, got FLOAT16";
}

Operator MakeMatmul(const Entry& entry, int rank) {
  Table table = TableOf(entry, "gemm", rank == 2 ? "Product of a matrix and a weight in FRACTAL_NZ." : "Products of a batch of matrices and one of weights in FRACTAL_NZ.");
  table.formulas = {"out = self @ mat2"};
  AddNullRules(&table);
  Add(&table, {Supported(rank == 2 ? kWithInference : kNewer), DTypes("self", RowsOf(rank == 2 ? types::kFloat3 : kHalves)),
               DTypes("out", RowsOf(types::kFloat3))});
  if (rank == 2) Add(&table, {DTypes("mat2", WeightTypes()), Custom("mat2", "must not be the other 16-bit type", NotMixed),
                              Custom("out", "must not be FLOAT16 for FLOAT self and cubeMathType 0", KeepsPrecision)});
  if (rank == 3) Add(&table, {SameDType("mat2", "self"), Custom("out", "must be FLOAT or of the dtype of self", [](Values v, Product) {
                                const DType self = v[0].tensor->dtype, out = v[2].tensor->dtype;
                                return out == self || out == DType::kF32 ? "" : fmt::format("must be FLOAT or {}, got {}", Name(self), Name(out));
                              })});
  Add(&table, {Custom("cubeMathType", "must be 0 to 4", CubeMathType<3>), Rank("self", rank, rank)});
  AddNzRules<1>(&table, rank);
  Add(&table, {Custom("mat2", "must have as many rows as self has columns", Multiply<0, 1>),
               Custom("out", "must have the shape of the product", HasProductShape<0, 1, 2>), PublicFormat("self"), PublicFormat("out")});
  return {.contract = Contract(std::move(table)), .plan = [](Values, PlanBuilder& plan) { return PlanProduct(plan, 0, 1, 2); }, .family = "matmul"};
}

struct Addmm {
  enum { kSelf, kFirst, kSecond, kBeta, kAlpha, kOut, kMath };
};

std::string SelfBroadcasts(Values v, Product) {
  const Dims &self = v[Addmm::kSelf].tensor->dims, &out = v[Addmm::kOut].tensor->dims;
  const Dims* const shapes[] = {&out, &self};
  Dims together;
  if (BroadcastDims(shapes, &together) && together == out) return "";
  return fmt::format("must broadcast to the shape {} of the product, got {}", ToString(out), ToString(self));
}

Operator MakeAddmm(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "A matrix plus the product of a matrix and a weight in FRACTAL_NZ.");
  table.formulas = {"out = beta * self + alpha * mat1 @ mat2"};
  table.notes = {"beta = 0 does not look at the values that are added, alpha = 0 not at the product."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), Formats("self", {Format::kND}), Formats("mat1", {Format::kND}), DTypes("self", RowsOf(types::kFloat3)),
               DTypes("out", RowsOf(types::kFloat3)), DTypes("mat1", RowsOf(kHalves)), SameDType("mat2", "mat1"), ScalarConverts("beta", DType::kF32),
               ScalarConverts("alpha", DType::kF32), Custom("cubeMathType", "must be 0 to 4", CubeMathType<Addmm::kMath>), Rank("mat1", 2, 2)});
  AddNzRules<Addmm::kSecond>(&table, 2);
  Add(&table, {Custom("mat2", "must have as many rows as mat1 has columns", Multiply<Addmm::kFirst, Addmm::kSecond>), Rank("self", 0, 2),
               Custom("out", "must have the shape of the product", HasProductShape<Addmm::kFirst, Addmm::kSecond, Addmm::kOut>),
               Custom("self", "must broadcast to the product", SelfBroadcasts), PublicFormat("out")});
  return {.contract = Contract(std::move(table)), .plan = PlanAddmm, .family = "matmul"};
}

}  // namespace

void DeclareWeights(Declarations& declarations) {
  declarations.Add("aclnnTransMatmulWeight", MakeTransform);
  declarations.Add("aclnnNpuFormatCast", MakeCast);
  declarations.Add("aclnnMatmulWeightNz", [](const Entry& e) { return MakeMatmul(e, 2); });
  declarations.Add("aclnnBatchMatMulWeightNz", [](const Entry& e) { return MakeMatmul(e, 3); });
  declarations.Add("aclnnAddmmWeightNz", MakeAddmm);
}

}  // namespace anyacl::matmul
