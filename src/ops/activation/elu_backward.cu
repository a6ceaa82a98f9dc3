// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// EluBackward on CUDA: one 16-byte vector of each array per thread, in one flat grid. Two vectors per thread
// lose 0.5 %, a persistent grid 5 %.
#include <cuComplex.h>

#include "cuda/elements.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"
#include "ops/activation/elu_backward.h"

namespace anyacl::cuda {
namespace {

constexpr int kThreads = 256;

using Params = EluBackwardParams;

// In the order of operations of the reference. The fast exp is off by 2^-17 at most, which no 16-bit
// result can show.
template <class T, bool kIsResult>
__device__ float Gradient(float g, float x, const Params& p) {
  const float inner = g * p.input_scale;
  float negative;
  if constexpr (kIsResult) {
    negative = inner * (x + p.negcoef);
  } else {
    const float argument = x * p.input_scale;
    negative = (inner * p.negcoef) * (sizeof(T) == 4 ? expf(argument) : __expf(argument));
  }
  return x <= 0 ? negative : g * p.scale;
}

// The two forms are kernels of their own, because small calls feel every instruction.
template <class T, bool kIsResult>
__global__ void __launch_bounds__(kThreads)
    Flat(const __grid_constant__ Params p, const __grid_constant__ bool aligned) {
  BeginKernel();
  constexpr int kV = kLanes<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kV;
  const int64_t rest = p.count - i;
  if (rest <= 0) return;
  const auto run = [&](int left, bool whole) {
    const uint4 dy_bits = LoadVector(static_cast<const T*>(p.dy) + i, left, whole);
    const uint4 x_bits = LoadVector(static_cast<const T*>(p.x) + i, left, whole);
    float g[kV], x[kV];
    Unpack<T>(dy_bits, g);
    Unpack<T>(x_bits, x);
#pragma unroll
    for (int k = 0; k < kV; ++k) g[k] = Gradient<T, kIsResult>(g[k], x[k], p);
    StoreVector(static_cast<T*>(p.dx) + i, Pack<T>(g), left, whole);
  };
  aligned&& rest >= kV ? run(kV, true) : run(static_cast<int>(min(rest, int64_t{kV})), false);
}

__device__ void Convert(float value, float* to) { *to = value; }
__device__ void Convert(float value, __half* to) { *to = FromFloat<__half>(value); }
__device__ void Convert(float value, __nv_bfloat16* to) { *to = FromFloat<__nv_bfloat16>(value); }
__device__ void Convert(float value, double* to) { *to = value; }
__device__ void Convert(float value, cuFloatComplex* to) { *to = {value, 0}; }
__device__ void Convert(float value, cuDoubleComplex* to) { *to = {value, 0}; }

// dx of another dtype: one element per thread.
template <class T, class Out>
__global__ void __launch_bounds__(kThreads) Simple(const __grid_constant__ Params p) {
  BeginKernel();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.count) return;
  const float g = ToFloat(static_cast<const T*>(p.dy)[i]);
  const float x = ToFloat(static_cast<const T*>(p.x)[i]);
  const float gradient =
      p.is_result ? Gradient<float, true>(g, x, p) : Gradient<float, false>(g, x, p);
  const T rounded = FromFloat<T>(gradient);
  Convert(ToFloat(rounded), static_cast<Out*>(p.dx) + i);
}

bool FitsFlat(const Params& p) { return p.out_dtype == p.dtype; }

void RunFlat(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    const LaunchShape shape{.blocks = CeilDiv<int64_t>(p.count, kThreads * kLanes<T>),
                            .threads = kThreads};
    WithFlag(p.is_result, [&]<bool kIsResult>() {
      LaunchKernel<Flat<T, kIsResult>>(launch, shape, p, Aligned({p.dy, p.x, p.dx}));
    });
  });
}

bool FitsAlways(const Params&) { return true; }

template <class T, class Out>
void RunSimpleTo(const Params& p, const Launch& launch) {
  LaunchKernel<Simple<T, Out>>(
      launch, {.blocks = CeilDiv<int64_t>(p.count, kThreads), .threads = kThreads}, p);
}

void RunSimple(const Params& p, const Launch& launch) {
  WithType(p.dtype, [&]<class T>() {
    switch (p.out_dtype) {
      case DType::kF32:
        return RunSimpleTo<T, float>(p, launch);
      case DType::kF16:
        return RunSimpleTo<T, __half>(p, launch);
      case DType::kBF16:
        return RunSimpleTo<T, __nv_bfloat16>(p, launch);
      case DType::kF64:
        return RunSimpleTo<T, double>(p, launch);
      case DType::kC64:
        return RunSimpleTo<T, cuFloatComplex>(p, launch);
      case DType::kC128:
        return RunSimpleTo<T, cuDoubleComplex>(p, launch);
      default:
        return;
    }
  });
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsFlat, RunFlat>("flat"),
    MakeKernel<Params, FitsAlways, RunSimple>("simple"),
};

}  // namespace

std::span<const Kernel> EluBackwardKernels() { return kKernels; }

}  // namespace anyacl::cuda
