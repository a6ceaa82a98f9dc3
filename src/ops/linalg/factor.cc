// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Inverses, determinants and factorizations of small matrices. The leading axes of a tensor count its matrices.
#include "ops/linalg/factor.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/operators.h"
#include "ops/order/rows.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using linalg::CholeskyParams;
using linalg::DeterminantParams;
using linalg::InverseParams;
using linalg::QrParams;
using linalg::SvdParams;
using order::FinishRows;
using order::NaturalType;
using order::RowsInput;
using order::RowsOutput;
using pointwise::AddCopy;
using pointwise::ComputeOf;

constexpr DTypeSet kWide = DTypeSet{DType::kF32, DType::kF64} | types::kComplex;
constexpr DTypeSet kWideAndHalf = kWide | DTypeSet{DType::kF16};
constexpr Products kNot200I =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

// ---- shapes ---------------------------------------------------------------------------------------------------------

int64_t RowsIn(const Dims& dims) { return dims[dims.rank() - 2]; }
int64_t ColumnsIn(const Dims& dims) { return dims[dims.rank() - 1]; }
int64_t Shorter(const Dims& dims) { return std::min(RowsIn(dims), ColumnsIn(dims)); }

Dims BatchOf(const Dims& dims) {
  Dims batch;
  for (int i = 0; i + 2 < dims.rank(); ++i) batch.push_back(dims[i]);
  return batch;
}
Dims With(Dims batch, std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes) batch.push_back(size);
  return batch;
}

std::string WrongShape(const Dims& want, const Dims& got) {
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}

std::string CheckSquare(Values v, Product) {
  const Dims& dims = v[0].tensor->dims;
  return RowsIn(dims) == ColumnsIn(dims) ? "" : fmt::format("must have square matrices, got {}", ToString(dims));
}
Rule Square(const char* name) { return Custom(name, "must have square matrices", CheckSquare); }

template <int kOut>
std::string CheckPerMatrix(Values v, Product) {
  return WrongShape(BatchOf(v[0].tensor->dims), v[kOut].tensor->dims);
}
template <int kOut>
Rule PerMatrix(const char* name) {
  return Custom(name, "must have one element per matrix", CheckPerMatrix<kOut>);
}

// ---- operands -------------------------------------------------------------------------------------------------------

// The same elements, their matrices transposed.
Operand Transposed(Operand operand) {
  const int last = operand.dims.rank() - 1;
  std::swap(operand.dims[last - 1], operand.dims[last]);
  std::swap(operand.strides[last - 1], operand.strides[last]);
  return operand;
}

// A dense copy that the kernel may overwrite.
Status CopyOf(PlanBuilder& plan, const Operand& from, Operand* copy) {
  *copy = plan.ScratchOperand("matrices", NaturalType(from.dtype), from.dims);
  return AddCopy(plan, from, *copy);
}

// ---- Inverse, Cholesky ----------------------------------------------------------------------------------------------

Operator MakeInverse(const Entry& entry) {
  Table table = TableOf(entry, "inverse", "The inverses of square matrices.");
  table.formulas = {"self @ out = identity"};
  table.notes = {"A matrix that has no inverse gives NaN."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kWideAndHalf)), SameDType("out", "self"), Rank("self", 2, 8), Square("self"),
               SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOut };
            const Tensor& self = *values[kSelf].tensor;
            if (self.empty()) return {};
            const Operand to = plan.TensorOperand(kOut);
            Operand a;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), self.dtype, &a));
            const Operand out = RowsOutput(plan, to, NaturalType(self.dtype));
            auto& params = plan.MakeParams<InverseParams>();
            params.n = RowsIn(self.dims);
            params.batch = Numel(BatchOf(self.dims));
            params.compute = ComputeOf(self.dtype);
            plan.Bind(a, params.a);
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "inverse"));
            return FinishRows(plan, out, to);
          },
          .family = "linalg"};
}

Operator MakeCholesky(const Entry& entry) {
  Table table = TableOf(entry, "cholesky", "The Cholesky factors of positive definite matrices.");
  table.formulas = {"self = out @ out^H, out lower triangular", "self = out^H @ out, out upper triangular, if upper"};
  table.notes = {"Only the named triangle of self is read. A matrix that is not positive definite gives NaN."};
  constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kNewest, types::kFloat3)), SameDType("out", "self"), PublicFormat("self"),
               SameFormat({"self", "out"}), Rank("self", 2, 8), Square("self"), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kUpper, kOut };
            const Tensor& self = *values[kSelf].tensor;
            if (self.empty()) return {};
            const Operand to = plan.TensorOperand(kOut);
            Operand a;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), self.dtype, &a));
            const Operand out = RowsOutput(plan, to, NaturalType(self.dtype));
            auto& params = plan.MakeParams<CholeskyParams>();
            params.n = RowsIn(self.dims);
            params.batch = Numel(BatchOf(self.dims));
            params.compute = ComputeOf(self.dtype);
            params.upper = values[kUpper].flag;
            plan.Bind(a, params.a);
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("cholesky"));
            return FinishRows(plan, out, to);
          },
          .family = "linalg"};
}

// ---- determinants ---------------------------------------------------------------------------------------------------

// The last output is the logarithm, the one before it, if any, the sign.
Status PlanDeterminant(Values values, PlanBuilder& plan) {
  enum { kSelf, kFirst };
  const int log_arg = static_cast<int>(values.size()) - 1;
  const Tensor& self = *values[kSelf].tensor;
  const int64_t batch = Numel(BatchOf(self.dims));
  if (batch == 0) return {};
  const DType natural = NaturalType(self.dtype);
  Operand a;
  if (!self.empty()) ANYACL_RETURN_IF_ERROR(CopyOf(plan, plan.TensorOperand(kSelf), &a));
  const Operand log_to = plan.TensorOperand(log_arg), log = RowsOutput(plan, log_to, natural);
  const Operand sign_to = plan.TensorOperand(kFirst), sign = RowsOutput(plan, sign_to, natural);
  auto& params = plan.MakeParams<DeterminantParams>();
  params.n = RowsIn(self.dims);
  params.batch = batch;
  params.compute = ComputeOf(self.dtype);
  if (!self.empty()) plan.Bind(a, params.a);
  if (log_arg != kFirst) plan.Bind(sign, params.sign);
  plan.Bind(log, params.log);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "determinant"));
  if (log_arg != kFirst) ANYACL_RETURN_IF_ERROR(FinishRows(plan, sign, sign_to));
  return FinishRows(plan, log, log_to);
}

Operator MakeSlogdet(const Entry& entry) {
  Table table = TableOf(entry, "determinant", "Signs of determinants, and logarithms of their absolute values.");
  table.formulas = {"det(self) = signOut * e^logOut"};
  table.notes = {"The sign of a complex determinant is its phase. Singular matrices have sign 0 and logarithm -inf."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kWide)), DTypes("signOut", RowsOf(kWide)), DTypes("logOut", RowsOf(kWide)),
               ResultConverts("self", "signOut"), ResultConverts("self", "logOut"), Rank("self", 2, 8), Square("self"),
               PerMatrix<1>("signOut"), PerMatrix<2>("logOut")});
  return {.contract = Contract(std::move(table)), .plan = PlanDeterminant, .family = "linalg"};
}

Operator MakeLogdet(const Entry& entry) {
  Table table = TableOf(entry, "determinant", "Logarithms of determinants.");
  table.formulas = {"out = ln(det(self))"};
  table.notes = {"A negative determinant gives NaN, a complex one its principal logarithm, 0 gives -inf."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("self", RowsOf(kWide)), DTypes("out", RowsOf(kWide)), ResultConverts("self", "out"),
               Rank("self", 2, 8), Square("self"), PerMatrix<1>("out")});
  return {.contract = Contract(std::move(table)), .plan = PlanDeterminant, .family = "linalg"};
}

// ---- QR -------------------------------------------------------------------------------------------------------------

enum QrMode : int64_t { kReduced, kComplete, kOnlyR };
enum { kQrSelf, kQrMode, kQ, kR };

int64_t ModeOf(const Value& value, ArgKind kind) {
  if (kind == ArgKind::kBool) return value.flag ? kReduced : kComplete;
  return value.integer;
}

int64_t ColumnsOfQ(const Dims& self, int64_t mode) { return mode == kComplete ? RowsIn(self) : Shorter(self); }
int64_t RowsOfR(const Dims& self, int64_t mode) { return mode == kComplete ? RowsIn(self) : Shorter(self); }

template <ArgKind kMode>
std::string CheckQ(Values v, Product) {
  const Dims& self = v[kQrSelf].tensor->dims;
  const int64_t mode = ModeOf(v[kQrMode], kMode);
  const Dims want = mode == kOnlyR ? Dims{0} : With(BatchOf(self), {RowsIn(self), ColumnsOfQ(self, mode)});
  return WrongShape(want, v[kQ].tensor->dims);
}
template <ArgKind kMode>
std::string CheckR(Values v, Product) {
  const Dims& self = v[kQrSelf].tensor->dims;
  return WrongShape(With(BatchOf(self), {RowsOfR(self, ModeOf(v[kQrMode], kMode)), ColumnsIn(self)}), v[kR].tensor->dims);
}

Status PlanQr(Values values, PlanBuilder& plan) {
  const Tensor& self = *values[kQrSelf].tensor;
  const int64_t mode = ModeOf(values[kQrMode], plan.op().contract.args()[kQrMode].kind);
  const Operand q_to = plan.TensorOperand(kQ), r_to = plan.TensorOperand(kR);
  const bool has_q = Numel(q_to.dims) > 0, has_r = Numel(r_to.dims) > 0;
  if (!has_q && !has_r) return {};
  const DType natural = NaturalType(self.dtype);
  Operand a, q;
  if (!self.empty()) ANYACL_RETURN_IF_ERROR(CopyOf(plan, Transposed(plan.TensorOperand(kQrSelf)), &a));
  if (has_q) q = RowsOutput(plan, Transposed(q_to), natural);
  const Operand r = RowsOutput(plan, r_to, natural);
  auto& params = plan.MakeParams<QrParams>();
  params.batch = Numel(BatchOf(self.dims));
  params.m = RowsIn(self.dims);
  params.n = ColumnsIn(self.dims);
  params.compute = ComputeOf(self.dtype);
  params.q_columns = has_q ? ColumnsOfQ(self.dims, mode) : 0;
  params.r_rows = RowsOfR(self.dims, mode);
  if (!self.empty()) plan.Bind(a, params.a);
  if (has_q) plan.Bind(q, params.q);
  if (has_r) plan.Bind(r, params.r);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "qr"));
  if (has_q) ANYACL_RETURN_IF_ERROR(FinishRows(plan, q, Transposed(q_to)));
  return has_r ? FinishRows(plan, r, r_to) : Status();
}

template <ArgKind kMode>
Operator MakeQr(const Entry& entry) {
  Table table = TableOf(entry, "qr", "Orthonormal columns and an upper triangle whose product the matrices are.");
  table.formulas = {"self = Q @ R"};
  table.notes = {"As LAPACK's Householder reflections leave them: the diagonal of R may be negative."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("self", RowsOf(kWideAndHalf)), DTypes("Q", RowsOf(kWideAndHalf)),
               DTypes("R", RowsOf(kWideAndHalf)), ResultConverts("self", "Q"), ResultConverts("self", "R"), Rank("self", 2, 8)});
  if (kMode == ArgKind::kInt) {
    Describe(&table, "mode", "0: as many columns as self has rows or columns; 1: Q is square; 2: R alone, Q has shape [0]");
    Add(&table, {OneOf("mode", {kReduced, kComplete, kOnlyR})});
  }
  Add(&table, {Custom("Q", "must have the rows of self", CheckQ<kMode>), Custom("R", "must have the columns of self", CheckR<kMode>)});
  return {.contract = Contract(std::move(table)), .plan = PlanQr, .family = "linalg"};
}

// ---- singular values ------------------------------------------------------------------------------------------------

enum { kInput, kFull, kComputeUV, kSigma, kU, kV };

std::string CheckSigma(Values v, Product) {
  const Dims& input = v[kInput].tensor->dims;
  return WrongShape(With(BatchOf(input), {Shorter(input)}), v[kSigma].tensor->dims);
}
template <int kVectors>
std::string CheckVectors(Values v, Product) {
  if (!v[kComputeUV].flag) return "";
  const Dims& input = v[kInput].tensor->dims;
  const int64_t length = kVectors == kU ? RowsIn(input) : ColumnsIn(input);
  return WrongShape(With(BatchOf(input), {length, v[kFull].flag ? length : Shorter(input)}), v[kVectors].tensor->dims);
}

Status PlanSvd(Values values, PlanBuilder& plan) {
  const Tensor& input = *values[kInput].tensor;
  if (input.empty()) return {};
  const bool vectors = values[kComputeUV].flag;
  const DType natural = NaturalType(input.dtype);
  const Operand sigma_to = plan.TensorOperand(kSigma), u_to = plan.TensorOperand(kU), v_to = plan.TensorOperand(kV);
  Operand a, u, vt;
  ANYACL_RETURN_IF_ERROR(CopyOf(plan, plan.TensorOperand(kInput), &a));
  const Operand sigma = RowsOutput(plan, sigma_to, natural);
  if (vectors) u = RowsOutput(plan, u_to, natural);
  if (vectors) vt = RowsOutput(plan, Transposed(v_to), natural);
  auto& params = plan.MakeParams<SvdParams>();
  params.batch = Numel(BatchOf(input.dims));
  params.m = RowsIn(input.dims);
  params.n = ColumnsIn(input.dims);
  params.compute = ComputeOf(input.dtype);
  params.vectors = vectors;
  params.full = values[kFull].flag;
  plan.Bind(a, params.a);
  plan.Bind(sigma, params.sigma);
  if (vectors) plan.Bind(u, params.u);
  if (vectors) plan.Bind(vt, params.vt);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "svd"));
  ANYACL_RETURN_IF_ERROR(FinishRows(plan, sigma, sigma_to));
  if (!vectors) return {};
  ANYACL_RETURN_IF_ERROR(FinishRows(plan, u, u_to));
  return FinishRows(plan, vt, Transposed(v_to));
}

Operator MakeSvd(const Entry& entry) {
  Table table = TableOf(entry, "svd", "Singular values of matrices, in descending order, and their vectors.");
  table.formulas = {"input = u @ diag(sigma) @ v^T"};
  table.notes = {"v is not conjugated: its columns are the conjugates of the right singular vectors of complex matrices.",
                 "u and v are not written without computeUV. A matrix with infinities or NaN gives NaN."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("input", RowsOf(kWide)), SameDType("sigma", "input"), SameDType("u", "input"), SameDType("v", "input"),
               Rank("input", 2, 8), Custom("sigma", "must have as many elements as input has rows or columns", CheckSigma),
               Custom("u", "must have the rows of input", CheckVectors<kU>), Custom("v", "must have the columns of input as rows", CheckVectors<kV>)});
  return {.contract = Contract(std::move(table)), .plan = PlanSvd, .family = "linalg"};
}

}  // namespace

void DeclareFactor(Declarations& declarations) {
  declarations.Add("aclnnInverse", MakeInverse);
  declarations.Add("aclnnLinalgCholesky", MakeCholesky);
  declarations.Add("aclnnSlogdet", MakeSlogdet);
  declarations.Add("aclnnLogdet", MakeLogdet);
  declarations.Add("aclnnLinalgQr", MakeQr<ArgKind::kInt>);
  declarations.Add("aclnnQr", MakeQr<ArgKind::kBool>);
  declarations.Add("aclnnSvd", MakeSvd);
}

}  // namespace anyacl
