// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A group per cluster of blocks, read once. Every warp owns a chunk inside one channel and keeps it in
// registers; while it works, its slots of shared memory take the same chunk of the cluster's next group. The
// sums of all chunks go to every block of the cluster, one barrier follows, and every warp adds them up itself.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CLUSTER_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CLUSTER_CUH_

#include "cuda/cluster.cuh"
#include "cuda/grid_sync.cuh"
#include "cuda/launch.cuh"
#include "cuda/shared_barrier.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/group_norm_backward.cuh"

namespace anyacl::cuda::group_norm {

constexpr int kChunkVectors = 8;     // of one lane
constexpr int64_t kMinVectors = 64;  // of a channel: below it most lanes of a warp would idle
constexpr int kMaxCluster = 8;
constexpr int kMaxWarps = 16;  // so that 128 registers are left for each thread
constexpr int kMaxChunks = kMaxCluster * kMaxWarps;

// How a group is cut; a function of the shape alone.
struct Cut {
  int per_channel;  // chunks
  int vectors;      // of one chunk
  int chunks;       // of the group
  int cluster;      // blocks
  int warps;        // of one block
};

inline Cut CutGroup(const Params& p) {
  const int64_t lanes = 16 / static_cast<int64_t>(SizeOf(p.dtype));
  const int64_t vectors = CeilDiv<int64_t>(p.hxw, lanes);
  const int64_t per_channel = CeilDiv<int64_t>(vectors, kWarp * kChunkVectors);
  const int64_t chunks = p.c / p.groups * per_channel;
  if (chunks > kMaxChunks || vectors < kMinVectors) return {};
  Cut cut{static_cast<int>(per_channel), static_cast<int>(CeilDiv(vectors, per_channel)),
          static_cast<int>(chunks), 1, 0};
  while (cut.cluster * kMaxWarps < cut.chunks) cut.cluster *= 2;
  cut.warps = CeilDiv(cut.chunks, cut.cluster);
  return cut;
}

template <class T, bool kAligned>
class ClusterKernel {
  static constexpr int kV = kLanes<T>;

 public:
  __device__ ClusterKernel(const Call& call, const Cut& cut, float* partials, uint4* shared,
                           ClusterBarriers& cluster_barriers, uint64_t* arrivals)
      : call_(call),
        cluster_barriers_(cluster_barriers),
        arrival_(arrivals + threadIdx.x / kWarp),
        cut_(cut),
        partials_(partials),
        lane_(threadIdx.x % kWarp),
        rank_(blockIdx.x % cut.cluster),
        chunk_(rank_ * cut.warps + threadIdx.x / kWarp),
        channel_(chunk_ / cut.per_channel),
        place_((chunk_ % cut.per_channel * cut.vectors + lane_) * kV),
        left_(channel_ < call.channels ? ChunkEnd() - place_ : 0),
        slots_(shared + threadIdx.x / kWarp * 2 * kChunkVectors * kWarp + lane_),
        spare_(shared + 2 * kChunkVectors * blockDim.x + threadIdx.x) {}

  __device__ void Run(int64_t clusters) {
    if (cut_.cluster > 1) InitClusterBarriers(cluster_barriers_);
    if (lane_ == 0) InitBarrier(arrival_);
    BeginKernel();
    const int64_t groups = call_.n * call_.groups;
    int64_t group = blockIdx.x / cut_.cluster;
    Copy(group);
    Numbers3 next = LoadNumbers(group);
    if (cut_.cluster > 1) WaitForCluster();
    uint32_t round = 0;
#pragma unroll 1
    for (; group < groups; group += clusters) {
      const float mean = call_.mean.DecodeAs<T>(next.mean),
                  rstd = call_.rstd.DecodeAs<T>(next.rstd);
      const float gamma = call_.gamma.data ? call_.gamma.DecodeAs<T>(next.gamma) : 1.0f;
      uint4 dy[kChunkVectors], x[kChunkVectors];
      kAligned ? WaitBarrier(arrival_, round) : __pipeline_wait_prior(0);
#pragma unroll
      for (int k = 0; k < kChunkVectors; ++k) {
        dy[k] = *Slot(0, k);
        x[k] = *Slot(1, k);
      }
      Copy(group + clusters);
      next = LoadNumbers(group + clusters);
      const float2 terms = Terms(dy, x, mean, rstd, gamma, group, round++);
      if (call_.dx) Write(dy, x, Line(mean, rstd, gamma, terms), group);
    }
  }

 private:
  struct Numbers3 {  // of one group and this warp's channel, as they lie
    uint32_t mean, rstd, gamma;
  };

  __device__ uint4* Slot(int input, int k) const {
    return slots_ + (input * kChunkVectors + k) * kWarp;
  }
  // Of the chunk inside its channel.
  __device__ int ChunkEnd() const {
    return min(static_cast<int>(call_.hxw), (chunk_ % cut_.per_channel + 1) * cut_.vectors * kV);
  }
  // This lane's first element. Vector k lies k * kStep behind it, and Count(k) of its elements exist.
  static constexpr int kStep = kWarp * kV;
  __device__ int64_t At(int64_t group) const {
    return (group * call_.channels + channel_) * call_.hxw + place_;
  }
  __device__ int Count(int k) const { return left_ - k * kStep; }

  // Whole vectors are copied in bulk, by one lane for its warp, which has read what lies there.
  __device__ void Copy(int64_t group) {
    const bool exists = group < call_.n * call_.groups;
    const T* const dy = static_cast<const T*>(call_.dy) + At(group);
    const T* const x = static_cast<const T*>(call_.x) + At(group);
    if constexpr (kAligned) {
      __syncwarp();
      if (lane_ != 0 || !exists) return;
      const uint32_t bytes = static_cast<uint32_t>(max(left_, 0) * sizeof(T));
      ArriveExpectingBytes(arrival_, 2 * bytes);
      if (bytes == 0) return;
      BulkCopy(Slot(0, 0), dy, bytes, arrival_);
      BulkCopy(Slot(1, 0), x, bytes, arrival_);
    } else {
#pragma unroll
      for (int k = 0; k < kChunkVectors; ++k) {
        if (exists) CopyVector<false>(Slot(0, k), dy + k * kStep, Count(k));
        if (exists) CopyVector<false>(Slot(1, k), x + k * kStep, Count(k));
      }
      __pipeline_commit();
    }
  }

  __device__ Numbers3 LoadNumbers(int64_t group) const {
    if (group >= call_.n * call_.groups || channel_ >= call_.channels) return {};
    const int64_t channel =
        (group - call_.SampleOf(group) * call_.groups) * call_.channels + channel_;
    return {call_.mean.Raw(group), call_.rstd.Raw(group),
            call_.gamma.data ? call_.gamma.Raw(channel) : 0};
  }

  // c1 and c2 of the group. One barrier: the sums of the group before last may be overwritten, because
  // everybody has read them before the barrier of the last one.
  __device__ float2 Terms(const uint4 (&dy)[kChunkVectors], const uint4 (&x)[kChunkVectors],
                          float mean, float rstd, float gamma, int64_t group, uint32_t round) {
    __shared__ Sums chunks[2][kMaxChunks];
    Sums mine{};
#pragma unroll
    for (int k = 0; k < kChunkVectors; ++k) {
      if (Count(k) > 0) AddVector<kAligned, T>(dy[k], x[k], Count(k), mean, rstd, mine.db, mine.ds);
    }
    mine.db = WarpSum(mine.db);
    mine.ds = WarpSum(mine.ds);
    mine.weighted_db = gamma * mine.db;
    mine.weighted_ds = gamma * mine.ds;
    const int parity = round % 2;
    if (cut_.cluster == 1) {
      if (lane_ == 0) chunks[parity][chunk_] = mine;
      __syncthreads();
    } else {
      if (threadIdx.x == 0)
        ArriveExpectingBytes(&cluster_barriers_.of_buffer[parity], cut_.cluster * cut_.warps * sizeof(Sums));
      if (lane_ < cut_.cluster) StoreRemote(cluster_barriers_, parity, &chunks[parity][chunk_], mine, lane_);
      WaitBarrier(&cluster_barriers_.of_buffer[parity], round / 2);
    }
    if (rank_ == 0 && call_.wants_parameters) WriteChannelSums(chunks[parity], group);
    float2 terms{};
    for (int i = lane_; i < cut_.chunks; i += kWarp) {
      terms.x += chunks[parity][i].weighted_db;
      terms.y += chunks[parity][i].weighted_ds;
    }
    return {WarpSum(terms.x) * call_.over_size, WarpSum(terms.y) * call_.over_size};
  }

  __device__ void WriteChannelSums(const Sums* chunks, int64_t group) {
    for (int c = threadIdx.x; c < call_.channels; c += blockDim.x) {
      float db = 0, ds = 0;
      for (int i = 0; i < cut_.per_channel; ++i) {
        db += chunks[c * cut_.per_channel + i].db;
        ds += chunks[c * cut_.per_channel + i].ds;
      }
      const int64_t n = call_.SampleOf(group);
      float* const row = partials_ + n * 2 * call_.c;
      const int64_t channel = (group - n * call_.groups) * call_.channels + c;
      row[channel] = db;
      row[call_.c + channel] = ds;
    }
  }

  __device__ void Write(const uint4 (&dy)[kChunkVectors], const uint4 (&x)[kChunkVectors],
                        const Line& line, int64_t group) const {
    T* const to = static_cast<T*>(call_.dx) + At(group);
#pragma unroll
    for (int k = 0; k < kChunkVectors; ++k) {
      StoreVector<kAligned>(to + k * kStep, GradientVector<T>(dy[k], x[k], line), Count(k), spare_);
    }
  }

  const Call& call_;
  ClusterBarriers& cluster_barriers_;
  uint64_t* const arrival_;  // barrier of the warp's copies
  const Cut& cut_;
  float* const partials_;  // [N][2][C]
  const int lane_, rank_, chunk_, channel_;
  const int place_;  // of the lane's first element in its channel
  const int left_;   // elements from there to the end of the chunk
  uint4* const slots_;
  uint4* const spare_;  // for unaligned results
};

template <class T, bool kAligned>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 1)
    GroupPerCluster(const __grid_constant__ Call call, const __grid_constant__ Cut cut,
                    const __grid_constant__ Finish finish, float* partials, int64_t clusters) {
  ANYACL_SLOTS(shared);
  __shared__ ClusterBarriers cluster_barriers;
  __shared__ uint64_t arrivals[kMaxWarps];
  ClusterKernel<T, kAligned>(call, cut, partials, shared, cluster_barriers, arrivals).Run(clusters);
  if (!finish.counters || blockIdx.x % cut.cluster != 0) return;
  if (IsLastBlock(finish.counters, static_cast<unsigned>(clusters))) finish.Add(0, call.c);
}

inline bool FitsCluster(const Params& p) {
  return p.n > 0 && p.hxw > 0 && !p.channels_last && CutGroup(p).chunks > 0;
}

struct ResidentCache {
  std::atomic<int> of[kMaxDevices][kMaxCluster + 1][kMaxWarps + 1];
};

template <class T, bool kAligned>
void LaunchCluster(const Params& p, const Launch& launch) {
  const Cut cut = CutGroup(p);
  LaunchShape shape{
      .threads = cut.warps * kWarp,
      .shared_bytes = int64_t{cut.warps} * kWarp * (2 * kChunkVectors + !kAligned) * 16,
      .cluster = cut.cluster};
  shape.blocks = cut.cluster;
  static ResidentCache cache;
  const int resident = ResidentClusters<GroupPerCluster<T, kAligned>>(
      cache.of[launch.device][cut.cluster][cut.warps], launch, shape);
  const int64_t clusters = std::min(p.n * p.groups, std::max<int64_t>(resident, 1));
  shape.blocks = clusters * cut.cluster;
  float* const partials = static_cast<float*>(p.scratch);
  const Finish finish(p, partials, p.n, p.c, launch);
  LaunchKernel<GroupPerCluster<T, kAligned>>(launch, shape, Call(p), cut, finish, partials,
                                             clusters);
  if (!finish.counters) LaunchParameters(p, partials, p.n, launch);
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CLUSTER_CUH_
