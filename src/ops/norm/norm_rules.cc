// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/norm/norm_rules.h"

#include <fmt/format.h>

#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::norm {

using namespace contract;

namespace {
constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;

Products Both(Products a, Products b) { return {a.bits & b.bits}; }

std::vector<TypeRow> AnyTwo(Products products) {
  std::vector<TypeRow> rows;
  for (DType a : {F32, F16, BF16}) {
    for (DType b : {F32, F16, BF16}) rows.push_back({{a, b}, a == BF16 || b == BF16 ? Both(products, kNewer) : products});
  }
  return rows;
}

constexpr Products kOlder = {kAllProducts.bits & ~kOnly950.bits};
}  // namespace

Rule SameOrFloat(const char* arg, const char* other, Products mixed, bool wide) {
  std::vector<TypeRow> rows = {{{F32, F32}}, {{F16, F16}}, {{BF16, BF16}, kNewer}, {{F64, F64}, kOnly950}};
  rows.push_back({{F32, F16}, mixed});
  rows.push_back({{F32, BF16}, Both(mixed, kNewer)});
  if (wide) rows.push_back({{F32, F64}, kOnly950});
  return DTypeRows({arg, other}, std::move(rows));
}

Rule Float3Beside(const char* arg, const char* other) {
  std::vector<TypeRow> rows = AnyTwo(kAllProducts);
  rows.push_back({{F64, F64}, kOnly950});
  rows.push_back({{F32, F64}, kOnly950});
  return DTypeRows({arg, other}, std::move(rows));
}

Rule SameOnNewest(const char* arg, const char* other) {
  std::vector<TypeRow> rows = AnyTwo(kOlder);
  for (DType t : {F32, F16, BF16, F64}) rows.push_back({{t, t}, kOnly950});
  return DTypeRows({arg, other}, std::move(rows));
}

Rule SameOrFloatOnNewest(const char* arg, const char* other) {
  Rule rule = SameOnNewest(arg, other);
  for (DType t : {F16, BF16, F64}) rule.rows.push_back({{F32, t}, kOnly950});
  return rule;
}

Rule NormalizedShape(const char* arg, CustomCheck check) { return Custom(arg, "must have 1 to 8 entries", check); }

std::string OneToEight(const IntArray& array) {
  const size_t count = array.values.size();
  return count >= 1 && count <= 8 ? "" : fmt::format("must have 1 to 8 entries, got {}", count);
}

Rule Nd(const char* arg) {
  return Formats(arg, {Format::kND, Format::kNCHW, Format::kNHWC, Format::kNCL, Format::kNCDHW});
}

Dims LeadingDims(const Tensor& x, int tail_rank) {
  Dims leading;
  for (int i = 0; i < x.rank() - tail_rank; ++i) leading.push_back(x.dims[i]);
  return leading;
}

std::string NamesRows(const Tensor& statistics, const Tensor& x, const Tensor& tail, bool strict, Product product) {
  const Dims leading = LeadingDims(x, tail.rank());
  bool fits = statistics.rank() >= leading.rank() && statistics.numel() == Numel(leading);
  for (int i = 0; fits && i < leading.rank(); ++i) fits = statistics.dims[i] == leading[i];
  if (strict && product != Product::kAscend950) fits = fits && statistics.rank() == x.rank();
  if (fits) return "";
  return fmt::format("must have the {} leading dims of x and {} elements, got {} and x {}", leading.rank(), Numel(leading),
                     ToString(statistics.dims), ToString(x.dims));
}

Status ReadSum(PlanBuilder& plan, Dense& dense, Values values, const Sum& sum) {
  const Operand x = plan.TensorOperand(sum.x), y = plan.TensorOperand(sum.y);
  const bool wanted = sum.out >= 0 && values[sum.out].given();
  if (wanted) dense.Write(sum.out);
  const Operand out = wanted ? dense.Written(sum.out) : plan.ScratchOperand("sum", F32, x.dims);
  const auto add = [&](const Operand& a, const Operand& b, double factor) {
    const pointwise::ScalarUse scalars[] = {{Scalar::Of(F64, factor)}};
    const Operand inputs[] = {a, b};
    return pointwise::AddPass(plan, pointwise::Formula::kAdd, F32, inputs, out, scalars);
  };
  ANYACL_RETURN_IF_ERROR(add(x, y, sum.alpha));
  if (sum.bias >= 0 && values[sum.bias].given()) ANYACL_RETURN_IF_ERROR(add(out, plan.TensorOperand(sum.bias), 1));
  dense.Use(sum.x, out);
  return {};
}

Status Constant(PlanBuilder& plan, DType dtype, const Dims& dims, double value, Operand* operand) {
  *operand = plan.ScratchOperand("constant", dtype, dims);
  const pointwise::ScalarUse scalars[] = {{Scalar::Of(DType::kF64, value)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, dtype, {}, *operand, scalars);
}

}  // namespace anyacl::norm
