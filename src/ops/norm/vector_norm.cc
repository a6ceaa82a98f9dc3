// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Norm, LinalgVectorNorm, and Renorm on top of them.
#include "ops/norm/vector_norm.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace norm {
namespace {

using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;
using reduction::Finish;
using reduction::Op;

constexpr DType F32 = DType::kF32, F64 = DType::kF64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// out = formula(x, number)
Status With(PlanBuilder& plan, Formula formula, DType computed, const Operand& x, double number, const Operand& out) {
  const ScalarUse scalars[] = {{Scalar::Of(F64, number)}};
  const Operand inputs[] = {x, ConstantOperand(0)};
  return AddPass(plan, formula, computed, inputs, out, scalars);
}

bool IsWide(DType t) { return t == F64 || t == DType::kC128; }

// What is added up: |x|, whether it is not 0, or its power.
Status Terms(PlanBuilder& plan, const Operand& x, double p, Operand* terms) {
  const DType real = IsWide(x.dtype) ? F64 : F32;
  const DType computed = IsComplex(x.dtype) ? x.dtype : real;
  *terms = plan.ScratchOperand("magnitudes", real, x.dims);
  if (p == 0) return With(plan, Formula::kNotEqual, computed, x, 0, *terms);
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kAbs, computed, {&x, 1}, *terms));
  if (p == 1 || p == 2 || std::isinf(p)) return {};
  const Operand magnitudes = *terms;
  *terms = plan.ScratchOperand("powers", F64, x.dims);
  return With(plan, Formula::kPow, F64, magnitudes, p, *terms);
}

}  // namespace

Status AddVectorNorm(PlanBuilder& plan, const Operand& x, uint64_t axes, double p, const Dims& dims, Operand* norms) {
  Operand terms = x;
  if (p != 2 || IsComplex(x.dtype)) ANYACL_RETURN_IF_ERROR(Terms(plan, x, p, &terms));
  const bool extreme = std::isinf(p);
  *norms = plan.ScratchOperand("norms", extreme ? terms.dtype : F64, dims);
  const reduction::Fold fold = p == kInfinity    ? reduction::Fold{Op::kMax}
                               : p == -kInfinity ? reduction::Fold{Op::kMin}
                               : p == 2          ? reduction::Fold{Op::kSquares, Finish::kDivideAndRoot, 1}
                                                 : reduction::Fold{Op::kSum};
  const pointwise::Compute compute = pointwise::ComputeOf(terms.dtype == F64 ? F64 : F32);
  ANYACL_RETURN_IF_ERROR(reduction::AddReduce(plan, fold, terms, axes, compute, norms));
  if (extreme || p == 0 || p == 1 || p == 2) return {};
  const Operand sums = *norms;
  *norms = plan.ScratchOperand("roots", F64, dims);
  return With(plan, Formula::kPow, F64, sums, 1 / p, *norms);
}

}  // namespace norm

namespace {

using namespace contract;
using norm::AddVectorNorm;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64, C64 = DType::kC64, C128 = DType::kC128;
constexpr Products kOlder = {kAllProducts.bits & ~kOnly950.bits};
constexpr Products kTrained = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

constexpr DTypeSet kWide = types::kFloat3 | types::kDouble | types::kComplex;

bool IsWide(DType t) { return t == F64 || t == C128; }
// A number that goes with tensors of a dtype: FLOAT beside all but DOUBLE.
double NumberBeside(const Scalar& s, DType t) { return IsWide(t) ? s.AsDouble() : static_cast<float>(s.AsDouble()); }

// ---- Norm, LinalgVectorNorm ----

// Self, p and axes come first, out last.
enum { kSelf, kP, kAxes };

Status PlanNorm(Values values, PlanBuilder& plan) {
  const int out = static_cast<int>(values.size()) - 1;
  const Tensor& self = *values[kSelf].tensor;
  if (values[out].tensor->empty()) return {};
  if (self.empty()) return FillOutput(plan, out, 0);
  double p = NumberBeside(*values[kP].scalar, self.dtype);
  // Older products have no infinite scalars.
  if (CurrentProduct() != Product::kAscend950 && std::fabs(p) == static_cast<double>(2147483647.0f)) {
    p = std::copysign(std::numeric_limits<double>::infinity(), p);
  }
  const std::vector<int64_t>& named = values[kAxes].ints->values;
  const uint64_t axes = named.empty() ? (uint64_t{1} << self.rank()) - 1 : AxisBits(named, self.rank());
  Operand norms;
  ANYACL_RETURN_IF_ERROR(AddVectorNorm(plan, plan.TensorOperand(kSelf), axes, p, values[out].tensor->dims, &norms));
  return pointwise::AddCopy(plan, norms, plan.TensorOperand(out));
}

// What both take on the newest product beside FLOAT, FLOAT16 and BF16.
void AddWideRows(std::vector<TypeRow>* rows) {
  for (DType t : {F32, F16, BF16, F64}) rows->push_back({{t, F64}, kOnly950});
  rows->push_back({{F64, F32}, kOnly950});
  for (DType t : {C64, C128}) {
    for (DType out : {F32, F64}) rows->push_back({{t, out}, kOnly950});
  }
}

Operator MakeNorm(const Entry& entry) {
  const bool linalg = std::string_view(entry.op) == "aclnnLinalgVectorNorm";
  const char* const p = entry.args[kP].name;
  const char* const axes = entry.args[kAxes].name;
  const char* const keep = entry.args[kAxes + 1].name;
  Table table = TableOf(entry, "reduce", linalg ? "p-norm over axes, in a dtype that is named." : "p-norm over axes.");
  table.formulas = {fmt::format("out = (sum of |self|^{0})^(1 / {0}); 0 counts what is not 0, inf is the largest |self|, -inf the smallest", p)};
  table.notes = {"Sums grow in DOUBLE and are rounded once.", "A self without elements gives 0.",
                 "Before Ascend 950 the numbers 2147483647 and -2147483647 mean infinities."};
  Describe(&table, "self", "numbers");
  Describe(&table, p, "which norm");
  Describe(&table, axes, "axes that are reduced; none means all");
  Describe(&table, keep, "reduced axes stay, with one element");
  Describe(&table, "out", "the norms");
  AddNullRules(&table);
  std::vector<TypeRow> rows;
  for (DType self : {F32, F16, BF16}) {
    for (DType out : {F32, F16, BF16}) {
      const bool newest = !linalg || out == self || out == F32;
      const Products products = self == BF16 || out == BF16 ? kNewer : kAllProducts;
      rows.push_back({{self, out}, newest ? products : Products{products.bits & kOlder.bits}});
    }
  }
  AddWideRows(&rows);
  if (linalg) {
    for (DType t : {C64, C128}) {
      for (DType out : {C64, C128}) rows.push_back({{t, out}, kOnly950});
    }
    Describe(&table, "dtype", "the dtype of out");
    const auto outs = RowsOf(kWide, types::kFloat3);
    Add(&table, {Supported({kTrained.bits | Of({Product::k200I}).bits}), DTypes("self", outs), DTypeArg("dtype", outs), DTypes("out", outs),
                 DTypeIs("out", "dtype")});
  } else {
    Add(&table, {Supported(kAllProducts), DTypes("self", RowsOf(kWide, types::kFloat3)),
                 DTypes("out", RowsOf(types::kFloat3 | types::kDouble, types::kFloat3))});
  }
  Add(&table, {DTypeRows({"self", "out"}, rows), DimsOf(axes, "self"), Rank("self", 0, 8), Rank("out", 0, 8),
               Reduced("out", "self", {axes, keep})});
  return {.contract = Contract(std::move(table)), .plan = PlanNorm, .family = "norm"};
}

// ---- Renorm ----

enum { kRenormed, kOrder, kDim, kMaxNorm, kOut };

template <int kArg>
std::string NotNegative(Values values, Product) {
  const double value = values[kArg].scalar->AsDouble();
  return value < 0 ? fmt::format("must not be negative, got {}", value) : "";
}

Status PlanRenorm(Values values, PlanBuilder& plan) {
  const int out = values.size() > kOut ? kOut : kRenormed;
  const Tensor& self = *values[kRenormed].tensor;
  if (self.empty()) return {};
  const Operand x = plan.TensorOperand(kRenormed);
  const uint64_t kept = AxisBits({&values[kDim].integer, 1}, self.rank());
  Dims dims = self.dims;
  for (int i = 0; i < dims.rank(); ++i) dims[i] = kept >> i & 1 ? dims[i] : 1;
  Operand norms;
  const uint64_t axes = ((uint64_t{1} << self.rank()) - 1) & ~kept;
  ANYACL_RETURN_IF_ERROR(AddVectorNorm(plan, x, axes, NumberBeside(*values[kOrder].scalar, self.dtype), dims, &norms));
  // norm > maxNorm ? maxNorm / (norm + 1e-7) : 1
  const ScalarUse scalars[] = {{Scalar::Of(F64, NumberBeside(*values[kMaxNorm].scalar, self.dtype))}, {Scalar::Of(F64, 1e-7)}, {Scalar::Of(F64, 1)}};
  const Operand larger = plan.ScratchOperand("larger", DType::kBool, dims), sum = plan.ScratchOperand("sum", F64, dims);
  const Operand quotient = plan.ScratchOperand("quotient", F64, dims), factor = plan.ScratchOperand("factor", F64, dims);
  const Operand compared[] = {norms, ConstantOperand(0)}, summands[] = {norms, ConstantOperand(1)};
  const Operand divided[] = {ConstantOperand(0), sum}, chosen[] = {larger, quotient, ConstantOperand(2)};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kGreater, F64, compared, larger, scalars));
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kPlus, F64, summands, sum, scalars));
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kDiv, F64, divided, quotient, scalars));
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kWhere, F64, chosen, factor, scalars));
  const DType computed = IsComplex(self.dtype) ? self.dtype : IsWide(self.dtype) ? F64 : F32;
  const Operand product[] = {x, pointwise::BroadcastTo(factor, self.dims)};
  plan.RequireApart(out);
  return AddPass(plan, Formula::kMul, computed, product, plan.TensorOperand(out));
}

Operator MakeRenorm(const Entry& entry) {
  const bool in_place = std::string_view(entry.op) == "aclnnInplaceRenorm";
  const char* const self = entry.args[kRenormed].name;
  Table table = TableOf(entry, "reduce", in_place ? "Scales slices whose norm is too large, in place." : "Scales slices whose norm is too large.",
                        {.in_out = in_place ? std::vector<const char*>{self} : std::vector<const char*>{}});
  table.formulas = {"n[i] = p-norm of slice i along dim, as in aclnnNorm",
                    fmt::format("{0} = n > maxNorm ? {1} * (maxNorm / (n + 1e-7)) : {1}", in_place ? self : "out", self)};
  table.notes = {"A slice whose norm is NaN stays as it is."};
  Describe(&table, self, "numbers");
  Describe(&table, "p", "which norm");
  Describe(&table, "dim", "the axis whose indices are the slices");
  Describe(&table, "maxNorm", "the largest norm that stays");
  if (!in_place) Describe(&table, "out", "the scaled slices");
  AddNullRules(&table);
  const auto types = RowsOf(kWide, types::kFloat3);
  Add(&table, {Supported(kTrained), DTypes(self, types)});
  if (!in_place) Add(&table, {DTypes("out", types), SameDType("out", self), SameFormat({self, "out"})});
  Add(&table, {Rank(self, 2, 8)});
  if (!in_place) Add(&table, {SameShape("out", self)});
  Add(&table, {Custom("p", "must not be negative", NotNegative<kOrder>), Dim("dim", self),
               Custom("maxNorm", "must not be negative", NotNegative<kMaxNorm>)});
  return {.contract = Contract(std::move(table)), .plan = PlanRenorm, .family = "norm"};
}

}  // namespace

void DeclareVectorNorm(Declarations& declarations) {
  for (const char* op : {"aclnnNorm", "aclnnLinalgVectorNorm"}) declarations.Add(op, MakeNorm);
  for (const char* op : {"aclnnRenorm", "aclnnInplaceRenorm"}) declarations.Add(op, MakeRenorm);
}

}  // namespace anyacl
