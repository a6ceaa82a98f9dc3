// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the SIMD code of the engine of norms gives to its walk over rows and chunks.
#ifndef ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_
#define ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_

#include <cmath>
#include <cstdint>

#include "ops/norm/row_norm.h"

namespace anyacl::norm {

struct Pair {
  double a, b;
};

// Of float or double; row_norm-inl.h says what each computes.
struct RowFunctions {
  void (*moments)(const RowNormParams&, int64_t row, int64_t begin, int64_t end, Pair* result);
  void (*normalise)(const RowNormParams&, int64_t row, int64_t begin, int64_t end, Pair mean_rstd);
  void (*gradient_sums)(const RowNormBackwardParams&, int64_t row, int64_t begin, int64_t end, Pair* result);
  void (*input_gradient)(const RowNormBackwardParams&, int64_t row, int64_t begin, int64_t end, Pair averages);
  void (*column_sums)(const RowNormBackwardParams&, int64_t begin, int64_t end, int64_t first, int64_t count, bool of_scale,
                      double* sums, double* products);
  void (*plain_sums)(const RowSumsParams&, int64_t row, int64_t begin, int64_t end, Pair* result);
  // Only where TakesLines says so.
  void (*row_gradients)(const RowNormBackwardParams&, int64_t begin, int64_t end, double* sums, double* products);
};

// Whether it is done line by line, in the type that is stored; else in blocks that are converted. Lines share a coefficient.
inline bool TakesLines(const RowNormParams& p) {
  constexpr int64_t kShort = 64;
  return !p.wide && !p.scale && !p.swish && (p.shape.along != Along::kSegment || p.shape.length >= kShort);
}
inline bool TakesLines(const RowNormBackwardParams& p) {
  return !p.wide && !p.scale && !p.swish && !p.dsum && !p.dx_alpha && p.shape.along != Along::kSegment;
}

inline constexpr int64_t kChunk = 16 * 1024;  // into which long rows are cut

// Whether all of a row is done before the next one: it is still in a cache when it is read again, and there are rows enough for all
// threads.
inline bool GoesByRows(const Rows& s) {
  constexpr int64_t kCached = 256 * 1024, kManyRows = 16;
  return s.count() <= kChunk || (s.rows >= kManyRows && s.count() <= kCached);
}

// To the row that is prefetched while this one is written; 0: none, because two would not fit.
inline int64_t ElementsAhead(const Rows& s) { return s.count() <= kChunk ? s.row_stride : 0; }

// Sums in FLOAT may leave its range where their terms in DOUBLE would not.
inline bool IsTrusted(double sum) { return sum == 0 || (std::isfinite(sum) && std::fabs(sum) > 0x1p-90); }

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_
