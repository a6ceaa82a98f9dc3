// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Words of memory that streams write and wait for, by one thread each: the driver's own operations of this kind do not
// take 64 bits everywhere.
#include <cstdint>

#include "cuda/transfers.h"

namespace anyacl::cuda {
namespace {

__device__ bool Holds(uint64_t word, uint64_t value, uint32_t condition) {
  switch (condition) {  // as aclrtValueWait numbers them
    case 0:
      return static_cast<int64_t>(word - value) >= 0;  // cyclic, so that a counter may wrap
    case 1:
      return word == value;
    case 2:
      return (word & value) != 0;
    default:
      return ~(word | value) != 0;
  }
}

__global__ void Write(volatile uint64_t* word, uint64_t value) {
  __threadfence_system();
  *word = value;
  __threadfence_system();
}

__global__ void Wait(const volatile uint64_t* word, uint64_t value, uint32_t condition,
                     const volatile uint32_t* give_up) {
  while (!Holds(*word, value, condition) && *give_up == 0) __nanosleep(200);
  __threadfence_system();
}

// A kernel is loaded when it is launched for the first time, and loading may wait for what runs: the writer has to be
// there before somebody spins for its word.
void LoadBoth() {
  static const bool loaded = [] {
    cudaFuncAttributes ignored;
    return cudaFuncGetAttributes(&ignored, Write) == cudaSuccess &&
           cudaFuncGetAttributes(&ignored, Wait) == cudaSuccess;
  }();
  (void)loaded;
}

}  // namespace

void WriteWord(uint64_t* word, uint64_t value, cudaStream_t stream) {
  Write<<<1, 1, 0, stream>>>(word, value);
}

void WaitForWord(const uint64_t* word, uint64_t value, uint32_t condition, const uint32_t* give_up,
                 cudaStream_t stream) {
  LoadBoth();
  Wait<<<1, 1, 0, stream>>>(word, value, condition, give_up);
}

}  // namespace anyacl::cuda
