// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// BatchNormElemtBackward on CUDA: one 16-byte vector of each array per thread, in one flat grid. A vector
// meets two channels at most where planes are as long as a vector; its channel comes from a fast division,
// and the channel's numbers from the caches: both cost nothing that could be measured.
#include "cuda/elements.cuh"
#include "cuda/fast_divisor.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"
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

// The sum of a few counters.
__device__ float Count(const Params& p) {
  float count = 0;
  for (int k = 0; k < p.counter_count; ++k) count += In(p.counter)[k];
  return count;
}

// ---- flat: one dtype for the elements, one for the channels, planes as long as a vector ----

// Usual calls have one FLOAT counter and a weight of the channels' dtype: no questions on the way to the loads.
enum class Kind {
  kUsual,
  kUsualShort,  // planes so short that many vectors meet two channels: both are loaded at once
  kAny,
};

// The numbers of one channel on their way; weight has a dtype of its own, because a plan cannot tell an
// absent one from one of FLOAT.
template <class P, Kind kKind>
struct LoadedChannel {
  static constexpr bool kUsual = kKind != Kind::kAny;
  __device__ LoadedChannel(const Params& p, uint32_t c)
      : mean(At(p.mean, c)),
        invstd(At(p.invstd, c)),
        sum_dy(At(p.sum_dy, c)),
        sum_dy_xmu(At(p.sum_dy_xmu, c)) {
    if constexpr (kUsual) {
      weight = At(p.weight, c);
    } else {
      weight = p.weight.data ? In(p.weight).Raw(c) : 0;
    }
  }
  __device__ static P At(const Operand& from, uint32_t c) {
    return static_cast<const P*>(from.data)[c];
  }
  __device__ Channel Ready(const Params& p, float over_count) const {
    return MakeChannel(ToFloat(mean), ToFloat(invstd), Weight(p), ToFloat(sum_dy),
                       ToFloat(sum_dy_xmu), over_count);
  }
  __device__ float Weight(const Params& p) const {
    if constexpr (kUsual) {
      return ToFloat(weight);
    } else {
      return p.weight.data ? In(p.weight).Decode(weight) : 1.0f;
    }
  }
  P mean, invstd, sum_dy, sum_dy_xmu;
  std::conditional_t<kUsual, P, uint32_t> weight;
};

template <Kind kKind>
__device__ float CountOf(const Params& p) {
  if constexpr (kKind == Kind::kAny) return Count(p);
  return __fadd_rn(0.0f, *static_cast<const float*>(p.counter.data));  // as a sum: -0 becomes 0
}

struct Planes {
  FastDivisor inner;
  FastDivisor channels;
  bool small;  // the divisors can be used
};

template <class T, class P, Kind kKind>
__global__ void __launch_bounds__(kThreads, 6)
    Flat(const __grid_constant__ Params p, const __grid_constant__ Planes planes,
         const __grid_constant__ bool aligned) {
  BeginKernel();
  constexpr int kV = kLanes<T>;
  using Loaded = LoadedChannel<P, kKind>;
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
  const uint32_t next = c + 1 < p.c ? c + 1 : 0;
  const Loaded loaded(p, c);
  float dy[kV], x[kV];
  const auto with_two = [&](const Channel& one, const Channel& two) {
#pragma unroll
    for (int k = 0; k < kV; ++k) dy[k] = (k < rest ? one : two).Gradient(dy[k], x[k]);
  };
  if constexpr (kKind == Kind::kUsualShort) {
    const Loaded other(p, rest < kV ? next : c);
    const float over_count = __frcp_rn(CountOf<kKind>(p));
    Unpack<T>(dy_bits, dy);
    Unpack<T>(x_bits, x);
    with_two(loaded.Ready(p, over_count), other.Ready(p, over_count));
  } else {
    const float over_count = __frcp_rn(CountOf<kKind>(p));
    const Channel one = loaded.Ready(p, over_count);
    Unpack<T>(dy_bits, dy);
    Unpack<T>(x_bits, x);
    if (rest >= kV) {
#pragma unroll
      for (int k = 0; k < kV; ++k) dy[k] = one.Gradient(dy[k], x[k]);
    } else {
      with_two(one, Loaded(p, next).Ready(p, over_count));
    }
  }
  StoreVector(static_cast<T*>(p.dx) + i, Pack<T>(dy), left, whole);
}

bool HasOneType(const Params& p) {
  const DType channel = p.mean.dtype;
  return p.dy.dtype == p.x.dtype && p.dx_dtype == p.x.dtype && p.invstd.dtype == channel &&
         p.sum_dy.dtype == channel && p.sum_dy_xmu.dtype == channel &&
         (channel == p.x.dtype || channel == DType::kF32);
}

bool IsUsual(const Params& p) {
  return HasOneType(p) && p.weight.data && p.weight.dtype == p.mean.dtype && p.counter_count == 1 &&
         p.counter.dtype == DType::kF32;
}

// Calls f.operator()<T, P>(): the types of elements and channels.
template <class F>
void WithTypes(const Params& p, F&& f) {
  WithType(p.x.dtype, [&]<class T>() {
    p.mean.dtype == DType::kF32 ? f.template operator()<T, float>() : f.template operator()<T, T>();
  });
}

bool FitsFlat(const Params& p) {
  return HasOneType(p) && p.inner >= 16 / static_cast<int64_t>(SizeOf(p.x.dtype)) &&
         p.counter_count <= kMaxCounters && p.c < (int64_t{1} << 31);
}

void RunFlat(const Params& p, const Launch& launch) {
  constexpr int64_t kShortPlane = 128;
  Planes planes{};
  planes.small = Elements(p) < (int64_t{1} << 31);
  if (planes.small) {
    planes.inner = FastDivisor(static_cast<uint32_t>(p.inner));
    planes.channels = FastDivisor(static_cast<uint32_t>(p.c));
  }
  const bool aligned = Aligned({p.dy.data, p.x.data, p.dx});
  WithTypes(p, [&]<class T, class P>() {
    const LaunchShape shape{.blocks = CeilDiv<int64_t>(Elements(p), kThreads * kLanes<T>),
                            .threads = kThreads};
    if (!IsUsual(p)) {
      LaunchKernel<Flat<T, P, Kind::kAny>>(launch, shape, p, planes, aligned);
    } else if (p.inner < kShortPlane) {
      LaunchKernel<Flat<T, P, Kind::kUsualShort>>(launch, shape, p, planes, aligned);
    } else {
      LaunchKernel<Flat<T, P, Kind::kUsual>>(launch, shape, p, planes, aligned);
    }
  });
}

// ---- few: any dtypes, one element per thread, where a second launch would cost more ----

constexpr int64_t kFewElements = 1 << 16;
constexpr int64_t kFewest = 1 << 10;  // fewer threads with more to do each would take longer

__device__ uint32_t ChannelOf(const Params& p, uint32_t i) {
  return i / static_cast<uint32_t>(p.inner) % static_cast<uint32_t>(p.c);
}

__global__ void __launch_bounds__(kThreads) Few(const __grid_constant__ Params p) {
  BeginKernel();
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.outer * p.c * p.inner) return;
  const uint32_t dy = In(p.dy).Raw(i), x = In(p.x).Raw(i);
  const Channel channel = AnyChannel(p, ChannelOf(p, i), __frcp_rn(Count(p)));
  StoreAs(p.dx, p.dx_dtype, i, channel.Gradient(In(p.dy).Decode(dy), In(p.x).Decode(x)));
}

template <class T, class P>
__global__ void __launch_bounds__(kThreads) UsualFew(const __grid_constant__ Params p) {
  BeginKernel();
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= p.outer * p.c * p.inner) return;
  const T dy = static_cast<const T*>(p.dy.data)[i], x = static_cast<const T*>(p.x.data)[i];
  const float count = CountOf<Kind::kUsual>(p);
  const LoadedChannel<P, Kind::kUsual> loaded(p, ChannelOf(p, i));
  const Channel channel = loaded.Ready(p, __frcp_rn(count));
  static_cast<T*>(p.dx)[i] = FromFloat<T>(channel.Gradient(ToFloat(dy), ToFloat(x)));
}

bool FitsFew(const Params& p) {
  return Elements(p) <= (FitsFlat(p) ? kFewest : kFewElements) && p.counter_count <= kMaxCounters;
}

void RunFew(const Params& p, const Launch& launch) {
  const LaunchShape shape{.blocks = CeilDiv<int64_t>(Elements(p), kThreads), .threads = kThreads};
  if (!IsUsual(p)) return LaunchKernel<Few>(launch, shape, p);
  WithTypes(p, [&]<class T, class P>() { LaunchKernel<UsualFew<T, P>>(launch, shape, p); });
}

// ---- simple: any dtypes, short planes (channels last), many counters ----

// One block per 256 channels; each adds up the counters, in the same order.
__global__ void __launch_bounds__(kThreads) FoldChannels(const __grid_constant__ Params p) {
  BeginKernel();
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

__global__ void __launch_bounds__(kThreads)
    Simple(const __grid_constant__ Params p, const __grid_constant__ bool aligned) {
  BeginKernel();
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
    MakeKernel<Params, FitsFew, RunFew>("few"),
    MakeKernel<Params, FitsFlat, RunFlat>("flat"),
    MakeKernel<Params, FitsAlways, RunSimple>("simple", SimpleScratch),
};

}  // namespace

std::span<const Kernel> BatchNormElemtBackwardKernels() { return kKernels; }

}  // namespace anyacl::cuda
