// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One row, or a chunk of one, compiled once per SIMD target. Included by row_norm.cpu.cc. What most calls need works on lines as they
// are stored; the rest goes through buffers of the type that is computed in.
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
#include "ops/norm/row_norm_lines-inl.h"
#include "ops/pointwise/lanes-inl.h"
#include "ops/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace norm {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;  // numbers of one loop; a few such buffers stay in the first cache

// Calls visit(offset, e, count) for pieces of elements [begin, end) of a row that lie one behind the other, at most `most`
// each; `offset` is that of element e. With `apart` no piece is of two segments.
template <class Visit>
HWY_INLINE void ForPieces(const Rows& s, int64_t row, int64_t begin, int64_t end, int64_t most, bool apart, const Visit& visit) {
  const int64_t base = row * s.row_stride;
  if (s.segments == 1 || (s.segment_stride == s.length && !apart)) {
    for (int64_t e = begin; e < end; e += most) visit(base + e, e, std::min(most, end - e));
    return;
  }
  for (int64_t e = begin; e < end;) {
    const int64_t segment = e / s.length;
    const int64_t inside = e - segment * s.length;
    const int64_t count = std::min({most, end - e, s.length - inside});
    visit(base + segment * s.segment_stride + inside, e, count);
    e += count;
  }
}
template <class Visit>
HWY_INLINE void ForBlocks(const Rows& s, int64_t row, int64_t begin, int64_t end, const Visit& visit) {
  ForPieces(s, row, begin, end, kBlock, /*apart=*/false, visit);
}
// Lines that share their coefficient, if it is not one per position.
template <class Visit>
HWY_INLINE void ForLines(const Rows& s, int64_t row, int64_t begin, int64_t end, const Visit& visit) {
  ForPieces(s, row, begin, end, s.count(), /*apart=*/s.along == Along::kSegment, visit);
}

// Numbers of a tensor in the type that is computed in: where they lie, or converted into `buffer`.
template <class T>
HWY_INLINE const T* Widened(const void* tensor, DType stored, int64_t offset, int64_t count, T* buffer) {
  if (stored == DType::kF32 || stored == DType::kF64) return static_cast<const T*>(tensor) + offset;
  if constexpr (std::is_same_v<T, float>) {
    simd::WithType(stored, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      Convert(static_cast<const S*>(tensor) + offset, count, buffer);
    });
  }
  return buffer;
}
template <class T>
HWY_INLINE void PutNarrowed(const T* from, int64_t count, void* tensor, DType stored, int64_t offset) {
  if (stored == DType::kF32 || stored == DType::kF64) {
    std::copy_n(from, count, static_cast<T*>(tensor) + offset);
  } else if constexpr (std::is_same_v<T, float>) {
    simd::WithType(stored, [&](auto* type) { Convert(from, count, static_cast<decltype(type)>(tensor) + offset); });
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
void PlainMoments(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  alignas(64) T buffer[kBlock];
  const auto sum = [&](auto&& term) {
    double total = 0;
    ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t, int64_t count) {
      const T* const from = Widened(p.x, p.stored, offset, count, buffer);
      total += SumOf(count, [&](int64_t i) { return term(static_cast<double>(from[i])); });
    });
    return total;
  };
  double mean = 0;
  if (p.centred) {
    // Distances from one of the numbers: equal numbers have exactly their mean. Infinite ones have none from each other.
    T one = 0;
    double first = 0;
    ForBlocks(p.shape, row, begin, begin + 1, [&](int64_t offset, int64_t, int64_t count) {
      first = static_cast<double>(*Widened(p.x, p.stored, offset, count, &one));
    });
    const double count = static_cast<double>(end - begin);
    mean = first + sum([&](double v) { return v - first; }) / count;
    if (!std::isfinite(mean)) mean = sum([](double v) { return v; }) / count;
  }
  *result = {mean, sum([&](double v) { return (v - mean) * (v - mean); })};
}

// The same from the moments of lines.
template <class S>
Pair MomentsOfLines(const RowNormParams& p, int64_t row, int64_t begin, int64_t end) {
  double before = 0;
  Pair all = {0, 0};
  ForPieces(p.shape, row, begin, end, kStatisticsBlock, /*apart=*/false, [&](int64_t offset, int64_t, int64_t count) {
    const S* const x = static_cast<const S*>(p.x) + offset;
    if (!p.centred) {
      all.b += SquaresOfLine(x, count);
      return;
    }
    Pair one;
    MomentsOfLine(x, count, &one);
    const double size = static_cast<double>(count);
    const double part = size / (before + size);
    const double away = one.a - all.a;
    all.b += one.b + (before == 0 ? 0 : away * away * before * part);
    all.a = before == 0 ? one.a : all.a + away * part;
    before += size;
  });
  return all;
}

template <class T>
void Moments(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  if constexpr (std::is_same_v<T, float>) {
    simd::WithType(p.stored, [&](auto* type) { *result = MomentsOfLines<std::remove_pointer_t<decltype(type)>>(p, row, begin, end); });
    if (std::isfinite(result->a)) return;
  }
  PlainMoments<T>(p, row, begin, end, result);
}

// The coefficient of the line that begins with element e of a row; `other` where there is none.
inline Coefficient CoefficientOf(const void* vector, const Rows& s, int64_t row, int64_t e, float other) {
  const float* const v = static_cast<const float*>(vector);
  if (!v) return Coefficient(other);
  if (s.along == Along::kRow) return Coefficient(v + e);
  return Coefficient(v[s.along == Along::kNone ? row : row % s.period * s.segments + e / s.length]);
}

// y of elements [begin, end) of a row; mean in two numbers, so that one far from 0 costs no digits.
template <class S>
void NormaliseLines(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, float high, float low, float rstd) {
  const bool stream = Streams(p.shape, p.stored, 2);
  const int64_t ahead = p.given_mean ? 0 : ElementsAhead(p.shape);
  ForLines(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    const Coefficient gamma = CoefficientOf(p.gamma, p.shape, row, e, 1);
    const Coefficient beta = CoefficientOf(p.beta, p.shape, row, e, 0);
    const float shift = low == 0 ? 0 : -low * rstd;
    const NormalOf<S> f{static_cast<const S*>(p.x) + offset, high, rstd, shift, static_cast<float>(p.gamma_bias), gamma, beta, ahead};
    WriteLine(f, count, stream, static_cast<S*>(p.y) + offset);
  });
}

template <class T>
void Normalise(const RowNormParams& p, int64_t row, int64_t begin, int64_t end, Pair mean_rstd) {
  const T high = static_cast<T>(mean_rstd.a);
  const T low = std::isfinite(high) ? static_cast<T>(mean_rstd.a - static_cast<double>(high)) : T(0);
  const T rstd = static_cast<T>(mean_rstd.b);
  if constexpr (std::is_same_v<T, float>) {
    if (TakesLines(p)) {
      return simd::WithType(p.stored, [&](auto* type) {
        NormaliseLines<std::remove_pointer_t<decltype(type)>>(p, row, begin, end, high, low, rstd);
      });
    }
  }
  const T bias = static_cast<T>(p.gamma_bias);
  alignas(64) T t[kBlock], buffer[kBlock];
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    const T* const from = Widened(p.x, p.stored, offset, count, buffer);
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
    PutNarrowed(t, count, p.y, p.stored, offset);
  });
}

// ---- backward ----

// d and u of some elements that lie one behind the other.
template <class T>
HWY_INLINE void Terms(const RowNormBackwardParams& p, int64_t row, int64_t offset, int64_t e, int64_t count, T mean, T rstd,
                      T* d, T* u) {
  alignas(64) T buffer[kBlock];
  const T* const x = Widened(p.x, p.stored, offset, count, buffer);
  for (int64_t i = 0; i < count; ++i) u[i] = (x[i] - mean) * rstd;
  const T* const dy = Widened(p.dy, p.stored, offset, count, buffer);
  if (p.scale) {
    const T* const scale = static_cast<const T*>(p.scale) + row / p.scale_rows * p.shape.count() + e;
    for (int64_t i = 0; i < count; ++i) d[i] = dy[i] * (T(1) + scale[i]);
  } else {
    std::copy_n(dy, count, d);
  }
  if (!p.swish) return;
  alignas(64) T z[kBlock], sigma[kBlock];
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
void PlainGradientSums(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
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

template <class S>
Pair DotsOfLines(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, float mean, float rstd) {
  const float* const gamma = p.shape.along == Along::kRow ? static_cast<const float*>(p.gamma) : nullptr;
  Pair total = {0, 0};
  ForLines(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    const S* const dy = static_cast<const S*>(p.dy) + offset;
    const S* const x = static_cast<const S*>(p.x) + offset;
    const Pair one = gamma ? DotsOfLine<true>(dy, x, gamma + e, count, mean, rstd) : DotsOfLine<false>(dy, x, gamma, count, mean, rstd);
    total.a += one.a;
    total.b += one.b;
  });
  return total;
}

template <class T>
void GradientSums(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  if constexpr (std::is_same_v<T, float>) {
    if (TakesLines(p)) {
      float mean, rstd;
      StatisticsOf(p, row, &mean, &rstd);
      simd::WithType(p.stored, [&](auto* type) {
        *result = DotsOfLines<std::remove_pointer_t<decltype(type)>>(p, row, begin, end, mean, rstd);
      });
      if (IsTrusted(result->a) && IsTrusted(result->b)) return;
    }
  }
  PlainGradientSums<T>(p, row, begin, end, result);
}

template <class S>
void GradientLines(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, float mean, float rstd, float a, float b,
                   int64_t ahead) {
  const bool stream = Streams(p.shape, p.stored, 3);
  ForLines(p.shape, row, begin, end, [&](int64_t offset, int64_t e, int64_t count) {
    const Coefficient gamma = CoefficientOf(p.gamma, p.shape, row, e, 1);
    const S* const dy = static_cast<const S*>(p.dy) + offset;
    const S* const x = static_cast<const S*>(p.x) + offset;
    S* const dx = static_cast<S*>(p.dx) + offset;
    if (p.constants) WriteLine(ScaledOf<S>(dy, rstd, gamma), count, stream, dx);
    else WriteLine(GradientOf<S>{dy, x, mean, rstd, a, b, gamma, ahead}, count, stream, dx);
  });
}

// dx of elements [begin, end) of a row; `averages` of p and p * u.
template <class T>
void InputGradient(const RowNormBackwardParams& p, int64_t row, int64_t begin, int64_t end, Pair averages) {
  T mean, rstd;
  StatisticsOf(p, row, &mean, &rstd);
  const T a = static_cast<T>(averages.a);
  const T b = static_cast<T>(averages.b);
  const T alpha = static_cast<T>(p.alpha);
  if constexpr (std::is_same_v<T, float>) {
    if (TakesLines(p)) {
      return simd::WithType(p.stored, [&](auto* type) {
        GradientLines<std::remove_pointer_t<decltype(type)>>(p, row, begin, end, mean, rstd, a, b, ElementsAhead(p.shape));
      });
    }
  }
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
      const T* const dsum = Widened(p.dsum, p.stored, offset, count, buffer);
      for (int64_t i = 0; i < count; ++i) d[i] += dsum[i];
    }
    if (p.dx) PutNarrowed(d, count, p.dx, p.stored, offset);
    if (p.dx_alpha) {
      for (int64_t i = 0; i < count; ++i) d[i] *= alpha;
      PutNarrowed(d, count, p.dx_alpha, p.stored, offset);
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

// Rows [begin, end) at once: dx, and what they add to `sums` of d and to `products` of d * u (null: not wanted). Four rows share
// a piece of the columns: so many are added up in FLOAT.
template <class S>
void GradientsOfRows(const RowNormBackwardParams& p, int64_t begin, int64_t end, double* sums, double* products) {
  constexpr int64_t kTogether = 4, kTile = 512;
  const int64_t count = p.shape.count();
  const S* const dy = static_cast<const S*>(p.dy);
  const S* const x = static_cast<const S*>(p.x);
  alignas(64) float some_sums[kTile], some_products[kTile];
  for (int64_t first = begin; first < end; first += kTogether) {
    const int64_t rows = std::min(kTogether, end - first);
    float mean[kTogether], rstd[kTogether];
    Pair averages[kTogether];
    for (int64_t k = 0; k < rows; ++k) {
      StatisticsOf(p, first + k, &mean[k], &rstd[k]);
      if (!p.dx) continue;
      GradientSums<float>(p, first + k, 0, count, &averages[k]);
    }
    for (int64_t c = 0; c < count; c += kTile) {
      const int64_t size = std::min(kTile, count - c);
      std::fill_n(some_sums, kTile, 0.0f);
      std::fill_n(some_products, kTile, 0.0f);
      for (int64_t k = 0; k < rows; ++k) {
        const int64_t at = (first + k) * p.shape.row_stride + c;
        if (sums) AddToColumns(dy + at, x + at, size, mean[k], rstd[k], some_sums, some_products);
        if (!p.dx) continue;
        const double n = static_cast<double>(count);
        GradientLines<S>(p, first + k, c, c + size, mean[k], rstd[k], static_cast<float>(averages[k].a / n),
                         static_cast<float>(averages[k].b / n), kTogether * p.shape.row_stride);
      }
      if (!sums) continue;
      for (int64_t i = 0; i < size; ++i) sums[c + i] += static_cast<double>(some_sums[i]);
      for (int64_t i = 0; i < size; ++i) products[c + i] += static_cast<double>(some_products[i]);
    }
  }
}

void RowGradients(const RowNormBackwardParams& p, int64_t begin, int64_t end, double* sums, double* products) {
  simd::WithType(p.stored, [&](auto* type) {
    GradientsOfRows<std::remove_pointer_t<decltype(type)>>(p, begin, end, sums, products);
  });
}

// ---- sums ----

template <class T>
void PlainSums(const RowSumsParams& p, int64_t row, int64_t begin, int64_t end, Pair* result) {
  alignas(64) T buffer[kBlock], other[kBlock];
  const double mean = p.mean ? static_cast<double>(static_cast<const T*>(p.mean)[row]) : 0;
  Pair total = {0, 0};
  ForBlocks(p.shape, row, begin, end, [&](int64_t offset, int64_t, int64_t count) {
    const T* const a = Widened(p.x, p.stored, offset, count, buffer);
    if (!p.dy) {
      total.a += SumOf(count, [&](int64_t i) { return static_cast<double>(a[i]); });
      total.b += SumOf(count, [&](int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(a[i]); });
      return;
    }
    const T* const g = Widened(p.dy, p.stored, offset, count, other);
    total.a += SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]); });
    total.b += SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]) * (static_cast<double>(a[i]) - mean); });
  });
  *result = total;
}

template <class T>
constexpr RowFunctions FunctionsOf() {
  return {Moments<T>, Normalise<T>, GradientSums<T>, InputGradient<T>, ColumnSums<T>, PlainSums<T>, RowGradients};
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
