// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Outer products of two vectors.
#include "core/promotion.h"
#include "ops/movement/common.h"
#include "ops/operators.h"
#include "ops/order/rows.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using movement::ApartOutput;
using movement::WithAxis;
using pointwise::AddPass;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DTypeSet kReal = types::kFloat3 | types::kDouble | types::kInt5Bool;
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

// Halves are computed in FLOAT, and so rounded once.
DType ComputedFor(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

Operator MakeGer(const Entry& entry) {
  enum { kSelf, kVec2, kOut };
  Table table = TableOf(entry, "pointwise", "The outer product of two vectors.");
  table.formulas = {"out[i, j] = self[i] * vec2[j]"};
  table.sizes = {{"n", "self", 0}, {"m", "vec2", 0}};
  table.deduce = {.from = {"self", "vec2"}};
  constexpr DTypeSet kOlder = types::kDouble | types::kInt5Bool | types::kComplex | DTypeSet{DType::kF32, DType::kF16};
  constexpr DTypeSet kNewest = kOlder | DTypeSet{DType::kBF16};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("self", RowsOf(kNewest, kOlder)), DTypes("vec2", RowsOf(kNewest, kOlder)),
               DTypes("out", RowsOf(kNewest, kOlder)), DeducedConverts("out"), Rank("self", 1, 1), Rank("vec2", 1, 1), ShapeIs("out", "n, m")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kOut].tensor->empty()) return {};
            const Operand out = ApartOutput(plan, kOut);
            const Operand inputs[] = {WithAxis(plan.TensorOperand(kSelf), 1), plan.TensorOperand(kVec2)};
            ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kMul, ComputedFor(plan.op().contract.Deduced(values)), inputs, out));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "linalg"};
}

enum { kSelf, kVec1, kVec2, kBeta, kAlpha };

DType CommonOf(Values v) {
  return Promote(Promote(v[kSelf].tensor->dtype, v[kVec1].tensor->dtype), v[kVec2].tensor->dtype);
}
template <int kScalar>
std::string WrongFactor(Values v, Product) {
  if (!v[kScalar].given()) return "";
  const DType factor = v[kScalar].scalar->dtype, common = CommonOf(v);
  const bool whole = IsInteger(common) || common == DType::kBool;
  const bool fits = factor == DType::kBool ? common == DType::kBool
                    : IsComplex(factor)    ? IsComplex(common)
                                           : !(whole && IsFloating(factor));
  return fits ? "" : "must be of the kind of the tensors, " + Name(common) + ", got " + Name(factor);
}
std::string WrongSelf(Values v, Product) {
  const Dims &self = v[kSelf].tensor->dims, want = {v[kVec1].tensor->dims[0], v[kVec2].tensor->dims[0]};
  const Dims* const both[] = {&self, &want};
  Dims dims;
  return BroadcastDims(both, &dims) && dims == want ? "" : "must broadcast to " + ToString(want) + ", got " + ToString(self);
}

bool IsZero(const Scalar& value) { return value.AsComplex() == std::complex<double>(0); }
bool IsOne(const Scalar& value) { return value.AsComplex() == std::complex<double>(1); }

// x times a number, in scratch memory of the widest dtype of its kind; x itself if the number is 1.
Status Scaled(PlanBuilder& plan, const Operand& x, const Scalar& factor, DType common, Operand* scaled) {
  *scaled = x;
  if (IsOne(factor)) return {};
  *scaled = plan.ScratchOperand("scaled", order::NaturalType(common), x.dims);
  const ScalarUse use[] = {{factor, common}};
  return AddPass(plan, Formula::kScaled, ComputedFor(common), {&x, 1}, *scaled, use);
}

template <bool kInPlace>
Operator MakeAddr(const Entry& entry) {
  const char* const self = kInPlace ? "selfRef" : "self";
  const char* const out = kInPlace ? "selfRef" : "out";
  Table table = TableOf(entry, "pointwise", "A matrix and the outer product of two vectors, each times a number.",
                        {.in_out = kInPlace ? std::vector<const char*>{"selfRef"} : std::vector<const char*>{},
                         .optional = {"betaOptional", "alphaOptional"}});
  table.formulas = {"out[i, j] = beta * self[i, j] + alpha * vec1[i] * vec2[j]"};
  table.notes = {"beta and alpha are 1 if they are not given. Where beta is 0 self does not count, not even its NaN. BOOL: or, and."};
  table.sizes = {{"n", "vec1", 0}, {"m", "vec2", 0}};
  table.deduce = {.from = {self, "vec1", "vec2"}};
  constexpr DTypeSet kNewest = kReal | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes(self, RowsOf(kNewest, kReal)), DTypes("vec1", RowsOf(kNewest, kReal)),
               DTypes("vec2", RowsOf(kNewest, kReal))});
  if (!kInPlace) Add(&table, {DTypes("out", RowsOf(kNewest, kReal))});
  Add(&table, {DeducedConverts(out), ScalarDTypes("betaOptional", RowsOf(kNewest, kReal)), ScalarDTypes("alphaOptional", RowsOf(kNewest, kReal)),
               Custom("betaOptional", "must be BOOL only with BOOL tensors, floating or complex not with lesser ones", WrongFactor<kBeta>),
               Custom("alphaOptional", "must be BOOL only with BOOL tensors, floating or complex not with lesser ones", WrongFactor<kAlpha>),
               Rank("vec1", 1, 1), Rank("vec2", 1, 1), Rank(self, 0, 2), Custom(self, "must broadcast to the outer product", WrongSelf),
               ShapeIs(out, "n, m")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int out_arg = kInPlace ? kSelf : 5;
            const Scalar one = Scalar::OfInt(1);
            const Scalar &beta = values[kBeta].given() ? *values[kBeta].scalar : one, &alpha = values[kAlpha].given() ? *values[kAlpha].scalar : one;
            if (values[out_arg].tensor->empty()) return {};
            const DType common = CommonOf(values), computed = ComputedFor(common);
            const Operand out = ApartOutput(plan, out_arg);
            Operand matrix, vector;
            ANYACL_RETURN_IF_ERROR(Scaled(plan, plan.TensorOperand(kVec1), alpha, common, &vector));
            vector = WithAxis(vector, 1);
            if (IsZero(beta)) {
              const Operand inputs[] = {vector, plan.TensorOperand(kVec2)};
              ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kMul, computed, inputs, out));
            } else {
              ANYACL_RETURN_IF_ERROR(Scaled(plan, plan.TensorOperand(kSelf), beta, common, &matrix));
              const Operand inputs[] = {matrix, vector, plan.TensorOperand(kVec2)};
              const ScalarUse use[] = {{one}};
              ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kAddcmul, computed, inputs, out, use));
            }
            return pointwise::FinishOutput(plan, out_arg, 0, out);
          },
          .family = "linalg"};
}

}  // namespace

void DeclareOuter(Declarations& declarations) {
  declarations.Add("aclnnAddr", MakeAddr<false>);
  declarations.Add("aclnnGer", MakeGer);
  declarations.Add("aclnnInplaceAddr", MakeAddr<true>);
}

}  // namespace anyacl
