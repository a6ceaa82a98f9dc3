// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products of matrices and vectors, plain and added to something. Every form is one batched product [..., m, k] @ [..., k, n]
// behind views of the operands, and a pass that scales, adds and rounds once.
#include <fmt/format.h>

#include "ops/matmul/families.h"
#include "ops/matmul/product.h"
#include "ops/matmul/rules.h"
#include "ops/matmul/weight_layout.h"
#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using matmul::CubeMathType;
using matmul::HasProductShape;
using matmul::Multiply;
using matmul::ProductDims;

constexpr DTypeSet kTypes = types::kFloat3;
const Products kAllButSmall = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});

Rule InFloat3(const char* arg) { return DTypes(arg, RowsOf(kTypes)); }

// --- plain products -------------------------------------------------------------------------------------------------

// The product in FLOAT where the output itself cannot take it.
Operand ProductOperand(PlanBuilder& plan, const Operand& out) {
  if (out.dtype == DType::kF32 && out.row_major() && !plan.Overlaps(out, /*exact_too=*/true)) return out;
  return plan.ScratchOperand("product", DType::kF32, out.dims);
}

}  // namespace

Status matmul::PlanProduct(PlanBuilder& plan, int a_arg, int b_arg, int out_arg) {
  Operand a = plan.TensorOperand(a_arg), b, out = plan.TensorOperand(out_arg);
  if (Numel(out.dims) == 0) return {};
  ANYACL_RETURN_IF_ERROR(WeightOperand(plan, b_arg, &b));
  if (b.dims.rank() == 1) {
    b = WithUnitAxis(b, 1);
    out = WithUnitAxis(out, out.dims.rank());
  }
  if (a.dims.rank() == 1) {
    a = WithUnitAxis(a, 0);
    out = WithUnitAxis(out, out.dims.rank() - 1);
  }
  const Operand product = ProductOperand(plan, out);
  ANYACL_RETURN_IF_ERROR(AddProduct(plan, a, b, product));
  return product.index >= 0 ? Status() : pointwise::AddCopy(plan, product, out);
}

namespace {

Table ProductTable(const Entry& entry, const char* summary) {
  Table table = TableOf(entry, "gemm", summary);
  AddNullRules(&table);
  Add(&table, {Supported(kAllButSmall), InFloat3("self"), InFloat3(table.args[1].name), InFloat3("out"),
               Custom("cubeMathType", "must be 0 to 4", CubeMathType<3>)});
  table.notes = {"Whatever cubeMathType says, FLOAT operands are multiplied and summed in FLOAT; 16-bit ones too, and rounded once."};
  return table;
}

void AddFormatRules(Table* table, std::vector<const char*> args) {
  for (const char* arg : args) Add(table, {PublicFormat(arg)});
}

Operator MakeMm(const Entry& entry) {
  Table table = ProductTable(entry, "Product of two matrices.");
  table.formulas = {"out = self @ mat2"};
  Add(&table, {Rank("mat2", 2, 2), Rank("self", 2, 2), Custom("mat2", "must have as many rows as self has columns", Multiply<0, 1>),
               Custom("out", "must have the shape of the product", HasProductShape<0, 1, 2>)});
  AddFormatRules(&table, {"self", "out"});
  Add(&table, {Custom("mat2", matmul::kWeightRule, matmul::WeightFits<1>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) { return matmul::PlanProduct(plan, 0, 1, 2); },
          .family = "matmul"};
}

Operator MakeMatmul(const Entry& entry) {
  Table table = ProductTable(entry, "Product of matrices, vectors, or batches of matrices that broadcast.");
  table.formulas = {"out = self @ mat2"};
  Add(&table, {Rank("self", 1, 6), Rank("mat2", 1, 6), Custom("mat2", "must have dims that fit those of self", Multiply<0, 1>),
               Custom("out", "must have the shape of the product", HasProductShape<0, 1, 2>)});
  AddFormatRules(&table, {"self", "out"});
  Add(&table, {Custom("mat2", matmul::kWeightRule, matmul::WeightFits<1>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) { return matmul::PlanProduct(plan, 0, 1, 2); },
          .family = "matmul"};
}

Operator MakeBatchMatMul(const Entry& entry) {
  Table table = ProductTable(entry, "Products of the matrices of two batches.");
  table.formulas = {"out[b] = self[b] @ mat2[b]"};
  Add(&table, {Rank("self", 3, 3), Rank("mat2", 3, 3), Rank("out", 3, 3),
               Custom("mat2", "must have dims that fit those of self", Multiply<0, 1>),
               Custom("out", "must have the shape of the product", HasProductShape<0, 1, 2>)});
  AddFormatRules(&table, {"self", "out"});
  Add(&table, {Custom("mat2", matmul::kWeightRule, matmul::WeightFits<1>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) { return matmul::PlanProduct(plan, 0, 1, 2); },
          .family = "matmul"};
}

Operator MakeMv(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Product of a matrix and a vector.");
  table.formulas = {"out = self @ vec"};
  AddNullRules(&table);
  Add(&table, {Supported(kAllButSmall), InFloat3("self"), InFloat3("vec"), InFloat3("out"),
               Custom("cubeMathType", "must be 0 to 4", CubeMathType<3>), SameDType("out", "vec"), SameDType("vec", "self"),
               Rank("self", 2, 2), Rank("vec", 1, 1), Custom("vec", "must have as many elements as self has columns", Multiply<0, 1>),
               Custom("out", "must have one element per row of self", HasProductShape<0, 1, 2>)});
  AddFormatRules(&table, {"self", "vec", "out"});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) { return matmul::PlanProduct(plan, 0, 1, 2); },
          .family = "matmul"};
}

// --- beta * self + alpha * product ----------------------------------------------------------------------------------

// Addmm, Baddbmm, Addbmm and their in-place forms: positions are the same in all of them.
enum { kSelf, kFirst, kSecond, kBeta, kAlpha, kOutOrMath, kMathOfPlain };

bool IsInPlace(const PlanBuilder& plan) { return plan.op().contract.args().size() == 6; }

// out's dims for a sum over the batch.
template <bool kSums>
std::string SumShape(Values values, Product) {
  Dims dims;
  const std::string problem = ProductDims(values[kFirst].tensor->dims, values[kSecond].tensor->dims, &dims);
  const bool in_place = values.size() == 6;
  const Dims& out = values[in_place ? kSelf : kOutOrMath].tensor->dims;
  if (kSums) dims = {dims[1], dims[2]};
  const Dims* const shapes[] = {&dims, &values[kSelf].tensor->dims};
  Dims together;
  if (!BroadcastDims(shapes, &together) || !(together == dims)) {
    return fmt::format("must broadcast to the shape {} of the product, got {}", ToString(dims),
                       ToString(values[kSelf].tensor->dims));
  }
  return out == dims ? "" : fmt::format("{} must have the shape {} of the product, got {}", in_place ? "in place" : "and out",
                                        ToString(dims), ToString(out));
}

Status PlanAddedProduct(Values values, PlanBuilder& plan, bool sums) {
  const Operand out = plan.TensorOperand(IsInPlace(plan) ? kSelf : kOutOrMath);
  const float alpha = values[kAlpha].scalar->AsFloat(), beta = values[kBeta].scalar->AsFloat();
  if (Numel(out.dims) == 0) return {};
  if (!IsInPlace(plan)) plan.RequireApart(kOutOrMath);
  Operand a = plan.TensorOperand(kFirst), b;
  ANYACL_RETURN_IF_ERROR(matmul::WeightOperand(plan, kSecond, &b));
  if (sums) {  // the batch is a part of k: [m, batch * k] @ [batch * k, n], operands made dense for it
    Dims batch;
    const Dims batch_a = {a.dims[0]}, batch_b = {b.dims[0]};
    const Dims* const both[] = {&batch_a, &batch_b};
    BroadcastDims(both, &batch);
    const int64_t n_batch = batch[0], m = a.dims[1], k = a.dims[2], n = b.dims[2];
    const Operand rows = plan.ScratchOperand("rows", DType::kF32, {m, n_batch, k});
    const Operand columns = plan.ScratchOperand("columns", DType::kF32, {n_batch, k, n});
    Operand by_row = pointwise::BroadcastTo(a, {n_batch, m, k});
    std::swap(by_row.dims[0], by_row.dims[1]);
    std::swap(by_row.strides[0], by_row.strides[1]);
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, by_row, rows));
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, pointwise::BroadcastTo(b, {n_batch, k, n}), columns));
    a = rows;
    a.dims = {m, n_batch * k};
    a.strides = {n_batch * k, 1};
    b = columns;
    b.dims = {n_batch * k, n};
    b.strides = {n, 1};
  }
  const Operand product = plan.ScratchOperand("product", DType::kF32, out.dims);
  const Operand self = plan.TensorOperand(kSelf);
  if (alpha != 0) ANYACL_RETURN_IF_ERROR(matmul::AddProduct(plan, a, b, product));
  return matmul::AddScaledSum(plan, product, alpha, &self, beta, out);
}

Operator MakeAddedProduct(const Entry& entry, const char* summary, int rank, bool sums) {
  const bool in_place = entry.args.size() == 6;
  const char* const self = entry.args[kSelf].name;
  Table table = TableOf(entry, "gemm", summary, {.in_out = in_place ? std::vector<const char*>{self} : std::vector<const char*>{}});
  const char *first = entry.args[kFirst].name, *second = entry.args[kSecond].name;
  table.formulas = {sums ? fmt::format("out = beta * {} + alpha * sum over b of {}[b] @ {}[b]", self, first, second)
                         : fmt::format("out = beta * {} + alpha * {} @ {}", self, first, second)};
  table.notes = {"beta = 0 does not look at the values that are added, alpha = 0 not at the product."};
  AddNullRules(&table);
  Add(&table, {Supported(kAllButSmall), InFloat3(self), InFloat3(first), InFloat3(second)});
  if (!in_place) Add(&table, {InFloat3("out")});
  Add(&table, {ScalarConverts("beta", DType::kF32), ScalarConverts("alpha", DType::kF32),
               Custom("cubeMathType", "must be 0 to 4", in_place ? CubeMathType<5> : CubeMathType<6>), Rank(first, rank, rank),
               Rank(second, rank, rank), Custom(second, "must have dims that fit those of the first operand", Multiply<kFirst, kSecond>),
               Rank(self, 0, sums ? 2 : rank),
               Custom(self, "must broadcast to the product, which out must have the shape of", sums ? SumShape<true> : SumShape<false>)});
  AddFormatRules(&table, {self, first, second});
  if (!in_place) AddFormatRules(&table, {"out"});
  return {.contract = Contract(std::move(table)),
          .plan = sums ? [](Values values, PlanBuilder& plan) { return PlanAddedProduct(values, plan, true); }
                       : [](Values values, PlanBuilder& plan) { return PlanAddedProduct(values, plan, false); },
          .family = "matmul"};
}

}  // namespace

Status matmul::PlanAddmm(Values values, PlanBuilder& plan) { return PlanAddedProduct(values, plan, false); }

void DeclareMatmul(Declarations& declarations) {
  matmul::DeclareWeights(declarations);
  matmul::DeclareQuantised(declarations);
  matmul::DeclareQuantWords(declarations);
  matmul::DeclareGrouped(declarations);
  matmul::DeclareOthers(declarations);
  declarations.Add("aclnnMm", MakeMm);
  declarations.Add("aclnnMatmul", MakeMatmul);
  declarations.Add("aclnnBatchMatMul", MakeBatchMatMul);
  declarations.Add("aclnnMv", MakeMv);
  for (const char* name : {"aclnnAddmm", "aclnnInplaceAddmm"}) {
    declarations.Add(name, [](const Entry& e) { return MakeAddedProduct(e, "A matrix plus the product of two.", 2, false); });
  }
  for (const char* name : {"aclnnBaddbmm", "aclnnInplaceBaddbmm"}) {
    declarations.Add(name, [](const Entry& e) { return MakeAddedProduct(e, "A batch of matrices plus products.", 3, false); });
  }
  for (const char* name : {"aclnnAddbmm", "aclnnInplaceAddbmm"}) {
    declarations.Add(name, [](const Entry& e) { return MakeAddedProduct(e, "A matrix plus the sum of the products of a batch.", 3, true); });
  }
}

}  // namespace anyacl
