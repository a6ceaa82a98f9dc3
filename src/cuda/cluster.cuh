// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Stores into the distributed shared memory of a thread block cluster, without cluster barriers: one of those waits until
// all stores of its threads have arrived, results included. These go straight into the shared memory of the other block
// and count at a barrier there.
#ifndef ANYACL_CUDA_CLUSTER_CUH_
#define ANYACL_CUDA_CLUSTER_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/shared_barrier.cuh"

namespace anyacl::cuda {

// One barrier for each of two buffers, used in turn: a block that writes into a buffer for the second time has received what
// every other block wrote after reading the first.
struct ClusterBarriers {
  uint64_t of_buffer[2];
};

// By all threads of the cluster, once; what lies between the two, loads above all, hides the wait for the others.
__device__ inline void InitClusterBarriers(ClusterBarriers& barriers) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    for (uint64_t& barrier : barriers.of_buffer) InitBarrier(&barrier);
  }
  asm volatile("barrier.cluster.arrive;" ::: "memory");
#endif
}
// Before the first remote store.
__device__ inline void WaitForCluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait;" ::: "memory");
#endif
}

// Stores `value` where `to` is in block `rank`; it counts at that block's barrier of the buffer.
template <class V>
__device__ inline void StoreRemote(ClusterBarriers& barriers, int buffer, const V* to, const V& value,
                                   int rank) {
#if __CUDA_ARCH__ >= 900
  uint32_t there, barrier;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(SharedAddress(to)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(barrier)
               : "r"(SharedAddress(&barriers.of_buffer[buffer])), "r"(rank));
  if constexpr (sizeof(V) == 16) {
    const float4 v = reinterpret_cast<const float4&>(value);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(there),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(barrier)
        : "memory");
  } else if constexpr (sizeof(V) == 8) {
    const float2 v = reinterpret_cast<const float2&>(value);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
            there),
        "f"(v.x), "f"(v.y), "r"(barrier)
        : "memory");
  } else {
    static_assert(sizeof(V) == 4);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there),
        "f"(value), "r"(barrier)
        : "memory");
  }
#endif
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_CLUSTER_CUH_
