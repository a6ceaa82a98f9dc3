// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// p-norms over axes of a tensor, as steps of a plan.
#ifndef ANYACL_OPS_NORM_VECTOR_NORM_H_
#define ANYACL_OPS_NORM_VECTOR_NORM_H_

#include <cstdint>

#include "plan/plan.h"

namespace anyacl::norm {

// (sum of |x|^p)^(1/p); p = 0 counts what is not 0, p = inf is the largest, p = -inf the smallest |x|. `axes`: one bit for each
// of x's that is reduced; `x` has elements. Sums grow in DOUBLE. Returns a dense tensor of `dims` in FLOAT or DOUBLE.
Status AddVectorNorm(PlanBuilder& plan, const Operand& x, uint64_t axes, double p, const Dims& dims, Operand* norms);

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_VECTOR_NORM_H_
