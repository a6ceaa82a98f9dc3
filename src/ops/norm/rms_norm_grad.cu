// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNormGrad on CUDA.
//
//   rows     a team of threads takes one row: 8 or 32 lanes, a block, or a cluster of blocks. Every thread
//            copies its own vectors of the next rows into its own slots of shared memory while it works on the
//            current row in registers, so that a barrier never finds the memory idle.
//   columns  rows longer than a cluster can hold: every thread keeps one vector of eight rows and the whole
//            grid meets once per eight rows. dgamma needs no sum over blocks.
//
// Determinism. The columns of a thread and the order of all sums follow from the number of columns alone, so
// a row has the same dx in any batch. dgamma adds the rows of a team, the teams of a block and then the
// blocks, in order; there are kBlocks of them on every GPU.
#include "ops/norm/rms_norm_grad.h"

#include <cmath>

#include "cuda/block.cuh"
#include "cuda/kernels.h"

namespace anyacl::cuda {
namespace {

namespace cg = cooperative_groups;

using Params = RmsNormGradParams;

constexpr int kBlocks = 132;  // of an H200; more blocks mean more partial sums of dgamma

// ---- rows ----

// How a row is spread, by its length.
template <class T, int kTeamOf, int kVectorsOf, int kThreadsOf, int kStagesOf, int kRowsOf>
struct Spread {
  using Type = T;
  static constexpr int kTeam = kTeamOf;        // threads of one block that share a row
  static constexpr int kVectors = kVectorsOf;  // of one thread
  static constexpr int kThreads = kThreadsOf;
  static constexpr int kStages = kStagesOf;    // steps that are on their way
  static constexpr int kRows = kRowsOf;        // of one team in one step
  static constexpr int kTeams = kThreads / kTeam;
  static constexpr int64_t kColumns = int64_t{kTeam} * kVectors * kLanes<T>;  // of one block
  static constexpr int kSlots = kStages * kRows * 2 * kVectors;  // of one thread; one more for results
  static constexpr int kSharedBytes = kThreads * ((kSlots + 1) * 16 + kStages * kRows * 4);
};

struct RowsCall {
  const void* dy;
  const void* x;
  const float* rstd;
  Numbers gamma;
  void* dx;
  float* partials;  // [clusters][cols]
  int64_t rows;
  int64_t cols;
  int clusters;
  int cluster_size;
  bool aligned;
};

template <class S>
class RowsKernel {
  using T = typename S::Type;
  static constexpr int kV = kLanes<T>;
  [[maybe_unused]] static constexpr int kWarps = S::kThreads / kWarp;

 public:
  __device__ RowsKernel(const RowsCall& call, uint4* shared)
      : call_(call),
        rank_(static_cast<int>(blockIdx.x) % call.cluster_size),
        team_(threadIdx.x / S::kTeam),
        column_((rank_ * S::kVectors * S::kTeam + static_cast<int>(threadIdx.x) % S::kTeam) * kV),
        first_row_((static_cast<int64_t>(blockIdx.x) / call.cluster_size * S::kTeams + team_) * S::kRows),
        slots_(shared + threadIdx.x),
        rstds_(reinterpret_cast<float*>(shared + (S::kSlots + 1) * S::kThreads) + threadIdx.x) {}

  __device__ void Run() {
    LetNextKernelStart();
    ClearPartialSlots();
    const int64_t stride = int64_t{call_.clusters} * S::kTeams * S::kRows;
    const int64_t steps = CeilDiv<int64_t>(call_.rows, stride);
#pragma unroll 1
    for (int s = 0; s < S::kStages; ++s) Copy(s, first_row_ + s * stride);
    LoadGamma();
    int stage = 0;
#pragma unroll 1
    for (int64_t step = 0; step < steps; ++step) {
      Step(stage, first_row_ + step * stride, first_row_ + (step + S::kStages) * stride,
           static_cast<int>(step % 2));
      stage = stage + 1 == S::kStages ? 0 : stage + 1;
    }
    WritePartials();
  }

 private:
  // Vector k lies k * kStep columns behind the thread's first one, and Count(k) of its elements exist.
  static constexpr int kStep = S::kTeam * kV;
  __device__ int Count(int k) const { return static_cast<int>(call_.cols) - column_ - k * kStep; }
  __device__ uint4* Slot(int stage, int row, int input, int k) const {
    return slots_ + (((stage * S::kRows + row) * 2 + input) * S::kVectors + k) * S::kThreads;
  }

  // Columns behind the last one are never copied: they read as 0.
  __device__ void ClearPartialSlots() {
    if (Count(S::kVectors - 1) >= kV) return;
    for (int i = 0; i < S::kSlots; ++i) slots_[i * S::kThreads] = uint4{};
  }

  __device__ void Copy(int stage, int64_t row) {
#pragma unroll
    for (int r = 0; r < S::kRows; ++r) {
      if (row + r >= call_.rows) break;
      const int64_t at = (row + r) * call_.cols + column_;
      const T* const dy = static_cast<const T*>(call_.dy) + at;
      const T* const x = static_cast<const T*>(call_.x) + at;
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
        CopyVector(Slot(stage, r, 0, k), dy + k * kStep, Count(k), call_.aligned);
        CopyVector(Slot(stage, r, 1, k), x + k * kStep, Count(k), call_.aligned);
      }
      __pipeline_memcpy_async(rstds_ + (stage * S::kRows + r) * S::kThreads, call_.rstd + row + r, 4);
    }
    __pipeline_commit();
  }

  __device__ void LoadGamma() {
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        sum_[k][j] = 0;
        gamma_[k][j] = j < Count(k) ? call_.gamma[column_ + k * kStep + j] : 0.0f;
      }
    }
  }

  // The rows of one stage; its slots are refilled with the rows from `next` on as soon as they are read.
  __device__ void Step(int stage, int64_t row, int64_t next, int parity) {
    uint4 dy[S::kRows][S::kVectors], x[S::kRows][S::kVectors];
    float rstd[S::kRows], mean[S::kRows];
    __pipeline_wait_prior(S::kStages - 1);
#pragma unroll
    for (int r = 0; r < S::kRows; ++r) {
      const bool exists = row + r < call_.rows;
      rstd[r] = exists ? rstds_[(stage * S::kRows + r) * S::kThreads] : 0.0f;
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
        dy[r][k] = exists ? *Slot(stage, r, 0, k) : uint4{};
        x[r][k] = exists ? *Slot(stage, r, 1, k) : uint4{};
      }
    }
    Copy(stage, next);
#pragma unroll
    for (int r = 0; r < S::kRows; ++r) mean[r] = Dot(dy[r], x[r], rstd[r]);
    SumOverTeam(mean, parity);
#pragma unroll
    for (int r = 0; r < S::kRows; ++r) {
      if (row + r < call_.rows) {
        Gradient(dy[r], x[r], rstd[r], mean[r] / static_cast<float>(call_.cols), row + r);
      }
    }
  }

  __device__ float Dot(const uint4 (&dy_bits)[S::kVectors], const uint4 (&x_bits)[S::kVectors],
                       float rstd) const {
    float sums[kV] = {};
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) sums[j] += dy[j] * gamma_[k][j] * (x[j] * rstd);
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
  __device__ void SumOverTeam(float (&sums)[S::kRows], int parity) const {
#pragma unroll
    for (int r = 0; r < S::kRows; ++r) sums[r] = WarpSum<(S::kTeam < kWarp ? S::kTeam : kWarp)>(sums[r]);
    if constexpr (S::kTeam > kWarp) {
      static_assert(S::kTeam == S::kThreads);
      __shared__ float warps[2][S::kRows][8 * kWarps];
      const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
      if (call_.cluster_size == 1) {
#pragma unroll
        for (int r = 0; r < S::kRows; ++r) {
          if (lane == 0) warps[parity][r][warp] = sums[r];
        }
        __syncthreads();
      } else {
#if __CUDA_ARCH__ >= 900
        const cg::cluster_group cluster = cg::this_cluster();
#pragma unroll
        for (int r = 0; r < S::kRows; ++r) {
          if (lane < call_.cluster_size) {
            *cluster.map_shared_rank(&warps[parity][r][rank_ * kWarps + warp], lane) = sums[r];
          }
        }
        cluster.sync();
#endif
      }
      const int count = call_.cluster_size * kWarps;
#pragma unroll
      for (int r = 0; r < S::kRows; ++r) {
        float sum = 0;
        for (int i = lane; i < count; i += kWarp) sum += warps[parity][r][i];
        sums[r] = WarpSum(sum);
      }
    }
  }

  __device__ void Gradient(const uint4 (&dy_bits)[S::kVectors], const uint4 (&x_bits)[S::kVectors],
                           float rstd, float mean, int64_t row) {
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
      float dy[kV], x[kV];
      Unpack<T>(dy_bits[k], dy);
      Unpack<T>(x_bits[k], x);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const float u = x[j] * rstd;
        sum_[k][j] += dy[j] * u;
        dy[j] = (dy[j] * gamma_[k][j] - u * mean) * rstd;
      }
      StoreVector(static_cast<T*>(call_.dx) + row * call_.cols + column_ + k * kStep, Pack<T>(dy),
                  Count(k), call_.aligned, slots_ + S::kSlots * S::kThreads);
    }
  }

  // dgamma of this block's rows.
  __device__ void WritePartials() {
    float* const to = call_.partials + static_cast<int64_t>(blockIdx.x) / call_.cluster_size * call_.cols;
    if constexpr (S::kTeams == 1) {
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
        for (int j = 0; j < kV; ++j) {
          if (j < Count(k)) to[column_ + k * kStep + j] = sum_[k][j];
        }
      }
      // A block must not end while its neighbours may still write into its memory.
#if __CUDA_ARCH__ >= 900
      if (call_.cluster_size > 1) cg::this_cluster().sync();
#endif
    } else {
      extern __shared__ uint4 shared[];
      float* const sums = reinterpret_cast<float*>(shared);  // [teams][columns]
      __pipeline_wait_prior(0);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < S::kVectors; ++k) {
#pragma unroll
        for (int j = 0; j < kV; ++j) sums[team_ * S::kColumns + column_ + k * kStep + j] = sum_[k][j];
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

  const RowsCall& call_;
  const int rank_;  // of the block in its cluster
  const int team_;
  const int column_;  // of the thread's first vector
  const int64_t first_row_;
  uint4* const slots_;
  float* const rstds_;
  float gamma_[S::kVectors][kV];
  float sum_[S::kVectors][kV];
};

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1) Rows(const __grid_constant__ RowsCall call) {
  extern __shared__ uint4 shared[];
  RowsKernel<S>(call, shared).Run();
}

int ClusterOf(int64_t cols, int64_t columns_of_block) {
  int size = 1;
  while (size * columns_of_block < cols) size *= 2;
  return size;
}

template <class S>
void LaunchRows(const Params& p, const Launch& launch) {
  static_assert(S::kSharedBytes <= 227 * 1024 - 2048);
  static_assert(S::kTeams == 1 || S::kTeams * S::kColumns * 4 <= S::kSharedBytes);
  const int size = ClusterOf(p.cols, S::kColumns);
  const int64_t steps = CeilDiv<int64_t>(p.rows, S::kTeams * S::kRows);
  const int clusters = static_cast<int>(std::min<int64_t>(steps, kBlocks / size));
  const bool one = clusters == 1;
  const int64_t pitch = p.cols * static_cast<int64_t>(SizeOf(p.dtype));
  const RowsCall call{p.dy, p.x, static_cast<const float*>(p.rstd), {p.gamma, p.gamma_dtype}, p.dx,
                      static_cast<float*>(one ? p.dgamma : p.scratch), p.rows, p.cols, clusters, size,
                      Aligned({p.dy, p.x, p.dx}, pitch)};
  LaunchKernel<Rows<S>>(launch, {.blocks = int64_t{clusters} * size, .threads = S::kThreads,
                                 .shared_bytes = S::kSharedBytes, .cluster = size},
                        call);
  if (one) return;
  LaunchColumnSums(launch, {static_cast<const float*>(p.scratch), clusters, p.cols, p.cols, p.dgamma,
                            nullptr, DType::kF32});
}

// ---- columns ----

constexpr int kGroup = 8;  // rows that a thread keeps

template <class T>
inline constexpr int kColumnThreads = sizeof(T) == 4 ? 256 : 128;  // a block covers 1024 columns
constexpr int64_t kBlockColumns = 1024;

enum class Phase { kSums, kGradients, kBoth };

template <class T, Phase kPhase>
__global__ void __launch_bounds__(kColumnThreads<T>, 1) Columns(Params p, bool aligned) {
  constexpr int kV = kLanes<T>, kThreads = kColumnThreads<T>, kWarps = kThreads / kWarp;
  __shared__ float sums[kGroup][kWarps];
  __shared__ float means[kGroup];
  __shared__ uint4 slots[kThreads];
  float* const block_sums = static_cast<float*>(p.scratch);  // [rows][blocks]
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kV;
  const int left = static_cast<int>(min(p.cols - column, int64_t{kV}));
  float gamma[kV], dgamma[kV] = {};
#pragma unroll
  for (int j = 0; j < kV; ++j) {  // no rows, no gamma
    gamma[j] = j < left && p.rows > 0 ? Numbers{p.gamma, p.gamma_dtype}[column + j] : 0.0f;
  }

#pragma unroll 1
  for (int64_t first = 0; first < p.rows; first += kGroup) {
    uint4 dy_bits[kGroup], x_bits[kGroup];
    float rstd[kGroup];
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      const int64_t row = first + r;
      const int count = row < p.rows ? left : 0;
      const int64_t at = row * p.cols + column;
      dy_bits[r] = LoadVector(static_cast<const T*>(p.dy) + at, count, aligned, slots + threadIdx.x);
      x_bits[r] = LoadVector(static_cast<const T*>(p.x) + at, count, aligned, slots + threadIdx.x);
      rstd[r] = row < p.rows ? static_cast<const float*>(p.rstd)[row] : 0.0f;
    }
    if constexpr (kPhase != Phase::kGradients) {
#pragma unroll
      for (int r = 0; r < kGroup; ++r) {
        float dy[kV], x[kV], sum = 0;
        Unpack<T>(dy_bits[r], dy);
        Unpack<T>(x_bits[r], x);
#pragma unroll
        for (int j = 0; j < kV; ++j) sum += dy[j] * gamma[j] * (x[j] * rstd[r]);
        sum = WarpSum(sum);
        if (lane == 0) sums[r][warp] = sum;
      }
      __syncthreads();
      if (threadIdx.x < kGroup && first + threadIdx.x < p.rows) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) sum += sums[threadIdx.x][w];
        block_sums[(first + threadIdx.x) * gridDim.x + blockIdx.x] = sum;
      }
    }
    if constexpr (kPhase == Phase::kBoth) cg::this_grid().sync();
    if constexpr (kPhase == Phase::kSums) __syncthreads();
    if constexpr (kPhase != Phase::kSums) {
      for (int r = warp; r < kGroup && first + r < p.rows; r += kWarps) {
        float sum = 0;
        for (int b = lane; b < gridDim.x; b += kWarp) sum += block_sums[(first + r) * gridDim.x + b];
        sum = WarpSum(sum);
        if (lane == 0) means[r] = sum / static_cast<float>(p.cols);
      }
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kGroup; ++r) {
        if (first + r >= p.rows) break;
        float dy[kV], x[kV];
        Unpack<T>(dy_bits[r], dy);
        Unpack<T>(x_bits[r], x);
#pragma unroll
        for (int j = 0; j < kV; ++j) {
          const float u = x[j] * rstd[r];
          dgamma[j] += dy[j] * u;
          dy[j] = (dy[j] * gamma[j] - u * means[r]) * rstd[r];
        }
        StoreVector(static_cast<T*>(p.dx) + (first + r) * p.cols + column, Pack<T>(dy), left, aligned,
                    slots + threadIdx.x);
      }
      __syncthreads();  // means and sums are free again
    }
  }
  if constexpr (kPhase != Phase::kSums) {
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      if (j < left) static_cast<float*>(p.dgamma)[column + j] = p.rows > 0 ? dgamma[j] : nanf("");
    }
  }
}

int64_t ColumnBlocks(const Params& p) { return CeilDiv<int64_t>(p.cols, kBlockColumns); }

void RunColumns(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    const LaunchShape shape{.blocks = ColumnBlocks(p), .threads = kColumnThreads<T>};
    const bool aligned = Aligned({p.dy, p.x, p.dx}, p.cols * static_cast<int64_t>(sizeof(T)));
    static std::atomic<int> cache[kMaxDevices];
    const int resident =
        ResidentClusters<Columns<T, Phase::kBoth>>(cache[launch.device], launch, shape);
    if (shape.blocks <= resident && p.rows > 0) {
      LaunchShape together = shape;
      together.cooperative = true;
      LaunchKernel<Columns<T, Phase::kBoth>>(launch, together, p, aligned);
    } else {
      if (p.rows > 0) LaunchKernel<Columns<T, Phase::kSums>>(launch, shape, p, aligned);
      LaunchKernel<Columns<T, Phase::kGradients>>(launch, shape, p, aligned);
    }
  });
}

// ---- the choice ----

constexpr int64_t kLongestRow = 65536;  // that a cluster of eight holds

template <class T>
void RunRowsOf(const Params& p, const Launch& launch) {
  if constexpr (sizeof(T) == 4) {
    if (p.cols <= 128) return LaunchRows<Spread<T, 8, 4, 512, 2, 1>>(p, launch);
    if (p.cols <= 512) return LaunchRows<Spread<T, 32, 4, 256, 4, 1>>(p, launch);
    if (p.cols <= 1024) return LaunchRows<Spread<T, 32, 8, 256, 3, 1>>(p, launch);
    if (p.cols <= 4096) return LaunchRows<Spread<T, 512, 2, 512, 5, 1>>(p, launch);
    return LaunchRows<Spread<T, 512, 4, 512, 3, 1>>(p, launch);
  } else {
    if (p.cols <= 128) return LaunchRows<Spread<T, 8, 2, 512, 4, 1>>(p, launch);
    if (p.cols <= 512) return LaunchRows<Spread<T, 32, 2, 256, 4, 1>>(p, launch);
    if (p.cols <= 1024) return LaunchRows<Spread<T, 32, 4, 256, 4, 1>>(p, launch);
    if (p.cols <= 4096) return LaunchRows<Spread<T, 512, 1, 512, 4, 2>>(p, launch);
    return LaunchRows<Spread<T, 512, 2, 512, 4, 1>>(p, launch);
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
  const int64_t partials = std::min<int64_t>(kBlocks, p.rows) * p.cols * static_cast<int64_t>(sizeof(float));
  return std::max(partials, ColumnsScratch(params));
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsRows, RunRows>("rows", RowsScratch),
    MakeKernel<Params, FitsAlways, RunColumns>("columns", ColumnsScratch),
};

}  // namespace

std::span<const Kernel> RmsNormGradKernels() { return kKernels; }

}  // namespace anyacl::cuda
