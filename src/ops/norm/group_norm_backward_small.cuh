// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Small groups: a thread, 8 lanes or a warp per group. A thread sees the same places of the same group in
// many samples, so gamma and its share of dgamma and dbeta stay in registers, whatever HxW is. A problem
// that eight blocks can do at once is one cluster and one launch.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_

#include "ops/norm/group_norm_backward.cuh"

namespace anyacl::cuda::group_norm {

constexpr int64_t kSmallGroup = 1024;  // elements
constexpr int kSmallThreads = 256;
#ifndef ANYACL_DEV_SMALL_BLOCKS
#define ANYACL_DEV_SMALL_BLOCKS 528
#endif
constexpr int64_t kSmallBlocks = ANYACL_DEV_SMALL_BLOCKS;  // four per multiprocessor of an H200

// How groups and samples are dealt to blocks.
struct SmallGrid {
  int64_t columns;  // blocks that it takes for all groups of one sample
  int64_t slices;   // of the samples
  int per_block;    // groups of one sample in one block
  int copies;       // samples in one block
  float* partials;  // [slices][2][C]
  void* dgamma;
  void* dbeta;
  bool one_cluster;  // of `slices` blocks, which finish dgamma and dbeta themselves
  bool aligned;
};

template <class T, int kTeam, int kVectors, int kSamples>
class SmallKernel {
  static constexpr int kV = kLanes<T>;
  static constexpr int kPlaces = kTeam * kVectors * kV;  // of one team

 public:
  __device__ SmallKernel(const Call& call, const SmallGrid& grid)
      : call_(call),
        grid_(grid),
        slice_(blockIdx.x / grid.columns),
        team_(threadIdx.x / kTeam),
        lane_(threadIdx.x % kTeam),
        copy_(team_ / grid.per_block),
        first_group_(blockIdx.x % grid.columns * grid.per_block),
        group_(first_group_ + team_ % grid.per_block),
        active_(copy_ < grid.copies && group_ < call.groups) {}

  __device__ void Run() {
    LetNextKernelStart();
    LoadGamma();
    const int64_t step = grid_.slices * grid_.copies * kSamples;
#pragma unroll 1
    for (int64_t n = slice_ * grid_.copies * kSamples; n < call_.n; n += step) Samples(n + copy_);
    if (call_.wants_parameters) WriteParameters();
  }

 private:
  __device__ int Place(int k) const { return (k * kTeam + lane_) * kV; }
  __device__ int Count(int k) const { return static_cast<int>(call_.size) - Place(k); }
  __device__ uint4* Slot() const {
    extern __shared__ uint4 slots[];
    return slots + threadIdx.x;
  }

  __device__ void LoadGamma() {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const int place = Place(k) + j;
        gamma_[k][j] = 1;
        if (call_.gamma.data && active_ && j < Count(k)) {
          const uint32_t channel = static_cast<uint32_t>(place) / static_cast<uint32_t>(call_.hxw);
          gamma_[k][j] = call_.gamma[group_ * call_.channels + channel];
        }
        db_[k][j] = ds_[k][j] = 0;
      }
    }
  }

  // Samples first, first + copies, ...: all are loaded before the first one is worked on.
  __device__ void Samples(int64_t first) {
    uint4 dy[kSamples][kVectors], x[kSamples][kVectors];
    uint32_t mean[kSamples], rstd[kSamples];
#pragma unroll
    for (int u = 0; u < kSamples; ++u) {
      const int64_t n = first + u * grid_.copies;
      const bool exists = active_ && n < call_.n;
      const int64_t at = n * call_.groups + group_;
#pragma unroll
      for (int k = 0; k < kVectors; ++k) {
        const int count = exists ? Count(k) : 0;
        const int64_t i = at * call_.size + Place(k);
        dy[u][k] = LoadVector(static_cast<const T*>(call_.dy) + i, count, grid_.aligned, Slot());
        x[u][k] = LoadVector(static_cast<const T*>(call_.x) + i, count, grid_.aligned, Slot());
      }
      mean[u] = exists ? call_.mean.Raw(at) : 0;
      rstd[u] = exists ? call_.rstd.Raw(at) : 0;
    }
#pragma unroll
    for (int u = 0; u < kSamples; ++u) {
      Sample(first + u * grid_.copies, dy[u], x[u], call_.mean.Decode(mean[u]), call_.rstd.Decode(rstd[u]));
    }
  }

  __device__ void Sample(int64_t n, const uint4 (&dy_bits)[kVectors], const uint4 (&x_bits)[kVectors],
                         float mean, float rstd) {
    float c1 = 0, c2 = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const float xhat = j < Count(k) ? (x[j] - mean) * rstd : 0.0f;
        db_[k][j] += dy[j];
        ds_[k][j] += dy[j] * xhat;
        c1 += gamma_[k][j] * dy[j];
        c2 += gamma_[k][j] * dy[j] * xhat;
      }
    }
    c1 = WarpSum<kTeam>(c1) / static_cast<float>(call_.size);
    c2 = WarpSum<kTeam>(c2) / static_cast<float>(call_.size);
    if (!call_.dx || !active_ || n >= call_.n) return;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        dy[j] = rstd * (gamma_[k][j] * dy[j] - c1 - (x[j] - mean) * rstd * c2);
      }
      const int64_t i = (n * call_.groups + group_) * call_.size + Place(k);
      StoreVector(static_cast<T*>(call_.dx) + i, Pack<T>(dy), Count(k), grid_.aligned,
                  Slot());
    }
  }

  // Every place goes to shared memory; a warp adds the places of one channel in all copies.
  __device__ void WriteParameters() {
    extern __shared__ uint4 slots[];
    float* const places = reinterpret_cast<float*>(slots);  // [teams][places of a team]
    float* const totals = places + kSmallThreads * kVectors * kV;  // [2][channels of the block]
    const int block_channels = grid_.per_block * static_cast<int>(call_.channels);
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kVectors; ++k) {
#pragma unroll
        for (int j = 0; j < kV; ++j) {
          places[team_ * kPlaces + Place(k) + j] = which == 0 ? db_[k][j] : ds_[k][j];
        }
      }
      __syncthreads();
      for (int c = threadIdx.x / kWarp; c < block_channels; c += kSmallThreads / kWarp) {
        const float sum = ChannelSum(places, c);
        const int64_t channel = first_group_ * call_.channels + c;
        if (threadIdx.x % kWarp != 0 || channel >= call_.c) continue;
        if (grid_.one_cluster) totals[which * block_channels + c] = sum;
        else grid_.partials[(slice_ * 2 + which) * call_.c + channel] = sum;
      }
    }
    if (grid_.one_cluster) Finish(totals, block_channels);
  }

  __device__ float ChannelSum(const float* places, int c) const {
    const int channels = static_cast<int>(call_.channels), hxw = static_cast<int>(call_.hxw);
    const int first = c / channels * kPlaces + c % channels * hxw;
    float sum = 0;
    for (int i = threadIdx.x % kWarp; i < grid_.copies * hxw; i += kWarp) {
      sum += places[i / hxw * grid_.per_block * kPlaces + first + i % hxw];
    }
    return WarpSum(sum);
  }

  // The blocks of the cluster share the channels and add up each other's totals, in order.
  __device__ void Finish(float* totals, int channels) {
    int rank = 0, blocks = 1;
#if __CUDA_ARCH__ >= 900
    const cg::cluster_group cluster = cg::this_cluster();
    rank = static_cast<int>(cluster.block_rank());
    blocks = static_cast<int>(cluster.num_blocks());
    cluster.sync();
#else
    __syncthreads();
#endif
    for (int i = rank * kSmallThreads + threadIdx.x; i < 2 * channels; i += blocks * kSmallThreads) {
      void* const to = i < channels ? grid_.dbeta : grid_.dgamma;
      if (!to) continue;
      float sum = 0;
#if __CUDA_ARCH__ >= 900
      for (int r = 0; r < blocks; ++r) sum += *cluster.map_shared_rank(totals + i, r);
#else
      sum = totals[i];
#endif
      StoreAs(to, call_.gamma.dtype, i < channels ? i : i - channels, sum);
    }
#if __CUDA_ARCH__ >= 900
    cluster.sync();  // nobody ends while its memory is being read
#endif
  }

  const Call& call_;
  const SmallGrid& grid_;
  const int64_t slice_;
  const int team_, lane_, copy_;
  const int64_t first_group_, group_;
  const bool active_;
  float gamma_[kVectors][kV];
  float db_[kVectors][kV], ds_[kVectors][kV];
};

template <class T, int kTeam, int kVectors, int kSamples>
__global__ void __launch_bounds__(kSmallThreads, kVectors * 16 / sizeof(T) > 8 ? 1 : 2)
    Small(const __grid_constant__ Call call, const __grid_constant__ SmallGrid grid) {
  SmallKernel<T, kTeam, kVectors, kSamples>(call, grid).Run();
}

inline SmallGrid MakeSmallGrid(const Params& p, int team, int samples) {
  SmallGrid grid{};
  const int64_t teams = kSmallThreads / team;
  grid.per_block = static_cast<int>(std::min<int64_t>(p.groups, teams));
  grid.copies = static_cast<int>(teams / grid.per_block);
  grid.columns = CeilDiv<int64_t>(p.groups, grid.per_block);
  grid.slices = std::min(CeilDiv<int64_t>(p.n, grid.copies * samples),
                         std::max<int64_t>(1, kSmallBlocks / grid.columns));
  return grid;
}

inline bool FitsSmall(const Params& p) {
  return p.n > 0 && p.hxw > 0 && p.c / p.groups * p.hxw <= kSmallGroup && !p.channels_last;
}

// Calls f.operator()<team, vectors, samples>() for the size of the groups.
template <class T, class F>
void WithSmallTeam(int64_t size, F&& f) {
  const int64_t vectors = CeilDiv<int64_t>(size, kLanes<T>);
  if (vectors <= 1) return f.template operator()<1, 1, 4>();
  if (vectors <= 8) return f.template operator()<8, 1, 4>();
  if (vectors <= 32) return f.template operator()<32, 1, 4>();
  if (vectors <= 64) return f.template operator()<32, 2, 3>();
  if (vectors <= 128) return f.template operator()<32, 4, 2>();
  if constexpr (sizeof(T) == 4) return f.template operator()<32, 8, 1>();
}

inline int64_t SmallScratch(const Params& p) {
  int64_t bytes = 0;
  WithType(p.dtype, [&]<class T>() {
    WithSmallTeam<T>(p.c / p.groups * p.hxw, [&]<int kTeam, int kVectors, int kSamples>() {
      bytes = MakeSmallGrid(p, kTeam, kSamples).slices * 2 * p.c * static_cast<int64_t>(sizeof(float));
    });
  });
  return bytes;
}

template <class T, int kTeam, int kVectors, int kSamples>
void LaunchSmall(const Params& p, const Launch& launch) {
  constexpr int kMaxCluster = 8;
  const Call call(p);
  SmallGrid grid = MakeSmallGrid(p, kTeam, kSamples);
  const int64_t totals = 2 * grid.per_block * call.channels * static_cast<int64_t>(sizeof(float));
  const bool blocks_fit = grid.slices == 1 || (grid.slices <= kMaxCluster && HasClusters(launch.device));
  grid.one_cluster = grid.columns == 1 && blocks_fit && totals <= 16 * 1024;
  grid.partials = static_cast<float*>(p.scratch);
  grid.dgamma = p.dgamma;
  grid.dbeta = p.dbeta;
  grid.aligned = Aligned(p, call.size);
  const int64_t places = int64_t{kSmallThreads} * kVectors * 16 / sizeof(T) * sizeof(float);
  LaunchKernel<Small<T, kTeam, kVectors, kSamples>>(
      launch,
      {.blocks = grid.columns * grid.slices,
       .threads = kSmallThreads,
       .shared_bytes = places + (grid.one_cluster ? totals : 0),
       .cluster = grid.one_cluster ? static_cast<int>(grid.slices) : 1},
      call, grid);
  if (!grid.one_cluster) LaunchParameters(p, grid.partials, grid.slices, launch);
}

inline void RunSmall(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    WithSmallTeam<T>(p.c / p.groups * p.hxw, [&]<int kTeam, int kVectors, int kSamples>() {
      LaunchSmall<T, kTeam, kVectors, kSamples>(p, launch);
    });
  });
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_
