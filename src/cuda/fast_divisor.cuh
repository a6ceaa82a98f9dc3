// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Division by a number known at launch, for dividends below 2^31.
#ifndef ANYACL_CUDA_FAST_DIVISOR_CUH_
#define ANYACL_CUDA_FAST_DIVISOR_CUH_

#include <cuda_runtime.h>

#include <cstdint>

namespace anyacl::cuda {

struct FastDivisor {
  FastDivisor() = default;
  explicit FastDivisor(uint32_t divisor) : divisor(divisor) {
    int bits = 0;
    while ((uint64_t{1} << bits) < divisor) ++bits;
    shift = 31 + bits;
    magic = static_cast<uint32_t>((uint64_t{1} << shift) / divisor + 1);
  }
  __device__ uint32_t Divide(uint32_t n) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(n) * magic) >> shift);
  }
  uint32_t divisor = 1;
  uint32_t magic = 0;
  int shift = 0;
};

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_FAST_DIVISOR_CUH_
