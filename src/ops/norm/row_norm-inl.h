// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One row, or a chunk of one, compiled once per SIMD target. Included by row_norm.cpu.cc.
#if defined(ANYACL_OPS_NORM_ROW_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_ROW_NORM_INL_H_
#undef ANYACL_OPS_NORM_ROW_NORM_INL_H_
#else
#define ANYACL_OPS_NORM_ROW_NORM_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/norm/row_norm_chunks.h"
#include "ops/pointwise/lanes-inl.h"
#include "ops/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace norm {
namespace HWY_NAMESPACE {

using anyacl::HWY_NAMESPACE::SumOf;

constexpr int64_t kBlock = 256;  // numbers of one loop; a few such buffers stay in the first cache

// Calls visit(offset, e, count) for pieces of elements [begin, end) of a row that lie one behind the other, at most kBlock
// each; `offset` is that of element e.
template <class Visit>
HWY_INLINE void ForBlocks(const Rows& s, int64_t row, int64_t begin, int64_t end, const Visit& visit) {
  const int64_t base = row * s.row_stride;
  if (s.segments == 1 || s.segment_stride == s.length) {
    for (int64_t e = begin; e < end; e += kBlock) visit(base + e, e, std::min(kBlock, end - e));
    return;
  }
  for (int64_t e = begin; e < end;) {
    const int64_t segment = e / s.length;
    const int64_t inside = e - segment * s.length;
    const int64_t count = std::min({kBlock, end - e, s.length - inside});
    visit(base + segment * s.segment_stride + inside, e, count);
    e += count;
  }
}

// The coefficients of elements e, e + 1, ... of a row; in `buffer` where they do not lie so.
template <class T>
HWY_INLINE const T* Coefficients(const void* vector, const Rows& s, int64_t row, int64_t e, int64_t count, T* buffer) {
  const T* const v = static_cast<const T*>(vector);
  if (s.along == Along::kRow) return v + e;
  if (s.along == Along::kNone) {
    std::fill_n(buffer, count, v[row]);
    return buffer;
  }
  const T* const of_row = v + row % s.period * s.segments;
  for (int64_t i = 0; i < count;) {
    const int64_t segment = (e + i) / s.length;
    const int64_t run = std::min(count - i, (segment + 1) * s.length - (e + i));
    std::fill_n(buffer + i, run, of_row[segment]);
    i += run;
  }
  return buffer;
}

// factor[i] = 1 / (1 + exp(-scale * z[i])); whole vectors, so both are kBlock long.
template <class T>
HWY_INLINE void Sigmoids(const T* z, T scale, int64_t count, T* factor) {
  using V = pointwise::HWY_NAMESPACE::Lanes<T>;
  const int64_t step = static_cast<int64_t>(V::Count());
  for (int64_t i = 0; i < count; i += step) {
    (V(T(1)) / (V(T(1)) + Exp(-(V(scale) * V::Load(z + i))))).Store(factor + i);
  }
}

// ---- forward ----

// Mean and sum of squared distances from it; with centred false 0 and the sum of squares.
template <class T>
void Moments(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  const T* const x = static_cast<const T*>(p.x);
  const auto sum = [&](auto&& term) {
    double total = 0;
    ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t, int64_t count) {
      const T* const from = x + offset;
      total += SumOf(count, [&](int64_t i) { return term(static_cast<double>(from[i])); });
    });
    return total;
  };
  double mean = 0;
  if (p.centred) {
    // Distances from one of the numbers: equal numbers have exactly their mean. Infinite ones have none from each other.
    double first = 0;
    ForBlocks(p.shape, row, begin, begin + 1,
              [&](int64_t offset, int64_t, int64_t) { first = static_cast<double>(x[offset]); });
    const double count = static_cast<double>(end - begin);
    mean = first + sum([&](double v) { return v - first; }) / count;
    if (!std::isfinite(mean)) mean = sum([](double v) { return v; }) / count;
  }
  *result = {mean, sum([&](double v) { return (v - mean) * (v - mean); })};
}

// y of elements [begin, end) of a row.
template <class T>
void Normalise(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, Pair mean_rstd) {
  const T* const x = static_cast<const T*>(p.x);
  T* const y = static_cast<T*>(p.y);
  // Two numbers, so that a mean far from 0 costs no digits.
  const T high = static_cast<T>(mean_rstd.a);
  const T low = std::isfinite(high) ? static_cast<T>(mean_rstd.a - static_cast<double>(high)) : T(0);
  const T rstd = static_cast<T>(mean_rstd.b);
  const T bias = static_cast<T>(p.gamma_bias);
  alignas(64) T t[kBlock], buffer[kBlock];
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    const T* const from = x + offset;
    for (int64_t i = 0; i < count; ++i) t[i] = ((from[i] - high) - low) * rstd;
    if (p.gamma) {
      const T* const gamma = Coefficients(p.gamma, p.shape, row, e, count, buffer);
      if (bias != 0) {
        for (int64_t i = 0; i < count; ++i) t[i] *= gamma[i] + bias;
      } else {
        for (int64_t i = 0; i < count; ++i) t[i] *= gamma[i];
      }
    }
    if (p.beta) {
      const T* const beta = Coefficients(p.beta, p.shape, row, e, count, buffer);
      for (int64_t i = 0; i < count; ++i) t[i] += beta[i];
    }
    if (p.scale) {
      const int64_t at = row / p.scale_rows * p.shape.count() + e;
      const T* const scale = static_cast<const T*>(p.scale) + at;
      const T* const shift = static_cast<const T*>(p.shift) + at;
      for (int64_t i = 0; i < count; ++i) t[i] = t[i] * (T(1) + scale[i]) + shift[i];
    }
    if (p.swish) {
      std::fill(t + count, t + kBlock, T(0));
      Sigmoids(t, static_cast<T>(p.swish_scale), count, buffer);
      for (int64_t i = 0; i < count; ++i) t[i] *= buffer[i];
    }
    std::copy_n(t, count, y + offset);
  });
}

// ---- backward ----

// d and u of some elements that lie one behind the other.
template <class T>
HWY_INLINE void Terms(const RowNormBackwardParams& p, int64_t row, int64_t offset, int64_t e, int64_t count, T mean, T rstd,
                      T* d, T* u) {
  const T* const x = static_cast<const T*>(p.x) + offset;
  const T* const dy = static_cast<const T*>(p.dy) + offset;
  for (int64_t i = 0; i < count; ++i) u[i] = (x[i] - mean) * rstd;
  if (p.scale) {
    const T* const scale = static_cast<const T*>(p.scale) + row / p.scale_rows * p.shape.count() + e;
    for (int64_t i = 0; i < count; ++i) d[i] = dy[i] * (T(1) + scale[i]);
  } else {
    std::copy_n(dy, count, d);
  }
  if (!p.swish) return;
  alignas(64) T z[kBlock], sigma[kBlock], buffer[kBlock];
  const T* const gamma = Coefficients(p.gamma, p.shape, row, e, count, buffer);
  for (int64_t i = 0; i < count; ++i) z[i] = u[i] * gamma[i];
  const T* const beta = Coefficients(p.beta, p.shape, row, e, count, buffer);
  for (int64_t i = 0; i < count; ++i) z[i] += beta[i];
  std::fill(z + count, z + kBlock, T(0));
  const T s = static_cast<T>(p.swish_scale);
  Sigmoids(z, s, count, sigma);
  for (int64_t i = 0; i < count; ++i) d[i] *= sigma[i] * (T(1) + s * z[i] * (T(1) - sigma[i]));
}

template <class T>
HWY_INLINE void StatisticsOf(const RowNormBackwardParams& p, int64_t row, T* mean, T* rstd) {
  *mean = static_cast<const T*>(p.mean)[row];
  const T given = static_cast<const T*>(p.rstd)[row];
  *rstd = p.rstd_is_variance ? static_cast<T>(1 / std::sqrt(static_cast<double>(given) + p.eps)) : given;
}

// Sums over elements [begin, end) of a row: of p and p * u, or of d and d * u where gamma is the same for all of them.
template <class T>
void GradientSums(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  T mean, rstd;
  StatisticsOf(p, row, &mean, &rstd);
  alignas(64) T d[kBlock], u[kBlock], buffer[kBlock];
  Pair total = {0, 0};
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    Terms(p, row, offset, e, count, mean, rstd, d, u);
    if (p.gamma && p.shape.along == Along::kRow) {
      const T* const gamma = Coefficients(p.gamma, p.shape, row, e, count, buffer);
      for (int64_t i = 0; i < count; ++i) d[i] *= gamma[i];
    }
    total.a += SumOf(count, [&](int64_t i) { return static_cast<double>(d[i]); });
    total.b += SumOf(count, [&](int64_t i) { return static_cast<double>(d[i]) * static_cast<double>(u[i]); });
  });
  *result = total;
}

// dx of elements [begin, end) of a row; `averages` of p and p * u.
template <class T>
void InputGradient(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, Pair averages) {
  T mean, rstd;
  StatisticsOf(p, row, &mean, &rstd);
  const T a = static_cast<T>(averages.a);
  const T b = static_cast<T>(averages.b);
  const T alpha = static_cast<T>(p.alpha);
  alignas(64) T d[kBlock], u[kBlock], buffer[kBlock];
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    Terms(p, row, offset, e, count, mean, rstd, d, u);
    if (p.gamma) {
      const T* const gamma = Coefficients(p.gamma, p.shape, row, e, count, buffer);
      for (int64_t i = 0; i < count; ++i) d[i] *= gamma[i];
    }
    if (p.constants) {
      for (int64_t i = 0; i < count; ++i) d[i] *= rstd;
    } else {
      for (int64_t i = 0; i < count; ++i) d[i] = rstd * (d[i] - a - u[i] * b);
    }
    if (p.dsum) {
      const T* const dsum = static_cast<const T*>(p.dsum) + offset;
      for (int64_t i = 0; i < count; ++i) d[i] += dsum[i];
    }
    if (p.dx) std::copy_n(d, count, static_cast<T*>(p.dx) + offset);
    if (p.dx_alpha) {
      T* const to = static_cast<T*>(p.dx_alpha) + offset;
      for (int64_t i = 0; i < count; ++i) to[i] = alpha * d[i];
    }
  });
}

// Adds up rows [begin, end) at `count` positions from `first` on: of d and d * u, or of dy and dy * (u * gamma + beta).
template <class T>
void ColumnSums(const RowNormBackwardParams& p, int64_t begin, int64_t end, int64_t first, int64_t count, bool of_scale,
                double* sums, double* products) {
  alignas(64) T d[kBlock], u[kBlock];
  std::fill_n(sums, count, 0);
  std::fill_n(products, count, 0);
  RowNormBackwardParams terms = p;
  if (of_scale) terms.scale = nullptr;
  for (int64_t row = begin; row < end; ++row) {
    T mean, rstd;
    StatisticsOf(p, row, &mean, &rstd);
    Terms(terms, row, row * p.shape.row_stride + first, first, count, mean, rstd, d, u);
    if (of_scale && p.gamma) {
      const T* const gamma = static_cast<const T*>(p.gamma) + first;
      for (int64_t i = 0; i < count; ++i) u[i] *= gamma[i];
    }
    if (of_scale && p.beta) {
      const T* const beta = static_cast<const T*>(p.beta) + first;
      for (int64_t i = 0; i < count; ++i) u[i] += beta[i];
    }
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(d[i]);
    for (int64_t i = 0; i < count; ++i) products[i] += static_cast<double>(d[i]) * static_cast<double>(u[i]);
  }
}

// ---- sums ----

template <class T>
void PlainSums(const RowSumsParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  const T* const x = static_cast<const T*>(p.x);
  const T* const dy = static_cast<const T*>(p.dy);
  const double mean = p.mean ? static_cast<double>(static_cast<const T*>(p.mean)[row]) : 0;
  Pair total = {0, 0};
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t, int64_t count) {
    const T* const a = x + offset;
    if (!dy) {
      total.a += SumOf(count, [&](int64_t i) { return static_cast<double>(a[i]); });
      total.b += SumOf(count, [&](int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(a[i]); });
      return;
    }
    const T* const g = dy + offset;
    total.a += SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]); });
    total.b += SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]) * (static_cast<double>(a[i]) - mean); });
  });
  *result = total;
}

template <class T>
constexpr RowFunctions FunctionsOf() {
  return {Moments<T>, Normalise<T>, GradientSums<T>, InputGradient<T>, ColumnSums<T>, PlainSums<T>};
}
const RowFunctions* Functions(bool wide) {
  static constexpr RowFunctions kFloat = FunctionsOf<float>();
  static constexpr RowFunctions kDouble = FunctionsOf<double>();
  return wide ? &kDouble : &kFloat;
}

}  // namespace HWY_NAMESPACE
}  // namespace norm
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
