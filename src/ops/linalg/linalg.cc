// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products, distances and systems of small vectors and matrices.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/linalg/vectors.h"
#include "ops/operators.h"
#include "ops/order/rows.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using order::FinishRows;
using order::NaturalType;
using order::RowsInput;
using order::RowsOutput;
using order::WithAxisLast;
using pointwise::BroadcastTo;
using pointwise::ComputeOf;

constexpr DTypeSet kReal = types::kFloat3 | types::kDouble | types::kInt5;
constexpr DTypeSet kWideUnsigned = {DType::kU16, DType::kU32, DType::kU64};
constexpr Products kNot200I =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

// ---- Dot, Trace, Equal, Cross ---------------------------------------------------------------------------------------

Operator MakeDot(const Entry& entry) {
  Table table = TableOf(entry, "dot", "The sum of the products of two vectors.");
  table.formulas = {"out = sum of self_i * tensor_i"};
  constexpr DTypeSet kTypes = types::kFloat3 | DTypeSet{DType::kI8, DType::kU8, DType::kI32};
  constexpr DTypeSet kNewest = kTypes | DTypeSet{DType::kF64, DType::kI16, DType::kI64};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kNewest, kTypes)), SameDType("tensor", "self"),
               SameDType("out", "self"), Rank("self", 1, 1), SameShape("tensor", "self"), Rank("out", 0, 0)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kTensor, kOut };
            const DType dtype = values[kSelf].tensor->dtype;
            const Operand to = plan.TensorOperand(kOut);
            Operand a, b;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), dtype, &a));
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kTensor), dtype, &b));
            const Operand out = RowsOutput(plan, to, NaturalType(dtype));
            auto& params = plan.MakeParams<linalg::DotParams>();
            params.count = Numel(a.dims);
            params.compute = ComputeOf(dtype);
            if (params.count > 0) {
              plan.Bind(a, params.a);
              plan.Bind(b, params.b);
            }
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("dot"));
            return FinishRows(plan, out, to);
          },
          .family = "linalg"};
}

std::string TraceType(Values values, Product) {
  const DType self = values[0].tensor->dtype, out = values[1].tensor->dtype;
  const DType want = IsFloating(self) || IsComplex(self) ? self : DType::kI64;
  return out == want ? "" : fmt::format("must be {} for {} elements, got {}", Name(want), Name(self), Name(out));
}

Operator MakeTrace(const Entry& entry) {
  Table table = TableOf(entry, "reduce", "The sum of the diagonal of a matrix.");
  table.formulas = {"out = sum of self_ii"};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kReal | types::kBool | types::kComplex)), Rank("self", 2, 2),
               Rank("out", 0, 0), Custom("out", "must have self's dtype if that is floating or complex, else INT64", TraceType)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOut };
            Operand diagonal = plan.TensorOperand(kSelf);
            diagonal.strides = {diagonal.strides[0] + diagonal.strides[1]};
            diagonal.dims = {std::min(diagonal.dims[0], diagonal.dims[1])};
            return reduction::AddReduceInto(plan, {reduction::Op::kSum}, diagonal, 1, values[kOut].tensor->dtype, kOut);
          },
          .family = "linalg"};
}

Operator MakeEqual(const Entry& entry) {
  Table table = TableOf(entry, "equal", "Whether two tensors have one shape and equal elements.");
  table.notes = {"Different dtypes are compared in the dtype that both are promoted to. NaN is equal to nothing."};
  table.deduce = {.from = {"self", "other"}};
  constexpr DTypeSet kTypes = kReal | types::kBool | kWideUnsigned;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kTypes | types::kComplex, kTypes)),
               DTypes("other", RowsOf(kTypes | types::kComplex, kTypes)), Deduces(RowsOf(kTypes | types::kComplex, kTypes)),
               DTypes("out", RowsOf({DType::kBool})), Rank("self", 0, 8), Rank("other", 0, 8), ShapeIs("out", "1")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOther, kOut };
            const Tensor &self = *values[kSelf].tensor, &other = *values[kOther].tensor;
            const Operand to = plan.TensorOperand(kOut);
            if (!(self.dims == other.dims) || self.empty()) {  // a test of nothing says which
              Operand nothing = to;
              nothing.dims = {0};
              const bool same = self.dims == other.dims;
              return reduction::AddReduceInto(plan, {same ? reduction::Op::kAll : reduction::Op::kAny}, nothing, 1,
                                              DType::kBool, kOut);
            }
            const DType computed = plan.op().contract.Deduced(values);
            Operand a, b;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), computed, &a));
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kOther), computed, &b));
            const Operand out = RowsOutput(plan, to, DType::kBool);
            auto& params = plan.MakeParams<linalg::EqualParams>();
            params.count = Numel(a.dims);
            params.compute = ComputeOf(computed);
            plan.Bind(a, params.a);
            plan.Bind(b, params.b);
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "equal"));
            return FinishRows(plan, out, to);
          },
          .family = "linalg"};
}

// The axis of out that `dim` of self names: a shorter self lies at the end of the shape.
int CrossAxis(const Tensor& self, const Tensor& out, int64_t dim) {
  return static_cast<int>(dim < 0 ? dim + out.rank() : dim + out.rank() - self.rank());
}

std::string CrossSize(Values values, Product) {
  const Tensor &self = *values[0].tensor, &out = *values[3].tensor;
  const int64_t dim = values[2].integer;
  if (self.rank() == 0 || dim < -self.rank() || dim >= self.rank() || out.rank() < self.rank()) {
    return fmt::format("must be an axis of self with 3 elements, got {} for shape {}", dim, ToString(self.dims));
  }
  const int64_t size = out.dims[CrossAxis(self, out, dim)];
  return size == 3 ? "" : fmt::format("must be an axis of 3 elements, got {} in {}", size, ToString(out.dims));
}

Operator MakeCross(const Entry& entry) {
  Table table = TableOf(entry, "cross", "The cross product of vectors of three elements along an axis.");
  AddNullRules(&table);
  Add(&table, {DTypes("self", RowsOf(kReal | types::kComplex)), SameDType("other", "self"), SameDType("out", "self"),
               Rank("self", 0, 8), Rank("other", 0, 8), Broadcast("out", {"self", "other"}),
               Custom("dim", "must be an axis of self that has 3 elements", CrossSize)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOther, kDim, kOut };
            const Tensor& out = *values[kOut].tensor;
            if (out.empty()) return {};
            const int axis = CrossAxis(*values[kSelf].tensor, out, values[kDim].integer);
            const Operand to = WithAxisLast(plan.TensorOperand(kOut), axis);
            Operand a, b;
            ANYACL_RETURN_IF_ERROR(
                RowsInput(plan, WithAxisLast(BroadcastTo(plan.TensorOperand(kSelf), out.dims), axis), out.dtype, &a));
            ANYACL_RETURN_IF_ERROR(
                RowsInput(plan, WithAxisLast(BroadcastTo(plan.TensorOperand(kOther), out.dims), axis), out.dtype, &b));
            const Operand result = RowsOutput(plan, to, NaturalType(out.dtype));
            auto& params = plan.MakeParams<linalg::CrossParams>();
            params.rows = out.numel() / 3;
            params.compute = ComputeOf(out.dtype);
            plan.Bind(a, params.a);
            plan.Bind(b, params.b);
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("cross"));
            return FinishRows(plan, result, to);
          },
          .family = "linalg"};
}

// ---- Distances ------------------------------------------------------------------------------------------------------

constexpr DTypeSet kDistances = types::kFloat3;

// The dims of a matrix argument before its last two.
Dims BatchOf(const Dims& dims) {
  Dims batch;
  for (int i = 0; i + 2 < dims.rank(); ++i) batch.push_back(dims[i]);
  return batch;
}
Dims WithMatrix(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}
int64_t RowsIn(const Dims& dims) { return dims[dims.rank() - 2]; }
int64_t ColumnsIn(const Dims& dims) { return dims[dims.rank() - 1]; }

bool BatchesOf(const Tensor& a, const Tensor& b, Dims* batch) {
  const Dims one = BatchOf(a.dims), other = BatchOf(b.dims);
  const Dims* const both[] = {&one, &other};
  return BroadcastDims(both, batch);
}

std::string CdistShapes(Values values, Product) {
  const Tensor &x1 = *values[0].tensor, &x2 = *values[1].tensor, &out = *values[4].tensor;
  Dims batch;
  if (ColumnsIn(x1.dims) != ColumnsIn(x2.dims) || !BatchesOf(x1, x2, &batch)) {
    return fmt::format("must have rows and batches that go with those of x2, got {} and {}", ToString(x1.dims), ToString(x2.dims));
  }
  const Dims want = WithMatrix(batch, RowsIn(x1.dims), RowsIn(x2.dims));
  return out.dims == want ? "" : fmt::format("must give out the shape {}, got {}", ToString(want), ToString(out.dims));
}

std::string CdistNorm(Values values, Product) {
  const double p = values[2].real;
  if (!(p >= 0)) return fmt::format("must not be negative, got {}", p);
  const bool two = std::fabs(p - 2) < 1e-6;
  return two && values[3].integer != 2 ? fmt::format("must go with compute_mode 2 when it is 2, got {}", values[3].integer) : "";
}

Operator MakeCdist(const Entry& entry) {
  Table table = TableOf(entry, "distance", "The p-norms of the differences between the rows of two matrices.");
  table.formulas = {"out_ij = (sum over k of |x1_ik - x2_jk|^p)^(1/p)"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x1", RowsOf(kDistances | types::kDouble, kDistances)), SameDType("x2", "x1"),
               SameDType("out", "x1"), Rank("x1", 2, 8), Rank("x2", 2, 8), Custom("x1", "must go with x2 and out", CdistShapes),
               Custom("p", "must not be negative; 2 asks for compute_mode 2", CdistNorm)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kA, kB, kNorm, kMode, kOut };
            const Tensor& out = *values[kOut].tensor;
            if (out.empty()) return {};
            const Dims batch = BatchOf(out.dims);
            const auto input = [&](int arg, Operand* rows) {
              const Operand from = plan.TensorOperand(arg);
              const Dims dims = WithMatrix(batch, RowsIn(from.dims), ColumnsIn(from.dims));
              return RowsInput(plan, BroadcastTo(from, dims), out.dtype, rows);
            };
            Operand a, b;
            ANYACL_RETURN_IF_ERROR(input(kA, &a));
            ANYACL_RETURN_IF_ERROR(input(kB, &b));
            const Operand to = plan.TensorOperand(kOut);
            const Operand result = RowsOutput(plan, to, NaturalType(out.dtype));
            auto& params = plan.MakeParams<linalg::DistanceParams>();
            params.batch = Numel(batch);
            params.m = RowsIn(out.dims);
            params.n = ColumnsIn(out.dims);
            params.length = ColumnsIn(a.dims);
            params.p = std::fabs(values[kNorm].real - 2) < 1e-6 ? 2 : values[kNorm].real;
            params.is_double = out.dtype == DType::kF64;
            if (params.length > 0) {
              plan.Bind(a, params.a);
              plan.Bind(b, params.b);
            }
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("distance"));
            return FinishRows(plan, result, to);
          },
          .family = "linalg"};
}

std::string CdistGradShapes(Values values, Product) {
  const Tensor &grad = *values[0].tensor, &x1 = *values[1].tensor, &x2 = *values[2].tensor, &cdist = *values[3].tensor;
  const Tensor& out = *values[5].tensor;
  const int rank = x1.rank();
  const Dims batch = BatchOf(x1.dims);
  const auto fits = [&](const Tensor& t, int64_t rows, int64_t columns) {
    if (t.rank() != rank || RowsIn(t.dims) != rows || ColumnsIn(t.dims) != columns) return false;
    for (int i = 0; i < batch.rank(); ++i) {
      if (t.dims[i] != batch[i] && t.dims[i] != 1) return false;
    }
    return true;
  };
  const bool good = x2.rank() == rank && fits(x2, RowsIn(x2.dims), ColumnsIn(x1.dims)) &&
                    fits(grad, RowsIn(x1.dims), RowsIn(x2.dims)) && fits(cdist, RowsIn(x1.dims), RowsIn(x2.dims)) &&
                    out.dims == x1.dims;
  if (good) return "";
  return fmt::format("must go with x1, x2, cdist and out, got {}, {}, {}, {} and {}", ToString(grad.dims), ToString(x1.dims),
                     ToString(x2.dims), ToString(cdist.dims), ToString(out.dims));
}

std::string CdistGradNorm(Values values, Product) {
  const double p = values[4].real;
  return p >= 0 || p == -1 ? "" : fmt::format("must not be negative, but -1 for infinity, got {}", p);
}

Operator MakeCdistBackward(const Entry& entry) {
  Table table = TableOf(entry, "distance_grad", "The gradient of Cdist for its first matrix.");
  table.notes = {"p = -1 stands for infinity."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("grad", RowsOf(kDistances | types::kDouble, kDistances)), SameDType("x1", "grad"),
               SameDType("x2", "grad"), SameDType("cdist", "grad"), SameDType("out", "grad"), Rank("grad", 2, 7),
               Rank("x1", 2, 7), Rank("x2", 2, 7), Rank("cdist", 2, 7),
               Custom("grad", "must go with x1, x2, cdist and out", CdistGradShapes),
               Custom("p", "must not be negative, but -1 for infinity", CdistGradNorm)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kGrad, kA, kB, kDistance, kNorm, kOut };
            const Tensor& out = *values[kOut].tensor;
            if (out.empty()) return {};
            const Dims batch = BatchOf(out.dims);
            const auto input = [&](int arg, Operand* rows) {
              const Operand from = plan.TensorOperand(arg);
              const Dims dims = WithMatrix(batch, RowsIn(from.dims), ColumnsIn(from.dims));
              return RowsInput(plan, BroadcastTo(from, dims), out.dtype, rows);
            };
            Operand grad, a, b, distance;
            ANYACL_RETURN_IF_ERROR(input(kGrad, &grad));
            ANYACL_RETURN_IF_ERROR(input(kA, &a));
            ANYACL_RETURN_IF_ERROR(input(kB, &b));
            ANYACL_RETURN_IF_ERROR(input(kDistance, &distance));
            const Operand to = plan.TensorOperand(kOut);
            const Operand result = RowsOutput(plan, to, NaturalType(out.dtype));
            auto& params = plan.MakeParams<linalg::DistanceGradParams>();
            params.batch = Numel(batch);
            params.m = RowsIn(out.dims);
            params.n = RowsIn(b.dims);
            params.length = ColumnsIn(out.dims);
            params.p = values[kNorm].real == -1 ? std::numeric_limits<double>::infinity() : values[kNorm].real;
            params.element = out.dtype;
            params.is_double = out.dtype == DType::kF64;
            plan.Bind(a, params.a);
            if (params.n > 0) {
              plan.Bind(grad, params.grad);
              plan.Bind(b, params.b);
              plan.Bind(distance, params.distance);
            }
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("distance_grad"));
            return FinishRows(plan, result, to);
          },
          .family = "linalg"};
}

double PdistNormOf(Values values, const Contract& contract) {
  return contract.args()[1].kind == ArgKind::kScalar ? values[1].scalar->AsDouble() : values[1].real;
}

std::string PdistNorm(Values values, Product) {
  return values[1].real >= 0 ? "" : fmt::format("must not be negative, got {}", values[1].real);
}
std::string PdistScalarNorm(Values values, Product) {
  const double p = values[1].scalar->AsDouble();
  return p >= 0 ? "" : fmt::format("must not be negative, got {}", p);
}

Operator MakePdist(const Entry& entry) {
  const bool scalar = entry.args[1].kind == ArgKind::kScalar;
  const char* const norm = entry.args[1].name;
  Table table = TableOf(entry, "distance", "The p-norms of the differences between the rows of a matrix, pair by pair.");
  table.formulas = {"out = (|self_0 - self_1|_p, |self_0 - self_2|_p, ...)"};
  table.sizes = {{"N", "self", 0}};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("self", RowsOf(kDistances | types::kDouble, {DType::kF32, DType::kF16})),
               SameDType("out", "self"), Rank("self", 2, 2)});
  if (scalar) Add(&table, {ScalarConverts(norm, DType::kF32)});
  Add(&table, {Custom(norm, "must not be negative", scalar ? PdistScalarNorm : PdistNorm), ShapeIs("out", "N * (N - 1) / 2")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kNorm, kOut };
            const Tensor& self = *values[kSelf].tensor;
            const Operand to = plan.TensorOperand(kOut);
            if (Numel(to.dims) == 0) return {};
            Operand a;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), self.dtype, &a));
            const Operand result = RowsOutput(plan, to, NaturalType(self.dtype));
            auto& params = plan.MakeParams<linalg::DistanceParams>();
            params.batch = 1;
            params.m = self.dims[0];
            params.length = self.dims[1];
            params.p = PdistNormOf(values, plan.op().contract);
            params.pairs = true;
            params.is_double = self.dtype == DType::kF64;
            if (params.length > 0) plan.Bind(a, params.a);
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("distance"));
            return FinishRows(plan, result, to);
          },
          .family = "linalg"};
}

// ---- Affine grids, triangular systems -------------------------------------------------------------------------------

std::string GridShapes(Values values, Product) {
  const Tensor &theta = *values[0].tensor, &out = *values[3].tensor;
  const std::vector<int64_t>& size = values[1].ints->values;
  if (size.size() != 4 && size.size() != 5) return fmt::format("must have 4 or 5 entries, got {}", size.size());
  for (const int64_t one : size) {
    if (one < 1) return fmt::format("must have positive entries, got {}", one);
  }
  const int64_t axes = static_cast<int64_t>(size.size()) - 2;
  const Dims want_theta = {size[0], axes, axes + 1};
  Dims want_out = {size[0]};
  for (size_t i = 2; i < size.size(); ++i) want_out.push_back(size[i]);
  want_out.push_back(axes);
  if (theta.dims == want_theta && out.dims == want_out) return "";
  return fmt::format("must go with theta {} and out {}, got {} and {}", ToString(want_theta), ToString(want_out),
                     ToString(theta.dims), ToString(out.dims));
}

Operator MakeAffineGrid(const Entry& entry) {
  Table table = TableOf(entry, "affine_grid", "Where the pixels of an affine map lie, in coordinates from -1 to 1.");
  table.formulas = {"out_j = theta_j0 * x + theta_j1 * y (+ theta_j2 * z) + theta_j,last"};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("theta", RowsOf(kDistances | types::kDouble, kDistances)),
               SameDType("out", "theta"), Rank("theta", 3, 3), Custom("size", "must go with theta and out", GridShapes)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kTheta, kSize, kAlign, kOut };
            const Tensor& out = *values[kOut].tensor;
            const Operand to = plan.TensorOperand(kOut);
            Operand theta;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kTheta), out.dtype, &theta));
            const Operand result = RowsOutput(plan, to, NaturalType(out.dtype));
            auto& params = plan.MakeParams<linalg::AffineGridParams>();
            params.axes = out.rank() - 2;
            params.n = out.dims[0];
            params.d = params.axes == 3 ? out.dims[1] : 1;
            params.h = out.dims[params.axes - 1];
            params.w = out.dims[params.axes];
            params.align_corners = values[kAlign].flag;
            params.is_double = out.dtype == DType::kF64;
            plan.Bind(theta, params.theta);
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("affine_grid"));
            return FinishRows(plan, result, to);
          },
          .family = "linalg"};
}

std::string TriangularShapes(Values values, Product) {
  const Tensor &b = *values[0].tensor, &a = *values[1].tensor, &x = *values[5].tensor;
  const int64_t n = RowsIn(a.dims);
  Dims batch;
  if (ColumnsIn(a.dims) != n || RowsIn(b.dims) != n || !BatchesOf(a, b, &batch)) {
    return fmt::format("must go with A, whose matrices must be square, got {} and {}", ToString(b.dims), ToString(a.dims));
  }
  const Dims want = WithMatrix(batch, n, ColumnsIn(b.dims)), want_m = WithMatrix(batch, n, n);
  if (!(x.dims == want)) return fmt::format("must give xOut the shape {}, got {}", ToString(want), ToString(x.dims));
  if (!values[6].given() || values[6].tensor->dims == want_m) return "";
  return fmt::format("must give mOut the shape {}, got {}", ToString(want_m), ToString(values[6].tensor->dims));
}

std::string UnitTypes(Values values, Product product) {
  const bool refused = product != Product::kAscend950 && values[4].flag && values[0].tensor->dtype != DType::kF32;
  return refused ? fmt::format("must be false but for FLOAT, got true for {}", Name(values[0].tensor->dtype)) : "";
}

Operator MakeTriangularSolve(const Entry& entry) {
  Table table = TableOf(entry, "triangular", "Solves A X = self or A^T X = self for a triangular A; mOut receives A.",
                        {.in_out = {}, .optional = {"mOut"}});
  table.notes = {"Only the named triangle of A is read for X. A zero on the diagonal gives infinities or NaN."};
  constexpr DTypeSet kTypes = DTypeSet{DType::kF32, DType::kF64} | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("self", RowsOf(kTypes)), SameDType("A", "self"), SameDType("xOut", "self"),
               SameDType("mOut", "self"), Rank("self", 2, 8), Rank("A", 2, 8), Rank("xOut", 2, 8),
               Custom("unitriangular", "must be false but for FLOAT (any dtype on Ascend 950)", UnitTypes),
               Custom("self", "must go with A, xOut and mOut", TriangularShapes)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kB, kA, kUpper, kTranspose, kUnit, kX, kM };
            const Tensor& x = *values[kX].tensor;
            if (values[kA].tensor->empty() || values[kB].tensor->empty()) return {};
            const Dims batch = BatchOf(x.dims);
            const int64_t n = RowsIn(x.dims), k = ColumnsIn(x.dims);
            const Operand whole_a = BroadcastTo(plan.TensorOperand(kA), WithMatrix(batch, n, n));
            Operand a, b;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, whole_a, x.dtype, &a));
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, BroadcastTo(plan.TensorOperand(kB), WithMatrix(batch, n, k)), x.dtype, &b));
            const Operand to = plan.TensorOperand(kX);
            const Operand result = RowsOutput(plan, to, NaturalType(x.dtype));
            auto& params = plan.MakeParams<linalg::TriangularParams>();
            params.batch = Numel(batch);
            params.n = n;
            params.k = k;
            params.compute = ComputeOf(x.dtype);
            params.upper = values[kUpper].flag;
            params.transpose = values[kTranspose].flag;
            params.unit = values[kUnit].flag;
            plan.Bind(a, params.a);
            plan.Bind(b, params.b);
            plan.Bind(result, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("triangular"));
            ANYACL_RETURN_IF_ERROR(FinishRows(plan, result, to));
            return values[kM].given() ? pointwise::AddCopy(plan, whole_a, plan.TensorOperand(kM)) : Status();
          },
          .family = "linalg"};
}

}  // namespace

void DeclareLinalg(Declarations& declarations) {
  declarations.Add("aclnnDot", MakeDot);
  declarations.Add("aclnnTrace", MakeTrace);
  declarations.Add("aclnnEqual", MakeEqual);
  declarations.Add("aclnnLinalgCross", MakeCross);
  declarations.Add("aclnnCdist", MakeCdist);
  declarations.Add("aclnnCdistBackward", MakeCdistBackward);
  declarations.Add("aclnnPdist", MakePdist);
  declarations.Add("aclnnPdistForward", MakePdist);
  declarations.Add("aclnnAffineGrid", MakeAffineGrid);
  declarations.Add("aclnnTriangularSolve", MakeTriangularSolve);
}

}  // namespace anyacl
