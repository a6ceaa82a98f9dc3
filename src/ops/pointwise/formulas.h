// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The names of the formulas, apart from what the kernels of other families take from pointwise.h: so a new formula compiles
// those anew that name formulas, and no kernel but its own group's.
#ifndef ANYACL_OPS_POINTWISE_FORMULAS_H_
#define ANYACL_OPS_POINTWISE_FORMULAS_H_

#include "ops/pointwise/pointwise.h"

namespace anyacl::pointwise {

// ops/pointwise/formulas.inc says what each computes.
enum class Formula : uint16_t {
#define ANYACL_FORMULA(name, inputs, types) k##name,
#include "ops/pointwise/formulas.inc"
#undef ANYACL_FORMULA
};

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_FORMULAS_H_
