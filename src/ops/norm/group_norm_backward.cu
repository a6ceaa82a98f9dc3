// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GroupNormBackward on CUDA. Which way is taken depends on a group's channels and HxW, so that a sample has
// the same dx in any batch:
//
//   tiny      four channels per group and HxW 1, all groups in one cluster: a thread per group
//   small     up to 512 elements: up to a warp per group
//   cluster   up to 128 chunks of a warp (131072 FLOAT elements): a cluster of blocks per group
//   grid      what 128 blocks can hold (4 Mi elements): as many blocks as that takes per group
//   simple    everything else, channels last, and GPUs without clusters: sums first, then a second read
//
// No sum uses atomics; sums over samples are partial sums [rows][2][C] and a second kernel.
#include "cuda/elements.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"
#include "cuda/warp.cuh"
#include "ops/norm/group_norm_backward_cluster.cuh"
#include "ops/norm/group_norm_backward_grid.cuh"
#include "ops/norm/group_norm_backward_small.cuh"
#include "ops/norm/group_norm_backward_tiny.cuh"

namespace anyacl::cuda {
namespace group_norm {
namespace {

// ---- simple ----

constexpr int kThreads = 256;

// The sums of a lane; short sums are added up, so that rounding does not grow with the length of a plane.
class LongSums {
 public:
  __device__ void Add(float dy, float xhat) {
    part_db_ += dy;
    part_ds_ = __fmaf_rn(dy, xhat, part_ds_);
    if (++count_ % 128 == 0) Flush();
  }
  __device__ float2 Total() {
    Flush();
    return total_;
  }

 private:
  __device__ void Flush() {
    total_.x += part_db_;
    total_.y += part_ds_;
    part_db_ = part_ds_ = 0;
  }
  float2 total_{};
  float part_db_ = 0, part_ds_ = 0;
  int count_ = 0;
};

// One warp per plane (n, c), for short planes.
template <class T>
__global__ void __launch_bounds__(kThreads)
    SumsOfPlanes(const __grid_constant__ Call call, float* partials) {
  BeginKernel();
  const int64_t plane = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  if (plane >= call.n * call.c) return;
  const int64_t n = plane / call.c, c = plane % call.c;
  const float mean = call.mean[plane / call.channels], rstd = call.rstd[plane / call.channels];
  LongSums sums;
#pragma unroll 4
  for (int64_t s = threadIdx.x % kWarp; s < call.hxw; s += kWarp) {
    const float dy = ToFloat(static_cast<const T*>(call.dy)[plane * call.hxw + s]);
    const float x = ToFloat(static_cast<const T*>(call.x)[plane * call.hxw + s]);
    sums.Add(dy, Normal(x, mean, rstd));
  }
  const float db = WarpSum(sums.Total().x), ds = WarpSum(sums.Total().y);
  if (threadIdx.x % kWarp != 0) return;
  partials[n * 2 * call.c + c] = db;
  partials[n * 2 * call.c + call.c + c] = ds;
}

// One block per 32 channels of a sample: a lane per channel, the warps take turns with the positions.
template <class T>
__global__ void __launch_bounds__(kThreads)
    SumsChannelsLast(const __grid_constant__ Call call, float* partials) {
  BeginKernel();
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float sums[2][kWarps][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t columns = CeilDiv<int64_t>(call.c, kWarp);
  const int64_t n = blockIdx.x / columns, c = blockIdx.x % columns * kWarp + lane;
  LongSums mine;
  if (c < call.c) {
    const int64_t group = n * call.groups + c / call.channels;
    const float mean = call.mean[group], rstd = call.rstd[group];
#pragma unroll 4
    for (int64_t s = warp; s < call.hxw; s += kWarps) {
      const int64_t i = (n * call.hxw + s) * call.c + c;
      const float dy = ToFloat(static_cast<const T*>(call.dy)[i]);
      mine.Add(dy, Normal(ToFloat(static_cast<const T*>(call.x)[i]), mean, rstd));
    }
  }
  sums[0][warp][lane] = mine.Total().x;
  sums[1][warp][lane] = mine.Total().y;
  __syncthreads();
  if (warp > 1 || c >= call.c) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += sums[warp][w][lane];
  partials[(n * 2 + warp) * call.c + c] = total;
}

// One warp per group: c1 and c2.
__global__ void __launch_bounds__(kThreads)
    TermsOfGroups(const __grid_constant__ Call call, const float* partials, float2* terms) {
  BeginKernel();
  const int64_t group = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  if (group >= call.n * call.groups) return;
  const int64_t first = group % call.groups * call.channels;
  const float* const sums = partials + group / call.groups * 2 * call.c;
  float c1 = 0, c2 = 0;
  for (int64_t c = first + threadIdx.x % kWarp; c < first + call.channels; c += kWarp) {
    const float gamma = call.Gamma(c);
    c1 += gamma * sums[c];
    c2 += gamma * sums[call.c + c];
  }
  c1 = WarpSum(c1) * call.over_size;
  c2 = WarpSum(c2) * call.over_size;
  if (threadIdx.x % kWarp == 0) terms[group] = {c1, c2};
}

// One thread per element.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    Gradients(const __grid_constant__ Call call, const float2* terms, bool channels_last) {
  BeginKernel();
  const Index i = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  const Index channels = static_cast<Index>(call.c), hxw = static_cast<Index>(call.hxw);
  if (i >= static_cast<Index>(call.n) * channels * hxw) return;
  const Index c = channels_last ? i % channels : i / hxw % channels;
  const Index n = i / (channels * hxw);
  const Index group = n * static_cast<Index>(call.groups) + c / static_cast<Index>(call.channels);
  const float mean = call.mean[group], rstd = call.rstd[group];
  const float2 term = terms[group];
  const float dy = ToFloat(static_cast<const T*>(call.dy)[i]);
  const float x = ToFloat(static_cast<const T*>(call.x)[i]);
  static_cast<T*>(call.dx)[i] = FromFloat<T>(Gradient(mean, rstd, call.Gamma(c), term, dy, x));
}

int64_t PartialsBytes(const Params& p) {
  return CeilDiv<int64_t>(p.n * 2 * p.c * static_cast<int64_t>(sizeof(float)), 16) * 16;
}

int64_t SimpleScratch(const Params& p) {
  return PartialsBytes(p) + p.n * p.groups * static_cast<int64_t>(sizeof(float2));
}

void RunSimple(const Params& p, const Launch& launch) {
  float* const partials = static_cast<float*>(p.scratch);
  const bool empty = p.n == 0 || p.hxw == 0;
  if (empty) return LaunchParameters(p, partials, 0, launch);
  const Call call(p);
  float2* const terms =
      reinterpret_cast<float2*>(static_cast<unsigned char*>(p.scratch) + PartialsBytes(p));
  const auto blocks_of_warps = [](int64_t warps) {
    return CeilDiv<int64_t>(warps, kThreads / kWarp);
  };
  WithType(p.dtype, [&]<class T>() {
    if (p.channels_last) {
      LaunchKernel<SumsChannelsLast<T>>(launch, {.blocks = p.n * CeilDiv<int64_t>(p.c, kWarp)},
                                        call, partials);
    } else {
      LaunchKernel<SumsOfPlanes<T>>(launch, {.blocks = blocks_of_warps(p.n * p.c)}, call, partials);
    }
    if (p.dx) {
      LaunchKernel<TermsOfGroups>(launch, {.blocks = blocks_of_warps(p.n * p.groups)}, call,
                                  partials, terms);
      const int64_t count = p.n * p.c * p.hxw;
      const LaunchShape shape{.blocks = CeilDiv<int64_t>(count, kThreads)};
      if (count < (int64_t{1} << 31)) {
        LaunchKernel<Gradients<T, uint32_t>>(launch, shape, call, terms, p.channels_last);
      } else {
        LaunchKernel<Gradients<T, int64_t>>(launch, shape, call, terms, p.channels_last);
      }
    }
  });
  LaunchParameters(p, partials, p.n, launch);
}

// ---- the choice ----

void RunCluster(const Params& p, const Launch& launch) {
  if (CutGroup(p).cluster > 1 && !HasClusters(launch.device)) return RunSimple(p, launch);
  WithType(p.dtype, [&]<class T>() {
    const bool in_bulk = Aligned(p, p.hxw) && HasClusters(launch.device);
    in_bulk ? LaunchCluster<T, true>(p, launch) : LaunchCluster<T, false>(p, launch);
  });
}

void RunGrid(const Params& p, const Launch& launch) {
  bool done = false;
  WithType(p.dtype, [&]<class T>() {
    const bool in_bulk = Aligned(p, p.hxw) && HasClusters(launch.device);
    done = in_bulk ? LaunchGrid<T, true>(p, PartialsBytes(p), launch)
                   : LaunchGrid<T, false>(p, PartialsBytes(p), launch);
  });
  if (!done) RunSimple(p, launch);
}

bool FitsAlways(const Params&) { return true; }

template <int64_t (*bytes)(const Params&)>
int64_t ScratchOf(const void* params) {
  return bytes(*static_cast<const Params*>(params));
}

int64_t GridOrSimpleScratch(const Params& p) {
  return std::max(SimpleScratch(p), PartialsBytes(p) + GridScratch());
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsTiny, RunTiny>("tiny", ScratchOf<SmallScratch>),
    MakeKernel<Params, FitsSmall, RunSmall>("small", ScratchOf<SmallScratch>),
    MakeKernel<Params, FitsCluster, RunCluster>("cluster", ScratchOf<SimpleScratch>),
    MakeKernel<Params, FitsGrid, RunGrid>("grid", ScratchOf<GridOrSimpleScratch>),
    MakeKernel<Params, FitsAlways, RunSimple>("simple", ScratchOf<SimpleScratch>),
};

}  // namespace
}  // namespace group_norm

std::span<const Kernel> GroupNormBackwardKernels() { return group_norm::kKernels; }

}  // namespace anyacl::cuda
