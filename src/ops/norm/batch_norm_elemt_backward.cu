// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// BatchNormElemtBackward on CUDA: one 16-byte vector of each array per thread, in one flat grid. A vector
// meets two channels at most where planes are as long as a vector; its channel comes from a fast division,
// and the channel's numbers from the caches: both cost nothing that could be measured.
#include "cuda/block.cuh"
#include "cuda/kernels.h"
#include "ops/norm/batch_norm_elemt_backward.h"

namespace anyacl::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxCounters = 8;  // that every thread adds up itself

using Params = BatchNormElemtBackwardParams;
using Operand = Params::Operand;

__device__ Numbers In(const Operand& operand) { return {operand.data, operand.dtype}; }

int64_t Elements(const Params& p) { return p.outer * p.c * p.inner; }

// dx = ((dy - mean_dy) - (x - mean) * slope) * factor
struct alignas(16) Channel {
  float mean, mean_dy, slope, factor;

  __device__ float Gradient(float dy, float x) const {
    return __fmul_rn(__fmaf_rn(-(x - mean), slope, dy - mean_dy), factor);
  }
};

__device__ Channel MakeChannel(float mean, float invstd, float weight, float sum_dy,
                               float sum_dy_xmu, float over_count) {
  return {mean, sum_dy * over_count, sum_dy_xmu * over_count * (invstd * invstd), invstd * weight};
}

// A channel whose numbers may have any dtypes.
__device__ Channel AnyChannel(const Params& p, int64_t c, float over_count) {
  const uint32_t mean = In(p.mean).Raw(c), invstd = In(p.invstd).Raw(c),
                 sum_dy = In(p.sum_dy).Raw(c), sum_dy_xmu = In(p.sum_dy_xmu).Raw(c),
                 weight = p.weight.data ? In(p.weight).Raw(c) : 0;
  return MakeChannel(In(p.mean).Decode(mean), In(p.invstd).Decode(invstd),
                     p.weight.data ? In(p.weight).Decode(weight) : 1.0f,
                     In(p.sum_dy).Decode(sum_dy), In(p.sum_dy_xmu).Decode(sum_dy_xmu), over_count);
}

// 1 / count, for a few counters.
__device__ float OverCount(const Params& p) {
  if (p.counter_count == 1) return __frcp_rn(In(p.counter)[0]);
  float count = 0;
  for (int k = 0; k < p.counter_count; ++k) count += In(p.counter)[k];
  return __frcp_rn(count);
}

// ---- flat: one dtype for the elements, one for the channels, planes as long as a vector ----

// The numbers of one channel on their way; weight has a dtype of its own, because a plan cannot tell an
// absent one from one of FLOAT.
template <class P>
struct LoadedChannel {
  __device__ LoadedChannel(const Params& p, uint32_t c)
      : mean(At(p.mean, c)),
        invstd(At(p.invstd, c)),
        sum_dy(At(p.sum_dy, c)),
        sum_dy_xmu(At(p.sum_dy_xmu, c)),
        weight(p.weight.data ? In(p.weight).Raw(c) : 0) {}
  __device__ static P At(const Operand& from, uint32_t c) {
    return static_cast<const P*>(from.data)[c];
  }
  __device__ Channel Ready(const Params& p, float over_count) const {
    return MakeChannel(ToFloat(mean), ToFloat(invstd),
                       p.weight.data ? In(p.weight).Decode(weight) : 1.0f, ToFloat(sum_dy),
                       ToFloat(sum_dy_xmu), over_count);
  }
  P mean, invstd, sum_dy, sum_dy_xmu;
  uint32_t weight;
};

struct Planes {
  FastDivisor inner;
  FastDivisor channels;
  bool small;  // the divisors can be used
};

template <class T, class P>
__global__ void __launch_bounds__(kThreads, 6) Flat(Params p, Planes planes, bool aligned) {
  constexpr int kV = kLanes<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kV;
  const int64_t count = p.outer * p.c * p.inner;
  if (i >= count) return;
  const int left = static_cast<int>(min(count - i, int64_t{kV}));
  const bool whole = aligned && left == kV;
  const uint4 dy_bits = LoadVector(static_cast<const T*>(p.dy.data) + i, left, whole);
  const uint4 x_bits = LoadVector(static_cast<const T*>(p.x.data) + i, left, whole);
  int rest;  // elements of this plane from i on, as far as they matter
  uint32_t c;
  if (planes.small) {
    const uint32_t plane = planes.inner.Divide(static_cast<uint32_t>(i));
    rest = static_cast<int>((plane + 1) * planes.inner.divisor - static_cast<uint32_t>(i));
    c = plane - planes.channels.Divide(plane) * planes.channels.divisor;
  } else {
    const int64_t plane = i / p.inner;
    rest = static_cast<int>(min((plane + 1) * p.inner - i, int64_t{kV}));
    c = static_cast<uint32_t>(plane % p.c);
  }
  const LoadedChannel<P> loaded(p, c);
  const float over_count = OverCount(p);
  const Channel one = loaded.Ready(p, over_count);
  float dy[kV], x[kV];
  Unpack<T>(dy_bits, dy);
  Unpack<T>(x_bits, x);
  if (rest >= kV) {
#pragma unroll
    for (int k = 0; k < kV; ++k) dy[k] = one.Gradient(dy[k], x[k]);
  } else {
    const Channel two = LoadedChannel<P>(p, c + 1 < p.c ? c + 1 : 0).Ready(p, over_count);
#pragma unroll
    for (int k = 0; k < kV; ++k) dy[k] = (k < rest ? one : two).Gradient(dy[k], x[k]);
  }
  StoreVector(static_cast<T*>(p.dx) + i, Pack<T>(dy), left, whole);
}

bool FitsFlat(const Params& p) {
  const DType channel = p.mean.dtype;
  return p.dy.dtype == p.x.dtype && p.dx_dtype == p.x.dtype && p.invstd.dtype == channel &&
         p.sum_dy.dtype == channel && p.sum_dy_xmu.dtype == channel &&
         (channel == p.x.dtype || channel == DType::kF32) &&
         p.inner >= 16 / static_cast<int64_t>(SizeOf(p.x.dtype)) &&
         p.counter_count <= kMaxCounters && p.c < (int64_t{1} << 31);
}

void RunFlat(const Params& p, const Launch& launch) {
  Planes planes{};
  planes.small = Elements(p) < (int64_t{1} << 31);
  if (planes.small) {
    planes.inner = FastDivisor(static_cast<uint32_t>(p.inner));
    planes.channels = FastDivisor(static_cast<uint32_t>(p.c));
  }
  WithType(p.x.dtype, [&]<class T>() {
    const LaunchShape shape{.blocks = CeilDiv<int64_t>(Elements(p), kThreads * kLanes<T>),
                            .threads = kThreads};
    const bool aligned = Aligned({p.dy.data, p.x.data, p.dx});
    if (p.mean.dtype == DType::kF32) {
      LaunchKernel<Flat<T, float>>(launch, shape, p, planes, aligned);
    } else {
      LaunchKernel<Flat<T, T>>(launch, shape, p, planes, aligned);
    }
  });
}

// ---- few: any dtypes, one element per thread, where a second launch would cost more ----

constexpr int64_t kFewElements = 1 << 16;

__global__ void __launch_bounds__(kThreads) Few(Params p) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.outer * p.c * p.inner) return;
  const uint32_t c = i / static_cast<uint32_t>(p.inner) % static_cast<uint32_t>(p.c);
  const uint32_t dy = In(p.dy).Raw(i), x = In(p.x).Raw(i);
  const Channel channel = AnyChannel(p, c, OverCount(p));
  StoreAs(p.dx, p.dx_dtype, i, channel.Gradient(In(p.dy).Decode(dy), In(p.x).Decode(x)));
}

bool FitsFew(const Params& p) {
  return Elements(p) <= kFewElements && p.counter_count <= kMaxCounters;
}

void RunFew(const Params& p, const Launch& launch) {
  LaunchKernel<Few>(launch,
                    {.blocks = CeilDiv<int64_t>(Elements(p), kThreads), .threads = kThreads}, p);
}

// ---- simple: any dtypes, short planes (channels last), many counters ----

// One block per 256 channels; each adds up the counters, in the same order.
__global__ void __launch_bounds__(kThreads) FoldChannels(Params p) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < p.counter_count; i += kThreads) {
    sum += In(p.counter)[i];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  const int used = p.counter_count < kThreads ? static_cast<int>(p.counter_count) : kThreads;
  double count = 0;
  for (int i = 0; i < used; ++i) count += sums[i];

  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= p.c) return;
  static_cast<Channel*>(p.scratch)[c] = AnyChannel(p, c, __frcp_rn(static_cast<float>(count)));
}

constexpr int kOctet = 8;  // elements of one thread: 16 bytes of a 16-bit type, 32 of FLOAT

__device__ void LoadOctet(const void* data, DType dtype, int64_t i, int left, bool whole,
                          float (&to)[kOctet]) {
  const auto typed = [&]<class T>(const T* from) {
#pragma unroll
    for (int k = 0; k < kOctet; k += kLanes<T>) {
      float part[kLanes<T>];
      Unpack<T>(LoadVector(from + i + k, left - k, whole), part);
#pragma unroll
      for (int j = 0; j < kLanes<T>; ++j) to[k + j] = part[j];
    }
  };
  if (dtype == DType::kF32) typed(static_cast<const float*>(data));
  if (dtype == DType::kF16) typed(static_cast<const __half*>(data));
  if (dtype == DType::kBF16) typed(static_cast<const __nv_bfloat16*>(data));
}

__device__ void StoreOctet(void* data, DType dtype, int64_t i, int left, bool whole,
                           const float (&from)[kOctet]) {
  const auto typed = [&]<class T>(T* to) {
#pragma unroll
    for (int k = 0; k < kOctet; k += kLanes<T>) {
      float part[kLanes<T>];
#pragma unroll
      for (int j = 0; j < kLanes<T>; ++j) part[j] = from[k + j];
      StoreVector(to + i + k, Pack<T>(part), left - k, whole);
    }
  };
  if (dtype == DType::kF32) typed(static_cast<float*>(data));
  if (dtype == DType::kF16) typed(static_cast<__half*>(data));
  if (dtype == DType::kBF16) typed(static_cast<__nv_bfloat16*>(data));
}

__global__ void __launch_bounds__(kThreads) Simple(Params p, bool aligned) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kOctet;
  const int64_t count = p.outer * p.c * p.inner;
  if (i >= count) return;
  const int left = static_cast<int>(min(count - i, int64_t{kOctet}));
  const bool whole = aligned && left == kOctet;
  float dy[kOctet], x[kOctet];
  LoadOctet(p.dy.data, p.dy.dtype, i, left, whole, dy);
  LoadOctet(p.x.data, p.x.dtype, i, left, whole, x);
  const Channel* const channels = static_cast<const Channel*>(p.scratch);
  int64_t plane, offset, c;
  if (p.inner <= UINT32_MAX && p.c <= UINT32_MAX && i <= UINT32_MAX) {  // 64-bit division is slow
    plane = static_cast<uint32_t>(i) / static_cast<uint32_t>(p.inner);
    c = static_cast<uint32_t>(plane) % static_cast<uint32_t>(p.c);
  } else {
    plane = i / p.inner;
    c = plane % p.c;
  }
  offset = i - plane * p.inner;
#pragma unroll
  for (int k = 0; k < kOctet; ++k) {
    dy[k] = channels[c].Gradient(dy[k], x[k]);
    if (++offset == p.inner) offset = 0, c = c + 1 == p.c ? 0 : c + 1;
  }
  StoreOctet(p.dx, p.dx_dtype, i, left, whole, dy);
}

bool FitsAlways(const Params&) { return true; }

int64_t SimpleScratch(const void* params) {
  return static_cast<const Params*>(params)->c * static_cast<int64_t>(sizeof(Channel));
}

void RunSimple(const Params& p, const Launch& launch) {
  LaunchKernel<FoldChannels>(launch,
                             {.blocks = CeilDiv<int64_t>(p.c, kThreads), .threads = kThreads}, p);
  LaunchKernel<Simple>(
      launch, {.blocks = CeilDiv<int64_t>(Elements(p), kThreads * kOctet), .threads = kThreads}, p,
      Aligned({p.dy.data, p.x.data, p.dx}));
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsFlat, RunFlat>("flat"),
    MakeKernel<Params, FitsFew, RunFew>("few"),
    MakeKernel<Params, FitsAlways, RunSimple>("simple", SimpleScratch),
};

}  // namespace

std::span<const Kernel> BatchNormElemtBackwardKernels() { return kKernels; }

}  // namespace anyacl::cuda
