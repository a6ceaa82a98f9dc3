// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/random/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/pointwise/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/random/random.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/random/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace random {
namespace HWY_NAMESPACE {

using pointwise::Compute;
using pointwise::LoadConversion;
using pointwise::StoreConversion;

constexpr int64_t kBlock = 256;  // elements; two words each at most

// In [0, 1): of one word as a float, of two as a double.
template <class T>
HWY_INLINE T Uniform(const uint32_t* words, int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<int32_t>(words[i] & 0x7fffffu)) * 0x1p-23f;
  } else {
    const uint64_t both = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
    return static_cast<double>(static_cast<int64_t>(both >> 11)) * 0x1p-53;
  }
}

// Of a normal positive number.
HWY_INLINE double Log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1022;
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3fe0000000000000u);
  if (mantissa < 0.7071067811865476) {
    mantissa *= 2;
    --exponent;
  }
  const double f = (mantissa - 1) / (mantissa + 1), s = f * f;
  double p = 1.0 / 21;
  for (int d = 19; d >= 1; d -= 2) p = p * s + 1.0 / d;
  return static_cast<double>(exponent) * 0.6931471805599453 + (2 * f) * p;
}

constexpr double OneOver(int factorial) {
  double product = 1;
  for (int i = 2; i <= factorial; ++i) product *= i;
  return 1 / product;
}

// Sine and cosine of 2 pi u for u in [0, 1).
HWY_INLINE void SinCos(double u, double* sine, double* cosine) {
  const int quarter = static_cast<int>(4 * u + 0.5);
  const double x = (u - 0.25 * quarter) * 6.283185307179586, y = x * x;
  double s = OneOver(17), c = OneOver(16);
  constexpr double kSine[] = {-OneOver(15), OneOver(13), -OneOver(11), OneOver(9), -OneOver(7), OneOver(5), -OneOver(3), 1};
  constexpr double kCosine[] = {-OneOver(14), OneOver(12), -OneOver(10), OneOver(8), -OneOver(6), OneOver(4), -OneOver(2), 1};
  for (int k = 0; k < 8; ++k) {
    s = s * y + kSine[k];
    c = c * y + kCosine[k];
  }
  s *= x;
  const bool odd = quarter & 1;
  const double a = odd ? c : s, b = odd ? s : c;
  *sine = quarter & 2 ? -a : a;
  *cosine = ((quarter + 1) & 2) ? -b : b;
}

// Pairs of standard normal numbers.
template <class T>
HWY_INLINE void Normals(const uint32_t* words, int64_t count, T* values) {
  constexpr T kLeast = std::is_same_v<T, float> ? static_cast<T>(1e-7f) : static_cast<T>(0x1p-53);
  for (int64_t i = 0; i < count; i += 2) {
    const double a = std::max(Uniform<T>(words, i), kLeast), b = Uniform<T>(words, i + 1);
    const double r = std::sqrt(-2 * Log(a));
    double sine, cosine;
    SinCos(b, &sine, &cosine);
    values[i] = static_cast<T>(r * sine);
    values[i + 1] = static_cast<T>(r * cosine);
  }
}

// With the rate 1; never 0.
HWY_INLINE float Exponential(uint32_t word, float minus_mean) {
  const float u = OpenUniform(word);
  const float log = u >= 1 - 0x1p-24f ? -0x1p-24f : static_cast<float>(Log(u));
  return minus_mean * log;
}

template <class T>
HWY_INLINE T AtOr(const void* numbers, int64_t i, double constant) {
  return numbers ? static_cast<const T*>(numbers)[i] : static_cast<T>(constant);
}

// Numbers that became `high` when they were rounded start again at `low`.
template <class T>
HWY_INLINE void KeepBelow(const RandomParams& p, int64_t count, T* values) {
  const Compute compute = p.wide ? Compute::kDouble : Compute::kFloat;
  const pointwise::RunConversion store = StoreConversion(compute, p.dtype), load = LoadConversion(p.dtype, compute);
  alignas(64) unsigned char stored[kBlock * 8];
  alignas(64) T back[kBlock];
  T high = static_cast<T>(p.high);
  store(&high, 1, stored, 1, 1);
  load(stored, 1, &high, 1, 1);
  store(values, 1, stored, 1, count);
  load(stored, 1, back, 1, count);
  for (int64_t i = 0; i < count; ++i) values[i] = back[i] == high ? static_cast<T>(p.low) : values[i];
}

template <class T>
HWY_INLINE void DrawNumbers(const RandomParams& p, const uint32_t* words, int64_t begin, int64_t count, T* values) {
  const T low = static_cast<T>(p.low), high = static_cast<T>(p.high);
  switch (p.draw) {
    case Draw::kUniform:
      for (int64_t i = 0; i < count; ++i) values[i] = Uniform<T>(words, i) * (high - low) + low;
      if (low < high) KeepBelow(p, count, values);
      return;
    case Draw::kNormal:
      Normals(words, count, values);
      for (int64_t i = 0; i < count; ++i) {
        values[i] = values[i] * AtOr<T>(p.std, begin + i, p.high) + AtOr<T>(p.mean, begin + i, p.low);
      }
      return;
    case Draw::kExponential: {
      const float minus_mean = -1 / static_cast<float>(p.low);
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(Exponential(words[i], minus_mean));
      return;
    }
    case Draw::kBernoulli:
      for (int64_t i = 0; i < count; ++i) values[i] = OpenUniform(words[i]) <= AtOr<T>(p.mean, begin + i, p.low) ? T{1} : T{0};
      return;
    default:  // kScores
      for (int64_t i = 0; i < count; ++i) {
        const T weight = AtOr<T>(p.mean, begin + i, p.low);
        values[i] = weight > 0 ? weight / static_cast<T>(Exponential(words[i], -1)) : T{0};
      }
  }
}

HWY_INLINE void DrawWhole(const RandomParams& p, const uint32_t* words, int64_t count, uint64_t* values) {
  const auto both = [&](int64_t i) { return words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32; };
  if (p.draw == Draw::kKeys) {
    for (int64_t i = 0; i < count; ++i) values[i] = both(i);
    return;
  }
  const uint64_t from = static_cast<uint64_t>(p.from);
  if (p.range < uint64_t{1} << 28) {
    for (int64_t i = 0; i < count; ++i) values[i] = from + words[i] % static_cast<uint32_t>(p.range);
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] = from + both(i) % p.range;
  }
}

HWY_INLINE bool IsWhole(const RandomParams& p) { return p.draw == Draw::kWhole || p.draw == Draw::kKeys; }

HWY_INLINE bool TakesTwoWords(const RandomParams& p) {
  switch (p.draw) {
    case Draw::kUniform:
    case Draw::kNormal:
      return p.wide;
    case Draw::kWhole:
      return p.range >= uint64_t{1} << 28;
    case Draw::kKeys:
      return true;
    default:
      return false;
  }
}

HWY_INLINE Compute ComputeOfDraw(const RandomParams& p) {
  if (p.draw == Draw::kKeys) return Compute::kUnsigned;
  if (p.draw == Draw::kWhole) return Compute::kInt;
  return p.wide ? Compute::kDouble : Compute::kFloat;
}

// Elements begin .. end; begin is a multiple of the block.
void DrawRange(const RandomParams& p, const Key& key, int64_t begin, int64_t end) {
  const pointwise::RunConversion store = StoreConversion(ComputeOfDraw(p), p.dtype);
  const int64_t each = TakesTwoWords(p) ? 2 : 1;
  alignas(64) uint32_t words[2 * kBlock + kSpareWords];
  alignas(64) uint64_t whole[kBlock];
  alignas(64) double wide[kBlock];
  alignas(64) float narrow[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    // The last of an odd number is half a pair.
    Words(key, static_cast<uint64_t>(at * each), (count + count % 2) * each, words);
    if (IsWhole(p)) DrawWhole(p, words, count, whole);
    else if (p.wide) DrawNumbers(p, words, at, count, wide);
    else DrawNumbers(p, words, at, count, narrow);
    const void* const values = IsWhole(p) ? static_cast<const void*>(whole) : p.wide ? static_cast<const void*>(wide) : narrow;
    store(values, 1, static_cast<unsigned char*>(p.out) + at * static_cast<int64_t>(SizeOf(p.dtype)), 1, count);
  }
}

// Bytes begin .. end; begin is a multiple of kBlock / 8.
void MaskRange(const DropMaskParams& p, const Key& key, int64_t begin, int64_t end) {
  unsigned char* const out = static_cast<unsigned char*>(p.out);
  if (p.all) return (void)std::fill(out + begin, out + end, static_cast<unsigned char>(0xff));
  alignas(64) uint32_t words[kBlock + kSpareWords];
  for (int64_t at = begin; at < end; at += kBlock / 8) {
    const int64_t count = std::clamp<int64_t>(p.count - at * 8, 0, kBlock);
    Words(key, static_cast<uint64_t>(at * 8), count, words);
    for (int64_t byte = at; byte < std::min(end, at + kBlock / 8); ++byte) {
      unsigned bits = 0;
      const int64_t first = (byte - at) * 8;
      for (int64_t i = first; i < std::min(count, first + 8); ++i) {
        bits |= static_cast<unsigned>(OpenUniform(words[i]) < p.keep) << (i - first);
      }
      out[byte] = static_cast<unsigned char>(bits);
    }
  }
}

template <class T>
HWY_INLINE void Drop(const DropParams& p, int64_t begin, int64_t end) {
  constexpr Compute kCompute = std::is_same_v<T, float> ? Compute::kFloat : Compute::kDouble;
  const pointwise::RunConversion load = LoadConversion(p.x_type, kCompute), store = StoreConversion(kCompute, p.out_type);
  const int64_t x_size = static_cast<int64_t>(SizeOf(p.x_type)), out_size = static_cast<int64_t>(SizeOf(p.out_type));
  const unsigned char* const mask = static_cast<const unsigned char*>(p.mask);
  const T scale = static_cast<T>(p.scale);
  alignas(64) T x[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    load(static_cast<const unsigned char*>(p.x) + at * x_size, 1, x, 1, count);
    for (int64_t i = 0; i < count; ++i) x[i] = mask[(at + i) / 8] >> (i % 8) & 1 ? x[i] * scale : T{0};
    store(x, 1, static_cast<unsigned char*>(p.out) + at * out_size, 1, count);
  }
}

// Elements begin .. end; begin is a multiple of the block.
void DropRange(const DropParams& p, int64_t begin, int64_t end) {
  p.wide ? Drop<double>(p, begin, end) : Drop<float>(p, begin, end);
}

// Running sums of the positive weights of one row.
void SumRow(const MultinomialParams& p, int64_t row) {
  const double* const weights = static_cast<const double*>(p.weights) + row * p.categories;
  double* const sums = static_cast<double*>(p.sums) + row * p.categories;
  double sum = 0;
  for (int64_t k = 0; k < p.categories; ++k) sums[k] = sum += weights[k] > 0 ? weights[k] : 0;
}

// Samples begin .. end of all rows together.
void SampleRange(const MultinomialParams& p, const Key& key, int64_t begin, int64_t end) {
  alignas(64) uint32_t words[kBlock + kSpareWords];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    Words(key, static_cast<uint64_t>(at), count, words);
    for (int64_t i = 0; i < count; ++i) {
      const double* const sums = static_cast<const double*>(p.sums) + (at + i) / p.samples * p.categories;
      const double whole = sums[p.categories - 1];
      // Not 0 even where the product is: a category without weight is never drawn.
      const double place = std::max(OpenUniform(words[i]) * whole, std::numeric_limits<double>::denorm_min());
      const int64_t drawn = std::lower_bound(sums, sums + p.categories, place) - sums;
      static_cast<int64_t*>(p.out)[at + i] = whole > 0 ? drawn : 0;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace random
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::random {

HWY_EXPORT(DrawRange);
HWY_EXPORT(MaskRange);
HWY_EXPORT(DropRange);
HWY_EXPORT(SumRow);
HWY_EXPORT(SampleRange);

namespace {

constexpr int64_t kDrawTask = cpu::kTask / 4;  // elements: each costs more than one that is moved

// body(begin, end) of pieces of [0, count).
template <class Body>
void InPieces(int64_t count, int64_t piece, const Body& body) {
  cpu::ParallelFor(cpu::CeilDiv(count, piece), [&](int64_t task) { body(task * piece, std::min(count, (task + 1) * piece)); });
}

bool FitsDraw(const RandomParams& p) { return pointwise::StoreConversion(pointwise::Compute::kFloat, p.dtype) != nullptr; }
void RunDraw(const RandomParams& p) {
  const auto range = ANYACL_FAMILY_DISPATCH(DrawRange);
  const Key key = KeyOf(p.source);
  InPieces(p.count, kDrawTask, [&](int64_t begin, int64_t end) { range(p, key, begin, end); });
}

void RunMask(const DropMaskParams& p) {
  const auto range = ANYACL_FAMILY_DISPATCH(MaskRange);
  const Key key = KeyOf(p.source);
  InPieces(p.bytes, kDrawTask / 8, [&](int64_t begin, int64_t end) { range(p, key, begin, end); });
}

bool FitsDrop(const DropParams& p) {
  return pointwise::LoadConversion(p.x_type, pointwise::Compute::kFloat) && pointwise::StoreConversion(pointwise::Compute::kFloat, p.out_type);
}
void RunDrop(const DropParams& p) {
  const auto range = ANYACL_FAMILY_DISPATCH(DropRange);
  InPieces(p.count, cpu::kTask, [&](int64_t begin, int64_t end) { range(p, begin, end); });
}

void RunMultinomial(const MultinomialParams& p) {
  const auto sum_row = ANYACL_FAMILY_DISPATCH(SumRow);
  const auto range = ANYACL_FAMILY_DISPATCH(SampleRange);
  const Key key = KeyOf(p.source);
  cpu::ParallelFor(p.rows, [&](int64_t row) { sum_row(p, row); });
  InPieces(p.rows * p.samples, kDrawTask / 4, [&](int64_t begin, int64_t end) { range(p, key, begin, end); });
}

}  // namespace
}  // namespace anyacl::random

namespace anyacl::cpu {

std::span<const Kernel> RandomKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<random::RandomParams, random::FitsDraw, random::RunDraw>("philox")};
  return kernels;
}

std::span<const Kernel> DropMaskKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<random::DropMaskParams, FitsAlways, random::RunMask>("philox")};
  return kernels;
}

std::span<const Kernel> DropKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<random::DropParams, random::FitsDrop, random::RunDrop>("blocks")};
  return kernels;
}

std::span<const Kernel> MultinomialKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<random::MultinomialParams, FitsAlways, random::RunMultinomial>("philox")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
