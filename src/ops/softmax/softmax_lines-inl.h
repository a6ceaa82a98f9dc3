// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Soft-max of rows in the type they are stored in, compiled once per SIMD target. Two terms of a sum are added in FLOAT, more in
// DOUBLE.
#if defined(ANYACL_OPS_SOFTMAX_SOFTMAX_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_SOFTMAX_SOFTMAX_LINES_INL_H_
#undef ANYACL_OPS_SOFTMAX_SOFTMAX_LINES_INL_H_
#else
#define ANYACL_OPS_SOFTMAX_SOFTMAX_LINES_INL_H_
#endif

#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/pointwise/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace softmax {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = cpu::HWY_NAMESPACE;
using anyacl::HWY_NAMESPACE::F32;
using anyacl::HWY_NAMESPACE::LaneCount;
using anyacl::HWY_NAMESPACE::Load1;
using anyacl::HWY_NAMESPACE::LoadUpTo;
using anyacl::HWY_NAMESPACE::NoFetch;
using anyacl::HWY_NAMESPACE::VF;
using anyacl::HWY_NAMESPACE::WideSum;
using anyacl::HWY_NAMESPACE::WriteLine;

// The first `count` numbers of v; `other` behind them.
HWY_INLINE VF FirstOf(VF v, int64_t count, VF other) {
  return count >= LaneCount() ? v : hn::IfThenElse(hn::FirstN(F32(), static_cast<size_t>(count)), v, other);
}

// NaN is passed over: it comes back in the sum.
template <class S>
float LargestOfLine(const S* x, int64_t count) {
  const F32 d;
  const int64_t lanes = LaneCount();
  const VF none = hn::Set(d, -std::numeric_limits<float>::infinity());
  VF most[4] = {none, none, none, none};
  const auto larger = [](VF a, VF b) HWY_ATTR { return hn::IfThenElse(hn::Gt(a, b), a, b); };
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    for (int64_t k = 0; k < 4; ++k) most[k] = larger(Load1(x + i + k * lanes), most[k]);
  }
  for (; i < count; i += lanes) most[0] = larger(FirstOf(LoadUpTo(x + i, count - i), count - i, none), most[0]);
  return hn::GetLane(hn::MaxOfLanes(d, larger(larger(most[0], most[1]), larger(most[2], most[3]))));
}

// Sum of at(i), vectors whose part behind the end is 0; at(i, n) where only n numbers are left.
template <class At>
HWY_INLINE double SumOfLine(int64_t count, const At& at) {
  const int64_t lanes = LaneCount();
  WideSum sum;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) sum.Add(hn::Add(at(i, lanes), at(i + lanes, lanes)));
  for (; i < count; i += lanes) sum.Add(FirstOf(at(i, count - i), count - i, hn::Zero(F32())));
  return sum.Total();
}

// exp(x - shift)
template <class S>
struct ExponentialOf : NoFetch {
  ExponentialOf(const S* x, float shift) : x(x), shift(shift) {}
  const S* x;
  float shift;
  HWY_INLINE VF Of(VF v) const { return simd::Exp(hn::Sub(v, hn::Set(F32(), shift))); }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(x + i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(x + i, n)); }
};
// f * factor
template <class F>
struct MultipleOf : NoFetch {
  MultipleOf(const F& f, double factor) : f(f), factor(static_cast<float>(factor)) {}
  F f;
  float factor;
  HWY_INLINE VF At(int64_t i) const { return hn::Mul(f.At(i), hn::Set(F32(), factor)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return hn::Mul(f.UpTo(i, n), hn::Set(F32(), factor)); }
};
// What has been written before.
struct Again : NoFetch {
  explicit Again(const float* x) : x(x) {}
  const float* x;
  HWY_INLINE VF At(int64_t i) const { return Load1(x + i); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return LoadUpTo(x + i, n); }
};
// (x - most) - log_sum
template <class S>
struct LogarithmOf : NoFetch {
  LogarithmOf(const S* x, float most, double log_sum) : x(x), most(most), log_sum(static_cast<float>(log_sum)) {}
  const S* x;
  float most, log_sum;
  HWY_INLINE VF Of(VF v) const { return hn::Sub(hn::Sub(v, hn::Set(F32(), most)), hn::Set(F32(), log_sum)); }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(x + i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(x + i, n)); }
};
// y * (g - sum), or g - exp(y) * sum
template <bool kLog, class S>
struct GradientOf : NoFetch {
  GradientOf(const S* g, const S* y, double sum) : g(g), y(y), sum(static_cast<float>(sum)) {}
  const S* g;
  const S* y;
  float sum;
  HWY_INLINE VF Of(VF a, VF b) const {
    const VF s = hn::Set(F32(), sum);
    return kLog ? hn::NegMulAdd(simd::Exp(b), s, a) : hn::Mul(b, hn::Sub(a, s));
  }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(g + i), Load1(y + i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(g + i, n), LoadUpTo(y + i, n)); }
};

template <class F>
HWY_INLINE double SumOfFunction(const F& f, int64_t count) {
  return SumOfLine(count, [&](int64_t i, int64_t n) HWY_ATTR { return f.UpTo(i, n); });
}

template <class S>
void SoftmaxOfLine(const S* x, int64_t count, bool stream, S* out) {
  constexpr bool kInPlace = std::is_same_v<S, float>;
  constexpr int64_t kKept = 4096;  // numbers whose exponentials are kept and not computed twice
  const ExponentialOf<S> e(x, LargestOfLine(x, count));
  alignas(64) float buffer[kInPlace ? 16 : kKept];
  float* kept = buffer;
  if constexpr (kInPlace) kept = out;
  else if (count > kKept) return WriteLine(MultipleOf(e, 1 / SumOfFunction(e, count)), count, stream, out);
  WriteLine(e, count, /*stream=*/false, kept);
  const Again again(kept);
  WriteLine(MultipleOf(again, 1 / SumOfFunction(again, count)), count, stream && !kInPlace, out);
}

template <class S>
void LogSoftmaxOfLine(const S* x, int64_t count, bool stream, S* out) {
  const float most = LargestOfLine(x, count);
  const double sum = SumOfFunction(ExponentialOf<S>(x, most), count);
  WriteLine(LogarithmOf<S>(x, most, std::log(sum)), count, stream, out);
}

template <class S>
void SoftmaxBackwardOfLine(const S* g, const S* y, int64_t count, bool stream, S* out) {
  const double sum = SumOfLine(count, [&](int64_t i, int64_t n) HWY_ATTR { return hn::Mul(LoadUpTo(g + i, n), LoadUpTo(y + i, n)); });
  WriteLine(GradientOf<false, S>(g, y, sum), count, stream, out);
}

template <class S>
void LogSoftmaxBackwardOfLine(const S* g, const S* y, int64_t count, bool stream, S* out) {
  const double sum = SumOfLine(count, [&](int64_t i, int64_t n) HWY_ATTR { return LoadUpTo(g + i, n); });
  WriteLine(GradientOf<true, S>(g, y, sum), count, stream, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
