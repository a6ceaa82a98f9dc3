// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Relu whose negative numbers are multiplied by random slopes. What each element was multiplied by stays in `noise`.
#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/random/common.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddPass;
using pointwise::Formula;

enum { kSelf, kNoise, kLower, kUpper, kTraining, kSeed, kOffset, kOut };

std::string NoiseIsLarge(Values v, Product) {
  const int64_t want = v[kSelf].tensor->numel(), got = v[kNoise].tensor->numel();
  return !v[kTraining].flag || got >= want ? "" : fmt::format("must have {} elements at least, got {}", want, got);
}

DType ComputedOf(Values v) { return v[kSelf].tensor->dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// Without training all slopes are the middle one.
Status AddMiddle(PlanBuilder& plan, Values v, const Operand& x, const Operand& out) {
  const Scalar &low = *v[kLower].scalar, &high = *v[kUpper].scalar;
  const bool wide = ComputedOf(v) == DType::kF64;
  const double slope = wide ? (low.AsDouble() + high.AsDouble()) / 2 : static_cast<double>((low.AsFloat() + high.AsFloat()) / 2);
  const pointwise::ScalarUse scalars[] = {{Scalar::Of(DType::kF64, slope)}};
  return AddPass(plan, Formula::kLeakyRelu, ComputedOf(v), {&x, 1}, out, scalars);
}

Status AddSlopes(PlanBuilder& plan, Values v, const Operand& slopes) {
  auto& p = plan.MakeParams<random::RandomParams>();
  p.draw = random::Draw::kUniform;
  p.low = v[kLower].scalar->AsDouble();
  p.high = v[kUpper].scalar->AsDouble();
  p.dtype = slopes.dtype;
  p.wide = slopes.dtype == DType::kF64;
  p.count = Numel(slopes.dims);
  random::SetSource(plan, v, kSeed, /*from_tensors=*/false, &p.source);
  plan.Bind(slopes, p.out);
  return plan.ChooseKernel("random");
}

// What each element of x is multiplied by.
Status AddFactors(PlanBuilder& plan, const Operand& x, const Operand& slopes, const Operand& factors) {
  const Operand negative = plan.ScratchOperand("where x is not positive", DType::kBool, x.dims);
  const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}}, one[] = {{Scalar::OfFloat(1)}};
  const Operand compared[] = {x, pointwise::ConstantOperand(0)}, chosen[] = {negative, slopes, pointwise::ConstantOperand(0)};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kLessEqual, slopes.dtype, compared, negative, zero));
  return AddPass(plan, Formula::kWhere, slopes.dtype, chosen, factors, one);
}

// They go to the first elements of `noise`, whatever its shape is.
Status AddNoise(PlanBuilder& plan, Operand factors) {
  const Operand noise = plan.TensorOperand(kNoise);
  if (noise.dims == factors.dims) return pointwise::AddCopy(plan, factors, noise);
  Operand whole;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kNoise, 0, noise.dtype, &whole));
  Operand first = whole;
  factors.dims = first.dims = {Numel(factors.dims)};
  factors.strides = first.strides = {1};
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, factors, first));
  return pointwise::FinishOutput(plan, kNoise, 0, whole);
}

template <int kResult>
Status PlanRRelu(Values v, PlanBuilder& plan) {
  if (v[kSelf].tensor->empty() || v[kNoise].tensor->empty()) return {};
  plan.RequireApart(kResult);
  const Operand x = plan.TensorOperand(kSelf), out = plan.TensorOperand(kResult);
  if (!v[kTraining].flag) return AddMiddle(plan, v, x, out);
  plan.RequireApart(kNoise);
  const Operand slopes = plan.ScratchOperand("slopes", ComputedOf(v), x.dims), factors = plan.ScratchOperand("factors", ComputedOf(v), x.dims);
  ANYACL_RETURN_IF_ERROR(AddSlopes(plan, v, slopes));
  ANYACL_RETURN_IF_ERROR(AddFactors(plan, x, slopes, factors));
  const Operand inputs[] = {x, factors};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kMul, slopes.dtype, inputs, out));
  return AddNoise(plan, factors);
}

template <bool kInPlace>
Operator MakeRRelu(const Entry& entry) {
  const DTypeSet newest = types::kFloat3 | types::kDouble;
  const DTypeSet bounds = newest | DTypeSet{DType::kI64, DType::kBool};
  ArgRoles roles{.in_out = {"noise"}};
  if (kInPlace) roles.in_out.push_back("self");
  Table table = TableOf(entry, "random", "Negative numbers are multiplied by random slopes, or by the middle one.", roles);
  table.formulas = {"training: r = self <= 0 ? a number of [lower, upper) : 1; noise = r; out = self * r",
                    "else: out = self > 0 ? self : self * (lower + upper) / 2"};
  table.notes = {"Without training noise is not touched. One of another shape has its first elements written, in row-major order.",
                 random::kSequenceNote};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})), DTypes("self", RowsOf(newest, types::kFloat3)),
               SameDType("noise", "self"), ScalarDTypes("lower", RowsOf(bounds, newest)), ScalarDTypes("upper", RowsOf(bounds, newest))});
  if (!kInPlace) Add(&table, {SameDType("out", "self"), SameShape("out", "self")});
  Add(&table, {Custom("noise", "must have as many elements as self at least, when training", NoiseIsLarge)});
  if (kInPlace) Add(&table, {SameFormat({"noise", "self"})});
  else Add(&table, {SameFormat({"out", "self", "noise"})});
  return {.contract = Contract(std::move(table)), .plan = PlanRRelu<kInPlace ? static_cast<int>(kSelf) : static_cast<int>(kOut)>, .family = "activation"};
}

}  // namespace

void DeclareRRelu(Declarations& declarations) {
  declarations.Add("aclnnRReluWithNoise", MakeRRelu<false>);
  declarations.Add("aclnnInplaceRReluWithNoise", MakeRRelu<true>);
}

}  // namespace anyacl
