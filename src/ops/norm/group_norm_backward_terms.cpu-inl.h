// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the kernels share: loads at the end of a range, dx of a range whose group is summed.
#if defined(ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TERMS_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TERMS_CPU_INL_H_
#undef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TERMS_CPU_INL_H_
#else
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_TERMS_CPU_INL_H_
#endif

#include "cpu/simd-inl.h"
#include "ops/norm/group_norm_backward.cpu.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE const T* In(const void* data) {
  return static_cast<const T*>(data);
}

// ---- The last vector of `count` elements ----
//
// It ends with the last element and overlaps the vector before it; when there are fewer elements
// than lanes it starts with the first one and goes through a buffer. Nothing outside the elements
// is touched.

HWY_INLINE int64_t LastAt(int64_t count) { return std::max<int64_t>(count - LaneCount(), 0); }

// The lanes whose elements no vector before had; `rest` of them.
HWY_INLINE hn::Mask<F32> LastMask(int64_t count, int64_t rest) {
  const F32 d;
  const int64_t lanes = LaneCount();
  if (count < lanes) return hn::FirstN(d, static_cast<size_t>(rest));
  return hn::Not(hn::FirstN(d, static_cast<size_t>(lanes - rest)));
}

template <class T>
HWY_INLINE VF LoadLast(const T* p, int64_t count) {
  return count >= LaneCount() ? Load1(p + count - LaneCount()) : LoadFirst(p, count);
}

template <class T>
HWY_INLINE void StoreLast(VF v, T* p, int64_t count) {
  count >= LaneCount() ? Store1(v, p + count - LaneCount()) : StoreFirst(v, p, count);
}

// At most kChunk elements of one channel or group.
struct ChunkSums {
  float db, ds;
};

// ---- dx of a range ----

HWY_INLINE VF Normal(VF x, VF mean, VF rstd) { return hn::Mul(hn::Sub(x, mean), rstd); }

HWY_INLINE VF Gradient(VF g, VF xhat, VF gamma, VF c1, VF c2, VF rstd) {
  return hn::Mul(rstd, hn::MulAdd(gamma, g, hn::NegMulSub(xhat, c2, c1)));
}

// Where the coefficients of an element come from. kInOrder: they depend on its position.
struct ChannelCoefficients {
  static constexpr bool kInOrder = false;
  float mean, rstd, gamma;
  Means means;

  ChannelCoefficients From(int64_t) const { return *this; }
  HWY_INLINE VF At(int64_t, VF g, VF x) const {
    const F32 d;
    const VF r = hn::Set(d, rstd);
    return Gradient(g, Normal(x, hn::Set(d, mean), r), hn::Set(d, gamma), hn::Set(d, means.c1),
                    hn::Set(d, means.c2), r);
  }
};

// The same with the constants multiplied out: three instructions instead of five. Worth it where no
// product of theirs leaves the range of numbers that float keeps exactly.
struct FoldedCoefficients {
  static constexpr bool kInOrder = false;
  float mean, scale, slope, shift;

  explicit FoldedCoefficients(const ChannelCoefficients& f)
      : mean(f.mean),
        scale(f.rstd * f.gamma),
        slope(f.rstd * f.rstd * f.means.c2),
        shift(-f.rstd * f.means.c1) {}

  bool IsSafe(float rstd) const {
    return InRange(rstd) && InRange(scale) && InRange(slope) && InRange(shift);
  }
  FoldedCoefficients From(int64_t) const { return *this; }
  HWY_INLINE VF At(int64_t, VF g, VF x) const {
    const F32 d;
    const VF centred = hn::Sub(x, hn::Set(d, mean));
    const VF rest = hn::NegMulAdd(centred, hn::Set(d, slope), hn::Set(d, shift));
    return hn::MulAdd(hn::Set(d, scale), g, rest);
  }

 private:
  static bool InRange(float v) {
    const float size = std::fabs(v);
    return size == 0.0f || (size >= 0x1p-64f && size <= 0x1p64f);
  }
};

struct GroupCoefficients {
  static constexpr bool kInOrder = true;
  float mean, rstd;
  Means means;
  const float* gamma;

  GroupCoefficients From(int64_t i) const { return {mean, rstd, means, gamma + i}; }
  HWY_INLINE VF At(int64_t i, VF g, VF x) const {
    const F32 d;
    const VF r = hn::Set(d, rstd);
    return Gradient(g, Normal(x, hn::Set(d, mean), r), hn::LoadU(d, gamma + i),
                    hn::Set(d, means.c1), hn::Set(d, means.c2), r);
  }
};

struct RowCoefficients {
  static constexpr bool kInOrder = true;
  const float *mean, *rstd, *gamma, *c1, *c2;

  RowCoefficients From(int64_t i) const { return {mean + i, rstd + i, gamma + i, c1 + i, c2 + i}; }
  HWY_INLINE VF At(int64_t i, VF g, VF x) const {
    const F32 d;
    const VF r = hn::LoadU(d, rstd + i);
    return Gradient(g, Normal(x, hn::LoadU(d, mean + i), r), hn::LoadU(d, gamma + i),
                    hn::LoadU(d, c1 + i), hn::LoadU(d, c2 + i), r);
  }
};

// Pairs in memory order, where Load2 and Stream2 may use an order of their own.
template <class T>
HWY_INLINE void StreamInOrder(VF a, VF b, T* p) {
  Stream2(a, b, p);
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void StreamInOrder(VF a, VF b, BFloat16* p) {
  const auto low = Narrow(hn::ShiftRight<16>(RoundToUpper16(a)));
  const auto high = Narrow(hn::ShiftRight<16>(RoundToUpper16(b)));
  hn::Stream(hn::Combine(Pair16(), high, low), Pair16(), Bits(p));
}
#endif

template <bool in_order, class T>
HWY_INLINE void LoadPair(const T* p, VF& a, VF& b) {
  if constexpr (in_order) {
    a = Load1(p);
    b = Load1(p + LaneCount());
  } else {
    Load2(p, a, b);
  }
}

template <bool stream, class T>
HWY_INLINE void StoreAsLoaded(VF a, VF b, T* p) {
  if constexpr (stream) {
    Stream2(a, b, p);
  } else {
    Store2(a, b, p);
  }
}

template <bool in_order, bool stream, class T>
HWY_INLINE void StorePair(VF a, VF b, T* p) {
  if constexpr (!in_order) {
    StoreAsLoaded<stream>(a, b, p);
  } else if constexpr (stream) {
    StreamInOrder(a, b, p);
  } else {
    Store1(a, p);
    Store1(b, p + LaneCount());
  }
}

// What the two reads of a group prefetch: what comes next in memory, which a Zen 4 does better without help as long as
// nothing is written (1x512x512x512 in FLOAT takes 1.53 times the floor instead of 1.70 where its cores have a way to
// the memory each, 1.56 and 1.57 otherwise),
struct FetchAlong {
  template <class T>
  HWY_INLINE void ForSums(const T* dy, const T* x, int64_t count) const {
    if (is_zen) return;
    FetchStream(dy, count);
    FetchStream(x, count);
  }
  template <class T>
  HWY_INLINE void ForGradients(const T* dy, const T* x, int64_t count) const {
    FetchOnce(dy, count);
    FetchOnce(x, count);
  }
};

// or dy of the next group, `ahead` elements behind this one, while dx is written. (For a Zen 4, which brings x by itself:
// asked for it, too, it is slower.)
struct FetchNextGroup {
  int64_t ahead;
  template <class T>
  HWY_INLINE void ForSums(const T*, const T*, int64_t) const {}
  template <class T>
  HWY_INLINE void ForGradients(const T* dy, const T*, int64_t count) const {
    Fetch(dy + ahead, count);
  }
};

// Whole pairs of vectors; gives the number of elements done.
template <bool stream, class T, class Coefficients, class Fetching = FetchAlong>
HWY_INLINE int64_t GradientPairs(const T* dy, const T* x, T* dx, int64_t count, Coefficients f,
                                 Fetching fetching = {}) {
  constexpr bool in_order = Coefficients::kInOrder;
  const int64_t step = static_cast<int64_t>(PairLanes());
  int64_t i = 0;
  for (; i + step <= count; i += step) {
    VF g0, g1, x0, x1;
    if constexpr (stream) fetching.ForGradients(dy + i, x + i, step);
    LoadPair<in_order>(dy + i, g0, g1);
    LoadPair<in_order>(x + i, x0, x1);
    StorePair<in_order, stream>(f.At(i, g0, x0), f.At(i + LaneCount(), g1, x1), dx + i);
  }
  return i;
}

template <class T, class Coefficients>
void PlainGradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f) {
  const int64_t lanes = LaneCount();
  int64_t i = GradientPairs<false>(dy, x, dx, count, f);
  for (; i + lanes <= count; i += lanes) {  // at most once
    Store1(f.At(i, Load1(dy + i), Load1(x + i)), dx + i);
  }
  if (i < count) StoreLast(f.At(LastAt(count), LoadLast(dy, count), LoadLast(x, count)), dx, count);
}

template <class T, class Coefficients, class Fetching>
void StreamedGradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f,
                       Fetching fetching) {
  SplitAtLines(
      dx, count,
      [&](int64_t i, int64_t n) HWY_ATTR { PlainGradients(dy + i, x + i, dx + i, n, f.From(i)); },
      [&](int64_t i, int64_t n)
          HWY_ATTR { GradientPairs<true>(dy + i, x + i, dx + i, n, f.From(i), fetching); });
}

template <class T, class Coefficients, class Fetching = FetchAlong>
HWY_INLINE void Gradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f,
                          bool stream, Fetching fetching = {}) {
  stream ? StreamedGradients(dy, x, dx, count, f, fetching) : PlainGradients(dy, x, dx, count, f);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
