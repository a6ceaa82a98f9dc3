// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// EluBackward on the CPU. Both branches are computed and one is selected, in the order of
// operations of the reference, so that the bits are those of the float reference but for exp.
#include "ops/activation/elu_backward.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/activation/elu_backward.cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {  // other operators have functions of the same names

// The numbers of a call, copied so that no store can seem to change them.
struct Coefficients {
  explicit Coefficients(const EluBackwardParams& p)
      : negcoef(p.negcoef),
        scale(p.scale),
        input_scale(p.input_scale),
        exponent_scale(static_cast<float>(p.input_scale * 1.4426950408889634)),
        least_x(-kShortExpRange / std::abs(exponent_scale)) {}
  float negcoef;
  float scale;
  float input_scale;
  float exponent_scale;  // exp(x * input_scale) = 2^(x * exponent_scale)
  float least_x;         // below it that is 0 or infinity
};

// exp(x * input_scale) where x <= 0, as exact as a result in T can show. (A NaN, which the limits may
// swallow, is not <= 0.)
template <class T, bool unit_scale>
HWY_INLINE VF ExpOfScaled(VF x, const Coefficients& c) {
  const F32 d;
  if constexpr (!std::is_same_v<T, float>) {
    constexpr int kDegree = std::is_same_v<T, Half> ? 5 : 4;
    if constexpr (kShortExpHasRange) x = hn::Max(x, hn::Set(d, c.least_x));
    return ShortExp2<kDegree>(x, hn::Set(d, c.exponent_scale));
  } else if constexpr (unit_scale) {
    return ExpWithin(hn::Max(x, hn::Set(d, kLeastExp)));
  } else {
    return Exp(hn::Mul(x, hn::Set(d, c.input_scale)));
  }
}

// Simple: below 0 dx is dy times one number, because input_scale is 1 and, from the input, negcoef too.
// That takes fewer instructions for the same bits, which shows even where the arrays are in memory.
enum class Form { kResult, kSimpleResult, kExp, kSimpleExp };

template <class T, Form form>
HWY_INLINE VF Gradient(VF g, VF x, const Coefficients& c) {
  const F32 d;
  const auto is_below = hn::Le(x, hn::Zero(d));
  const VF negcoef = hn::Set(d, c.negcoef);
  const VF scale = hn::Set(d, c.scale);
  if constexpr (form == Form::kSimpleResult) {
    return hn::Mul(g, hn::IfThenElse(is_below, hn::Add(x, negcoef), scale));
  } else if constexpr (form == Form::kSimpleExp) {
    return hn::Mul(g, hn::IfThenElse(is_below, ExpOfScaled<T, true>(x, c), scale));
  } else {
    const VF inner = hn::Mul(g, hn::Set(d, c.input_scale));
    const VF below = form == Form::kResult
                         ? hn::Mul(inner, hn::Add(x, negcoef))
                         : hn::Mul(hn::Mul(inner, negcoef), ExpOfScaled<T, false>(x, c));
    return hn::IfThenElse(is_below, below, hn::Mul(g, scale));
  }
}

// Whole pairs of vectors; gives the number of elements done.
template <class T, Form form, bool stream>
HWY_INLINE int64_t Pairs(const T* dy, const T* x, T* dx, int64_t count, const Coefficients& c) {
  const int64_t step = static_cast<int64_t>(PairLanes());
  int64_t i = 0;
  for (; i + step <= count; i += step) {
    if constexpr (stream) {
      FetchOnce(dy + i, step);
      FetchOnce(x + i, step);
    }
    VF g0, g1, x0, x1;
    Load2(dy + i, g0, g1);
    Load2(x + i, x0, x1);
    const VF dx0 = Gradient<T, form>(g0, x0, c);
    const VF dx1 = Gradient<T, form>(g1, x1, c);
    if constexpr (stream) {
      Stream2(dx0, dx1, dx + i);
    } else {
      Store2(dx0, dx1, dx + i);
    }
  }
  return i;
}

template <class T, Form form>
void Plain(const T* dy, const T* x, T* dx, int64_t count, const Coefficients& c) {
  const int64_t lanes = LaneCount();
  int64_t i = Pairs<T, form, false>(dy, x, dx, count, c);
  for (; i + lanes <= count; i += lanes) {  // at most once
    Store1(Gradient<T, form>(Load1(dy + i), Load1(x + i), c), dx + i);
  }
  if (i == count) return;
  const int64_t rest = count - i;
  const VF last = Gradient<T, form>(LoadFirst(dy + i, rest), LoadFirst(x + i, rest), c);
  StoreFirst(last, dx + i, rest);
}

template <class T, Form form>
void Streamed(const T* dy, const T* x, T* dx, int64_t count, const Coefficients& c) {
  SplitAtLines(
      dx, count,
      [&](int64_t i, int64_t n) HWY_ATTR { Plain<T, form>(dy + i, x + i, dx + i, n, c); },
      [&](int64_t i, int64_t n) HWY_ATTR { Pairs<T, form, true>(dy + i, x + i, dx + i, n, c); });
  EndStream();
}

// dx of another dtype: block by block through buffers that stay in the first cache.
inline constexpr int64_t kBlock = 512;  // a multiple of any number of lanes

template <class T, class Out>
void ConvertBlock(const T* from, Out* to, int64_t count) {
  constexpr bool is_real = sizeof(Out) <= sizeof(float);  // not DOUBLE, COMPLEX64, COMPLEX128
  std::conditional_t<is_real, Out, float> buffer[kBlock];
  for (int64_t i = 0; i < count; i += LaneCount()) Store1(Load1(from + i), buffer + i);
  if constexpr (is_real) {
    std::memcpy(to, buffer, count * sizeof(Out));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(buffer[i]);
  }
}

template <class T, Form form, class Out>
void Converted(const T* dy, const T* x, Out* dx, int64_t count, const Coefficients& c) {
  T block[kBlock] = {};
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    Plain<T, form>(dy + i, x + i, block, n, c);
    ConvertBlock(block, dx + i, n);
  }
}

template <class T, Form form>
void SameType(const EluBackwardParams& p, int64_t begin, int64_t count, bool stream) {
  const T* const dy = static_cast<const T*>(p.dy) + begin;
  const T* const x = static_cast<const T*>(p.x) + begin;
  T* const dx = static_cast<T*>(p.dx) + begin;
  const Coefficients c(p);
  stream ? Streamed<T, form>(dy, x, dx, count, c) : Plain<T, form>(dy, x, dx, count, c);
}

template <class T, Form form>
void OtherType(const EluBackwardParams& p, int64_t begin, int64_t count) {
  const T* const dy = static_cast<const T*>(p.dy) + begin;
  const T* const x = static_cast<const T*>(p.x) + begin;
  const Coefficients c(p);
  const auto to = [&]<class Out>(Out* dx)
                      HWY_ATTR { Converted<T, form>(dy, x, dx + begin, count, c); };
  switch (p.out_dtype) {
    case DType::kF32:
      return to(static_cast<float*>(p.dx));
    case DType::kF16:
      return to(static_cast<Half*>(p.dx));
    case DType::kBF16:
      return to(static_cast<BFloat16*>(p.dx));
    case DType::kF64:
      return to(static_cast<double*>(p.dx));
    case DType::kC64:
      return to(static_cast<std::complex<float>*>(p.dx));
    case DType::kC128:
      return to(static_cast<std::complex<double>*>(p.dx));
    default:
      return;
  }
}

template <class T, Form form, Form simple>
void RangeOf(const EluBackwardParams& p, int64_t begin, int64_t count, bool stream) {
  if (p.out_dtype != p.dtype) return OtherType<T, form>(p, begin, count);
  const bool is_simple = p.input_scale == 1 && (p.is_result || p.negcoef == 1);
  is_simple ? SameType<T, simple>(p, begin, count, stream)
            : SameType<T, form>(p, begin, count, stream);
}

template <class T>
void RangeOf(const EluBackwardParams& p, int64_t begin, int64_t count, bool stream) {
  p.is_result ? RangeOf<T, Form::kResult, Form::kSimpleResult>(p, begin, count, stream)
              : RangeOf<T, Form::kExp, Form::kSimpleExp>(p, begin, count, stream);
}

// Elements [begin, begin + count).
void Range(const EluBackwardParams& p, int64_t begin, int64_t count, bool stream) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { RangeOf<T>(p, begin, count, stream); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(Range);

// Bytes of one array in a task that streams: every such task starts with lines nobody prefetched.
constexpr int64_t kShortStream = 128 << 10;
constexpr int64_t kLongStream = 1 << 20;

int64_t StreamTask(int64_t bytes) {
  constexpr int64_t kPage = 4096;
  return std::clamp(bytes / (2 * MaxThreads()) / kPage * kPage, kShortStream, kLongStream);
}

// The short exp needs a limit for x: it has none where input_scale makes it overflow or vanish.
bool FitsVector(const EluBackwardParams& p) {
  const float magnitude = std::abs(p.input_scale);
  const bool short_exp = !p.is_result && p.dtype != DType::kF32;
  return !short_exp || magnitude == 0 || (magnitude >= 1e-30f && magnitude <= 1e30f);
}

void Vector(const EluBackwardParams& p) {
  const auto range = &HWY_DYNAMIC_DISPATCH(Range);
  if (p.count <= kTask) return range(p, 0, p.count, false);
  const int64_t size = static_cast<int64_t>(SizeOf(p.dtype));
  const bool stream = p.count * 3 * size >= stream_bytes;
  const int64_t task = stream ? StreamTask(p.count * size) / size : kTask;
  ParallelFor(CeilDiv(p.count, task), [&](int64_t i) {
    const int64_t begin = i * task;
    range(p, begin, std::min(task, p.count - begin), stream);
  });
}

constexpr Kernel kKernels[] = {
    MakeKernel<EluBackwardParams, FitsVector, Vector>("vector"),
    MakeKernel<EluBackwardParams, FitsAlways<EluBackwardParams>, reference::EluBackward<float>>(
        "reference"),
};

}  // namespace

std::span<const Kernel> EluBackwardKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
