// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Groups of four channels without positions, as in a norm over [N, C], so few that one cluster has them all, a thread
// per group of a sample. All time is latency: every load is on its way before the first is waited for, each number
// goes through shared memory once and to the first block once, and dx is written while it is under way.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TINY_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TINY_CUH_

#include "cuda/cluster.cuh"
#include "cuda/elements.cuh"
#include "cuda/launch.cuh"
#include "cuda/shared_barrier.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/group_norm_backward_small.cuh"

namespace anyacl::cuda::group_norm {

constexpr int kTinySize = 4;  // elements of a group, one of each channel
constexpr int kTinyThreads = 512;
constexpr int kTinyWarps = kTinyThreads / kWarp;
constexpr int kTinyCluster = 16;  // blocks: half as many would wait longer for their loads

// One group of one sample; what does not exist is 0. dx has the bits that SmallKernel gives it in other batches.
template <class T, bool kAligned>
class TinyGroup {
  using Lanes = SmallVector<T, kTinySize>;

 public:
  // Group number `at` of all, number `group` of its sample. Everything is called for, nothing waited for.
  __device__ TinyGroup(const Call& call, int at, int group)
      : call_(call), at_(at), count_(at < static_cast<int>(call.n * call.groups) ? kTinySize : 0) {
    dy_bits_ = Lanes::Load(static_cast<const T*>(call.dy) + at * kTinySize, count_, kAligned);
    x_bits_ = Lanes::Load(static_cast<const T*>(call.x) + at * kTinySize, count_, kAligned);
    raw_mean_ = count_ > 0 ? call.mean.RawAs<T>(at) : 0;
    raw_rstd_ = count_ > 0 ? call.rstd.RawAs<T>(at) : 0;
#pragma unroll
    for (int j = 0; j < kTinySize; ++j)
      raw_gamma_[j] = call.gamma.data ? call.gamma.RawAs<T>(group * kTinySize + j) : 0;
  }

  __device__ void Decode() {
    Lanes::Unpack(dy_bits_, dy_);
    Lanes::Unpack(x_bits_, x_);
    mean_ = call_.mean.DecodeAs<T>(raw_mean_);
    rstd_ = call_.rstd.DecodeAs<T>(raw_rstd_);
  }

  // db and ds of channel j.
  __device__ float2 Sums(int j) const { return {dy_[j], __fmul_rn(dy_[j], Xhat(j))}; }

  __device__ void WriteDx() const {
    if (!call_.dx) return;
    float gamma[kTinySize], c1 = 0, c2 = 0;
#pragma unroll
    for (int j = 0; j < kTinySize; ++j) {
      gamma[j] = call_.gamma.data ? call_.gamma.DecodeAs<T>(raw_gamma_[j]) : 1.0f;
      const float weighted = __fmul_rn(gamma[j], dy_[j]);
      c1 += weighted;
      c2 = __fmaf_rn(weighted, Xhat(j), c2);
    }
    const float2 terms{c1 * call_.over_size, c2 * call_.over_size};
    float dx[kTinySize];
#pragma unroll
    for (int j = 0; j < kTinySize; ++j)
      dx[j] = Gradient(mean_, rstd_, gamma[j], terms, dy_[j], x_[j]);
    Lanes::Store(static_cast<T*>(call_.dx) + at_ * kTinySize, dx, count_, kAligned);
  }

 private:
  __device__ float Xhat(int j) const { return Normal(x_[j], mean_, rstd_); }

  const Call& call_;
  const int at_;
  const int count_;  // elements that exist
  uint4 dy_bits_, x_bits_;
  uint32_t raw_mean_, raw_rstd_, raw_gamma_[kTinySize];
  float mean_, rstd_;
  float dy_[kTinySize], x_[kTinySize];
};

// Adds up what the lanes of the same group have. Each step two lanes halve their channels between them; of kGroups
// groups, a lane ends with the sums of kTinyKept channels.
template <int kGroups>
inline constexpr int kTinyKept = kTinySize* kGroups / kWarp;

template <int kGroups>
__device__ inline void AddOverWarp(float2 (&channels)[kTinySize]) {
#pragma unroll
  for (int distance = kWarp / 2; distance >= kGroups; distance /= 2) {
    const int half = distance * kTinySize / kWarp;
    const bool upper = threadIdx.x & distance;
#pragma unroll
    for (int j = 0; j < half; ++j) {
      const float2 given = upper ? channels[j] : channels[j + half];
      const float2 kept = upper ? channels[j + half] : channels[j];
      channels[j] = {kept.x + __shfl_xor_sync(0xffffffffu, given.x, distance),
                     kept.y + __shfl_xor_sync(0xffffffffu, given.y, distance)};
    }
  }
}

// The sum over the first `count` rows, as four sums that do not wait for each other.
template <int kRows, int kChannels>
__device__ inline float2 AddRows(const float2 (&rows)[kRows][kChannels], int count, int c) {
  float2 sums[4] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float2 row = i < count ? rows[i][c] : float2{};  // a loop that ends would wait for each
    sums[i % 4].x += row.x;
    sums[i % 4].y += row.y;
  }
  return {(sums[0].x + sums[1].x) + (sums[2].x + sums[3].x),
          (sums[0].y + sums[1].y) + (sums[2].y + sums[3].y)};
}

// dgamma and dbeta are FLOAT or T.
template <class T>
__device__ inline void StoreParameter(void* to, DType dtype, int c, float value) {
  if (!to) return;
  if (sizeof(T) == 4 || dtype == DType::kF32)
    static_cast<float*>(to)[c] = value;
  else
    static_cast<T*>(to)[c] = FromFloat<T>(value);
}

template <class T, int kGroups, bool kAligned>
__global__ void __launch_bounds__(kTinyThreads, 1)
    Tiny(const __grid_constant__ Call call, void* dgamma, void* dbeta) {
  constexpr int kChannels = kGroups * kTinySize, kKept = kTinyKept<kGroups>;
  __shared__ ClusterBarriers cluster_barriers;
  __shared__ float2 of_warps[kTinyWarps][kChannels];
  __shared__ float2 of_blocks[kTinyCluster][kChannels];  // in the first block
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int group = thread % kGroups, copy = thread % kWarp / kGroups;
  InitClusterBarriers(cluster_barriers);
  BeginKernel();
  TinyGroup<T, kAligned> mine(call, block * kTinyThreads + thread, group);
  WaitForCluster();
  mine.Decode();
  float2 sums[kTinySize];
#pragma unroll
  for (int j = 0; j < kTinySize; ++j) sums[j] = mine.Sums(j);
  AddOverWarp<kGroups>(sums);
#pragma unroll
  for (int k = 0; k < kKept; ++k)
    of_warps[thread / kWarp][group * kTinySize + copy * kKept + k] = sums[k];
  __syncthreads();
  if (thread < kChannels)
    StoreRemote(cluster_barriers, 0, &of_blocks[block][thread], AddRows(of_warps, kTinyWarps, thread), 0);
  mine.WriteDx();
  if (block > 0 || thread >= kChannels) return;
  if (thread == 0) ArriveExpectingBytes(&cluster_barriers.of_buffer[0], gridDim.x * kChannels * sizeof(float2));
  WaitBarrier(&cluster_barriers.of_buffer[0], 0);
  const float2 total = AddRows(of_blocks, static_cast<int>(gridDim.x), thread);
  StoreParameter<T>(dbeta, call.gamma.dtype, thread, total.x);
  StoreParameter<T>(dgamma, call.gamma.dtype, thread, total.y);
}

// More than one block, as many as a cluster can have; the lanes of a warp have whole samples.
inline bool FitsTiny(const Params& p) {
  const bool whole_samples = p.groups == 8 || p.groups == 16 || p.groups == 32;
  const int64_t blocks = CeilDiv<int64_t>(p.n * p.groups, kTinyThreads);
  return whole_samples && p.c == p.groups * kTinySize && p.hxw == 1 && !p.channels_last &&
         blocks > 1 && blocks <= kTinyCluster;
}

// False: the device has no such clusters.
template <class T, int kGroups, bool kAligned>
bool LaunchTiny(const Params& p, const Launch& launch) {
  constexpr auto kKernel = Tiny<T, kGroups, kAligned>;
  const int blocks = static_cast<int>(CeilDiv<int64_t>(p.n * p.groups, kTinyThreads));
  const LaunchShape shape{.blocks = blocks, .threads = kTinyThreads, .cluster = blocks};
  static std::atomic<int> cache[kMaxDevices][kTinyCluster + 1];
  AllowLargeClusters<kKernel>(launch.device);
  if (ResidentClusters<kKernel>(cache[launch.device][blocks], launch, shape) == 0) return false;
  LaunchKernel<kKernel>(launch, shape, Call(p), p.dgamma, p.dbeta);
  return true;
}

template <class T, bool kAligned>
bool LaunchTiny(const Params& p, const Launch& launch) {
  if (p.groups == 8) return LaunchTiny<T, 8, kAligned>(p, launch);
  if (p.groups == 16) return LaunchTiny<T, 16, kAligned>(p, launch);
  return LaunchTiny<T, 32, kAligned>(p, launch);
}

inline void RunTiny(const Params& p, const Launch& launch) {
  bool done = false;
  WithType(p.dtype, [&]<class T>() {
    WithFlag(Aligned(p, kTinySize, kTinySize * sizeof(T)), [&]<bool kAligned>() {
      done = HasClusters(launch.device) && LaunchTiny<T, kAligned>(p, launch);
    });
  });
  if (!done) RunSmall(p, launch);
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TINY_CUH_
