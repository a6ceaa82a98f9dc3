// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Barriers in shared memory (mbarrier) that count arrivals and bytes, and the bulk copies that count at them. Empty before
// compute capability 9.0, where kHasBulkCopies is false.
#ifndef ANYACL_CUDA_SHARED_BARRIER_CUH_
#define ANYACL_CUDA_SHARED_BARRIER_CUH_

#include <cuda_runtime.h>

#include <cstdint>

namespace anyacl::cuda {

__device__ inline uint32_t SharedAddress(const void* of) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(of));
}

// By one thread; everybody else needs a barrier before the first use. A round takes so many arrivals.
__device__ inline void InitBarrier(uint64_t* barrier, uint32_t arrivals = 1) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)),
               "r"(arrivals));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void Arrive(uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
#endif
}

// By one thread per round: it arrives, and so many bytes will come.
__device__ inline void ArriveExpectingBytes(uint64_t* barrier, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
#endif
}

// Until everything of round `round` (0, 1, ...) has come.
__device__ inline void WaitBarrier(uint64_t* barrier, uint32_t round) {
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(SharedAddress(barrier)), "r"(round & 1)
        : "memory");
  }
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHasBulkCopies = true;
#else
inline constexpr bool kHasBulkCopies = false;
#endif

// By one thread: whole vectors, which count at the barrier when they have come. It does not stand in the way of the
// block's other loads and stores, as many small copies do.
__device__ inline void BulkCopy(uint4* to, const void* from, uint32_t bytes, uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
#endif
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_SHARED_BARRIER_CUH_
