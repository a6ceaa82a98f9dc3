// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products with rules of their own: Addmv, Gemm, Einsum, TransposeBatchMatMul.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "ops/matmul/dots.h"
#include "ops/matmul/families.h"
#include "ops/matmul/product.h"
#include "ops/matmul/rules.h"
#include "ops/matmul/weight_layout.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::matmul {
namespace {

using namespace contract;
using pointwise::Formula;
using pointwise::ScalarUse;

const Products kAllButSmall = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});

Status ToDense(PlanBuilder& plan, const Operand& from, DType dtype, Operand* dense) {
  *dense = from;
  if (from.dtype == dtype && from.row_major()) return {};
  *dense = plan.ScratchOperand("dense operand", dtype, from.dims);
  return pointwise::AddCopy(plan, from, *dense);
}

// out[b, l] = sum over k of x[b, k] * y[b, l, k] in INT64 or DOUBLE; x may lack the batch.
Status AddDots(PlanBuilder& plan, const Operand& x, const Operand& y, DType dtype, const Operand& out) {
  Operand a, b;
  ANYACL_RETURN_IF_ERROR(ToDense(plan, x, dtype, &a));
  ANYACL_RETURN_IF_ERROR(ToDense(plan, y, dtype, &b));
  const int rank = y.dims.rank();
  auto& params = plan.MakeParams<DotsParams>();
  params.k = y.dims[rank - 1];
  params.lines = y.dims[rank - 2];
  params.batch = 1;
  for (int i = 0; i + 2 < rank; ++i) params.batch *= y.dims[i];
  params.whole = dtype == DType::kI64;
  plan.Bind(a, params.x);
  plan.Bind(b, params.y);
  plan.Bind(out, params.out);
  return plan.ChooseKernel("dots");
}

// ---- Addmv ----

struct Addmv {
  enum { kSelf, kMat, kVec, kAlpha, kBeta, kOut, kMath };
};

std::string WrongAddmv(Values v, Product) {
  const Dims &self = v[Addmv::kSelf].tensor->dims, &mat = v[Addmv::kMat].tensor->dims, &out = v[Addmv::kOut].tensor->dims;
  if (!(out == Dims{mat[0]})) return fmt::format("and out must have an element for each of the {} rows, got {}", mat[0], ToString(out));
  if (self == Dims{} || self == Dims{1} || self == out) return "";
  return fmt::format("must have one element or one for each of the {} rows, got {}", mat[0], ToString(self));
}
std::string WrongVector(Values v, Product) {
  const Dims &mat = v[Addmv::kMat].tensor->dims, &vec = v[Addmv::kVec].tensor->dims;
  return vec[0] == mat[1] ? "" : fmt::format("must have an element for each of the {} columns of mat, got {}", mat[1], ToString(vec));
}

// alpha * product + beta * self in `computed`; factors of 0 leave their summand out.
Status AddSum(PlanBuilder& plan, const Operand& product, const Scalar& alpha, const Operand& self, const Scalar& beta, DType computed, const Operand& out) {
  const bool whole = !IsFloating(computed);
  const auto is_zero = [&](const Scalar& s) { return computed == DType::kBool ? !s.AsBool() : whole ? s.AsInt() == 0 : s.AsDouble() == 0; };
  const auto factor = [&](const Scalar& s) { return ScalarUse{computed == DType::kBool ? Scalar::OfInt(s.AsBool()) : s}; };
  // Sums of truths are counted and looked at in the end.
  const DType type = computed == DType::kBool ? DType::kI64 : computed;
  const bool counted = computed == DType::kBool && out.dtype != DType::kBool;
  const Operand to = counted ? plan.ScratchOperand("truth", DType::kBool, out.dims) : out;
  const ScalarUse factors[] = {factor(alpha), factor(beta)}, zero[] = {{Scalar::OfInt(0)}};
  const Operand both[] = {product, self};
  if (is_zero(alpha) && is_zero(beta)) return pointwise::AddPass(plan, Formula::kFill, type, {}, out, zero);
  if (is_zero(alpha)) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, Formula::kScaled, type, {both + 1, 1}, to, {factors + 1, 1}));
  } else if (is_zero(beta)) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, Formula::kScaled, type, {both, 1}, to, {factors, 1}));
  } else {
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, Formula::kScaledSum, type, both, to, factors));
  }
  return counted ? pointwise::AddCopy(plan, to, out) : Status();
}

Status PlanAddmv(Values v, PlanBuilder& plan) {
  using A = Addmv;
  const Operand out = plan.TensorOperand(A::kOut), self = plan.TensorOperand(A::kSelf);
  if (Numel(out.dims) == 0 || Numel(self.dims) == 0) return {};
  plan.RequireApart(A::kOut);
  const DType computed = plan.op().contract.Deduced(v);
  const bool narrow = types::kFloat3.Has(computed);
  const DType summed = narrow ? DType::kF32 : computed == DType::kF64 ? DType::kF64 : DType::kI64;
  const Operand mat = plan.TensorOperand(A::kMat), vec = plan.TensorOperand(A::kVec);
  const Operand product = plan.ScratchOperand("product", summed, out.dims);
  if (narrow) {
    Operand line = product;
    line.dims = {out.dims[0], 1};
    line.strides = {1, 1};
    ANYACL_RETURN_IF_ERROR(AddProduct(plan, mat, WithUnitAxis(vec, 1), line));
  } else {
    ANYACL_RETURN_IF_ERROR(AddDots(plan, vec, mat, summed, product));
  }
  return AddSum(plan, product, *v[A::kAlpha].scalar, self, *v[A::kBeta].scalar, narrow ? DType::kF32 : computed, out);
}

Operator MakeAddmv(const Entry& entry) {
  Table table = TableOf(entry, "dots", "A vector plus the product of a matrix and a vector.");
  table.formulas = {"out = beta * self + alpha * mat @ vec"};
  table.notes = {"alpha comes before beta. A factor of 0 leaves its summand out, whatever that holds.",
                 "Whole numbers wrap; alpha and beta are cut off to whole numbers first. Of BOOL, products are AND and sums OR."};
  table.deduce = {.from = {"self", "mat", "vec"}};
  const DTypeSet taken = types::kFloat3 | types::kDouble | types::kInt5Bool;
  AddNullRules(&table);
  Add(&table, {Supported(kAllButSmall)});
  for (const char* arg : {"self", "mat", "vec", "out"}) Add(&table, {DTypes(arg, RowsOf(taken))});
  Add(&table, {Deduces(RowsOf(taken)), DeducedConverts("out"), ScalarConverts("alpha", DType::kF32), ScalarConverts("beta", DType::kF32),
               Custom("cubeMathType", "must be 0 to 4", CubeMathType<Addmv::kMath>), Rank("self", 0, 1), Rank("mat", 2, 2), Rank("vec", 1, 1),
               Rank("out", 1, 1), Custom("vec", "must have an element for each column of mat", WrongVector),
               Custom("self", "must have one element or one for each row of mat, as out", WrongAddmv)});
  for (const char* arg : {"self", "mat", "vec", "out"}) Add(&table, {PublicFormat(arg)});
  return {.contract = Contract(std::move(table)), .plan = PlanAddmv, .family = "matmul"};
}

// ---- Gemm ----

struct Gemm {
  enum { kA, kB, kC, kAlpha, kBeta, kTransA, kTransB, kOut, kMath };
};

Dims Turned(const Dims& dims, bool transposed) { return transposed ? Dims{dims[1], dims[0]} : dims; }

std::string WrongGemm(Values v, Product) {
  using A = Gemm;
  Dims dims;
  const std::string problem = ProductDims(Turned(v[A::kA].tensor->dims, v[A::kTransA].integer != 0), Turned(v[A::kB].tensor->dims, v[A::kTransB].integer != 0), &dims);
  if (!problem.empty()) return problem;
  const Dims &c = v[A::kC].tensor->dims, &out = v[A::kOut].tensor->dims;
  if (!(out == dims)) return fmt::format("must give the shape of out, {}, got {}", ToString(out), ToString(dims));
  const Dims* const shapes[] = {&dims, &c};
  Dims together;
  return BroadcastDims(shapes, &together) && together == dims ? "" : fmt::format("must give a shape {} that C broadcasts to, got C {}", ToString(dims), ToString(c));
}

Status PlanGemm(Values v, PlanBuilder& plan) {
  using A = Gemm;
  const Operand out = plan.TensorOperand(A::kOut), c = plan.TensorOperand(A::kC);
  if (Numel(out.dims) == 0) return {};
  plan.RequireApart(A::kOut);
  Operand a = plan.TensorOperand(A::kA), b = plan.TensorOperand(A::kB);
  if (v[A::kTransA].integer != 0) a = Transposed(a);
  if (v[A::kTransB].integer != 0) b = Transposed(b);
  const float alpha = static_cast<float>(v[A::kAlpha].real), beta = static_cast<float>(v[A::kBeta].real);
  const Operand product = plan.ScratchOperand("product", DType::kF32, out.dims);
  if (alpha != 0) ANYACL_RETURN_IF_ERROR(AddProduct(plan, a, b, product));
  return AddScaledSum(plan, product, alpha, &c, beta, out);
}

Operator MakeGemm(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "A matrix plus the product of two, each transposed or not.");
  table.formulas = {"out = alpha * op(A) @ op(B) + beta * C"};
  table.notes = {"A factor of 0 leaves its summand out, whatever that holds."};
  AddNullRules(&table);
  Add(&table, {Supported(kAllButSmall)});
  for (const char* arg : {"A", "B", "C", "out"}) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  Add(&table, {Custom("cubeMathType", "must be 0 to 4", CubeMathType<Gemm::kMath>), Rank("A", 2, 2), Rank("B", 2, 2), Rank("C", 0, 2), Rank("out", 2, 2),
               Custom("B", "must have dims that fit those of A, C and out", WrongGemm)});
  for (const char* arg : {"A", "B", "C", "out"}) Add(&table, {Formats(arg, {Format::kND})});
  return {.contract = Contract(std::move(table)), .plan = PlanGemm, .family = "matmul"};
}

// ---- Einsum ----

struct Einsum {
  enum { kTensors, kEquation, kOut };
};
constexpr std::string_view kRowsEquation = "abcd,abced->abce", kOuterEquation = "a,b->ab";

// Letters renamed in the order in which they come.
std::string Canonical(const char* equation) {
  std::string names, result;
  for (const char* c = equation; *c && result.size() < 32; ++c) {
    const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    size_t at = names.find(*c);
    if (letter && at == std::string::npos) at = names.size(), names += *c;
    result += letter ? static_cast<char>('a' + at) : *c;
  }
  return result;
}
std::string WrongEquation(Values v, Product) {
  const std::string equation = Canonical(v[Einsum::kEquation].text);
  if (equation == kRowsEquation || equation == kOuterEquation) return "";
  return fmt::format("must be \"{}\" or \"{}\" but for the letters, got \"{}\"", kRowsEquation, kOuterEquation, std::string_view(v[Einsum::kEquation].text).substr(0, 32));
}
std::string WrongCount(Values v, Product) {
  const size_t count = v[Einsum::kTensors].tensors->tensors.size();
  return count == 2 ? "" : fmt::format("must have 2 entries, got {}", count);
}
std::string WrongOperands(Values v, Product) {
  const auto tensors = v[Einsum::kTensors].tensors->tensors;
  const Dims &x = tensors[0]->dims, &y = tensors[1]->dims, &out = v[Einsum::kOut].tensor->dims;
  const std::string got = fmt::format("got {}, {} and output {}", ToString(x), ToString(y), ToString(out));
  if (Canonical(v[Einsum::kEquation].text) == kOuterEquation) {
    return x.rank() == 1 && y.rank() == 1 && out == Dims{x[0], y[0]} ? "" : "must be two vectors whose outer product has the shape of output, " + got;
  }
  const bool ranks = x.rank() == 4 && y.rank() == 5 && out.rank() == 4;
  const bool fits = ranks && Dims{x[0], x[1], x[2]} == Dims{y[0], y[1], y[2]} && y[4] == x[3] && out == Dims{x[0], x[1], x[2], y[3]};
  if (!fits) return "must be [a, b, c, d] and [a, b, c, e, d] for an output [a, b, c, e], " + got;
  return Numel(x) > 0 && Numel(y) > 0 ? "" : "must have no dim of 0, " + got;
}

Status PlanEinsum(Values v, PlanBuilder& plan) {
  const Operand out = plan.TensorOperand(Einsum::kOut);
  if (Numel(out.dims) == 0) return {};
  plan.RequireApart(Einsum::kOut);
  const Operand x = plan.TensorOperand(Einsum::kTensors, 0), y = plan.TensorOperand(Einsum::kTensors, 1);
  if (Canonical(v[Einsum::kEquation].text) == kOuterEquation) {
    const Operand factors[] = {WithUnitAxis(x, 1), y};
    return pointwise::AddPass(plan, Formula::kMul, types::kFloat3.Has(out.dtype) ? DType::kF32 : out.dtype, factors, out);
  }
  const bool whole = IsInteger(out.dtype);
  const Operand product = plan.ScratchOperand("product", whole ? DType::kI64 : DType::kF32, out.dims);
  ANYACL_RETURN_IF_ERROR(whole ? AddDots(plan, x, y, DType::kI64, product)
                               : AddContraction(plan, WithUnitAxis(x, 3), {3, 1, 1}, y, {3, 1, 1}, product));
  return pointwise::AddCopy(plan, product, out);
}

Operator MakeEinsum(const Entry& entry) {
  using enum DType;
  Table table = TableOf(entry, "gemm", "Sums of products as an equation says: products of rows, or the outer product.");
  table.formulas = {"abcd,abced->abce: output[a, b, c, e] = sum over d of x[a, b, c, d] * y[a, b, c, e, d]", "a,b->ab: output[a, b] = x[a] * y[b]"};
  table.notes = {"Only these equations, with any letters and without spaces. Whole numbers wrap."};
  const DTypeSet integers = {kI16, kI32, kI64, kU16, kU32, kU64}, newest = integers | DTypeSet{kF32, kF16};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})), Custom("tensors", "must have 2 entries", WrongCount),
               DTypes("tensors", RowsOf(newest)), SameDType("tensors", "output"), Formats("tensors", {Format::kND}),
               Custom("equation", "must be one of two but for the letters", WrongEquation),
               Custom("tensors", "must have shapes that fit the equation and output", WrongOperands)});
  return {.contract = Contract(std::move(table)), .plan = PlanEinsum, .family = "matmul"};
}

// ---- TransposeBatchMatMul ----

struct Tbmm {
  enum { kX1, kX2, kBias, kScale, kPerm1, kPerm2, kPermY, kMath, kSplit, kOut };
};

using Perm = std::vector<int64_t>;
const Perm kKeep = {0, 1, 2}, kBatchSecond = {1, 0, 2}, kExchange = {0, 2, 1};

Dims Permuted(const Dims& dims, const Perm& perm) {
  Dims result;
  for (const int64_t axis : perm) result.push_back(dims[static_cast<int>(axis)]);
  return result;
}
Operand Permuted(Operand operand, const Perm& perm) {
  operand.strides = Permuted(operand.strides, perm);
  operand.dims = Permuted(operand.dims, perm);
  return operand;
}

template <int kArg>
std::string WrongPerm(Values v, Product) {
  const Perm& perm = v[kArg].ints->values;
  const Perm &first = kArg == Tbmm::kPermY ? kBatchSecond : kKeep, &second = kArg == Tbmm::kPerm2 ? kExchange : kBatchSecond;
  if (perm == first || perm == second) return "";
  const std::string rule = kArg == Tbmm::kPermY ? "must be [1, 0, 2]" : kArg == Tbmm::kPerm1 ? "must be [0, 1, 2] or [1, 0, 2]" : "must be [0, 1, 2] or [0, 2, 1]";
  return fmt::format("{}, got [{}]", rule, fmt::join(perm, ", "));
}
std::string WrongOlder(Values v, Product product) {
  if (product == Product::kAscend950 || v[Tbmm::kPerm2].ints->values != kExchange) return "";
  const bool fits = v[Tbmm::kPerm1].ints->values == kBatchSecond && !v[Tbmm::kScale].given() && v[Tbmm::kSplit].integer == 1;
  return fits ? "" : "must be [0, 1, 2] unless permX1 is [1, 0, 2], without scale and a batchSplitFactor, got [0, 2, 1]";
}
bool IsQuantised(Values v) { return v[Tbmm::kScale].given(); }

std::string WrongTbmm(Values v, Product) {
  using A = Tbmm;
  const Dims x1 = Permuted(v[A::kX1].tensor->dims, v[A::kPerm1].ints->values), x2 = Permuted(v[A::kX2].tensor->dims, v[A::kPerm2].ints->values);
  const std::string got = fmt::format("got [B, M, K] = {} and [B, K, N] = {}", ToString(x1), ToString(x2));
  if (x1[0] != x2[0] || x1[2] != x2[1]) return "must fit x1, " + got;
  const int64_t batch = x1[0], m = x1[1], n = x2[2], split = v[A::kSplit].integer;
  if (split < 1 || batch % split != 0) return fmt::format("must have a batch that batchSplitFactor divides, {} by {}", got, split);
  int64_t all = 0;
  if (__builtin_mul_overflow(batch, n, &all)) return "must have fewer than 2^63 columns together, " + got;
  const Dims wanted = IsQuantised(v) ? Dims{m, 1, all} : split > 1 ? Dims{split, m, all / split} : Dims{m, batch, n};
  if (!(v[A::kOut].tensor->dims == wanted)) return fmt::format("must give out the shape {}, {} and out {}", ToString(wanted), got, ToString(v[A::kOut].tensor->dims));
  if (IsQuantised(v) && !(v[A::kScale].tensor->dims == Dims{all})) return fmt::format("must have {} scales, {} and {}", all, got, ToString(v[A::kScale].tensor->dims));
  return "";
}
std::string WrongScale(Values v, Product) {
  if (!IsQuantised(v)) return v[Tbmm::kOut].tensor->dtype == DType::kI8 ? "must be given for an INT8 result, got null" : "";
  if (v[Tbmm::kSplit].integer != 1) return fmt::format("must be null with a batchSplitFactor of {}, got a tensor", v[Tbmm::kSplit].integer);
  if (v[Tbmm::kX1].tensor->dtype != DType::kF16) return "must be null unless x1 is FLOAT16, got a tensor with " + Name(v[Tbmm::kX1].tensor->dtype);
  return v[Tbmm::kOut].tensor->dtype == DType::kI8 ? "" : "must be null unless out is INT8, got a tensor with " + Name(v[Tbmm::kOut].tensor->dtype);
}

// The result [m, batch, n] into out; with a split as [m, split, batch / split, n] into [split, m, batch / split * n].
Status PutSplit(PlanBuilder& plan, const Operand& product, const Operand& out, int64_t split) {
  if (split == 1) return pointwise::AddCopy(plan, product, out);
  const int64_t m = product.dims[0], batch = product.dims[1], n = product.dims[2], part = batch / split;
  Operand from = product, to = out;
  from.dims = to.dims = {m, split, part, n};
  from.strides = {batch * n, part * n, n, 1};
  to.strides = {out.strides[1], out.strides[0], n * out.strides[2], out.strides[2]};
  return pointwise::AddCopy(plan, from, to);
}

Status PlanTbmm(Values v, PlanBuilder& plan) {
  using A = Tbmm;
  plan.RequireApart(A::kOut);
  Operand x2;
  ANYACL_RETURN_IF_ERROR(WeightOperand(plan, A::kX2, &x2));
  const Operand a = Permuted(plan.TensorOperand(A::kX1), v[A::kPerm1].ints->values), b = Permuted(x2, v[A::kPerm2].ints->values);
  const Operand out = plan.TensorOperand(A::kOut);
  const int64_t batch = a.dims[0], m = a.dims[1], n = b.dims[2];
  const Operand products = plan.ScratchOperand("products", DType::kF32, {batch, m, n});
  ANYACL_RETURN_IF_ERROR(AddProduct(plan, a, b, products));
  const Operand result = plan.ScratchOperand("product", DType::kF32, {m, batch, n});
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, Permuted(products, kBatchSecond), result));
  if (IsQuantised(v)) return AddRequantise(plan, result, A::kScale, A::kOut);
  return PutSplit(plan, result, out, v[A::kSplit].integer);
}

Operator MakeTbmm(const Entry& entry, bool nz) {
  using A = Tbmm;
  Table table = TableOf(entry, "gemm", "Products of two batches whose result has the batch second.", {.optional = {"bias", "scale"}});
  table.formulas = {"Y[b] = X1[b] @ X2[b] for X1 = x1.permute(permX1), X2 = x2.permute(permX2)",
                    "out[m, b, n] = Y[b, m, n]; with batchSplitFactor f: out[g, m, j * N + n] = Y[g * B / f + j, m, n]"};
  table.notes = {"With scale the result is INT8: saturated round(Y * s) + o, s and o of a column from the words of aclnnTransQuantParamV2."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), Rank("x1", 3, 3), Rank("x2", 3, 3), Length("permX1", 3), Length("permX2", 3), Length("permY", 3),
               Custom("cubeMathType", "must be 0 to 4", CubeMathType<A::kMath>), DTypes("x1", RowsOf(nz ? DTypeSet{DType::kF16, DType::kBF16} : types::kFloat3)),
               SameDType("x2", "x1"), DTypes("out", RowsOf(types::kFloat3 | DTypeSet{DType::kI8})), DTypes("scale", RowsOf({DType::kI64, DType::kU64})),
               Custom("scale", "must be given for an INT8 result of FLOAT16 and no other", WrongScale).EvenIfAbsent(), Rank("scale", 1, 1),
               Custom("permX1", "must be [0, 1, 2] or [1, 0, 2]", WrongPerm<A::kPerm1>), Custom("permX2", "must be [0, 1, 2] or [0, 2, 1]", WrongPerm<A::kPerm2>),
               Custom("permY", "must be [1, 0, 2]", WrongPerm<A::kPermY>), Custom("permX2", "must be [0, 1, 2] on older products but for plain products", WrongOlder),
               NotGiven("bias"), NotEmpty("x1"), NotEmpty("x2"), Custom("x2", "must fit x1, out, scale and batchSplitFactor", WrongTbmm)});
  for (const char* arg : {"x1", "scale", "out"}) Add(&table, {PublicFormat(arg)});
  Add(&table, {nz ? Formats("x2", {Format::kFractalNZ}) : PublicFormat("x2")});
  if (nz) {
    Add(&table, {Custom("x2", kWeightRule, WeightFits<A::kX2>), Custom("x2", "must have a storage of 5 dims, and more than one row and column",
                                                                       [](Values v, Product) {
                                                                         const Tensor& t = *v[A::kX2].tensor;
                                                                         const bool fits = t.storage.rank() == 5 && t.dims[1] != 1 && t.dims[2] != 1;
                                                                         return fits ? "" : fmt::format("must have a storage of 5 dims, and more than one row and column, got {} and {}",
                                                                                                        ToString(t.storage), ToString(t.dims));
                                                                       })});
  }
  return {.contract = Contract(std::move(table)), .plan = PlanTbmm, .family = "matmul"};
}

}  // namespace

void DeclareOthers(Declarations& declarations) {
  declarations.Add("aclnnAddmv", MakeAddmv);
  declarations.Add("aclnnGemm", MakeGemm);
  declarations.Add("aclnnEinsum", MakeEinsum);
  declarations.Add("aclnnTransposeBatchMatMul", [](const Entry& e) { return MakeTbmm(e, false); });
  declarations.Add("aclnnTransposeBatchMatMulWeightNz", [](const Entry& e) { return MakeTbmm(e, true); });
}

}  // namespace anyacl::matmul
