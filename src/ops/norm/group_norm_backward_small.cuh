// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Small groups: a thread, 8 lanes or a warp per group. A thread sees the same places of the same group in
// many samples, so gamma and its share of dgamma and dbeta stay in registers, whatever HxW is. Where one block or
// one cluster has all samples of its groups it also finishes dgamma and dbeta.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_

#include <bit>

#include "cuda/cluster.cuh"
#include "cuda/elements.cuh"
#include "cuda/fast_divisor.cuh"
#include "cuda/grid_sync.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/shared_barrier.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/group_norm_backward.cuh"

namespace anyacl::cuda::group_norm {

constexpr int64_t kSmallGroup = 512;  // elements
constexpr int kSmallThreads = 256;
constexpr int64_t kSmallBlocks = 264;           // two per multiprocessor of an H200
constexpr int kSmallCluster = 8;                // blocks
constexpr int kClusterSamples = 4;              // of one thread
constexpr int64_t kSmallClusterChannels = 256;  // whose sums one block adds

// How groups and samples are dealt to blocks.
struct SmallGrid {
  unsigned columns;  // blocks that it takes for all groups of one sample
  unsigned slices;   // of the samples
  int per_block;     // groups of one sample in one block
  int copies;        // samples in one block
  float* partials;   // [slices][2][C]
  void* dgamma;
  void* dbeta;
  int per_channel;  // threads that add up one channel, a power of 2
  bool is_cluster;  // all blocks: they send their sums to the first
  FastDivisor by_columns, by_per_block, by_channels, by_block_channels, by_hxw, by_length;
};

// Vectors of kV elements, in the first words of 16 bytes.
template <class T, int kV>
struct SmallVector {
  static constexpr bool kWhole = kV == kLanes<T>;
  static_assert(kWhole || (kV == 4 && sizeof(T) == 2));

  __device__ static uint4 Load(const T* from, int count, bool aligned) {
    if constexpr (kWhole) return LoadVector(from, count, aligned);
    Vector<T> v;
    if (aligned) {
      const uint2 words = count > 0 ? *reinterpret_cast<const uint2*>(from) : uint2{};
      return {words.x, words.y, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kV; ++i) {
      if (i < count) v.lanes[i] = from[i];
    }
    return v.bits;
  }
  __device__ static void Store(T* to, const float (&values)[kV], int count, bool aligned) {
    float lanes[kLanes<T>] = {};
#pragma unroll
    for (int i = 0; i < kV; ++i) lanes[i] = values[i];
    const uint4 bits = Pack<T>(lanes);
    if (kWhole || !aligned) return StoreVector(to, bits, min(count, kV), kWhole && aligned);
    if (count > 0) *reinterpret_cast<uint2*>(to) = {bits.x, bits.y};
  }
  __device__ static void Unpack(const uint4& bits, float (&to)[kV]) {
    float lanes[kLanes<T>];
    cuda::Unpack<T>(bits, lanes);
#pragma unroll
    for (int i = 0; i < kV; ++i) to[i] = lanes[i];
  }
};

// kOneChannel: no vector meets two channels. Sums are taken in another order then, so it follows from the shape.
template <class T, int kV, int kTeam, int kVectors, int kSamples, bool kOneChannel, bool kAligned>
class SmallKernel {
  using Lanes = SmallVector<T, kV>;
  static constexpr int kParts =
      kOneChannel ? 1 : kV;  // of a vector that may have channels of their own
  static constexpr int kPlaces = kTeam * kVectors * kParts;  // of one team

 public:
  __device__ SmallKernel(const Call& call, const SmallGrid& grid, ClusterBarriers& cluster_barriers)
      : call_(call),
        grid_(grid),
        cluster_barriers_(cluster_barriers),
        slice_(grid.by_columns.Divide(blockIdx.x)),
        team_(threadIdx.x / kTeam),
        lane_(threadIdx.x % kTeam),
        copy_(static_cast<int>(grid.by_per_block.Divide(team_))),
        first_group_(int64_t{blockIdx.x - slice_ * grid.columns} * grid.per_block),
        group_(first_group_ + team_ - copy_ * grid.per_block),
        active_(copy_ < grid.copies && group_ < call.groups) {}

  __device__ void Run() {
    if (InCluster()) InitClusterBarriers(cluster_barriers_);
    BeginKernel();
    LoadGamma();
    const int64_t step = int64_t{grid_.slices} * grid_.copies * kSamples;
    const int64_t first = int64_t{slice_} * grid_.copies * kSamples;
    const int64_t groups = step * call_.groups;
    int64_t at = (first + copy_) * call_.groups + group_;
    int64_t offset = at * call_.size + Place(0);
#pragma unroll 1
    for (int64_t left = call_.n - first; left > 0; left -= step) {
      AllSamples(left, at, offset);
      at += groups;
      offset += groups * call_.size;
    }
    if (InCluster()) WaitForCluster();
    if (call_.wants_parameters) WriteParameters();
  }

 private:
  __device__ bool InCluster() const {
    return kTeam <= 8 && kSamples == kClusterSamples && grid_.is_cluster;
  }
  __device__ int Place(int k) const { return (k * kTeam + lane_) * kV; }
  __device__ int Count(int k) const { return static_cast<int>(call_.size) - Place(k); }

  // As it lies: who waits for it here has not asked for the samples yet.
  __device__ void LoadGamma() {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int hxw = static_cast<int>(call_.hxw);
      int channel = static_cast<int>(grid_.by_hxw.Divide(Place(k))),
          offset = Place(k) - channel * hxw;
#pragma unroll
      for (int j = 0; j < kParts; ++j) {
        const bool given = call_.gamma.data && active_ && j < Count(k);
        raw_gamma_[k][j] = given ? call_.gamma.Raw(group_ * call_.channels + channel) : 0;
        if (++offset == hxw) offset = 0, ++channel;
        db_[k][j] = ds_[k][j] = 0;
      }
    }
  }
  __device__ float Gamma(int k, int j) const {
    return call_.gamma.data ? call_.gamma.DecodeAs<T>(raw_gamma_[k][j]) : 1.0f;
  }

  // kSamples samples, `copies` apart, of which the first is group number `at` of all and starts for this
  // thread at element `offset`; `left` samples follow the first of the block. All are loaded before the first
  // one is worked on, unless that would be too many loads of single elements.
  __device__ void AllSamples(int64_t left, int64_t at, int64_t offset) {
    if constexpr (kAligned || kVectors == 1) {
      Samples<kSamples>(left, at, offset);
    } else {
#pragma unroll 1
      for (int u = 0; u < kSamples; ++u) {
        const int64_t groups = int64_t{u} * grid_.copies * call_.groups;
        Samples<1>(left - u * grid_.copies, at + groups, offset + groups * call_.size);
      }
    }
  }

  template <int kCount>
  __device__ void Samples(int64_t left, int64_t at, int64_t offset) {
    const int64_t groups = grid_.copies * call_.groups;
    const int64_t elements = groups * call_.size;
    const int mine =
        active_ ? static_cast<int>(min(left, int64_t{1} << 30)) - copy_ : 0;  // samples
    uint4 dy[kCount][kVectors], x[kCount][kVectors];
    uint32_t mean[kCount], rstd[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const bool exists = u * grid_.copies < mine;
      const T* const dy_at = static_cast<const T*>(call_.dy) + offset + u * elements;
      const T* const x_at = static_cast<const T*>(call_.x) + offset + u * elements;
#pragma unroll
      for (int k = 0; k < kVectors; ++k) {
        const int count = exists ? Count(k) : 0;
        dy[u][k] = Lanes::Load(dy_at + k * kTeam * kV, count, kAligned);
        x[u][k] = Lanes::Load(x_at + k * kTeam * kV, count, kAligned);
      }
      mean[u] = exists ? call_.mean.Raw(at + u * groups) : 0;
      rstd[u] = exists ? call_.rstd.Raw(at + u * groups) : 0;
    }
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      if (u * grid_.copies >= left) break;  // for all threads of the block
      T* const to = static_cast<T*>(call_.dx) + offset + u * elements;
      Sample(call_.dx && u * grid_.copies < mine ? to : nullptr, dy[u], x[u],
             call_.mean.DecodeAs<T>(mean[u]), call_.rstd.DecodeAs<T>(rstd[u]));
    }
  }

  // Writes dx of a sample, unless `to` is null, and adds to the sums.
  __device__ void Sample(T* to, const uint4 (&dy_bits)[kVectors], const uint4 (&x_bits)[kVectors],
                         float mean, float rstd) {
    float c1 = 0, c2 = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      float dy[kV], x[kV];
      Lanes::Unpack(dy_bits[k], dy);
      Lanes::Unpack(x_bits[k], x);
      float db = 0, ds = 0;
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        // What does not exist must not turn an infinite mean into a NaN.
        const float xhat = (kAligned ? 0 : j) < Count(k) ? Normal(x[j], mean, rstd) : 0.0f;
        if constexpr (kOneChannel) {
          db += dy[j];
          ds = __fmaf_rn(dy[j], xhat, ds);
        } else {
          const float weighted = __fmul_rn(Gamma(k, j), dy[j]);
          db_[k][j] += dy[j];
          ds_[k][j] = __fmaf_rn(dy[j], xhat, ds_[k][j]);
          c1 += weighted;
          c2 = __fmaf_rn(weighted, xhat, c2);
        }
      }
      if constexpr (kOneChannel) {
        db_[k][0] += db;
        ds_[k][0] += ds;
        c1 = __fmaf_rn(Gamma(k, 0), db, c1);
        c2 = __fmaf_rn(Gamma(k, 0), ds, c2);
      }
    }
    c1 = WarpSum<kTeam>(c1) * call_.over_size;
    c2 = WarpSum<kTeam>(c2) * call_.over_size;
    if (!to) return;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const Line line(mean, rstd, Gamma(k, 0), {c1, c2});
      float dy[kV], x[kV];
      Lanes::Unpack(dy_bits[k], dy);
      Lanes::Unpack(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        if constexpr (kOneChannel) {
          dy[j] = line.At(dy[j], x[j]);
        } else {
          dy[j] = Gradient(mean, rstd, Gamma(k, j), {c1, c2}, dy[j], x[j]);
        }
      }
      Lanes::Store(to + k * kTeam * kV, dy, Count(k), kAligned);
    }
  }

  // Every place goes to shared memory; some threads add the places of one channel in all copies, then neighbouring
  // lanes add their sums. db is x, ds is y. Loops are short and not unrolled: in small calls all time goes into
  // fetching instructions.
  __device__ void WriteParameters() {
    ANYACL_SLOTS(shared);
    float2* const places = reinterpret_cast<float2*>(shared);  // [teams][places of a team]
    float2* const sums =
        places + kSmallThreads * kVectors * kParts;  // [threads of a channel][an odd number]
    const int channels = grid_.per_block * static_cast<int>(call_.channels), pitch = channels | 1;
    const int mine = static_cast<int>(grid_.by_block_channels.Divide(threadIdx.x));
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
#pragma unroll
      for (int j = 0; j < kParts; ++j) {
        places[team_ * kPlaces + (k * kTeam + lane_) * kParts + j] = {db_[k][j], ds_[k][j]};
      }
    }
    __syncthreads();
    if (mine < grid_.per_channel) {
      for (int c = threadIdx.x - mine * channels; c < channels; c += kSmallThreads) {
        sums[mine * pitch + c] = PartOfChannel(places, c, mine);
      }
    }
    __syncthreads();
    const int part = threadIdx.x & (grid_.per_channel - 1);
    int c = threadIdx.x >> (__ffs(grid_.per_channel) - 1);
    do {  // once, where a channel has several threads
      float2 sum = c < channels ? sums[part * pitch + c] : float2{};
#pragma unroll 1
      for (int distance = grid_.per_channel / 2; distance > 0; distance /= 2) {
        sum.x += __shfl_xor_sync(0xffffffffu, sum.x, distance);
        sum.y += __shfl_xor_sync(0xffffffffu, sum.y, distance);
      }
      if (c < channels && part == 0) Deliver(c, sum);
      c += kSmallThreads;
    } while (c < channels);
    if (InCluster() && slice_ == 0) AddRemoteSums();
  }

  // Behind the sums of this block: those that all blocks send to the first, [blocks][channels].
  __device__ float2* RemoteSums() const {
    ANYACL_SLOTS(shared);
    return reinterpret_cast<float2*>(shared) + kSmallThreads * (kVectors * kParts + 1) + kWarp;
  }
  __device__ void AddRemoteSums() const {
    const int channels = static_cast<int>(call_.c), c = static_cast<int>(threadIdx.x);
    if (c == 0) ArriveExpectingBytes(&cluster_barriers_.of_buffer[0], grid_.slices * channels * sizeof(float2));
    if (c >= channels) return;
    WaitBarrier(&cluster_barriers_.of_buffer[0], 0);
    float2 total{};
#pragma unroll
    for (unsigned i = 0; i < kSmallCluster; ++i) {
      if (i == grid_.slices) break;
      total.x += RemoteSums()[i * channels + c].x;
      total.y += RemoteSums()[i * channels + c].y;
    }
    Store(c, total);
  }

  __device__ float2 PartOfChannel(const float2* places, int c, int part) const {
    const int channels = static_cast<int>(call_.channels);
    const int length = static_cast<int>(call_.hxw) * kParts / kV;  // places of a channel
    const int group = static_cast<int>(grid_.by_channels.Divide(c));
    const int first = group * kPlaces + (c - group * channels) * length;
    float2 sum{};
#pragma unroll 2
    for (int i = part; i < grid_.copies * length; i += grid_.per_channel) {
      const int copy = static_cast<int>(grid_.by_length.Divide(i));
      const float2 place = places[copy * grid_.per_block * kPlaces + first + i - copy * length];
      sum.x += place.x;
      sum.y += place.y;
    }
    return sum;
  }

  // The sums over this block's samples of its channel c.
  __device__ void Deliver(int c, float2 sum) const {
    const int64_t channel = first_group_ * call_.channels + c;
    if (channel >= call_.c) return;
    if (InCluster()) {
      StoreRemote(cluster_barriers_, 0, RemoteSums() + slice_ * call_.c + c, sum, 0);
    } else if (grid_.slices > 1) {
      float* const row = grid_.partials + int64_t{slice_} * 2 * call_.c;
      row[channel] = sum.x;
      row[call_.c + channel] = sum.y;
    } else {
      Store(channel, sum);
    }
  }
  __device__ void Store(int64_t channel, float2 sum) const {
    if (grid_.dbeta) StoreAs(grid_.dbeta, call_.gamma.dtype, channel, sum.x);
    if (grid_.dgamma) StoreAs(grid_.dgamma, call_.gamma.dtype, channel, sum.y);
  }

  const Call& call_;
  const SmallGrid& grid_;
  ClusterBarriers& cluster_barriers_;
  const unsigned slice_;
  const int team_, lane_, copy_;
  const int64_t first_group_, group_;
  const bool active_;
  uint32_t raw_gamma_[kVectors][kParts];
  float db_[kVectors][kParts], ds_[kVectors][kParts];
};

template <class T, int kV, int kTeam, int kVectors, int kSamples, bool kOneChannel, bool kAligned>
__global__ void __launch_bounds__(kSmallThreads, !kOneChannel && kVectors * kV > 8 ? 1 : 2)
    Small(const __grid_constant__ Call call, const __grid_constant__ SmallGrid grid,
          const __grid_constant__ Finish finish) {
  __shared__ ClusterBarriers cluster_barriers;
  SmallKernel<T, kV, kTeam, kVectors, kSamples, kOneChannel, kAligned>(call, grid, cluster_barriers).Run();
  if (!finish.counters) return;
  // The last block of all that share these channels.
  const int64_t column = blockIdx.x - grid.by_columns.Divide(blockIdx.x) * grid.columns;
  if (!IsLastBlock(finish.counters + column, grid.slices)) return;
  const int64_t first = column * grid.per_block * call.channels;
  finish.Add(first, min(grid.per_block * call.channels, call.c - first));
}

inline SmallGrid MakeSmallGrid(const Params& p, int team, int samples) {
  SmallGrid grid{};
  const int64_t teams = kSmallThreads / team;
  grid.per_block = static_cast<int>(std::min<int64_t>(p.groups, teams));
  grid.copies = static_cast<int>(teams / grid.per_block);
  const int64_t columns = CeilDiv<int64_t>(p.groups, grid.per_block);
  grid.columns = static_cast<unsigned>(columns);
  grid.slices = static_cast<unsigned>(std::min(CeilDiv<int64_t>(p.n, grid.copies * samples),
                                               std::max<int64_t>(1, kSmallBlocks / columns)));
  return grid;
}

// Where one block cannot have all samples but a cluster can.
inline bool InOneCluster(const Params& p, int team) {
  const SmallGrid grid = MakeSmallGrid(p, team, kClusterSamples);
  return MakeSmallGrid(p, team, 1).slices > 1 && grid.columns == 1 &&
         grid.slices <= kSmallCluster && p.c <= kSmallClusterChannels;
}

inline bool FitsSmall(const Params& p) {
  return p.n > 0 && p.hxw > 0 && p.c / p.groups * p.hxw <= kSmallGroup && !p.channels_last;
}

// Calls f.operator()<lanes, team, vectors, samples, one_channel>() for the shape of the groups.
template <class T, class F>
void WithSmallTeam(const Params& p, F&& f) {
  constexpr int kV = kLanes<T>;
  const int64_t size = p.c / p.groups * p.hxw, vectors = CeilDiv<int64_t>(size, kV);
  // Few groups: one sample at a time on more blocks, unless one cluster can have them all.
  const auto of_samples = [&]<int kLanesOf, int kTeam, bool kOneChannel>() {
    const bool few = p.n * p.groups * kTeam <= kSmallBlocks / 2 * kSmallThreads;
    few && !InOneCluster(p, kTeam)
        ? f.template operator()<kLanesOf, kTeam, 1, 1, kOneChannel>()
        : f.template operator()<kLanesOf, kTeam, 1, kClusterSamples, kOneChannel>();
  };
  if constexpr (sizeof(T) == 2) {  // few elements, in whole vectors of 8 bytes but not of 16
    if (size % 8 == 4 && size <= 32) {
      if (p.hxw % 4 == 0) return of_samples.template operator()<4, 8, true>();
      if (size == 4) return of_samples.template operator()<4, 1, false>();
      return of_samples.template operator()<4, 8, false>();
    }
  }
  if (p.hxw % kV == 0) {
    if (vectors <= 8) return of_samples.template operator()<kV, 8, true>();
    if (vectors <= 32) return f.template operator()<kV, 32, 1, 4, true>();
    if (vectors <= 64) return f.template operator()<kV, 32, 2, 3, true>();
    if constexpr (sizeof(T) == 4) return f.template operator()<kV, 32, 4, 2, true>();
  } else {
    if (vectors <= 1) return of_samples.template operator()<kV, 1, false>();
    if (vectors <= 8) return of_samples.template operator()<kV, 8, false>();
    if (vectors <= 32) return f.template operator()<kV, 32, 1, 4, false>();
    if (vectors <= 64) return f.template operator()<kV, 32, 2, 2, false>();
    if constexpr (sizeof(T) == 4) return f.template operator()<kV, 32, 4, 1, false>();
  }
}

inline int64_t SmallScratch(const Params& p) {
  int64_t bytes = 0;
  WithType(p.dtype, [&]<class T>() {
    WithSmallTeam<T>(p, [&]<int kV, int kTeam, int kVectors, int kSamples, bool kOneChannel>() {
      bytes = int64_t{MakeSmallGrid(p, kTeam, kSamples).slices} * 2 * p.c *
              static_cast<int64_t>(sizeof(float));
    });
  });
  return bytes;
}

template <class T, int kV, int kTeam, int kVectors, int kSamples, bool kOneChannel>
void LaunchSmall(const Params& p, const Launch& launch) {
  const Call call(p);
  SmallGrid grid = MakeSmallGrid(p, kTeam, kSamples);
  grid.partials = static_cast<float*>(p.scratch);
  grid.dgamma = p.dgamma;
  grid.dbeta = p.dbeta;
  grid.by_columns = FastDivisor(grid.columns);
  grid.by_per_block = FastDivisor(grid.per_block);
  grid.by_channels = FastDivisor(static_cast<uint32_t>(call.channels));
  const int64_t channels = grid.per_block * call.channels;
  grid.by_block_channels = FastDivisor(static_cast<uint32_t>(channels));
  const int64_t most = std::clamp<int64_t>(kSmallThreads / channels, 1, kWarp);
  grid.per_channel = static_cast<int>(std::bit_floor(static_cast<uint64_t>(most)));
  grid.by_hxw = FastDivisor(static_cast<uint32_t>(call.hxw));
  constexpr int kParts = kOneChannel ? 1 : kV;
  grid.by_length = FastDivisor(static_cast<uint32_t>(call.hxw * kParts / kV));
  const int64_t places = kSmallThreads * kVectors * kParts * static_cast<int64_t>(sizeof(float2));
  grid.is_cluster = kTeam <= 8 && kSamples == kClusterSamples && grid.slices > 1 &&
                    InOneCluster(p, kTeam) && HasClusters(launch.device);
  const int64_t remote = grid.is_cluster ? grid.slices * channels : 0;
  const int64_t sums = std::max<int64_t>(kSmallThreads, channels) + kWarp;
  const LaunchShape shape{
      .blocks = int64_t{grid.columns} * grid.slices,
      .threads = kSmallThreads,
      .shared_bytes = places + (sums + remote) * static_cast<int64_t>(sizeof(float2)),
      .cluster = grid.is_cluster ? static_cast<int>(grid.slices) : 1,
      .most_together = kSamples == 1 || grid.is_cluster ? 0 : 2};
  Finish finish(p, grid.partials, grid.slices, channels, launch);
  const bool one = grid.slices == 1 || grid.is_cluster;
  if (one || grid.columns > kLaunchCounters) finish.counters = nullptr;
  WithFlag(Aligned(p, call.size, kV * sizeof(T)), [&]<bool kAligned>() {
    LaunchKernel<Small<T, kV, kTeam, kVectors, kSamples, kOneChannel, kAligned>>(
        launch, shape, call, grid, finish);
  });
  if (!one && !finish.counters) LaunchParameters(p, grid.partials, grid.slices, launch);
}

inline void RunSmall(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    WithSmallTeam<T>(p, [&]<int kV, int kTeam, int kVectors, int kSamples, bool kOneChannel>() {
      LaunchSmall<T, kV, kTeam, kVectors, kSamples, kOneChannel>(p, launch);
    });
  });
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_SMALL_CUH_
