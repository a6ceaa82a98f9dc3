// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/rotary/rotary.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::rotary {
namespace {

// Places of one pair in a row of x, and in one of y, cos and sin.
struct Pair {
  int64_t in_a, in_b, out_a, out_b;
};

Pair PairAt(Mode mode, int64_t width, int64_t i) {
  const int64_t half = width / 2, quarter = width / 4;
  switch (mode) {
    case Mode::kHalf:
      return {i, i + half, i, i + half};
    case Mode::kInterleave:
      return {2 * i, 2 * i + 1, 2 * i, 2 * i + 1};
    case Mode::kQuarter: {
      const int64_t a = i < quarter ? i : i + quarter;
      return {a, a + quarter, a, a + quarter};
    }
    case Mode::kInterleaveHalf:
      return {2 * i, 2 * i + 1, i, i + half};
  }
  return {};
}

// The row of cos and sin for a row of x.
int64_t FactorRow(const Rows& rows, int64_t row) {
  int64_t factor = 0;
  for (int axis = kOuterAxes - 1; axis >= 0; --axis) {
    factor += row % rows.dims[axis] * rows.steps[axis];
    row /= rows.dims[axis];
  }
  return factor;
}

int64_t RowCount(const Rows& rows) { return rows.dims[0] * rows.dims[1] * rows.dims[2]; }

template <class Visit>
void ForRows(int64_t rows, int64_t width, const Visit& visit) {
  const int64_t together = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(width, 1));
  cpu::ParallelFor(cpu::CeilDiv(rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(rows, (task + 1) * together); ++row) visit(row);
  });
}

// x and y may be the same row unless pairs move.
void RotateRow(const Rows& rows, const float* x, const float* cos, const float* sin, float* y) {
  for (int64_t i = 0; i < rows.width / 2; ++i) {
    const Pair p = PairAt(rows.mode, rows.width, i);
    const float a = x[p.in_a], b = x[p.in_b];
    y[p.out_a] = a * cos[p.out_a] - b * sin[p.out_a];
    y[p.out_b] = b * cos[p.out_b] + a * sin[p.out_b];
  }
}

void Rotate(const RotaryParams& p) {
  const int64_t width = p.rows.width;
  ForRows(RowCount(p.rows), width, [&](int64_t row) {
    const int64_t factor = FactorRow(p.rows, row) * width;
    RotateRow(p.rows, p.x + row * width, p.cos + factor, p.sin + factor, p.y + row * width);
  });
}

void RotateBackRow(const Rows& rows, const float* dy, const float* cos, const float* sin, float* dx) {
  for (int64_t i = 0; i < rows.width / 2; ++i) {
    const Pair p = PairAt(rows.mode, rows.width, i);
    const float a = dy[p.out_a], b = dy[p.out_b];
    dx[p.in_a] = a * cos[p.out_a] + b * sin[p.out_b];
    dx[p.in_b] = b * cos[p.out_b] - a * sin[p.out_a];
  }
}

// Pairs [begin, end) of one row of dcos and dsin: sums over the rows of x that it belongs to.
constexpr int64_t kPairs = 64;
void FactorGradients(const RotaryGradParams& p, const int64_t (&first)[kOuterAxes], int64_t factor, int64_t begin, int64_t end) {
  const Rows& r = p.rows;
  double sums[kPairs][4] = {};
  int64_t count[kOuterAxes];
  for (int axis = 0; axis < kOuterAxes; ++axis) count[axis] = r.steps[axis] == 0 ? r.dims[axis] : 1;
  for (int64_t i = 0; i < count[0]; ++i) {
    for (int64_t j = 0; j < count[1]; ++j) {
      for (int64_t k = 0; k < count[2]; ++k) {
        const int64_t row = ((first[0] + i) * r.dims[1] + first[1] + j) * r.dims[2] + first[2] + k;
        const float *dy = p.dy + row * r.width, *x = p.x + row * r.width;
        for (int64_t n = begin; n < end; ++n) {
          const Pair at = PairAt(r.mode, r.width, n);
          double* const sum = sums[n - begin];
          const double dy_a = dy[at.out_a], dy_b = dy[at.out_b], x_a = x[at.in_a], x_b = x[at.in_b];
          sum[0] += dy_a * x_a;
          sum[1] += dy_b * x_b;
          sum[2] -= dy_a * x_b;
          sum[3] += dy_b * x_a;
        }
      }
    }
  }
  float *dcos = p.dcos + factor * r.width, *dsin = p.dsin + factor * r.width;
  for (int64_t n = begin; n < end; ++n) {
    const Pair at = PairAt(r.mode, r.width, n);
    const double* const sum = sums[n - begin];
    dcos[at.out_a] = static_cast<float>(sum[0]);
    dcos[at.out_b] = static_cast<float>(sum[1]);
    dsin[at.out_a] = static_cast<float>(sum[2]);
    dsin[at.out_b] = static_cast<float>(sum[3]);
  }
}

void RotateBack(const RotaryGradParams& p) {
  const Rows& r = p.rows;
  ForRows(RowCount(r), r.width, [&](int64_t row) {
    const int64_t factor = FactorRow(r, row) * r.width;
    RotateBackRow(r, p.dy + row * r.width, p.cos + factor, p.sin + factor, p.dx + row * r.width);
  });
  if (!p.x) return;
  int64_t factors = 1;
  for (int axis = 0; axis < kOuterAxes; ++axis) factors *= r.steps[axis] == 0 ? 1 : r.dims[axis];
  const int64_t blocks = cpu::CeilDiv(r.width / 2, kPairs);
  cpu::ParallelFor(factors * blocks, [&](int64_t task) {
    const int64_t factor = task / blocks, begin = task % blocks * kPairs;
    int64_t first[kOuterAxes] = {}, rest = factor;
    for (int axis = kOuterAxes - 1; axis >= 0; --axis) {
      if (r.steps[axis] == 0) continue;
      first[axis] = rest % r.dims[axis];
      rest /= r.dims[axis];
    }
    FactorGradients(p, first, factor, begin, std::min(r.width / 2, begin + kPairs));
  });
}

// The row of the cache for a column of cos, or -1 when some position of the token lies outside.
bool CacheRows(const RotaryCacheParams& p, int64_t token, int64_t (&rows)[3]) {
  for (int64_t s = 0; s < p.sections; ++s) {
    rows[s] = p.positions[s * p.tokens + token];
    if (rows[s] < 0 || rows[s] >= p.cache_rows) return false;
  }
  return true;
}

void RotateToken(const RotaryCacheParams& p, int64_t token) {
  const int64_t size = p.heads * p.head_size, half = p.rotated / 2;
  const float* const x = p.x + token * size;
  float* const y = p.y + token * size;
  if (y != x) std::copy_n(x, size, y);
  int64_t rows[3];
  if (!CacheRows(p, token, rows)) return;
  for (int64_t head = 0; head < p.heads; ++head) {
    float* const at = y + head * p.head_size;
    for (int64_t i = 0, section = 0; i < half; ++i) {
      while (section + 1 < p.sections && i >= p.section_ends[section]) ++section;
      const float* const factors = p.cache + rows[section] * p.rotated;
      float &a = at[p.halves ? i : 2 * i], &b = at[p.halves ? i + half : 2 * i + 1];
      const float turned = a * factors[i] - b * factors[half + i];
      b = b * factors[i] + a * factors[half + i];
      a = turned;
    }
  }
}

void RotateByCache(const RotaryCacheParams& p) {
  ForRows(p.tokens, p.heads * p.head_size, [&](int64_t token) { RotateToken(p, token); });
}

}  // namespace
}  // namespace anyacl::rotary

namespace anyacl::cpu {

std::span<const Kernel> RotaryKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<rotary::RotaryParams, FitsAlways<rotary::RotaryParams>, rotary::Rotate>("pairs")};
  return kernels;
}
std::span<const Kernel> RotaryGradKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<rotary::RotaryGradParams, FitsAlways<rotary::RotaryGradParams>, rotary::RotateBack>("pairs")};
  return kernels;
}
std::span<const Kernel> RotaryCacheKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<rotary::RotaryCacheParams, FitsAlways<rotary::RotaryCacheParams>, rotary::RotateByCache>("pairs")};
  return kernels;
}

}  // namespace anyacl::cpu
