// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the ways through GroupNormBackward on CUDA share; group_norm_backward.cu says which is taken when.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CUH_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CUH_

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/vectors.cuh"
#include "ops/norm/group_norm_backward.h"

namespace anyacl::cuda::group_norm {

using Params = GroupNormBackwardParams;

// The numbers of a call with device types.
struct Call {
  explicit Call(const Params& p)
      : dy(p.dy),
        x(p.x),
        dx(p.dx),
        mean{p.mean, p.param_dtype},
        rstd{p.rstd, p.param_dtype},
        gamma{p.gamma, p.param_dtype},
        n(p.n),
        c(p.c),
        hxw(p.hxw),
        groups(p.groups),
        channels(p.c / p.groups),
        size(p.c / p.groups * p.hxw),
        over_size(1 / static_cast<float>(p.c / p.groups * p.hxw)),
        wants_parameters(p.dgamma || p.dbeta) {}

  __device__ float Gamma(int64_t c) const { return gamma.data ? gamma[c] : 1.0f; }

  // The sample of group number i of all; 64-bit division takes a third of a microsecond.
  __device__ int64_t SampleOf(int64_t i) const {
    return n * groups <= UINT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(groups)
                                    : i / groups;
  }

  const void* dy;
  const void* x;
  void* dx;
  Numbers mean;
  Numbers rstd;
  Numbers gamma;
  int64_t n;
  int64_t c;
  int64_t hxw;
  int64_t groups;
  int64_t channels;  // of one group
  int64_t size;      // elements of one group
  float over_size;   // 1 / size
  bool wants_parameters;
};

// Sums over a part of a group, and weighted with gamma.
struct alignas(16) Sums {
  float db, ds;
  float weighted_db, weighted_ds;
};

// No product is fused but where it says so: all variants of a kernel round alike.
__device__ inline float Normal(float x, float mean, float rstd) {
  return __fmul_rn(x - mean, rstd);
}

// Sums over the vector `dy`, `x`, of which `count` elements exist (an aligned one is whole). What does not
// exist must not turn an infinite mean into a NaN.
template <bool kAligned, class T>
__device__ inline void AddVector(const uint4& dy_bits, const uint4& x_bits, int count, float mean,
                                 float rstd, float& db, float& ds) {
  float dy[kLanes<T>], x[kLanes<T>];
  Unpack<T>(dy_bits, dy);
  Unpack<T>(x_bits, x);
#pragma unroll
  for (int j = 0; j < kLanes<T>; ++j) {
    if (!kAligned && j >= count) break;
    db += dy[j];
    ds = __fmaf_rn(dy[j], Normal(x[j], mean, rstd), ds);
  }
}

// dx in the order of the formula: what overflows does so at the end, and never as infinity against
// infinity.
__device__ inline float Gradient(float mean, float rstd, float gamma, float2 terms, float dy,
                                 float x) {
  const float rest = __fmaf_rn(Normal(x, mean, rstd), terms.y, terms.x);
  return __fmul_rn(rstd, __fmaf_rn(gamma, dy, -rest));
}

// The same as dx = a * dy + b * (x - mean) + c inside one channel, for many elements.
struct Line {
  __device__ Line(float mean, float rstd, float gamma, float2 terms) : mean(mean) {
    a = __fmul_rn(rstd, gamma);
    b = __fmul_rn(-rstd, __fmul_rn(rstd, terms.y));
    c = __fmul_rn(-rstd, terms.x);
  }
  __device__ float At(float dy, float x) const {
    return __fmaf_rn(a, dy, __fmaf_rn(b, x - mean, c));
  }
  float mean, a, b, c;
};

template <class T>
__device__ inline uint4 GradientVector(const uint4& dy_bits, const uint4& x_bits,
                                       const Line& line) {
  float dy[kLanes<T>], x[kLanes<T>];
  Unpack<T>(dy_bits, dy);
  Unpack<T>(x_bits, x);
#pragma unroll
  for (int j = 0; j < kLanes<T>; ++j) dy[j] = line.At(dy[j], x[j]);
  return Pack<T>(dy);
}

// dgamma and dbeta from `rows` rows of partial sums [2][C]: db, then ds.
inline ColumnSums ParameterSums(const Params& p, const float* partials, int64_t rows) {
  return {partials, rows, 2 * p.c, p.c, p.dbeta, p.dgamma, p.param_dtype};
}
inline void LaunchParameters(const Params& p, const float* partials, int64_t rows,
                             const Launch& launch) {
  if (!p.dgamma && !p.dbeta) return;
  LaunchColumnSums(launch, ParameterSums(p, partials, rows));
}

// The same by the last block of a kernel that comes to it: the host is spared a launch. In a graph, and where one block
// would have too much to add, a second kernel is faster.
struct Finish {
  // `channels` are those that one block adds.
  Finish(const Params& p, const float* partials, int64_t rows, int64_t channels,
         const Launch& launch)
      : sums(ParameterSums(p, partials, rows)) {
    constexpr int64_t kMostNumbers = 64 * 1024;
    if ((p.dgamma || p.dbeta) && rows * 2 * channels <= kMostNumbers) counters = launch.counters;
  }

  // Both sums of `count` channels.
  __device__ void Add(int64_t first, int64_t count) const {
    for (int64_t i = threadIdx.x; i < 2 * count; i += blockDim.x) {
      const int64_t column = first + (i < count ? i : sums.split + i - count);
      sums.Store(column, sums.Total(column));
    }
  }

  ColumnSums sums;
  unsigned* counters = nullptr;  // null: another kernel does it
};

inline bool Aligned(const Params& p, int64_t pitch, uintptr_t vector_bytes = 16) {
  return cuda::Aligned({p.dy, p.x, p.dx}, pitch * static_cast<int64_t>(SizeOf(p.dtype)),
                       vector_bytes);
}

}  // namespace anyacl::cuda::group_norm

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CUH_
