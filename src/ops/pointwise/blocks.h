// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the engine is made of: conversions of runs, and formulas over blocks of dense numbers.
#ifndef ANYACL_OPS_POINTWISE_BLOCKS_H_
#define ANYACL_OPS_POINTWISE_BLOCKS_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::pointwise {

// `count` elements; steps count elements of their side, and may be 0 when reading.
using RunConversion = void (*)(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t count);

// For kernels of other families that walk by themselves; for the SIMD target in force.
RunConversion LoadConversion(DType from, Compute to);
RunConversion StoreConversion(Compute from, DType to);
// To whole numbers 1 and 0: what is not 0 is true.
RunConversion TruthConversion(DType from);

// Applies a formula to `count` dense numbers of one compute type; out may be one of the inputs. `scalars` as in Params.
using BlockFunction = void (*)(const void* const* in, void* out, int64_t count, const void* scalars);

// One formula in all compute types; null where it has no meaning.
struct Blocks {
  BlockFunction of[kComputeTypes];
};

// Per group of formulas: the formula's blocks for the SIMD target in force; null when it is of another group.
#define ANYACL_FORMULA_GROUP(Name, stem) const Blocks* Name##Blocks(Formula formula);
#include "ops/pointwise/groups.inc"
#undef ANYACL_FORMULA_GROUP

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_BLOCKS_H_
