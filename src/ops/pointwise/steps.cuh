// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// From the number of a step to its place.
#ifndef ANYACL_OPS_POINTWISE_STEPS_CUH_
#define ANYACL_OPS_POINTWISE_STEPS_CUH_

#include <cstdint>

#include "cuda/fast_divisor.cuh"
#include "ops/pointwise/pointwise.h"

namespace anyacl {
namespace pointwise {

// Axes walked in row-major order.
struct Steps {
  int64_t count = 1;
  int64_t dims[kMaxWalkAxes] = {};
  cuda::FastDivisor by[kMaxWalkAxes];  // for fewer than 2^31 steps
  int axes = 0;
  bool many = false;

  // Behind the axes there are.
  void Add(int64_t size) {
    dims[axes++] = size;
    count *= size;
    many = count >= int64_t{1} << 31;
    if (!many && size > 0) by[axes - 1] = cuda::FastDivisor(static_cast<uint32_t>(size));
  }

  // Calls visit(axis, coordinate) for the place of a step. Without kMany there are fewer than 2^31.
  template <bool kMany = true, class Visit>
  __device__ __forceinline__ void ForCoordinates(int64_t index, const Visit& visit) const {
#pragma unroll 1
    for (int axis = axes - 1; axis > 0; --axis) {
      int64_t next;
      if (kMany && many) next = index / dims[axis];
      else next = by[axis].Divide(static_cast<uint32_t>(index));
      visit(axis, index - next * dims[axis]);
      index = next;
    }
    visit(0, index);
  }
};

}  // namespace pointwise
}  // namespace anyacl

#endif  // ANYACL_OPS_POINTWISE_STEPS_CUH_
