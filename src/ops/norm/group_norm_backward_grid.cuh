// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Groups too large for a cluster: up to 128 blocks hold one, in shared memory and registers, and meet at a
// counter in device memory. A block owns a part of one channel and takes it in chunks. All chunks of all its groups
// run through one ring in shared memory, which one warp fills as soon as a place is free. The first chunks of a group
// move on to registers when they are added up, the others stay until dx is written: so there is room for chunks of the
// next group, and the memory has work while the blocks meet. Where not all blocks can run at once, every group is read
// twice instead.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_

#include "cuda/elements.cuh"
#include "cuda/grid_sync.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/shared_barrier.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/group_norm_backward.cuh"

namespace anyacl::cuda::group_norm {

constexpr int kMaxTeam = 128;  // blocks of one group
constexpr int64_t kMinBlockVectors = 1024;
constexpr int kMaxTeams = 512;  // a GPU with more blocks than this leaves some idle

// How a block holds its part of a group, in chunks of one pair of vectors per thread. Few threads with many registers
// hold most. A 16-bit group needs half the memory: two teams work side by side, one while the other waits.
template <class T, bool kAligned>
struct Hold {
  static constexpr int kBlocks = sizeof(T) == 4 ? 1 : 2;    // per multiprocessor
  static constexpr int kThreads = 224;                      // that calculate; one more warp copies
  static constexpr int kChunks = sizeof(T) == 4 ? 37 : 19;  // of one group
  static constexpr int kKept = sizeof(T) == 4 ? 22 : 7;     // of these, in registers
  // For chunks in the ring. Unaligned vectors on their way from registers need one vector more.
  static constexpr int kPlaces =
      (226 * 1024 / kBlocks - kThreads * 16 * !kAligned) / (kThreads * 32);
  static constexpr int kAhead = kPlaces + kKept - kChunks;  // for chunks of the next group
  static_assert(kAhead > 0);
  static constexpr int64_t kElements = int64_t{kThreads} * kChunks * kLanes<T>;
  static constexpr int64_t kSharedBytes = int64_t{kThreads} * (2 * kPlaces + !kAligned) * 16;
};

struct Teams {
  int per_channel;     // blocks
  int blocks;          // of one team
  int count;           // teams
  unsigned rounds;     // every team has a group in each, or none left
  int64_t vectors;     // of one block
  Sums* sums;          // [2][teams][blocks]
  float* partials;     // [N][2][C]
  unsigned* counters;  // of an ResidentGrid, and [teams]: blocks that have arrived, ever
  bool leaves_zeros;   // in the counters
};

constexpr int kTeamCounters = ResidentGrid::kCounters + kMaxTeams;

// Barriers of the places of a ring.
template <int kPlaces>
struct RingBarriers {
  uint64_t full[kPlaces], empty[kPlaces];
};

// What a block has of every group that its team works on.
struct Part {
  // By one thread.
  __device__ void Set(const Call& call, const Teams& teams, unsigned block, int lanes) {
    team = block / teams.blocks;
    rank = block % teams.blocks;
    channel = rank / teams.per_channel;
    const int64_t size_of_part = teams.vectors * lanes;
    const int64_t start_in_channel = rank % teams.per_channel * size_of_part;
    start = channel * call.hxw + start_in_channel;
    size = static_cast<int>(min(call.hxw - start_in_channel, size_of_part));
  }
  int team, rank, channel;  // rank of the block in its team
  int size;                 // elements
  int64_t start;
};

template <class T, bool kAligned>
class GridKernel {
  using H = Hold<T, kAligned>;
  static constexpr int kV = kLanes<T>;
  static constexpr int kThreads = H::kThreads, kWarps = kThreads / kWarp;
  static constexpr int kChunkElements = kThreads * kV;

 public:
  using Barriers = RingBarriers<H::kPlaces>;

  // The part is in shared memory, too: registers are for the data.
  __device__ GridKernel(const Call& call, const Teams& teams, const Part& part, uint4* shared,
                        Barriers& barriers)
      : call_(call),
        teams_(teams),
        part_(part),
        left_(part.size - static_cast<int>(threadIdx.x) * kV),
        ring_(shared),
        barriers_(barriers) {}

  // By all threads; they go on together.
  __device__ static void Open(Barriers& barriers) {
    if (threadIdx.x == 0) {
      for (uint64_t& barrier : barriers.full) InitBarrier(&barrier);
      for (uint64_t& barrier : barriers.empty) InitBarrier(&barrier, kWarps);
    }
    __syncthreads();
  }

  // The first chunks are called for.
  __device__ void Begin() {
    group_ = part_.team;
    if constexpr (kAligned) {
      Place place;
      if (threadIdx.x == kThreads) Fill(part_.team, 0, H::kPlaces, place);
      __syncwarp();
    } else if (threadIdx.x < kThreads) {
#pragma unroll 1
      for (int k = 0; k < H::kPlaces; ++k) CopyOwn(k, k);
    }
  }

  // Instead of Run: waits for them, because nobody else will.
  __device__ void Abandon() {
    if constexpr (kAligned) {
      for (uint64_t& full : barriers_.full) WaitBarrier(&full, 0);
    } else {
      __pipeline_wait_prior(0);
    }
  }

  // Behind Begin, when all blocks run.
  __device__ void Run() {
    if (threadIdx.x < kThreads) {
      Work();
    } else if (kAligned) {
      if (threadIdx.x == kThreads) FillOn();
      __syncwarp();
    }
  }

  // Without the others: one of two phases for every round. The first brings the block's sums, the second writes what
  // needs those of the team. Out of line it takes no registers from Run.
  __device__ __noinline__ void DoShare(unsigned phase) {
    const unsigned round = phase / 2;
    group_ = part_.team + int64_t{round} * teams_.count;
    if (threadIdx.x >= kThreads || group_ >= Groups()) return;
    LoadNumbers(group_);
    const Channel channel = Decoded();
    if (phase % 2 == 0) {
      Sums mine{};
#pragma unroll 1
      for (int k = 0; k < H::kChunks; ++k)
        Add(k, Load(k, call_.dy), Load(k, call_.x), channel, mine);
      Bring(mine, channel, round);
    } else {
      const Line line(channel.mean, channel.rstd, channel.gamma, Terms(round));
      T* const target = Target();
#pragma unroll 1
      for (int k = 0; k < H::kChunks; ++k)
        Write(k, Load(k, call_.dy), Load(k, call_.x), line, target);
    }
  }

 private:
  // What a block needs to know about its channel.
  struct Channel {
    float mean, rstd, gamma;
  };

  // Goes round the ring, place by place.
  struct Place {
    int number = 0;
    uint32_t round = 0;
    __device__ void Next() {
      if (++number == H::kPlaces) number = 0, ++round;
    }
  };

  __device__ int64_t Groups() const { return call_.n * call_.groups; }
  // The block's first element of a group.
  __device__ int64_t At(int64_t group) const { return group * call_.size + part_.start; }
  __device__ uint4* Chunk(int place, int input) const {
    return ring_ + (place * 2 + input) * kThreads;
  }
  __device__ uint4* Spare() const { return ring_ + 2 * H::kPlaces * kThreads + threadIdx.x; }
  // How many elements of this thread's vector of chunk k exist.
  __device__ int Count(int k) const { return left_ - k * kChunkElements; }

  // By one thread: chunks of a group, from `first` on, as soon as their places are free.
  __device__ void Fill(int64_t group, int first, int end, Place& place) {
    const T* const dy = static_cast<const T*>(call_.dy) + At(group);
    const T* const x = static_cast<const T*>(call_.x) + At(group);
    const int size = part_.size;
#pragma unroll 1
    for (int k = first; k < end; ++k, place.Next()) {
      if (place.round > 0) WaitBarrier(&barriers_.empty[place.number], place.round - 1);
      const int count = max(0, min(size - k * kChunkElements, kChunkElements));
      const uint32_t bytes = count * static_cast<uint32_t>(sizeof(T));
      uint64_t* const full = &barriers_.full[place.number];
      ArriveExpectingBytes(full, 2 * bytes);
      if (bytes == 0) continue;
      BulkCopy(Chunk(place.number, 0), dy + k * kChunkElements, bytes, full);
      BulkCopy(Chunk(place.number, 1), x + k * kChunkElements, bytes, full);
    }
  }

  // By the same thread: all chunks behind those of Begin.
  __device__ void FillOn() {
    static_assert(H::kPlaces <= H::kChunks);
    Place place{0, 1};
    int first = H::kPlaces;
#pragma unroll 1
    for (int64_t group = part_.team; group < Groups(); group += teams_.count, first = 0)
      Fill(group, first, H::kChunks, place);
  }

  // Unaligned vectors are copied by those who use them: that of chunk k, counted from the current group on.
  __device__ void CopyOwn(int place, int k) {
    const int64_t group = group_ + k / H::kChunks * teams_.count;
    k %= H::kChunks;
    if (group < Groups()) {
      const int64_t at = At(group) + k * kChunkElements + threadIdx.x * kV;
      CopyVector<false>(Chunk(place, 0) + threadIdx.x, static_cast<const T*>(call_.dy) + at,
                        Count(k));
      CopyVector<false>(Chunk(place, 1) + threadIdx.x, static_cast<const T*>(call_.x) + at,
                        Count(k));
    }
    __pipeline_commit();
  }

  // The chunk at this place has come; unaligned: when no more than kBehind were copied after it.
  template <int kBehind>
  __device__ void Await(const Place& place) const {
    kAligned ? WaitBarrier(&barriers_.full[place.number], place.round)
             : __pipeline_wait_prior(kBehind);
  }

  // This thread has read chunk k of the current group from its place.
  __device__ void Leave(const Place& place, int k) {
    if constexpr (kAligned) {
      __syncwarp();
      if (threadIdx.x % kWarp == 0) Arrive(&barriers_.empty[place.number]);
    } else {
      CopyOwn(place.number, k + H::kPlaces);
    }
  }

  __device__ void Work() {
    LoadNumbers(group_);
    Place place;
    unsigned round = 0;
#pragma unroll 1
    for (; group_ < Groups(); group_ += teams_.count) {
      const Channel channel = Decoded();
      LoadNumbers(group_ + teams_.count);
      uint4 dy[H::kKept], x[H::kKept];
      Sums mine{};
#pragma unroll
      for (int k = 0; k < H::kKept; ++k, place.Next()) {
        Await<H::kPlaces - 1>(place);
        dy[k] = Chunk(place.number, 0)[threadIdx.x];
        x[k] = Chunk(place.number, 1)[threadIdx.x];
        Leave(place, k);
        Add(k, dy[k], x[k], channel, mine);
      }
      Place held = place;
#pragma unroll 2
      for (int k = H::kKept; k < H::kChunks; ++k, place.Next()) {
        Await<H::kAhead>(place);
        Add(k, Chunk(place.number, 0)[threadIdx.x], Chunk(place.number, 1)[threadIdx.x], channel,
            mine);
      }
      Bring(mine, channel, round);
      Meet(round);
      const Line line(channel.mean, channel.rstd, channel.gamma, Terms(round++));
      T* const target = Target();
#pragma unroll 2
      for (int k = H::kKept; k < H::kChunks; ++k, held.Next()) {
        const uint4 held_dy = Chunk(held.number, 0)[threadIdx.x];
        const uint4 held_x = Chunk(held.number, 1)[threadIdx.x];
        Leave(held, k);
        Write(k, held_dy, held_x, line, target);
      }
#pragma unroll
      for (int k = 0; k < H::kKept; ++k) Write(k, dy[k], x[k], line, target);
    }
  }

  // Among the threads that calculate.
  __device__ static void Sync() { asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory"); }

  // Of one group and this block's channel, as they lie.
  __device__ void LoadNumbers(int64_t group) {
    if (group >= Groups()) return;
    mean_ = call_.mean.Raw(group);
    rstd_ = call_.rstd.Raw(group);
    if (!call_.gamma.data) return;
    const int64_t g = group - call_.SampleOf(group) * call_.groups;
    gamma_ = call_.gamma.Raw(g * call_.channels + part_.channel);
  }

  __device__ static void SumOverBlock(Sums& sums) {
    __shared__ float warps[2][kWarps];
    sums.db = WarpSum(sums.db);
    sums.ds = WarpSum(sums.ds);
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    if (lane == 0) warps[0][warp] = sums.db, warps[1][warp] = sums.ds;
    Sync();
    sums.db = WarpSum(lane < kWarps ? warps[0][lane] : 0.0f);
    sums.ds = WarpSum(lane < kWarps ? warps[1][lane] : 0.0f);
  }

  __device__ Channel Decoded() const {
    return {call_.mean.DecodeAs<T>(mean_), call_.rstd.DecodeAs<T>(rstd_),
            call_.gamma.data ? call_.gamma.DecodeAs<T>(gamma_) : 1.0f};
  }

  __device__ uint4 Load(int k, const void* from) const {
    const int64_t at = At(group_) + k * kChunkElements + threadIdx.x * kV;
    return LoadVector<kAligned>(static_cast<const T*>(from) + at, Count(k), Spare());
  }

  __device__ void Add(int k, const uint4& dy, const uint4& x, const Channel& channel,
                      Sums& sums) const {
    if (Count(k) <= 0) return;
    AddVector<kAligned, T>(dy, x, Count(k), channel.mean, channel.rstd, sums.db, sums.ds);
  }

  // Sums of the round before last may be overwritten: everybody has read them before it came to the last round's
  // counter.
  __device__ Sums* SumsOfTeam(unsigned round) const {
    return teams_.sums + (round % 2 * teams_.count + part_.team) * teams_.blocks;
  }

  // This block's sums, for the others of the team.
  __device__ void Bring(Sums& mine, const Channel& channel, unsigned round) const {
    SumOverBlock(mine);
    mine.weighted_db = channel.gamma * mine.db;
    mine.weighted_ds = channel.gamma * mine.ds;
    if (threadIdx.x > 0) return;
    __stcg(reinterpret_cast<float4*>(SumsOfTeam(round) + part_.rank),
           reinterpret_cast<const float4&>(mine));
  }

  // The first warp goes on when the whole team has brought its sums.
  __device__ void Meet(unsigned round) const {
    if (threadIdx.x == 0) {
      unsigned* const counter = teams_.counters + ResidentGrid::kCounters + part_.team;
      IncrementRelease(counter);
      SpinUntil(counter, (round + 1) * static_cast<unsigned>(teams_.blocks));
    }
    if (threadIdx.x < kWarp) __syncwarp();
  }

  // c1 and c2, when all blocks of the team have brought their sums.
  __device__ float2 Terms(unsigned round) const {
    __shared__ float2 terms;
    const Sums* const sums = SumsOfTeam(round);
    if (threadIdx.x < kWarp) {
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
    Sync();
    if (part_.rank == 0 && call_.wants_parameters) WriteChannelSums(sums);
    return terms;
  }

  __device__ void WriteChannelSums(const Sums* sums) const {
    for (int64_t c = threadIdx.x; c < call_.channels; c += kThreads) {
      float db = 0, ds = 0;
      for (int i = 0; i < teams_.per_channel; ++i) {
        const float4 one =
            __ldcg(reinterpret_cast<const float4*>(sums + c * teams_.per_channel + i));
        db += one.x;
        ds += one.y;
      }
      const int64_t n = call_.SampleOf(group_);
      float* const row = teams_.partials + n * 2 * call_.c;
      const int64_t channel = (group_ - n * call_.groups) * call_.channels + c;
      row[channel] = db;
      row[call_.c + channel] = ds;
    }
  }

  // Where this thread's first vector of dx goes; null: dx is not wanted.
  __device__ T* Target() const {
    return call_.dx ? static_cast<T*>(call_.dx) + At(group_) + threadIdx.x * kV : nullptr;
  }

  __device__ void Write(int k, const uint4& dy, const uint4& x, const Line& line, T* target) const {
    if (!target) return;
    StoreVector<kAligned>(target + k * kChunkElements, GradientVector<T>(dy, x, line), Count(k),
                          Spare());
  }

  const Call& call_;
  const Teams& teams_;
  const Part& part_;
  const int left_;     // elements of the part, from this thread's first one on
  uint4* const ring_;  // [places][dy, x][threads]
  Barriers& barriers_;
  int64_t group_ = 0;
  uint32_t mean_ = 0, rstd_ = 0, gamma_ = 0;
};

template <class T, bool kAligned>
__global__ void __launch_bounds__(Hold<T, kAligned>::kThreads + kWarp, Hold<T, kAligned>::kBlocks)
    GroupPerGrid(const __grid_constant__ Call call, const __grid_constant__ Teams teams,
                 const __grid_constant__ Finish finish) {
  using Kernel = GridKernel<T, kAligned>;
  ANYACL_SLOTS(shared);
  __shared__ typename Kernel::Barriers barriers;
  __shared__ Part part;
  if (threadIdx.x == 0) part.Set(call, teams, blockIdx.x, kLanes<T>);
  Kernel::Open(barriers);
  BeginKernel();
  const ResidentGrid resident(teams.counters);
  resident.Begin();
  Kernel kernel(call, teams, part, shared, barriers);
  kernel.Begin();
  if (resident.IsComplete()) {
    kernel.Run();
  } else {
    kernel.Abandon();
    resident.TakeTurns(2 * teams.rounds, [&](unsigned phase, unsigned block) {
      if (threadIdx.x == 0) part.Set(call, teams, block, kLanes<T>);
      __syncthreads();
      Kernel(call, teams, part, shared, barriers).DoShare(phase);
    });
  }
  if (!teams.leaves_zeros || !resident.IsLast()) return;
  for (int i = threadIdx.x; i < teams.count; i += blockDim.x)
    teams.counters[ResidentGrid::kCounters + i] = 0;
  if (finish.counters) finish.Add(0, call.c);
}

// With one thread for each. The next kernel may be launched before this one has ended; behind a memset it may not.
__global__ void ClearCounters(unsigned* counters) {
  BeginKernel();
  counters[threadIdx.x] = 0;
}

template <class T>
Teams MakeTeams(const Params& p) {
  Teams teams{};
  const int64_t vectors = CeilDiv<int64_t>(p.hxw, kLanes<T>);
  const int64_t per_channel = CeilDiv<int64_t>(p.hxw, Hold<T, true>::kElements);
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
  return int64_t{2} * kMaxTeams * static_cast<int64_t>(sizeof(Sums)) + kTeamCounters * 4;
}

// False when the device cannot hold a team.
template <class T, bool kAligned>
bool LaunchGrid(const Params& p, int64_t partials_bytes, const Launch& launch) {
  Teams teams = MakeTeams<T>(p);
  using H = Hold<T, kAligned>;
  LaunchShape shape{.blocks = 1, .threads = H::kThreads + kWarp, .shared_bytes = H::kSharedBytes};
  static std::atomic<int> cache[kMaxDevices];
  const int resident =
      ResidentClusters<GroupPerGrid<T, kAligned>>(cache[launch.device], launch, shape);
  teams.count = static_cast<int>(
      std::min<int64_t>(std::min(resident, kMaxTeams) / teams.blocks, p.n * p.groups));
  if (teams.count == 0) return false;
  unsigned char* const scratch = static_cast<unsigned char*>(p.scratch);
  teams.partials = static_cast<float*>(p.scratch);
  teams.sums = reinterpret_cast<Sums*>(scratch + partials_bytes);
  teams.rounds = static_cast<unsigned>(CeilDiv<int64_t>(p.n * p.groups, teams.count));
  teams.leaves_zeros = launch.counters != nullptr;
  if (launch.counters) {
    static_assert(kTeamCounters <= kLaunchCounters);
    teams.counters = launch.counters;
  } else {
    teams.counters = reinterpret_cast<unsigned*>(teams.sums + 2 * kMaxTeams);
    LaunchKernel<ClearCounters>(launch, {.threads = kTeamCounters}, teams.counters);
  }
  shape.blocks = int64_t{teams.count} * teams.blocks;
  const Finish finish(p, teams.partials, p.n, p.c, launch);
  LaunchKernel<GroupPerGrid<T, kAligned>>(launch, shape, Call(p), teams, finish);
  if (!finish.counters) LaunchParameters(p, teams.partials, p.n, launch);
  return true;
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_GRID_CUH_
