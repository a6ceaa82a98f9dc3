// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Sums over the lanes of a warp.
#ifndef ANYACL_CUDA_WARP_CUH_
#define ANYACL_CUDA_WARP_CUH_

#include <cuda_runtime.h>

namespace anyacl::cuda {

inline constexpr int kWarp = 32;

// The sum over `kWidth` neighbouring lanes, in every one of them, with the same bits.
template <int kWidth = kWarp>
__device__ inline float WarpSum(float value) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_WARP_CUH_
