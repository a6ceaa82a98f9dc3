// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the contracts of norms have in common.
#ifndef ANYACL_OPS_NORM_NORM_RULES_H_
#define ANYACL_OPS_NORM_NORM_RULES_H_

#include <string>
#include <vector>

#include "contract/contract.h"
#include "ops/dense.h"
#include "plan/plan.h"

namespace anyacl::norm {

// FLOAT, FLOAT16, BF16, and DOUBLE on the newest product.
inline std::vector<contract::TypeRow> Float3Wide() {
  return contract::RowsOf(types::kFloat3 | types::kDouble, types::kFloat3);
}
inline std::vector<contract::TypeRow> Float3() { return contract::RowsOf(types::kFloat3); }

// The dtype of `other`, or FLOAT (on the products named) beside FLOAT16 and BF16; beside DOUBLE with `wide`.
contract::Rule SameOrFloat(const char* arg, const char* other, contract::Products mixed = contract::kAllProducts,
                           bool wide = true);
// Any of the three, or DOUBLE and FLOAT beside a DOUBLE `other`.
contract::Rule Float3Beside(const char* arg, const char* other);
// The dtype of `other` (or FLOAT) on the newest product; any of the three on the others.
contract::Rule SameOrFloatOnNewest(const char* arg, const char* other);
contract::Rule SameOnNewest(const char* arg, const char* other);
// An array of 1 to 8 numbers.
contract::Rule NormalizedShape(const char* arg, contract::CustomCheck check);
std::string OneToEight(const IntArray& array);

// Axes of `x` in front of those of `tail`, and how many rows they make.
Dims LeadingDims(const Tensor& x, int tail_rank);
inline int64_t RowsOf(const Tensor& x, const Tensor& tail) { return Numel(LeadingDims(x, tail.rank())); }

// Statistics of rows: the leading dims of x come first, and there is an element for each row. Before Ascend 950, with
// `strict`, exactly one 1 follows for each axis of the tail.
std::string NamesRows(const Tensor& statistics, const Tensor& x, const Tensor& tail, bool strict, Product product);
inline constexpr char kNamesRows[] = "must have the leading dims of x (ones may follow)";
template <int kArg, int kX, int kTail, bool kStrict = false>
std::string RowStatistics(contract::Values values, Product product) {
  return NamesRows(*values[kArg].tensor, *values[kX].tensor, *values[kTail].tensor, kStrict, product);
}

// What some norms normalise: argument x + alpha * argument y (+ bias), in FLOAT. Where `out` is an argument that is wanted it
// receives the sum, too. The sum is read in place of x.
struct Sum {
  int x, y;
  double alpha = 1;
  int bias = -1;
  int out = -1;
};
Status ReadSum(PlanBuilder& plan, Dense& dense, contract::Values values, const Sum& sum);

// Tags that generated operators treat as ND.
contract::Rule Nd(const char* arg);

// DOUBLE where it is asked for, else FLOAT.
inline DType ComputeTypeOf(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }
// An attribute is rounded to FLOAT unless everything is DOUBLE.
inline double Attribute(double value, bool wide) { return wide ? value : static_cast<float>(value); }

// A dense tensor of scratch memory, full of one value.
Status Constant(PlanBuilder& plan, DType dtype, const Dims& dims, double value, Operand* operand);

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_NORM_RULES_H_
