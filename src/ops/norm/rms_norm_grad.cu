// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNormGrad on CUDA.
//
//   rows     a team of threads takes one row: 8 or 32 lanes, a block, or a cluster of blocks. Every thread
//            copies its own vectors of the next rows into its own slots of shared memory while it works on the
//            current row in registers, so that a barrier never finds the memory idle. Where no team has a second
//            row, rows are loaded into the registers at once.
//   columns  rows longer than a cluster can hold: every thread keeps one vector of eight rows and the whole
//            grid meets once per eight rows. dgamma needs no sum over blocks; every kChain rows its sums in float move
//            into sums in double, because a longer chain of additions would show in the last places.
//
// Determinism. The columns of a thread and the order of all sums follow from the number of columns alone, so
// a row has the same dx in any batch, and no product is fused but where it says so, so that all variants of a
// kernel round alike. dgamma adds the rows of a team, the teams of a block and then the
// blocks, in order; there are kBlocks of them on every GPU.
#include <cooperative_groups.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "cuda/cluster.cuh"
#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/grid_sync.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/shared_barrier.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/rms_norm_grad.h"

namespace anyacl::cuda {
namespace {

namespace cg = cooperative_groups;

using Params = RmsNormGradParams;

constexpr int kBlocks =
    132;  // as an H200 has multiprocessors; more mean more partial sums of dgamma

constexpr int kMaxCluster = 8;

// Clusters of so many blocks an H200 runs at once, one block per multiprocessor.
constexpr int ClustersOf(int size) {
  return size == 1 ? kBlocks : size == 2 ? 66 : size == 4 ? 30 : 15;
}

// ---- rows ----

// How a row is spread, by its length.
template <class T, int kTeamOf, int kVectorsOf, int kThreadsOf, int kStagesOf,
          bool kInBulkOf = false>
struct Spread {
  using Type = T;
  static constexpr int kTeam = kTeamOf;        // threads of one block that share a row
  static constexpr int kVectors = kVectorsOf;  // of one thread
  static constexpr int kThreads = kThreadsOf;
  static constexpr int kStages =
      kStagesOf;  // rows of a team that are on their way; 0: it has only one
  // Rows of a whole block are copied in bulk by its first thread, when all have read what lies there.
  static constexpr bool kInBulk = kInBulkOf;
  static constexpr int kTeams = kThreads / kTeam;
  static constexpr int64_t kColumns = int64_t{kTeam} * kVectors * kLanes<T>;  // of one block
  static constexpr int kSlots = kStages * 2 * kVectors;  // of one thread; one more is spare
  static constexpr int kSums = kTeams == 1 ? 0 : static_cast<int>(kTeams * kColumns * 4);
  static constexpr int kSharedBytes = std::max(kThreads * ((kSlots + 1) * 16 + kStages * 4), kSums);
  using Once = Spread<T, kTeam, kVectors, kThreads, 0>;
};

struct RowsCall {
  const void* dy;
  const void* x;
  const float* rstd;
  Numbers gamma;
  void* dx;
  float* partials;     // [clusters][cols]
  unsigned* counters;  // null: the sums over the partials are left to another kernel
  void* dgamma;
  int64_t rows;
  int64_t cols;
  float over_cols;  // 1 / cols
  int64_t steps;
  int64_t row_step;  // rows from one step of a team to its next
  int64_t step;      // the same in elements
  int cluster_size;
};

template <class S, bool kAligned>
class RowsKernel {
  using T = typename S::Type;
  static constexpr int kV = kLanes<T>;
  static constexpr bool kInBulk = kAligned && kHasBulkCopies && S::kInBulk;

 public:
  __device__ RowsKernel(const RowsCall& call, uint4* shared, ClusterBarriers& cluster_barriers, uint64_t* arrivals)
      : call_(call),
        cluster_barriers_(cluster_barriers),
        arrivals_(arrivals),
        cluster_(static_cast<int>(blockIdx.x) / call.cluster_size),
        rank_(static_cast<int>(blockIdx.x) - cluster_ * call.cluster_size),
        team_(threadIdx.x / S::kTeam),
        column_((rank_ * S::kVectors * S::kTeam + static_cast<int>(threadIdx.x) % S::kTeam) * kV),
        rows_left_(call.rows - FirstRow()),
        rows_to_copy_(rows_left_),
        dy_(static_cast<const T*>(call.dy) + FirstRow() * call.cols + column_),
        x_(static_cast<const T*>(call.x) + FirstRow() * call.cols + column_),
        dx_(static_cast<T*>(call.dx) + FirstRow() * call.cols + column_),
        rstd_(call.rstd + FirstRow()),
        whole_(Count(S::kVectors - 1) >= kV),
        slots_(shared + threadIdx.x),
        rstds_(reinterpret_cast<float*>(shared + (S::kSlots + 1) * S::kThreads) + threadIdx.x) {}

  __device__ void Run() {
    if (call_.cluster_size > 1) InitClusterBarriers(cluster_barriers_);
    if constexpr (kInBulk) {
      if (threadIdx.x == 0) {
        for (int s = 0; s < S::kStages; ++s) InitBarrier(&arrivals_[s]);
      }
      __syncthreads();
    }
    BeginKernel();
    if (call_.counters) GridEpilogue(call_.counters).Begin();
    if constexpr (S::kStages == 0) {
      Once();
    } else {
      ClearPartialSlots();
#pragma unroll 1
      for (int s = 0; s < S::kStages; ++s) Copy(s);
      LoadGamma();
      if (call_.cluster_size > 1) WaitForCluster();
      int stage = 0;
      uint32_t round = 0;
#pragma unroll 1
      for (int64_t step = 0; step < call_.steps; ++step) {
        Step(stage, round, static_cast<uint32_t>(step));
        if (++stage == S::kStages) stage = 0, ++round;
      }
    }
    WritePartials();
    if (call_.counters) AddPartials();
  }

 private:
  using Row = uint4[S::kVectors];

  __device__ int64_t FirstRow() const { return int64_t{cluster_} * S::kTeams + team_; }

  // Vector k lies k * kStep columns behind the thread's first one, and Count(k) of its elements exist.
  static constexpr int kStep = S::kTeam * kV;
  __device__ int Count(int k) const { return static_cast<int>(call_.cols) - column_ - k * kStep; }
  __device__ uint4* Slot(int stage, int input, int k) const {
    return slots_ + ((stage * 2 + input) * S::kVectors + k) * S::kThreads;
  }

  // For unaligned vectors on their way from and to registers.
  __device__ uint4* Spare() const { return slots_ + S::kSlots * S::kThreads; }

  // Columns behind the last one are never copied: they read as 0.
  __device__ void ClearPartialSlots() {
    if (whole_) return;
    for (int i = 0; i < S::kSlots; ++i) {
      if (Count(i % S::kVectors) < kV) slots_[i * S::kThreads] = uint4{};
    }
  }

  // The next row that has not been copied yet.
  __device__ void Copy(int stage) {
    const auto copy = [&](bool whole) {  // without questions where all vectors are there
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
        CopyVector<kAligned>(Slot(stage, 0, k), dy_ + k * kStep, whole ? kV : Count(k));
        CopyVector<kAligned>(Slot(stage, 1, k), x_ + k * kStep, whole ? kV : Count(k));
      }
    };
    if (rows_to_copy_ > 0) {
      if constexpr (kInBulk) {
        if (threadIdx.x == 0) CopyInBulk(stage);
      } else {
        whole_ ? copy(true) : copy(false);
      }
      __pipeline_memcpy_async(rstds_ + stage * S::kThreads, rstd_, 4);
    }
    __pipeline_commit();
    rows_to_copy_ -= call_.row_step;
    rstd_ += call_.row_step;
    dy_ += call_.step;
    x_ += call_.step;
  }

  __device__ void CopyInBulk(int stage) {
    const int columns = max(0, min(Count(0), static_cast<int>(S::kColumns)));
    const uint32_t bytes = columns * static_cast<uint32_t>(sizeof(T));
    ArriveExpectingBytes(&arrivals_[stage], 2 * bytes);
    if (bytes == 0) return;
    BulkCopy(Slot(stage, 0, 0), dy_, bytes, &arrivals_[stage]);
    BulkCopy(Slot(stage, 1, 0), x_, bytes, &arrivals_[stage]);
  }

  __device__ void LoadGamma() {
    call_.gamma.dtype == DType::kF32 ? LoadGammaAs<float>() : LoadGammaAs<T>();
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
      for (int j = 0; j < kV; ++j) sum_[k][j] = 0;
    }
  }

  template <class G>
  __device__ void LoadGammaAs() {
    const G* const from = static_cast<const G*>(call_.gamma.data) + column_;
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
      for (int i = 0; i < kV; i += kLanes<G>) {
        float part[kLanes<G>];
        Unpack<G>(LoadVector<kAligned>(from + k * kStep + i, Count(k) - i, Spare()), part);
#pragma unroll
        for (int j = 0; j < kLanes<G>; ++j) gamma_[k][i + j] = part[j];
      }
    }
  }

  // The only row of this team.
  __device__ void Once() {
    const bool exists = rows_left_ > 0;
    Row dy, x;
    const float rstd = exists ? *rstd_ : 0.0f;
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      const int count = exists ? Count(k) : 0;
      dy[k] = LoadVector<kAligned>(dy_ + k * kStep, count, Spare());
      x[k] = LoadVector<kAligned>(x_ + k * kStep, count, Spare());
    }
    LoadGamma();
    if (call_.cluster_size > 1) WaitForCluster();
    const float mean = SumOverTeam(Dot(dy, x, rstd), 0) * call_.over_cols;
    if (exists) Gradient(dy, x, rstd, mean);
  }

  // One row; its slots are refilled as soon as they are read. `round` counts the rows of this stage.
  __device__ void Step(int stage, uint32_t round, uint32_t step) {
    const bool exists = rows_left_ > 0;
    Row dy, x;
    __pipeline_wait_prior(S::kStages - 1);
    if (kInBulk && exists) WaitBarrier(&arrivals_[stage], round);
    const float rstd = exists ? rstds_[stage * S::kThreads] : 0.0f;
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      dy[k] = exists ? *Slot(stage, 0, k) : uint4{};
      x[k] = exists ? *Slot(stage, 1, k) : uint4{};
    }
    if (!kInBulk) Copy(stage);
    const float mean = SumOverTeam(Dot(dy, x, rstd), step) * call_.over_cols;
    if (kInBulk) Copy(stage);  // everybody has brought a sum
    if (exists) Gradient(dy, x, rstd, mean);
    rows_left_ -= call_.row_step;
    dx_ += call_.step;
  }

  __device__ float Dot(const Row& dy_bits, const Row& x_bits, float rstd) const {
    float sums[kV] = {};
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        // What does not exist must not turn an infinite rstd into a NaN.
        const float u = (kAligned ? 0 : j) < Count(k) ? __fmul_rn(x[j], rstd) : 0.0f;
        sums[j] = __fmaf_rn(__fmul_rn(dy[j], gamma_[k][j]), u, sums[j]);
      }
    }
#pragma unroll
    for (int width = kV / 2; width > 0; width /= 2) {
#pragma unroll
      for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
    }
    return sums[0];
  }

  // One barrier: the sums of the step before last may be overwritten, because everybody has read them
  // before the barrier of the last step.
  __device__ float SumOverTeam(float sum, uint32_t step) {
    sum = WarpSum<(S::kTeam < kWarp ? S::kTeam : kWarp)>(sum);
    if constexpr (S::kTeam > kWarp) {
      static_assert(S::kTeam == S::kThreads);
      constexpr int kWarps = S::kThreads / kWarp;
      __shared__ float warps[2][kMaxCluster * kWarps];
      const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
      const int parity = step % 2, count = call_.cluster_size * kWarps;
      if (call_.cluster_size == 1) {
        if (lane == 0) warps[parity][warp] = sum;
        __syncthreads();
      } else {
        if (threadIdx.x == 0) ArriveExpectingBytes(&cluster_barriers_.of_buffer[parity], count * sizeof(float));
        if (lane < call_.cluster_size)
          StoreRemote(cluster_barriers_, parity, &warps[parity][rank_ * kWarps + warp], sum, lane);
        WaitBarrier(&cluster_barriers_.of_buffer[parity], step / 2);
      }
      sum = 0;
#pragma unroll
      for (int i = lane; i < kMaxCluster * kWarps; i += kWarp)
        sum += i < count ? warps[parity][i] : 0.0f;
      sum = WarpSum(sum);
    }
    return sum;
  }

  __device__ void Gradient(const Row& dy_bits, const Row& x_bits, float rstd, float mean) {
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const float u = __fmul_rn(x[j], rstd);
        sum_[k][j] = __fmaf_rn(dy[j], u, sum_[k][j]);
        dy[j] = __fmul_rn(__fmaf_rn(-u, mean, __fmul_rn(dy[j], gamma_[k][j])), rstd);
      }
      StoreVector<kAligned>(dx_ + k * kStep, Pack<T>(dy), Count(k), Spare());
    }
  }

  // dgamma of this block's rows.
  __device__ void WritePartials() {
    float* const to = call_.partials + cluster_ * call_.cols;
    if constexpr (S::kTeams == 1) {
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
        for (int j = 0; j < kV; j += 4) {
          const float four[] = {sum_[k][j], sum_[k][j + 1], sum_[k][j + 2], sum_[k][j + 3]};
          StoreVector<kAligned>(to + column_ + k * kStep + j, Pack<float>(four), Count(k) - j,
                                Spare());
        }
      }
    } else {
      ANYACL_SLOTS(shared);
      float* const sums = reinterpret_cast<float*>(shared);  // [teams][columns]
      __pipeline_wait_prior(0);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
        for (int j = 0; j < kV; ++j)
          sums[team_ * S::kColumns + column_ + k * kStep + j] = sum_[k][j];
      }
      __syncthreads();
      for (int64_t column = threadIdx.x; column < call_.cols; column += S::kThreads) {
        float sum = 0;
#pragma unroll
        for (int team = 0; team < S::kTeams; ++team) sum += sums[team * S::kColumns + column];
        to[column] = sum;
      }
    }
  }

  // dgamma, when all blocks have written their partials.
  __device__ void AddPartials() {
    const ColumnSums sums{call_.partials, gridDim.x / call_.cluster_size,
                          call_.cols,     call_.cols,
                          call_.dgamma,   nullptr,
                          DType::kF32};
    GridEpilogue(call_.counters).End([&](unsigned block) {
      for (int64_t column = int64_t{block} * kWarp; column < call_.cols;
           column += int64_t{gridDim.x} * kWarp) {
        AddColumns(sums, column);
      }
    });
  }

  const RowsCall& call_;
  ClusterBarriers& cluster_barriers_;
  uint64_t* const arrivals_;  // of the stages
  const int cluster_;
  const int rank_;  // of the block in its cluster
  const int team_;
  const int column_;      // of the thread's first vector
  int64_t rows_left_;     // from the current one of this team to the last of all
  int64_t rows_to_copy_;  // the same for the rows that are copied next: dy_, x_, rstd_
  const T* dy_;
  const T* x_;
  T* dx_;  // of the current row
  const float* rstd_;
  const bool whole_;  // all vectors of this thread exist
  uint4* const slots_;
  float* const rstds_;
  float gamma_[S::kVectors][kV];
  float sum_[S::kVectors][kV];
};

template <class S, bool kAligned>
__global__ void __launch_bounds__(S::kThreads, 1) Rows(const __grid_constant__ RowsCall call) {
  ANYACL_SLOTS(shared);
  __shared__ ClusterBarriers cluster_barriers;
  __shared__ uint64_t arrivals[S::kStages + 1];  // one more: there may be none
  RowsKernel<S, kAligned>(call, shared, cluster_barriers, arrivals).Run();
}

int ClusterOf(int64_t cols, int64_t columns_of_block) {
  int size = 1;
  while (size * columns_of_block < cols) size *= 2;
  return size;
}

// What rows of one spread are launched with.
template <class S>
class RowsLaunch {
 public:
  RowsLaunch(const Params& p, const Launch& launch)
      : p_(p),
        launch_(launch),
        size_(ClusterOf(p.cols, S::kColumns)),
        turns_(CeilDiv<int64_t>(p.rows, S::kTeams)),
        clusters_(static_cast<int>(std::min<int64_t>(turns_, ClustersOf(size_)))) {}

  void Run() const {
    static_assert(S::kSharedBytes <= 227 * 1024 - 8192 && kBlocks <= GridEpilogue::kMostBlocks);
    const int64_t pitch = p_.cols * static_cast<int64_t>(SizeOf(p_.dtype));
    WithFlag(Aligned({p_.dy, p_.x, p_.dx, p_.gamma, p_.dgamma}, pitch), [&]<bool kAligned>() {
      turns_ == clusters_ ? Start<typename S::Once, kAligned>() : Start<S, kAligned>();
    });
  }

 private:
  // A second kernel for dgamma costs the host another launch, but a graph has no counters.
  template <class Form, bool kAligned>
  void Start() const {
    const LaunchShape shape{.blocks = int64_t{clusters_} * size_,
                            .threads = Form::kThreads,
                            .shared_bytes = Form::kSharedBytes,
                            .cluster = size_,
                            .most_together = Form::kStages == 0 ? 0 : 1};
    const bool one = clusters_ == 1;
    unsigned* const counters = one ? nullptr : launch_.counters;
    const int64_t row_step = int64_t{clusters_} * Form::kTeams;
    const RowsCall call{p_.dy,
                        p_.x,
                        static_cast<const float*>(p_.rstd),
                        {p_.gamma, p_.gamma_dtype},
                        p_.dx,
                        static_cast<float*>(one ? p_.dgamma : p_.scratch),
                        counters,
                        p_.dgamma,
                        p_.rows,
                        p_.cols,
                        1 / static_cast<float>(p_.cols),
                        CeilDiv<int64_t>(turns_, clusters_),
                        row_step,
                        row_step * p_.cols,
                        size_};
    LaunchKernel<Rows<Form, kAligned>>(launch_, shape, call);
    if (one || counters) return;
    LaunchColumnSums(launch_, {static_cast<const float*>(p_.scratch), clusters_, p_.cols, p_.cols,
                               p_.dgamma, nullptr, DType::kF32});
  }

  const Params& p_;
  const Launch& launch_;
  const int size_;       // of a cluster
  const int64_t turns_;  // of clusters, to have all rows
  const int clusters_;
};

template <class S>
void LaunchRows(const Params& p, const Launch& launch) {
  RowsLaunch<S>(p, launch).Run();
}

// ---- columns ----

constexpr int kGroup = 8;  // rows that a thread keeps
constexpr int kBatch = 4;  // sums of blocks that a lane asks for at a time
constexpr int kChain = 32;  // rows that dgamma adds in float
static_assert(kChain % kGroup == 0);

template <class T>
inline constexpr int kColumnThreads = sizeof(T) == 4 ? 256 : 128;  // a block covers 1024 columns
constexpr int64_t kBlockColumns = 1024;

// The sums of eight rows over a warp: lane i gets that of row i / 4.
__device__ inline float WarpSums(float (&rows)[kGroup]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = kGroup / 2; half > 0; half /= 2) {
    const bool upper = lane & (half * 4);
#pragma unroll
    for (int r = 0; r < half; ++r) {
      const float given = upper ? rows[r] : rows[r + half];
      rows[r] = (upper ? rows[r + half] : rows[r]) + __shfl_xor_sync(0xffffffffu, given, half * 4);
    }
  }
  return WarpSum<4>(rows[0]);
}

enum class Phase { kSums, kGradients, kBoth };

// A barrier of all blocks in two steps: what a block has written before Arrive is visible to the others behind Await.
// The launch has to be cooperative.
class CooperativeBarrier {
 public:
  __device__ bool Opens() const { return true; }
  __device__ void Arrive() { token_ = cg::this_grid().barrier_arrive(); }
  __device__ void Await() { cg::this_grid().barrier_wait(std::move(token_)); }

 private:
  cg::grid_group::arrival_token token_;
};
// The same without such a launch: it opens when all blocks have begun.
class ResidentGridBarrier {
 public:
  // `counter` is 0.
  __device__ ResidentGridBarrier(const ResidentGrid& resident, unsigned* counter)
      : grid_(resident), counter_(counter) {}
  __device__ bool Opens() const { return grid_.IsComplete(); }
  __device__ void Arrive() {
    __syncthreads();
    if (threadIdx.x == 0) IncrementRelease(counter_);
  }
  __device__ void Await() {
    expected_ += gridDim.x;
    if (threadIdx.x == 0) SpinUntil(counter_, expected_);
    __syncthreads();
  }

 private:
  const ResidentGrid& grid_;
  unsigned* const counter_;
  unsigned expected_ = 0;
};

template <class T, Phase kPhase, bool kAligned>
class ColumnsKernel {
  static constexpr int kV = kLanes<T>, kThreads = kColumnThreads<T>, kWarps = kThreads / kWarp;

 public:
  struct Shared {
    float sums[kGroup][kWarps];
    float means[kGroup];
    double totals[kPhase == Phase::kSums ? 1 : kV][kThreads];  // of dgamma; every thread has its own
  };
  using Slots = uint4[kThreads];  // for unaligned vectors on their way

  __device__ ColumnsKernel(const Params& p, unsigned block, Shared& shared, Slots& slots)
      : p_(p),
        block_(block),
        shared_(shared),
        slots_(slots),
        warp_(threadIdx.x / kWarp),
        lane_(threadIdx.x % kWarp),
        column_((int64_t{block} * kThreads + threadIdx.x) * kV),
        left_(static_cast<int>(min(p.cols - column_, int64_t{kV}))) {}

  // False when the barrier does not open: then nothing is written. One phase alone needs none, and the default costs
  // nothing.
  template <class Barrier = CooperativeBarrier>
  __device__ bool Run(Barrier barrier = {}) {
#pragma unroll 1
    for (first_ = 0; first_ < p_.rows; first_ += kGroup) {
      LoadRows();
      if (first_ == 0) {
        LoadGamma();
        if constexpr (kPhase != Phase::kSums) ClearTotals();
        if (!barrier.Opens()) return false;
      }
      if constexpr (kPhase != Phase::kGradients) WriteBlockSums();
      if constexpr (kPhase == Phase::kBoth) barrier.Arrive();
      // Between arriving and waiting for the others there is time for dgamma.
      if constexpr (kPhase != Phase::kSums) AddToDgamma();
      if constexpr (kPhase == Phase::kBoth) barrier.Await();
      if constexpr (kPhase != Phase::kSums) {
        FindMeans();
        WriteDx();
      }
      __syncthreads();  // means and sums are free again
    }
    if constexpr (kPhase != Phase::kSums) WriteDgamma();
    return true;
  }

 private:
  struct Row {
    float dy[kV], x[kV];
  };

  __device__ bool Exists(int r) const { return first_ + r < p_.rows; }
  __device__ int64_t At(int r) const { return (first_ + r) * p_.cols + column_; }
  __device__ uint4* Slot() const { return slots_ + threadIdx.x; }
  __device__ float* BlockSums(int64_t row) const {  // [rows][blocks]
    return static_cast<float*>(p_.scratch) + row * gridDim.x;
  }

  __device__ void LoadRows() {
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      const int count = Exists(r) ? left_ : 0;
      dy_[r] = LoadVector<kAligned>(static_cast<const T*>(p_.dy) + At(r), count, Slot());
      x_[r] = LoadVector<kAligned>(static_cast<const T*>(p_.x) + At(r), count, Slot());
      rstd_[r] = Exists(r) ? static_cast<const float*>(p_.rstd)[first_ + r] : 0.0f;
    }
  }

  __device__ void LoadGamma() {
    p_.gamma_dtype == DType::kF32 ? LoadGammaAs<float>() : LoadGammaAs<T>();
  }
  template <class G>
  __device__ void LoadGammaAs() {
    const G* const from = static_cast<const G*>(p_.gamma) + column_;
#pragma unroll
    for (int i = 0; i < kV; i += kLanes<G>) {
      float part[kLanes<G>];
      Unpack<G>(LoadVector<kAligned>(from + i, left_ - i, Slot()), part);
#pragma unroll
      for (int j = 0; j < kLanes<G>; ++j) gamma_[i + j] = part[j];
    }
  }

  __device__ Row Held(int r) const {
    Row row;
    Unpack<T>(dy_[r], row.dy);
    Unpack<T>(x_[r], row.x);
    return row;
  }

  // The sums of dy * gamma * x * rstd over this block's columns.
  __device__ void WriteBlockSums() {
    float mine[kGroup] = {};
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      const Row row = Held(r);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        if (j >= left_) break;  // what does not exist must not turn an infinite rstd into a NaN
        const float u = __fmul_rn(row.x[j], rstd_[r]);
        mine[r] = __fmaf_rn(__fmul_rn(row.dy[j], gamma_[j]), u, mine[r]);
      }
    }
    const float of_warp = WarpSums(mine);
    if (lane_ % 4 == 0) shared_.sums[lane_ / 4][warp_] = of_warp;
    __syncthreads();
    const int r = static_cast<int>(threadIdx.x);
    if (r >= kGroup || !Exists(r)) return;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared_.sums[r][w];
    BlockSums(first_ + r)[block_] = sum;
  }

  __device__ void AddToDgamma() {
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      if (!Exists(r)) break;
      const Row row = Held(r);
#pragma unroll
      for (int j = 0; j < kV; ++j)
        dgamma_[j] = __fmaf_rn(row.dy[j], __fmul_rn(row.x[j], rstd_[r]), dgamma_[j]);
    }
    if (HasChains() && (first_ + kGroup) % kChain == 0) MoveToTotals();
  }

  __device__ bool HasChains() const { return p_.rows > kChain; }
  __device__ double& Total(int j) const { return shared_.totals[j][threadIdx.x]; }
  __device__ void ClearTotals() const {
    if (!HasChains()) return;
#pragma unroll
    for (int j = 0; j < kV; ++j) Total(j) = 0;
  }
  __device__ void MoveToTotals() {
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      Total(j) += dgamma_[j];
      dgamma_[j] = 0;
    }
  }

  // Every warp adds the sums of all blocks for rows of its own.
  __device__ void FindMeans() {
    constexpr int kOwn = kGroup / kWarps;
    float own[kOwn] = {};
#pragma unroll 1
    for (int b = lane_; b < gridDim.x; b += kBatch * kWarp) AddBlockSums(b, own);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const float sum = WarpSum(own[i]);
      if (lane_ == 0) shared_.means[warp_ * kOwn + i] = sum * (1 / static_cast<float>(p_.cols));
    }
    __syncthreads();
  }

  // Those of block b and of some behind it. All are on their way before one is waited for.
  template <int kOwn>
  __device__ void AddBlockSums(int b, float (&own)[kOwn]) const {
    float sums[kOwn][kBatch];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int r = warp_ * kOwn + i;
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int block = b + k * kWarp;
        sums[i][k] = Exists(r) && block < gridDim.x ? __ldcg(BlockSums(first_ + r) + block) : 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int k = 0; k < kBatch; ++k) own[i] += sums[i][k];
    }
  }

  __device__ void WriteDx() const {
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      if (!Exists(r)) break;
      const Row row = Held(r);
      float dx[kV];
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const float u = __fmul_rn(row.x[j], rstd_[r]);
        const float weighted = __fmul_rn(row.dy[j], gamma_[j]);
        dx[j] = __fmul_rn(__fmaf_rn(-u, shared_.means[r], weighted), rstd_[r]);
      }
      StoreVector<kAligned>(static_cast<T*>(p_.dx) + At(r), Pack<T>(dx), left_, Slot());
    }
  }

  // Without rows dgamma is NaN.
  __device__ void WriteDgamma() const {
    const auto value = [&](int j) {
      if (HasChains()) return static_cast<float>(Total(j) + dgamma_[j]);
      return p_.rows > 0 ? dgamma_[j] : nanf("");
    };
    float* const to = static_cast<float*>(p_.dgamma) + column_;
#pragma unroll
    for (int j = 0; j < kV; j += 4) {
      const float four[] = {value(j), value(j + 1), value(j + 2), value(j + 3)};
      StoreVector<kAligned>(to + j, Pack<float>(four), left_ - j, Slot());
    }
  }

  const Params& p_;
  const unsigned block_;
  Shared& shared_;
  Slots& slots_;
  const int warp_, lane_;
  const int64_t column_;  // of the thread's vector
  const int left_;        // of its elements exist
  int64_t first_;         // row of those that are held
  uint4 dy_[kGroup], x_[kGroup];
  float rstd_[kGroup];
  float gamma_[kV] = {}, dgamma_[kV] = {};
};

template <class T, Phase kPhase, bool kAligned>
__device__ void RunColumnsOf(const Params& p, unsigned block) {
  using Kernel = ColumnsKernel<T, kPhase, kAligned>;
  __shared__ typename Kernel::Shared shared;
  __shared__ typename Kernel::Slots slots;
  Kernel(p, block, shared, slots).Run();
}

template <class T, Phase kPhase, bool kAligned>
__global__ void __launch_bounds__(kColumnThreads<T>, 1) Columns(const __grid_constant__ Params p) {
  BeginKernel();
  RunColumnsOf<T, kPhase, kAligned>(p, blockIdx.x);
}

// Both phases without a cooperative launch. The ways that are seldom taken must not cost the registers of a second
// block: then rows of half the length would already need two kernels.
template <class T, bool kAligned>
__global__ void __launch_bounds__(kColumnThreads<T>, 2)
    ResidentColumns(const __grid_constant__ Params p, unsigned* counters) {
  BeginKernel();
  const ResidentGrid resident(counters);
  resident.Begin();
  using Kernel = ColumnsKernel<T, Phase::kBoth, kAligned>;
  __shared__ typename Kernel::Shared shared;
  __shared__ typename Kernel::Slots slots;
  unsigned* const arrived = counters + ResidentGrid::kCounters;
  if (!Kernel(p, blockIdx.x, shared, slots).Run(ResidentGridBarrier(resident, arrived))) {
    resident.TakeTurns(2, [&](unsigned phase, unsigned block) {
      phase == 0 ? RunColumnsOf<T, Phase::kSums, kAligned>(p, block)
                 : RunColumnsOf<T, Phase::kGradients, kAligned>(p, block);
    });
  }
  if (resident.IsLast() && threadIdx.x == 0) *arrived = 0;
}

int64_t ColumnBlocks(const Params& p) { return CeilDiv<int64_t>(p.cols, kBlockColumns); }

// Whether all blocks run at once.
template <auto kernel>
bool RunsAtOnce(const Launch& launch, const LaunchShape& shape) {
  static std::atomic<int> cache[kMaxDevices];
  return shape.blocks <= ResidentClusters<kernel>(cache[launch.device], launch, shape);
}

template <class T, bool kAligned>
void LaunchColumns(const Params& p, const Launch& launch) {
  LaunchShape shape{.blocks = ColumnBlocks(p), .threads = kColumnThreads<T>};
  constexpr auto kTogether = Columns<T, Phase::kBoth, kAligned>;
  constexpr auto kResident = ResidentColumns<T, kAligned>;
  if (p.rows > 0 && launch.counters && RunsAtOnce<kResident>(launch, shape)) {
    LaunchKernel<kResident>(launch, shape, p, launch.counters);
  } else if (p.rows > 0 && !launch.counters && RunsAtOnce<kTogether>(launch, shape)) {
    shape.cooperative = true;
    LaunchKernel<kTogether>(launch, shape, p);
  } else {
    if (p.rows > 0) LaunchKernel<Columns<T, Phase::kSums, kAligned>>(launch, shape, p);
    LaunchKernel<Columns<T, Phase::kGradients, kAligned>>(launch, shape, p);
  }
}

void RunColumns(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    const bool aligned =
        Aligned({p.dy, p.x, p.dx, p.gamma, p.dgamma}, p.cols * static_cast<int64_t>(sizeof(T)));
    aligned ? LaunchColumns<T, true>(p, launch) : LaunchColumns<T, false>(p, launch);
  });
}

// ---- the choice ----

constexpr int64_t kLongestRow = 65536;  // that a cluster of eight holds

// Threads of a row, vectors of a thread, threads of a block, rows on their way. All were measured; more rows on
// their way are no better, because every thread already has all vectors of its row in flight.
template <class T>
void RunRowsOf(const Params& p, const Launch& launch) {
  if constexpr (sizeof(T) == 4) {
    if (p.cols <= 32) return LaunchRows<Spread<T, 8, 1, 256, 1>>(p, launch);
    if (p.cols <= 128) return LaunchRows<Spread<T, 8, 4, 256, 4>>(p, launch);
    if (p.cols <= 512) return LaunchRows<Spread<T, 16, 8, 256, 1>>(p, launch);
    if (p.cols <= 1024) return LaunchRows<Spread<T, 32, 8, 256, 2>>(p, launch);
    if (p.cols <= 4096) return LaunchRows<Spread<T, 512, 2, 512, 1>>(p, launch);
    if (p.cols <= 8192) return LaunchRows<Spread<T, 512, 4, 512, 1>>(p, launch);
    return LaunchRows<Spread<T, 512, 4, 512, 3>>(p, launch);
  } else {
    if (p.cols <= 64) return LaunchRows<Spread<T, 8, 1, 256, 1>>(p, launch);
    if (p.cols <= 128) return LaunchRows<Spread<T, 8, 2, 256, 4>>(p, launch);
    if (p.cols <= 512) return LaunchRows<Spread<T, 16, 4, 256, 1>>(p, launch);
    if (p.cols <= 1024) return LaunchRows<Spread<T, 32, 4, 256, 3>>(p, launch);
    if (p.cols <= 4096) return LaunchRows<Spread<T, 256, 2, 256, 3>>(p, launch);
    if (p.cols <= 8192) return LaunchRows<Spread<T, 512, 2, 512, 1>>(p, launch);
    return LaunchRows<Spread<T, 512, 2, 512, 4, true>>(p, launch);
  }
}

bool FitsRows(const Params& p) { return p.rows > 0 && p.cols <= kLongestRow; }

// Rows longer than a block need clusters; older GPUs take them by columns.
void RunRows(const Params& p, const Launch& launch) {
  const bool in_block = p.cols <= 8192;
  if (!in_block && !HasClusters(launch.device)) return RunColumns(p, launch);
  WithType(p.dtype, [&]<class T>() { RunRowsOf<T>(p, launch); });
}

bool FitsAlways(const Params&) { return true; }

int64_t ColumnsScratch(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  return p.rows * ColumnBlocks(p) * static_cast<int64_t>(sizeof(float));
}

int64_t RowsScratch(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  const int64_t partials =
      std::min<int64_t>(kBlocks, p.rows) * p.cols * static_cast<int64_t>(sizeof(float));
  return std::max(partials, ColumnsScratch(params));
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsRows, RunRows>("rows", RowsScratch),
    MakeKernel<Params, FitsAlways, RunColumns>("columns", ColumnsScratch),
};

}  // namespace

std::span<const Kernel> RmsNormGradKernels() { return kKernels; }

}  // namespace anyacl::cuda
