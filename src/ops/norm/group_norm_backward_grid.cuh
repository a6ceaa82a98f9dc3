// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Groups too large for a cluster: up to 128 blocks hold one, in shared memory and registers, and meet at a
// counter in device memory. A block owns a chunk inside one channel. As soon as a vector's dx is written its
// place takes the same vector of the next group, so loads and stores run side by side. Some vectors move from shared
// memory to registers when they are added up: their places are free before the meeting, so that the memory has work
// while the blocks wait.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_

#include "cuda/kernels.h"
#include "ops/norm/group_norm_backward.cuh"

namespace anyacl::cuda::group_norm {

constexpr int kGridThreads = 512;
constexpr int kMaxTeam = 128;  // blocks of one group
constexpr int64_t kMinBlockVectors = 1024;
constexpr int kMaxTeams = 512;  // a GPU with more blocks than this leaves some idle

// How a block holds its part of a group: pairs of vectors of one thread. A 16-bit group needs half the memory: two
// teams work side by side, one loads while the other waits.
template <class T>
struct Hold {
  static constexpr int kShared = sizeof(T) == 4 ? 13 : 7;
  static constexpr int kRegisters = sizeof(T) == 4 ? 3 : 1;
  static constexpr int kMoved = sizeof(T) == 4 ? 4 : 0;   // of those in shared memory
  static constexpr int kBlocks = sizeof(T) == 4 ? 1 : 2;  // per multiprocessor
  static constexpr int64_t kElements = int64_t{kGridThreads} * (kShared + kRegisters) * kLanes<T>;
  // Unaligned vectors need one slot more, which leaves no room for a second block.
  static constexpr int64_t SharedBytes(bool aligned) {
    return int64_t{kGridThreads} * (2 * kShared + !aligned) * 16;
  }
};

struct Teams {
  int per_channel;    // blocks
  int blocks;         // of one team
  int count;          // teams
  int64_t vectors;    // of one block
  Sums* sums;         // [2][teams][blocks]
  unsigned* counter;  // [teams]: blocks that have arrived, ever
  unsigned* ended;    // null: the counters may be left as they are
  float* partials;    // [N][2][C]
};

template <class T, bool kAligned>
class GridKernel {
  static constexpr int kV = kLanes<T>;
  static constexpr int kShared = Hold<T>::kShared, kRegisters = Hold<T>::kRegisters,
                       kMoved = Hold<T>::kMoved;

 public:
  __device__ GridKernel(const Call& call, const Teams& teams, uint4* shared)
      : call_(call),
        teams_(teams),
        team_(blockIdx.x / teams.blocks),
        rank_(blockIdx.x % teams.blocks),
        channel_(rank_ / teams.per_channel),
        place_((rank_ % teams.per_channel * teams.vectors + threadIdx.x) * kV),
        left_(static_cast<int>(ChunkEnd() - place_)),
        slots_(shared + threadIdx.x) {}

  __device__ void Run() {
    const int64_t groups = call_.n * call_.groups;
    int64_t group = team_;
    if (group >= groups) return;
#pragma unroll
    for (int k = 0; k < kShared; ++k) Copy(k, group);
#pragma unroll
    for (int k = 0; k < kRegisters; ++k) Load(k, group);
    LoadNumbers(group);
    unsigned round = 0;
#pragma unroll 1
    for (; group < groups; group += teams_.count) {
      const int64_t next = group + teams_.count < groups ? group + teams_.count : -1;
      const float mean = call_.mean.DecodeAs<T>(mean_), rstd = call_.rstd.DecodeAs<T>(rstd_);
      const float gamma = call_.gamma.data ? call_.gamma.DecodeAs<T>(gamma_) : 1.0f;
      LoadNumbers(next);
      Sums mine = BlockSums(mean, rstd, next);
      mine.weighted_db = gamma * mine.db;
      mine.weighted_ds = gamma * mine.ds;
      const Line line(mean, rstd, gamma, Meet(mine, group, round++));
#pragma unroll
      for (int k = 0; k < kMoved; ++k) Write(k, group, moved_dy_[k], moved_x_[k], line);
#pragma unroll 4
      for (int k = kMoved; k < kShared; ++k) {
        Write(k, group, *Slot(0, k), *Slot(1, k), line);
        Copy(k, next);
      }
#pragma unroll
      for (int k = 0; k < kRegisters; ++k) {
        Write(kShared + k, group, dy_[k], x_[k], line);
        Load(k, next);
      }
    }
  }

 private:
  // Input 2 is the slot for unaligned vectors on their way from and to registers.
  __device__ uint4* Slot(int input, int k) const {
    return slots_ + (input * kShared + k) * kGridThreads;
  }
  // Of the block's chunk inside its channel.
  __device__ int64_t ChunkEnd() const {
    return min(call_.hxw, (rank_ % teams_.per_channel + 1) * teams_.vectors * kV);
  }
  // Where vector k lies, and how many elements of it exist.
  __device__ int64_t At(int k, int64_t group) const {
    return (group * call_.channels + channel_) * call_.hxw + place_ + k * kGridThreads * kV;
  }
  __device__ int Count(int k) const { return left_ - k * kGridThreads * kV; }

  __device__ void Copy(int k, int64_t group) {
    if (group >= 0) {
      const int64_t at = At(k, group);
      CopyVector<kAligned>(Slot(0, k), static_cast<const T*>(call_.dy) + at, Count(k));
      CopyVector<kAligned>(Slot(1, k), static_cast<const T*>(call_.x) + at, Count(k));
    }
    __pipeline_commit();
  }
  __device__ void Load(int k, int64_t group) {
    if (group < 0) return;
    const int64_t at = At(kShared + k, group);
    const int count = Count(kShared + k);
    dy_[k] = LoadVector<kAligned>(static_cast<const T*>(call_.dy) + at, count, Slot(2, 0));
    x_[k] = LoadVector<kAligned>(static_cast<const T*>(call_.x) + at, count, Slot(2, 0));
  }

  // Of one group and this block's channel, as they lie.
  __device__ void LoadNumbers(int64_t group) {
    if (group < 0) return;
    mean_ = call_.mean.Raw(group);
    rstd_ = call_.rstd.Raw(group);
    if (!call_.gamma.data) return;
    const int64_t g = group - call_.SampleOf(group) * call_.groups;
    gamma_ = call_.gamma.Raw(g * call_.channels + channel_);
  }

  // Vectors that move leave their places to those of the next group.
  __device__ Sums BlockSums(float mean, float rstd, int64_t next) {
    constexpr int kWarps = kGridThreads / kWarp;
    __shared__ float warps[2][kWarps];
    Sums sums{};
#pragma unroll
    for (int k = 0; k < kShared; ++k) {
      Arrived(k);
      const uint4 dy = *Slot(0, k), x = *Slot(1, k);
      if (Count(k) > 0) AddVector<kAligned, T>(dy, x, Count(k), mean, rstd, sums.db, sums.ds);
      if (k < kMoved) {
        moved_dy_[k] = dy, moved_x_[k] = x;
        Copy(k, next);
      }
    }
#pragma unroll
    for (int k = 0; k < kRegisters; ++k) {
      if (Count(kShared + k) > 0) {
        AddVector<kAligned, T>(dy_[k], x_[k], Count(kShared + k), mean, rstd, sums.db, sums.ds);
      }
    }
    sums.db = WarpSum(sums.db);
    sums.ds = WarpSum(sums.ds);
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    if (lane == 0) warps[0][warp] = sums.db, warps[1][warp] = sums.ds;
    __syncthreads();
    sums.db = WarpSum(lane < kWarps ? warps[0][lane] : 0.0f);
    sums.ds = WarpSum(lane < kWarps ? warps[1][lane] : 0.0f);
    return sums;
  }

  // The copies of slot k and of those before it are complete; behind them are those of later slots, and as many for the
  // next group as have moved.
  __device__ static void Arrived(int k) {
    switch (kShared - 1 - k + (k < kMoved ? k : kMoved)) {
#define ANYACL_WAIT(n)        \
  case n:                     \
    __pipeline_wait_prior(n); \
    break;
      ANYACL_WAIT(0)
      ANYACL_WAIT(1)
      ANYACL_WAIT(2) ANYACL_WAIT(3) ANYACL_WAIT(4) ANYACL_WAIT(5) ANYACL_WAIT(6) ANYACL_WAIT(7)
          ANYACL_WAIT(8) ANYACL_WAIT(9) ANYACL_WAIT(10) ANYACL_WAIT(11) ANYACL_WAIT(12)
#undef ANYACL_WAIT
    }
  }

  // Gives c1 and c2 when all blocks of the team have brought their sums. Sums of the round before last may be
  // overwritten: everybody has read them before it came to the last round's counter.
  __device__ float2 Meet(const Sums& mine, int64_t group, unsigned round) {
    __shared__ float2 terms;
    Sums* const sums = teams_.sums + (round % 2 * teams_.count + team_) * teams_.blocks;
    if (threadIdx.x < kWarp) {
      if (threadIdx.x == 0) {
        __stcg(reinterpret_cast<float4*>(sums + rank_), reinterpret_cast<const float4&>(mine));
        __threadfence();
        unsigned* const counter = teams_.counter + team_;
        atomicAdd(counter, 1u);
        const unsigned all = (round + 1) * static_cast<unsigned>(teams_.blocks);
        while (static_cast<int>(*static_cast<volatile unsigned*>(counter) - all) < 0) {
        }
        __threadfence();
      }
      __syncwarp();
      float c1 = 0, c2 = 0;
      for (int i = threadIdx.x; i < teams_.blocks; i += kWarp) {
        const float4 other = __ldcg(reinterpret_cast<const float4*>(sums + i));
        c1 += other.z;
        c2 += other.w;
      }
      c1 = WarpSum(c1) * call_.over_size;
      c2 = WarpSum(c2) * call_.over_size;
      if (threadIdx.x == 0) terms = {c1, c2};
    }
    __syncthreads();
    if (rank_ == 0 && call_.wants_parameters) WriteChannelSums(sums, group);
    return terms;
  }

  __device__ void WriteChannelSums(const Sums* sums, int64_t group) {
    for (int64_t c = threadIdx.x; c < call_.channels; c += kGridThreads) {
      float db = 0, ds = 0;
      for (int i = 0; i < teams_.per_channel; ++i) {
        const float4 one =
            __ldcg(reinterpret_cast<const float4*>(sums + c * teams_.per_channel + i));
        db += one.x;
        ds += one.y;
      }
      const int64_t n = call_.SampleOf(group);
      float* const row = teams_.partials + n * 2 * call_.c;
      const int64_t channel = (group - n * call_.groups) * call_.channels + c;
      row[channel] = db;
      row[call_.c + channel] = ds;
    }
  }

  __device__ void Write(int k, int64_t group, const uint4& dy, const uint4& x,
                        const Line& line) const {
    if (!call_.dx) return;
    StoreVector<kAligned>(static_cast<T*>(call_.dx) + At(k, group), GradientVector<T>(dy, x, line),
                          Count(k), Slot(2, 0));
  }

  const Call& call_;
  const Teams& teams_;
  const int team_, rank_, channel_;
  const int64_t place_;  // of the thread's first element in its channel
  const int left_;       // elements from there to the end of the chunk
  uint4* const slots_;
  uint4 dy_[kRegisters], x_[kRegisters];
  uint4 moved_dy_[kMoved + 1], moved_x_[kMoved + 1];  // one more: there may be none
  uint32_t mean_ = 0, rstd_ = 0, gamma_ = 0;
};

template <class T, bool kAligned>
__global__ void __launch_bounds__(kGridThreads, Hold<T>::kBlocks)
    GroupPerGrid(const __grid_constant__ Call call, const __grid_constant__ Teams teams,
                 const __grid_constant__ Finish finish) {
  BeginKernel();
  ANYACL_SLOTS(shared);
  GridKernel<T, kAligned>(call, teams, shared).Run();
  if (!teams.ended || !IsLastBlock(teams.ended, gridDim.x)) return;
  for (int i = threadIdx.x; i < teams.count; i += kGridThreads) teams.counter[i] = 0;
  if (finish.counters) finish.Add(0, call.c);
}

template <class T>
Teams MakeTeams(const Params& p) {
  Teams teams{};
  const int64_t vectors = CeilDiv<int64_t>(p.hxw, kLanes<T>);
  const int64_t per_channel = CeilDiv<int64_t>(p.hxw, Hold<T>::kElements);
  if (p.c / p.groups > kMaxTeam || p.c / p.groups * per_channel > kMaxTeam) return teams;
  teams.per_channel = static_cast<int>(per_channel);
  teams.blocks = static_cast<int>(p.c / p.groups * per_channel);
  teams.vectors = CeilDiv(vectors, per_channel);
  return teams;
}

inline bool FitsGrid(const Params& p) {
  int blocks = 0;
  WithType(p.dtype, [&]<class T>() { blocks = MakeTeams<T>(p).blocks; });
  const int64_t vectors = p.hxw * static_cast<int64_t>(SizeOf(p.dtype)) / 16;
  return p.n > 0 && !p.channels_last && blocks > 0 && vectors >= kMinBlockVectors;
}

// Behind the partial sums: the sums of all blocks, and the counters.
inline int64_t GridScratch() {
  return int64_t{2} * kMaxTeams * static_cast<int64_t>(sizeof(Sums)) + kMaxTeams * 4;
}

// False when the device cannot hold a team.
template <class T, bool kAligned>
bool LaunchGrid(const Params& p, int64_t partials_bytes, const Launch& launch) {
  Teams teams = MakeTeams<T>(p);
  LaunchShape shape{
      .blocks = 1, .threads = kGridThreads, .shared_bytes = Hold<T>::SharedBytes(kAligned)};
  static std::atomic<int> cache[kMaxDevices];
  const int resident =
      ResidentClusters<GroupPerGrid<T, kAligned>>(cache[launch.device], launch, shape);
  teams.count = static_cast<int>(
      std::min<int64_t>(std::min(resident, kMaxTeams) / teams.blocks, p.n * p.groups));
  if (teams.count == 0) return false;
  unsigned char* const scratch = static_cast<unsigned char*>(p.scratch);
  teams.partials = static_cast<float*>(p.scratch);
  teams.sums = reinterpret_cast<Sums*>(scratch + partials_bytes);
  if (launch.counters) {
    static_assert(kMaxTeams < kLaunchCounters);
    teams.ended = launch.counters;
    teams.counter = launch.counters + 1;
  } else {
    teams.counter = reinterpret_cast<unsigned*>(teams.sums + 2 * kMaxTeams);
    cudaMemsetAsync(teams.counter, 0, kMaxTeams * sizeof(unsigned),
                    static_cast<cudaStream_t>(launch.native_stream));
  }
  shape.blocks = int64_t{teams.count} * teams.blocks;
  shape.cooperative = true;
  const Finish finish(p, teams.partials, p.n, p.c, launch);
  LaunchKernel<GroupPerGrid<T, kAligned>>(launch, shape, Call(p), teams, finish);
  if (!finish.counters) LaunchParameters(p, teams.partials, p.n, launch);
  return true;
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_
