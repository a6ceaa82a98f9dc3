// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Blocks of a grid that wait for each other without a cooperative launch, with counters of Launch::counters. What one block
// wrote before is visible to the others behind it.
#ifndef ANYACL_CUDA_GRID_SYNC_CUH_
#define ANYACL_CUDA_GRID_SYNC_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels.h"

namespace anyacl::cuda {

// What the thread wrote before is visible to whoever sees the count; cheaper than fences around an atomicAdd.
__device__ inline void IncrementRelease(unsigned* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter))
               : "memory");
}
__device__ inline unsigned LoadAcquire(const unsigned* counter) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(count)
               : "l"(__cvta_generic_to_global(counter))
               : "memory");
  return count;
}
// Until so many have been counted; the counter may wrap.
__device__ inline void SpinUntil(const unsigned* counter, unsigned count) {
  while (static_cast<int>(LoadAcquire(counter) - count) < 0) {
  }
}

// For all threads: true in the last of `blocks` blocks that comes here.
__device__ inline bool IsLastBlock(unsigned* counter, unsigned blocks) {
  __syncthreads();
  bool is_last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(counter, 1u) == blocks - 1;
    if (is_last) *counter = 0;
    __threadfence();
  }
  return __syncthreads_or(is_last);
}

// The last work of a grid, divided among its blocks, that needs what all of them wrote. Blocks that wait for each
// other must all be resident, and a cooperative launch costs the host more (docs/performance.md). Here a block waits only
// where all have begun: they will come, because nobody waits before. One that comes earlier leaves, and the last one
// of all does its share.
class GridEpilogue {
 public:
  static constexpr unsigned kMostBlocks = kLaunchCounters - 4;

  // `counters` are those of Launch::counters; they are 0 again in the end.
  __device__ explicit GridEpilogue(unsigned* counters)
      : begun_(counters),
        arrived_(counters + 1),
        absent_(counters + 2),
        gone_(counters + 3),
        absentees_(counters + 4) {}

  // By all threads, behind BeginKernel.
  __device__ void Begin() const {
    if (threadIdx.x == 0) IncrementRelease(begun_);
  }

  // By all threads. do_share(b) does the share of block b, with all threads.
  template <class DoShare>
  __device__ void End(const DoShare& do_share) const {
    bool stays = false, is_last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
      const unsigned begun = __ldcg(begun_);  // on its way while the fence waits
      __threadfence();
      stays = begun == gridDim.x;
      if (!stays) RegisterAbsence();
      is_last = atomicAdd(arrived_, 1u) == gridDim.x - 1;
      while (stays && LoadAcquire(arrived_) < gridDim.x) {
      }
      __threadfence();
    }
    stays = __syncthreads_or(stays);
    is_last = __syncthreads_or(is_last);
    if (stays) do_share(blockIdx.x);
    if (is_last) {
      const unsigned count = __ldcg(absent_);
      for (unsigned i = 0; i < count; ++i) do_share(__ldcg(absentees_ + i));
    }
    Leave();
  }

 private:
  __device__ void RegisterAbsence() const {
    absentees_[atomicAdd(absent_, 1u)] = blockIdx.x;
    __threadfence();
  }
  __device__ void Leave() const {
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(gone_, 1u) != gridDim.x - 1) return;
    *begun_ = *arrived_ = *absent_ = *gone_ = 0;
  }

  unsigned* const begun_;
  unsigned* const arrived_;
  unsigned* const absent_;
  unsigned* const gone_;
  unsigned* const absentees_;
};

// Blocks that wait for each other in the middle of a kernel. All must be resident; a cooperative launch costs the host more
// and does not begin while another kernel keeps its places. Here they agree on it: when all have
// begun, they may wait. A block that has lost patience before calls it off, for everybody; then those that have begun
// take shares of the work in turns, and none waits for one that has not begun.
class ResidentGrid {
 public:
  static constexpr int kCounters = 4;

  // `counters` are zeros.
  __device__ explicit ResidentGrid(unsigned* counters) : counters_(counters) {}

  // By all threads, behind BeginKernel.
  __device__ void Begin() const {
    if (threadIdx.x == 0) IncrementRelease(&counters_[kBegun]);
  }

  // By all threads: whether all blocks run, so that they may wait for each other; every block gets the same answer.
  __device__ bool IsComplete() const { return __syncthreads_or(threadIdx.x == 0 && AwaitAll()); }

  // By all threads of a grid that was called off. The work consists of phases, and every phase of one share
  // for each block of the grid; do_share(phase, block) does one, with all threads. Whoever has a share waits
  // only for shares of earlier phases: all of them were taken before, by blocks that run.
  template <class DoShare>
  __device__ void TakeTurns(unsigned phases, const DoShare& do_share) const {
    __shared__ unsigned taken;
    for (;;) {
      if (threadIdx.x == 0) taken = atomicAdd(&counters_[kTaken], 1u);
      __syncthreads();
      const unsigned phase = taken / gridDim.x, block = taken % gridDim.x;
      if (phase >= phases) return;
      if (threadIdx.x == 0) SpinUntil(&counters_[kDone], phase * gridDim.x);
      __syncthreads();
      do_share(phase, block);
      __syncthreads();
      if (threadIdx.x == 0) IncrementRelease(&counters_[kDone]);
    }
  }

  // By all threads, in the end: true in the last block, where the counters are zeros again.
  __device__ bool IsLast() const {
    if (!IsLastBlock(&counters_[kGone], gridDim.x)) return false;
    if (threadIdx.x == 0) counters_[kBegun] = counters_[kTaken] = counters_[kDone] = 0;
    return true;
  }

 private:
  enum { kBegun, kTaken, kDone, kGone };
  static constexpr unsigned kCalledOff = 1u << 31;
  // Long enough for most kernels of other streams to end: working in turns takes up to twice as long.
  static constexpr uint64_t kPatience = 1000 * 1000;  // ns

  __device__ static uint64_t Now() {
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
  }

  __device__ bool AwaitAll() const {
    const uint64_t start = Now();
    for (;;) {
      const unsigned begun = LoadAcquire(&counters_[kBegun]);
      if (begun == gridDim.x) return true;
      if (begun & kCalledOff) return false;
      if (Now() - start < kPatience) continue;
      if (atomicCAS(&counters_[kBegun], begun, begun | kCalledOff) == begun) return false;
    }
  }

  unsigned* const counters_;
};

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_GRID_SYNC_CUH_
