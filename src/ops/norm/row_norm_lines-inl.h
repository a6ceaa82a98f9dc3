// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Norms of lines, compiled once per SIMD target. Arithmetic is FLOAT; statistics are DOUBLE, and so are sums of more than four
// numbers.
#if defined(ANYACL_OPS_NORM_ROW_NORM_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_ROW_NORM_LINES_INL_H_
#undef ANYACL_OPS_NORM_ROW_NORM_LINES_INL_H_
#else
#define ANYACL_OPS_NORM_ROW_NORM_LINES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/kernels.h"
#include "ops/norm/row_norm_chunks.h"
#include "ops/pointwise/lines-inl.h"
#include "ops/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace norm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = cpu::HWY_NAMESPACE;
using anyacl::HWY_NAMESPACE::Convert;
using anyacl::HWY_NAMESPACE::F32;
using anyacl::HWY_NAMESPACE::F64;
using anyacl::HWY_NAMESPACE::kParts;
using anyacl::HWY_NAMESPACE::LaneCount;
using anyacl::HWY_NAMESPACE::Load1;
using anyacl::HWY_NAMESPACE::LoadUpTo;
using anyacl::HWY_NAMESPACE::LoadWide;
using anyacl::HWY_NAMESPACE::NoFetch;
using anyacl::HWY_NAMESPACE::SumOf;
using anyacl::HWY_NAMESPACE::VD;
using anyacl::HWY_NAMESPACE::VF;
using anyacl::HWY_NAMESPACE::WideSum;
using anyacl::HWY_NAMESPACE::Widen;
using anyacl::HWY_NAMESPACE::WriteLine;

// Whether results are stored past the caches; `arrays` of the shape are read and written.
HWY_INLINE bool Streams(const Rows& s, DType stored, int64_t arrays) {
  constexpr int64_t kShortBytes = 1024;  // of a line
  const int64_t size = static_cast<int64_t>(SizeOf(stored));
  return s.length * size >= kShortBytes && s.rows * s.count() * arrays * size >= cpu::stream_bytes;
}

// ---- statistics ----

inline constexpr int64_t kStatisticsBlock = 2048;  // numbers whose mean is taken together

// Mean of numbers and the sum of their squared distances from it; at most kStatisticsBlock. Eight numbers at a time are measured
// from their own mean, and these means from that of all.
template <class S>
void MomentsOfLine(const S* x, int64_t count, Pair* result) {
  constexpr int64_t kVectors = 4, kTogether = kVectors * kParts;
  alignas(64) double means[kStatisticsBlock / kTogether];
  alignas(64) float rest[kVectors * hn::MaxLanes(F32()) + anyacl::HWY_NAMESPACE::kSums];
  const F64 d;
  const int64_t lanes = LaneCount();
  VD squares[2] = {hn::Zero(d), hn::Zero(d)};
  double* to = means;
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
    VD v[kTogether], sum[kTogether];
    for (int64_t k = 0; k < kVectors; ++k) LoadWide(x + i + k * lanes, v + k * kParts);
    for (int64_t k = 0; k < kTogether; ++k) sum[k] = v[k];
    for (int64_t width = kTogether / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) sum[k] = hn::Add(sum[k], sum[k + width]);
    }
    const VD mean = hn::Mul(sum[0], hn::Set(d, 1.0 / kTogether));
    for (int64_t k = 0; k < kTogether; ++k) {
      const VD away = hn::Sub(v[k], mean);
      squares[k % 2] = hn::MulAdd(away, away, squares[k % 2]);
    }
    hn::Store(mean, d, to);
    to += hn::Lanes(d);
  }
  const int64_t groups = to - means, single = count - i;
  Convert(x + i, single, rest);
  const double sum = kTogether * SumOf(groups, [&](int64_t k) { return means[k]; }) +
                     SumOf(single, [&](int64_t k) { return static_cast<double>(rest[k]); });
  const double mean = sum / static_cast<double>(count);
  const auto square = [&](double v) { return (v - mean) * (v - mean); };
  *result = {mean, hn::GetLane(hn::SumOfLanes(d, hn::Add(squares[0], squares[1]))) +
                       kTogether * SumOf(groups, [&](int64_t k) { return square(means[k]); }) +
                       SumOf(single, [&](int64_t k) { return square(static_cast<double>(rest[k])); })};
}

template <class S>
double SquaresOfLine(const S* x, int64_t count) {
  constexpr int64_t kVectors = 4;
  const int64_t lanes = LaneCount();
  VD sums[kVectors * kParts];
  for (VD& sum : sums) sum = hn::Zero(F64());
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
    for (int64_t k = 0; k < kVectors; ++k) {
      VD v[kParts];
      LoadWide(x + i + k * lanes, v);
      for (int64_t part = 0; part < kParts; ++part) {
        VD& sum = sums[k * kParts + part];
        sum = hn::MulAdd(v[part], v[part], sum);
      }
    }
  }
  for (; i < count; i += lanes) {
    VD v[kParts];
    Widen(LoadUpTo(x + i, count - i), v);
    for (int64_t part = 0; part < kParts; ++part) sums[part] = hn::MulAdd(v[part], v[part], sums[part]);
  }
  VD sum = sums[0];
  for (int64_t k = 1; k < kVectors * kParts; ++k) sum = hn::Add(sum, sums[k]);
  return hn::GetLane(hn::SumOfLanes(F64(), sum));
}

// ---- coefficients ----

// A number for each position of a line, or one for all of them.
class Coefficient {
 public:
  explicit Coefficient(const float* along) : from_(along), mask_(-1) {}
  explicit Coefficient(float constant) : from_(constant_), mask_(0) { std::fill_n(constant_, hn::MaxLanes(F32()), constant); }
  Coefficient(const Coefficient&) = delete;
  Coefficient& operator=(const Coefficient&) = delete;
  HWY_INLINE VF At(int64_t i) const { return hn::LoadU(F32(), from_ + (i & mask_)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t count) const { return LoadUpTo(from_ + (i & mask_), count); }

 private:
  alignas(64) float constant_[hn::MaxLanes(F32())];
  const float* from_;
  int64_t mask_;
};

// ---- forward: (x - mean) * rstd * (gamma + gamma_bias) + beta ----

template <class S>
struct NormalOf {
  const S* x;
  float mean, rstd;
  float shift;  // what the mean is beyond FLOAT, times -rstd
  float gamma_bias;
  const Coefficient& gamma;
  const Coefficient& beta;
  int64_t ahead;  // elements to what is read next; 0: that is not known

  HWY_INLINE VF Of(VF v, VF g, VF b) const {
    const F32 d;
    const VF u = hn::MulAdd(hn::Sub(v, hn::Set(d, mean)), hn::Set(d, rstd), hn::Set(d, shift));
    return hn::MulAdd(u, hn::Add(g, hn::Set(d, gamma_bias)), b);
  }
  HWY_INLINE void Fetch(int64_t i, int64_t n) const {
    if (ahead) simd::FetchNext(x + i + ahead, n);
  }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(x + i), gamma.At(i), beta.At(i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(x + i, n), gamma.UpTo(i, n), beta.UpTo(i, n)); }
};

// ---- backward ----

// Sums of p and p * u;  u = (x - mean) * rstd,  p = dy * gamma, or dy without gamma.
template <bool kWeighted, class S>
Pair DotsOfLine(const S* dy, const S* x, const float* gamma, int64_t count, float mean, float rstd) {
  constexpr int64_t kVectors = 4;
  const F32 d;
  const int64_t lanes = LaneCount();
  const VF m = hn::Set(d, mean), r = hn::Set(d, rstd);
  WideSum sum, dot;
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
    VF p[kVectors], product = hn::Zero(d);
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t at = i + k * lanes;
      p[k] = Load1(dy + at);
      if constexpr (kWeighted) p[k] = hn::Mul(p[k], hn::LoadU(d, gamma + at));
      product = hn::MulAdd(p[k], hn::Mul(hn::Sub(Load1(x + at), m), r), product);
    }
    sum.Add(hn::Add(hn::Add(p[0], p[1]), hn::Add(p[2], p[3])));
    dot.Add(product);
  }
  for (; i < count; i += lanes) {
    VF p = LoadUpTo(dy + i, count - i);
    if constexpr (kWeighted) p = hn::Mul(p, LoadUpTo(gamma + i, count - i));
    sum.Add(p);
    dot.Add(hn::Mul(p, hn::Mul(hn::Sub(LoadUpTo(x + i, count - i), m), r)));
  }
  return {sum.Total(), dot.Total()};
}

// rstd * (dy * gamma - a - u * b); a and b are averages.
template <class S>
struct GradientOf {
  const S* dy;
  const S* x;
  float mean, rstd, a, b;
  const Coefficient& gamma;
  int64_t ahead;

  HWY_INLINE VF Of(VF g, VF v, VF weight) const {
    const F32 d;
    const VF u = hn::Mul(hn::Sub(v, hn::Set(d, mean)), hn::Set(d, rstd));
    const VF p = hn::Sub(hn::Mul(g, weight), hn::Set(d, a));  // rounded as in the sums: of one element nothing is left
    return hn::Mul(hn::NegMulAdd(u, hn::Set(d, b), p), hn::Set(d, rstd));
  }
  HWY_INLINE void Fetch(int64_t i, int64_t n) const {
    if (!ahead) return;
    simd::FetchNext(dy + i + ahead, n);
    simd::FetchNext(x + i + ahead, n);
  }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(dy + i), Load1(x + i), gamma.At(i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(dy + i, n), LoadUpTo(x + i, n), gamma.UpTo(i, n)); }
};

// dy * gamma * rstd: the statistics do not depend on x.
template <class S>
struct ScaledOf : NoFetch {
  ScaledOf(const S* dy, float rstd, const Coefficient& gamma) : dy(dy), rstd(rstd), gamma(gamma) {}
  const S* dy;
  float rstd;
  const Coefficient& gamma;

  HWY_INLINE VF Of(VF g, VF weight) const { return hn::Mul(hn::Mul(g, weight), hn::Set(F32(), rstd)); }
  HWY_INLINE VF At(int64_t i) const { return Of(Load1(dy + i), gamma.At(i)); }
  HWY_INLINE VF UpTo(int64_t i, int64_t n) const { return Of(LoadUpTo(dy + i, n), gamma.UpTo(i, n)); }
};

// Adds dy and dy * u to sums that are whole vectors long.
template <class S>
HWY_INLINE void AddToColumns(const S* dy, const S* x, int64_t count, float mean, float rstd, float* sums, float* products) {
  const F32 d;
  const int64_t lanes = LaneCount();
  const VF m = hn::Set(d, mean), r = hn::Set(d, rstd);
  const auto add = [&](int64_t i, VF g, VF v) HWY_ATTR {
    const VF u = hn::Mul(hn::Sub(v, m), r);
    hn::Store(hn::Add(hn::Load(d, sums + i), g), d, sums + i);
    hn::Store(hn::MulAdd(g, u, hn::Load(d, products + i)), d, products + i);
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) add(i, Load1(dy + i), Load1(x + i));
  if (i < count) add(i, LoadUpTo(dy + i, count - i), LoadUpTo(x + i, count - i));
}

}  // namespace HWY_NAMESPACE
}  // namespace norm
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
