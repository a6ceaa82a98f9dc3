// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Lines: numbers that lie one behind the other, read and written in the type they are stored in, S, and computed in FLOAT; compiled
// once per SIMD target.
#if defined(ANYACL_OPS_POINTWISE_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_POINTWISE_LINES_INL_H_
#undef ANYACL_OPS_POINTWISE_LINES_INL_H_
#else
#define ANYACL_OPS_POINTWISE_LINES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = cpu::HWY_NAMESPACE;
using simd::F32;
using simd::LaneCount;
using simd::Load1;
using simd::VF;
using F64 = hn::ScalableTag<double>;
using VD = hn::Vec<F64>;

// ---- part of a vector: at most `count` numbers ----

// Tells the compiler what it does not see where numbers may wrap.
HWY_INLINE int64_t PartOf(int64_t count) {
  if (count < 0 || count >= LaneCount()) __builtin_unreachable();
  return count;
}
template <class S>
HWY_INLINE VF LoadUpTo(const S* p, int64_t count) {
  return count >= LaneCount() ? Load1(p) : simd::LoadFirst(p, PartOf(count));
}
template <class S>
HWY_INLINE void StoreUpTo(VF v, S* p, int64_t count) {
  count >= LaneCount() ? simd::Store1(v, p) : simd::StoreFirst(v, p, PartOf(count));
}

template <class To, class From>
void Convert(const From* from, int64_t count, To* to) {
  for (int64_t i = 0; i < count; i += LaneCount()) StoreUpTo(LoadUpTo(from + i, count - i), to + i, count - i);
}

// ---- two vectors that belong behind each other, in memory order ----

template <class S>
HWY_INLINE void Store2InOrder(VF a, VF b, S* p) {
  simd::Store1(a, p);
  simd::Store1(b, p + LaneCount());
}
template <class S>
HWY_INLINE void Stream2InOrder(VF a, VF b, S* p) {
  simd::Stream2(a, b, p);
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE hn::Vec<simd::Pair16> JoinInOrder(VF a, VF b) {
#if ANYACL_NATIVE_BFLOAT16
  if (HWY_LIKELY(cpu::has_bfloat16_rounding)) {
    hn::Vec<simd::Pair16> joined;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(joined.raw) : "v"(a.raw), "v"(b.raw));
    if (HWY_LIKELY(!simd::HasZero(joined) || simd::NoneIsSubnormal(a, b))) return joined;
  }
#endif
  const auto narrow = [](VF v) HWY_ATTR { return simd::Narrow(hn::ShiftRight<16>(simd::RoundToUpper16(v))); };
  return hn::Combine(simd::Pair16(), narrow(b), narrow(a));
}
HWY_INLINE void Store2InOrder(VF a, VF b, BFloat16* p) { hn::StoreU(JoinInOrder(a, b), simd::Pair16(), simd::Bits(p)); }
HWY_INLINE void Stream2InOrder(VF a, VF b, BFloat16* p) { hn::Stream(JoinInOrder(a, b), simd::Pair16(), simd::Bits(p)); }
#endif

// ---- vectors of double ----

inline constexpr int64_t kParts = HWY_TARGET == HWY_SCALAR ? 1 : 2;  // that hold one of float

HWY_INLINE void Widen(VF v, VD* parts) {
#if HWY_TARGET == HWY_SCALAR
  parts[0] = hn::PromoteTo(F64(), v);
#else
  parts[0] = hn::PromoteTo(F64(), hn::LowerHalf(v));
  parts[1] = hn::PromoteTo(F64(), hn::UpperHalf(hn::Half<F32>(), v));
#endif
}

template <class S>
HWY_INLINE void LoadWide(const S* p, VD* parts) {
  Widen(Load1(p), parts);
}
HWY_INLINE void LoadWide(const float* p, VD* parts) {
  const hn::Rebind<float, F64> half;
  for (int64_t k = 0; k < kParts; ++k) {
    parts[k] = hn::PromoteTo(F64(), hn::LoadU(half, p + k * static_cast<int64_t>(hn::Lanes(half))));
  }
}

// A sum of vectors of float.
struct WideSum {
  VD parts[kParts];
  HWY_INLINE WideSum() {
    for (VD& part : parts) part = hn::Zero(F64());
  }
  HWY_INLINE void Add(VF v) {
    VD wide[kParts];
    Widen(v, wide);
    for (int64_t k = 0; k < kParts; ++k) parts[k] = hn::Add(parts[k], wide[k]);
  }
  HWY_INLINE double Total() const {
    VD sum = parts[0];
    for (int64_t k = 1; k < kParts; ++k) sum = hn::Add(sum, parts[k]);
    return hn::GetLane(hn::SumOfLanes(F64(), sum));
  }
};

// ---- lines ----

// Nothing is prefetched.
struct NoFetch {
  HWY_INLINE void Fetch(int64_t, int64_t) const {}
};

// y = f of a line: f.At(i) is the vector at i, f.UpTo(i, n) its first n numbers, f.Fetch(i, n) prefetches what will be needed next.
// With `stream` past the caches.
template <class F, class S>
HWY_INLINE void WriteLine(const F& f, int64_t count, bool stream, S* y) {
  const int64_t lanes = LaneCount();
  const auto plain = [&](int64_t begin, int64_t size) HWY_ATTR {
    const int64_t end = begin + size;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      f.Fetch(i, 2 * lanes);
      Store2InOrder(f.At(i), f.At(i + lanes), y + i);
    }
    for (; i < end; i += lanes) StoreUpTo(f.UpTo(i, end - i), y + i, end - i);
  };
  if (!stream) return plain(0, count);
  simd::SplitAtLines(y, count, plain, [&](int64_t begin, int64_t size) HWY_ATTR {
    for (int64_t i = begin; i < begin + size; i += 2 * lanes) {
      f.Fetch(i, 2 * lanes);
      Stream2InOrder(f.At(i), f.At(i + lanes), y + i);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
