// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Reductions as steps of a plan.
#ifndef ANYACL_OPS_REDUCTION_ADD_REDUCE_H_
#define ANYACL_OPS_REDUCTION_ADD_REDUCE_H_

#include <cstdint>

#include "ops/reduction/reduce.h"
#include "plan/plan.h"

namespace anyacl::reduction {

struct Fold {
  Op op;
  Finish finish = Finish::kNone;
  double divisor = 1;
};

// out, places: dense, one element per result in row-major order; out's dtype is ResultType, or DOUBLE where that is FLOAT,
// places are INT64. Either may be null. `axes`: one bit for each of in's that is reduced. An empty `in` gives every element
// of out what folding nothing gives.
Status AddReduce(PlanBuilder& plan, const Fold& fold, const Operand& in, uint64_t axes, pointwise::Compute compute,
                 const Operand* out, const Operand* places = nullptr, const Operand* center = nullptr);

// The same into a tensor argument: in is converted to `dtype` first, the result rounded to it, then converted to the
// argument's own. `places_arg` may be -1.
Status AddReduceInto(PlanBuilder& plan, const Fold& fold, const Operand& in, uint64_t axes, DType dtype, int out_arg,
                     int places_arg = -1);

// `operand` in `dtype`: itself, or a converted copy.
Status Converted(PlanBuilder& plan, const Operand& from, DType dtype, Operand* to);

// How many elements each result is made of.
int64_t LengthOf(const Dims& dims, uint64_t axes);

}  // namespace anyacl::reduction

#endif  // ANYACL_OPS_REDUCTION_ADD_REDUCE_H_
