// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What all CPU kernels share, compiled once per SIMD target: numbers of any storage type in and out
// of float vectors, streaming stores, exp.
//
// Elements travel one vector at a time in memory order (Load1, Store1) or two at a time (Load2,
// Store2, Stream2). The order inside such a pair is that of the type and the same for its loads and
// stores: BFloat16 splits even and odd elements, which needs neither widening nor packing
// instructions. Kernels that mix types and care about positions use the single forms.
//
// Conversions to 16 bits round to nearest even and keep NaN and subnormals: Highway 1.0.3 truncates
// to bfloat16, and its half emulation (targets below AVX2) loses NaN, infinity and ties.

#if defined(ANYACL_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_CPU_SIMD_INL_H_
#undef ANYACL_CPU_SIMD_INL_H_
#else
#define ANYACL_CPU_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "core/scalar.h"
#include "cpu/targets.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

// Conversion instructions for half: F16C on x86, always on 64-bit ARM.
#undef ANYACL_NATIVE_HALF
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && \
    (HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2))
#define ANYACL_NATIVE_HALF 1
#else
#define ANYACL_NATIVE_HALF 0
#endif

// AVX-512 BF16: has_bfloat16_rounding says whether the machine has it.
#undef ANYACL_NATIVE_BFLOAT16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define ANYACL_NATIVE_BFLOAT16 1
#else
#define ANYACL_NATIVE_BFLOAT16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;          // as many lanes as F32, half the bytes
using Pair16 = hn::Repartition<uint16_t, F32>;  // a full vector; does not exist for HWY_SCALAR
using VF = hn::Vec<F32>;
using VU = hn::Vec<U32>;

inline constexpr size_t kLineBytes = 64;

HWY_INLINE int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(F32())); }

// Calls body with a null pointer to the type of elements of `dtype`.
template <class Body>
HWY_INLINE void WithType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(static_cast<float*>(nullptr));
    case DType::kF16:
      return body(static_cast<Half*>(nullptr));
    case DType::kBF16:
      return body(static_cast<BFloat16*>(nullptr));
    default:
      return;
  }
}

// ---- 16 bits, as integers in 32-bit lanes ----

// The bfloat16 in the upper half of each lane, the lower half is rubbish.
HWY_INLINE VU RoundToUpper16(VF v) {
  const U32 du;
  const VU bits = hn::BitCast(du, v);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const VU rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  // Rounding could carry a NaN into infinity or zero. (IsNaN, because Ne of AVX is false for NaN.)
  const VU quiet = hn::Or(bits, hn::Set(du, 0x400000));
  return hn::BitCast(
      du, hn::IfThenElse(hn::IsNaN(v), hn::BitCast(F32(), quiet), hn::BitCast(F32(), rounded)));
}

HWY_INLINE hn::Vec<U16> Narrow(VU v) { return hn::DemoteTo(U16(), hn::BitCast(I32(), v)); }

#if !ANYACL_NATIVE_HALF
// Multiplying by a power of two moves the exponent and normalises subnormals in one go.
HWY_INLINE VF FloatOfHalfBits(VU half) {
  const U32 du;
  const F32 df;
  const VU magnitude = hn::And(half, hn::Set(du, 0x7fff));
  const VU sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
  const VF value = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1p112f));
  const VF special = hn::Or(value, hn::BitCast(df, hn::Set(du, 0x7f800000)));
  const auto is_special = hn::Ge(value, hn::Set(df, 65536.0f));
  return hn::Or(hn::IfThenElse(is_special, special, value), hn::BitCast(df, sign));
}

HWY_INLINE VU HalfBitsOfFloat(VF v) {
  const U32 du;
  const F32 df;
  const VF magnitude = hn::Abs(v);
  const VU bits = hn::BitCast(du, magnitude);
  const VU sign = hn::ShiftRight<16>(hn::Xor(hn::BitCast(du, v), bits));
  const VU odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const VU normal = hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0xc8000fffu))));
  // Adding 0.5 leaves the value in units of 2^-24 in the low bits, rounded by the adder itself.
  const VF half = hn::Set(df, 0.5f);
  const VU subnormal = hn::Sub(hn::BitCast(du, hn::Add(magnitude, half)), hn::BitCast(du, half));
  const VU payload = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x1ff));
  const VU nan = hn::Or(payload, hn::Set(du, 0x7e00));
  const auto pick = [&](auto mask, VU yes, VU no) HWY_ATTR {
    return hn::BitCast(du, hn::IfThenElse(mask, hn::BitCast(df, yes), hn::BitCast(df, no)));
  };
  VU result = pick(hn::Lt(magnitude, hn::Set(df, 0x1p-14f)), subnormal, normal);
  result = pick(hn::Ge(magnitude, hn::Set(df, 65520.0f)), hn::Set(du, 0x7c00), result);
  result = pick(hn::IsNaN(v), nan, result);
  return hn::Or(result, sign);
}
#endif

// ---- One vector, in memory order ----

HWY_INLINE const uint16_t* Bits(const Half* p) { return reinterpret_cast<const uint16_t*>(p); }
HWY_INLINE const uint16_t* Bits(const BFloat16* p) { return reinterpret_cast<const uint16_t*>(p); }
HWY_INLINE uint16_t* Bits(Half* p) { return reinterpret_cast<uint16_t*>(p); }
HWY_INLINE uint16_t* Bits(BFloat16* p) { return reinterpret_cast<uint16_t*>(p); }

#if ANYACL_NATIVE_HALF
using F16 = hn::Rebind<hwy::float16_t, F32>;
HWY_INLINE VF FloatOfHalf(hn::Vec<U16> v) { return hn::PromoteTo(F32(), hn::BitCast(F16(), v)); }
HWY_INLINE hn::Vec<U16> HalfOfFloat(VF v) { return hn::BitCast(U16(), hn::DemoteTo(F16(), v)); }
#else
HWY_INLINE VF FloatOfHalf(hn::Vec<U16> v) { return FloatOfHalfBits(hn::PromoteTo(U32(), v)); }
HWY_INLINE hn::Vec<U16> HalfOfFloat(VF v) { return Narrow(HalfBitsOfFloat(v)); }
#endif

HWY_INLINE VF Load1(const float* p) { return hn::LoadU(F32(), p); }
HWY_INLINE VF Load1(const Half* p) { return FloatOfHalf(hn::LoadU(U16(), Bits(p))); }
HWY_INLINE VF Load1(const BFloat16* p) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), Bits(p)))));
}

HWY_INLINE void Store1(VF v, float* p) { hn::StoreU(v, F32(), p); }
HWY_INLINE void Store1(VF v, Half* p) { hn::StoreU(HalfOfFloat(v), U16(), Bits(p)); }
HWY_INLINE void Store1(VF v, BFloat16* p) {
  hn::StoreU(Narrow(hn::ShiftRight<16>(RoundToUpper16(v))), U16(), Bits(p));
}

// ---- Part of a vector ----

// The first `count` elements, fewer than there are lanes, and zeros; nothing behind them is touched.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && \
    HWY_TARGET != HWY_SCALAR  // lanes under a false mask cannot fault
HWY_INLINE VF LoadFirst(const float* p, int64_t count) {
  return hn::MaskedLoad(hn::FirstN(F32(), static_cast<size_t>(count)), F32(), p);
}
HWY_INLINE VF LoadFirst(const Half* p, int64_t count) {
  return FloatOfHalf(hn::MaskedLoad(hn::FirstN(U16(), static_cast<size_t>(count)), U16(), Bits(p)));
}
HWY_INLINE VF LoadFirst(const BFloat16* p, int64_t count) {
  const auto v = hn::MaskedLoad(hn::FirstN(U16(), static_cast<size_t>(count)), U16(), Bits(p));
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), v)));
}
HWY_INLINE void StoreFirst(VF v, float* p, int64_t count) {
  hn::BlendedStore(v, hn::FirstN(F32(), static_cast<size_t>(count)), F32(), p);
}
template <class T>
HWY_INLINE void StoreFirst(VF v, T* p, int64_t count) {
  T buffer[hn::MaxLanes(F32())];
  Store1(v, buffer);
  hn::BlendedStore(hn::LoadU(U16(), Bits(buffer)), hn::FirstN(U16(), static_cast<size_t>(count)),
                   U16(), Bits(p));
}
#else
template <class T>
HWY_INLINE VF LoadFirst(const T* p, int64_t count) {
  T buffer[hn::MaxLanes(F32())] = {};
  std::memcpy(buffer, p, static_cast<size_t>(count) * sizeof(T));
  return Load1(buffer);
}
template <class T>
HWY_INLINE void StoreFirst(VF v, T* p, int64_t count) {
  T buffer[hn::MaxLanes(F32())];
  Store1(v, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(count) * sizeof(T));
}
#endif

// ---- Two vectors ----

HWY_INLINE size_t PairLanes() { return 2 * hn::Lanes(F32()); }

template <class T>
HWY_INLINE void Load2(const T* p, VF& a, VF& b) {
  a = Load1(p);
  b = Load1(p + hn::Lanes(F32()));
}
template <class T>
HWY_INLINE void Store2(VF a, VF b, T* p) {
  Store1(a, p);
  Store1(b, p + hn::Lanes(F32()));
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
HWY_INLINE void Stream2(VF a, VF b, T* p) {
  Store2(a, b, p);
}
#else
HWY_INLINE void SplitPair(hn::Vec<Pair16> v, VF& even, VF& odd) {
  const U32 du;
  const VU both = hn::BitCast(du, v);
  even = hn::BitCast(F32(), hn::ShiftLeft<16>(both));
  odd = hn::BitCast(F32(), hn::And(both, hn::Set(du, 0xffff0000u)));
}
HWY_INLINE void Load2(const BFloat16* p, VF& even, VF& odd) {
  SplitPair(hn::LoadU(Pair16(), Bits(p)), even, odd);
}
#if ANYACL_NATIVE_BFLOAT16
HWY_INLINE bool NoneIsSubnormal(VF a, VF b) {
  constexpr int kSubnormal = 0x20;
  return _kortestz_mask16_u8(_mm512_fpclass_ps_mask(a.raw, kSubnormal),
                             _mm512_fpclass_ps_mask(b.raw, kSubnormal));
}
// Inline assembly, because no target of Highway 1.0.3 enables the instruction.
HWY_INLINE hn::Vec<Pair16> NativeInterleave(VF even, VF odd) {
  __m512i halves;  // all of even, then all of odd
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves) : "v"(even.raw), "v"(odd.raw));
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return {_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), halves)};
}
HWY_INLINE bool HasZero(hn::Vec<Pair16> v) {
  const __mmask32 zeros = _mm512_testn_epi16_mask(v.raw, _mm512_set1_epi16(0x7fff));
  return !_kortestz_mask32_u8(zeros, zeros);
}
#endif
HWY_INLINE hn::Vec<Pair16> Interleave(VF even, VF odd) {
#if ANYACL_NATIVE_BFLOAT16
  // The instruction takes subnormals for zero; to look for zeros first costs less.
  if (HWY_LIKELY(has_bfloat16_rounding)) {
    const hn::Vec<Pair16> result = NativeInterleave(even, odd);
    if (HWY_LIKELY(!HasZero(result) || NoneIsSubnormal(even, odd))) return result;
  }
#endif
  const VU low = hn::ShiftRight<16>(RoundToUpper16(even));
  const VU high = hn::And(RoundToUpper16(odd), hn::Set(U32(), 0xffff0000u));
  return hn::BitCast(Pair16(), hn::Or(low, high));
}
HWY_INLINE void Store2(VF even, VF odd, BFloat16* p) {
  hn::StoreU(Interleave(even, odd), Pair16(), Bits(p));
}

// Past the caches; p is a multiple of the vector size. Worth it only where whole 64-byte lines are
// written.
HWY_INLINE void Stream2(VF a, VF b, float* p) {
  hn::Stream(a, F32(), p);
  hn::Stream(b, F32(), p + hn::Lanes(F32()));
}
HWY_INLINE void Stream2(VF a, VF b, Half* p) {
  hn::Stream(hn::Combine(Pair16(), HalfOfFloat(b), HalfOfFloat(a)), Pair16(), Bits(p));
}
HWY_INLINE void Stream2(VF even, VF odd, BFloat16* p) {
  hn::Stream(Interleave(even, odd), Pair16(), Bits(p));
}
#endif

// Load2 where most pairs lie across two lines. Compilers like to load one pair twice, as an operand of both instructions
// that split it; that is twice the lines.
template <class T>
HWY_INLINE void Load2Once(const T* p, VF& a, VF& b) {
  Load2(p, a, b);
}
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_INLINE void Load2Once(const BFloat16* p, VF& even, VF& odd) {
  hn::Vec<Pair16> v = hn::LoadU(Pair16(), Bits(p));
  asm("" : "+v"(v.raw));
  SplitPair(v, even, odd);
}
#endif

// Store2 of values none of which is subnormal, by a proof of the caller's.
template <class T>
HWY_INLINE void Store2Normal(VF a, VF b, T* p) {
  Store2(a, b, p);
}
#if ANYACL_NATIVE_BFLOAT16
HWY_INLINE void Store2Normal(VF even, VF odd, BFloat16* p) {
  if (!has_bfloat16_rounding) return Store2(even, odd, p);
  hn::StoreU(NativeInterleave(even, odd), Pair16(), Bits(p));
}
#endif

// Before other threads may look at what was streamed.
HWY_INLINE void EndStream() { hwy::FlushStream(); }

// Prefetches lines, for the second cache or for the first: `count` elements from p on, which may lie
// outside of the array. Left to itself the processor falls behind the arithmetic; what pays is asking
// twice, early for the second cache and once more for the first. Bare loops of EluBackward on 64 Mi
// elements, time over that of loads and stores alone: float 1.11 with one distance, 0.99 with two;
// bfloat16, rounded by the machine, 1.12 and 1.05.
template <class T>
HWY_INLINE void Fetch(const T* p, int64_t count) {
  for (int64_t i = 0; i < count; i += kLineBytes / sizeof(T)) __builtin_prefetch(p + i, 0, 2);
}
template <class T>
HWY_INLINE void FetchNear(const T* p, int64_t count) {
  for (int64_t i = 0; i < count; i += kLineBytes / sizeof(T)) __builtin_prefetch(p + i, 0, 3);
}

// What a loop that streams through memory will load at p and behind it.
template <class T>
HWY_INLINE void FetchStream(const T* p, int64_t count) {
  Fetch(p + 8192 / sizeof(T), count);
  FetchNear(p + 2048 / sizeof(T), count);
}

// The same where nobody will read it again soon. A Zen 4 does not need to be asked twice: EluBackward on 64 Mi floats
// takes 1.00 times the floor so instead of 1.04, and 0.96 instead of 1.16 where its cores have a way to the memory each.
template <class T>
HWY_INLINE void FetchOnce(const T* p, int64_t count) {
  if (!is_zen) return FetchStream(p, count);
  p += 2048 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLineBytes / sizeof(T)) __builtin_prefetch(p + i, 0, 0);
}

// What comes after some thousand bytes of other loads. The first cache of a Zen 4 is too small to wait there:
// RmsNormGrad 16384x1024 takes 1.11 times the floor so, and 1.33 otherwise; in BF16 1.08 and 1.70.
template <class T>
HWY_INLINE void FetchNext(const T* p, int64_t count) {
  is_zen ? Fetch(p, count) : FetchNear(p, count);
}

// Elements from p to the next 64-byte line; -1 when p is not even a multiple of its own size.
template <class T>
HWY_INLINE int64_t ElementsToLine(const T* p) {
  const uintptr_t to_line = -reinterpret_cast<uintptr_t>(p) & (kLineBytes - 1);
  return to_line % sizeof(T) == 0 ? static_cast<int64_t>(to_line / sizeof(T)) : -1;
}

// Streams whole lines of dx and leaves the broken ones at both ends: plain(begin, count) and
// streamed(begin, count) write those elements.
template <class T, class Plain, class Streamed>
HWY_INLINE void SplitAtLines(const T* dx, int64_t count, const Plain& plain,
                             const Streamed& streamed) {
  const int64_t unit = std::max<int64_t>(PairLanes(), kLineBytes / sizeof(T));
  const int64_t head = ElementsToLine(dx);
  const int64_t body = head < 0 || head > count ? 0 : (count - head) / unit * unit;
  if (body == 0) return plain(0, count);
  if (head > 0) plain(0, head);
  streamed(head, body);
  const int64_t done = head + body;
  if (done < count) plain(done, count - done);
}

// ---- exp ----

// Adding this rounds to an integer n and leaves n + 254 in the low bits of the sum.
inline constexpr float kRoundMagic = 12582912.0f + 254.0f;

// p * 2^n rounded once, for |n| <= 252; `shifted` = n + kRoundMagic.
HWY_INLINE VF TimesPowerOf2(VF p, VF n, VF shifted) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  (void)shifted;
  return VF{_mm512_scalef_ps(p.raw, n.raw)};  // a third of the instructions below, the same bits
#else
  // Two factors of about 2^(n/2), because n may leave the range of exponents; the first product is
  // exact.
  (void)n;
  const F32 d;
  const VU both = hn::BitCast(U32(), shifted);
  const VU first = hn::ShiftRight<1>(both);
  const VU second = hn::Sub(both, first);
  const VF scaled = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(first)));
  return hn::Mul(scaled, hn::BitCast(d, hn::ShiftLeft<23>(second)));
#endif
}

// Beyond these exp is 0 or infinity.
inline constexpr float kLeastExp = -104.0f;
inline constexpr float kMostExp = 89.0f;

// exp within 1.2 ulp for x between these, underflow included.
HWY_INLINE VF ExpWithin(VF x) {
  const F32 d;
  const VF magic = hn::Set(d, kRoundMagic);
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const VF n = hn::Sub(shifted, magic);
  // ln(2) in two parts; the first is short, so that its product is exact also without a fused
  // multiply.
  const VF r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  // exp(r) for |r| <= ln(2)/2: minimax in relative error, 2^-28.
  VF p = hn::MulAdd(hn::Set(d, 0.00138206815f), r, hn::Set(d, 0.0083686756f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416682661f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return TimesPowerOf2(p, n, shifted);
}

// exp over the whole range; NaN stays NaN.
HWY_INLINE VF Exp(VF x) {
  const F32 d;
  const VF most = hn::Set(d, kMostExp);
  const VF least = hn::Set(d, kLeastExp);
  // A comparison, unlike Min and Max, lets NaN through.
  x = hn::IfThenElse(hn::Gt(x, most), most, x);
  x = hn::IfThenElse(hn::Lt(x, least), least, x);
  return ExpWithin(x);
}

// 2^(r - 1/2) for 0 <= r <= 1, exact in the middle.
template <int kDegree>
HWY_INLINE VF ShortPolynomial(VF r) {
  const F32 d;
  VF p;
  if constexpr (kDegree == 5) {
    p = hn::MulAdd(hn::Set(d, 0.00132634467f), r, hn::Set(d, 0.00635571498f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.0394799262f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.169810966f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.490133762f));
    return hn::MulAdd(p, r, hn::Set(d, 0.707106709f));
  } else {
    static_assert(kDegree == 4);
    p = hn::MulAdd(hn::Set(d, 0.00958291814f), r, hn::Set(d, 0.0367410667f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.170754865f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.490021974f));
    return hn::MulAdd(p, r, hn::Set(d, 0.707108736f));
  }
}

// What results that are rounded to a 16-bit type need: 2^(x * factor) with an error of 2^-18
// (degree 4, bfloat16) or 2^-22.6 (degree 5, half), and |x * factor| * 2^-23 from the roundings of
// factor and the product. With kShortExpHasRange the result is rubbish where that product is neither
// NaN nor within +-kShortExpRange: callers limit x.
inline constexpr bool kShortExpHasRange = !(HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3);
inline constexpr float kShortExpRange = 151.0f;

template <int kDegree>
HWY_INLINE VF ShortExp2(VF x, VF factor) {
  const F32 d;
  const VF y = hn::MulAdd(x, factor, hn::Set(d, 0.5f));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // Two instructions that part y into floor and rest by themselves, infinities and all.
  const VF r{_mm512_reduce_ps(y.raw, _MM_FROUND_TO_NEG_INF)};
  return VF{_mm512_scalef_ps(ShortPolynomial<kDegree>(r).raw, y.raw)};
#else
  const VF magic = hn::Set(d, kRoundMagic);
  const VF shifted = hn::MulAdd(x, factor, magic);
  const VF n = hn::Sub(shifted, magic);
  return TimesPowerOf2(ShortPolynomial<kDegree>(hn::Sub(y, n)), n, shifted);
#endif
}

// ---- Proof for tests ----

HWY_INLINE void NoteTarget() {
  if (targets_internal::recording.load(std::memory_order_relaxed)) [[unlikely]] {
    targets_internal::last_kernel.store(hwy::TargetName(HWY_TARGET), std::memory_order_relaxed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
