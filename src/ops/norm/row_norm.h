// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The engine of norms: numbers are divided into rows, and every row is centred, scaled and weighted.
//
//   y = (x - mean[row]) * rstd[row] * (gamma + gamma_bias) + beta
//
// LayerNorm, RmsNorm: a row is the trailing axes. GroupNorm: one group of one sample. BatchNorm: a channel of all samples.
#ifndef ANYACL_OPS_NORM_ROW_NORM_H_
#define ANYACL_OPS_NORM_ROW_NORM_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::norm {

// Which coefficient belongs to an element.
enum class Along : uint8_t {
  kRow,      // gamma[position in the row]
  kSegment,  // gamma[(row % period) * segments + segment]
  kNone,     // gamma[row]
};

// A row is `segments` runs of `length` numbers.
struct Rows {
  int64_t rows = 0;
  int64_t segments = 1;
  int64_t length = 0;
  int64_t row_stride = 0;
  int64_t segment_stride = 0;
  int64_t period = 1;
  Along along = Along::kRow;

  int64_t count() const { return segments * length; }  // of a row
  int64_t coefficients() const {
    return along == Along::kRow ? count() : along == Along::kSegment ? period * segments : rows;
  }
};

// Rows that follow each other.
constexpr Rows DenseRows(int64_t rows, int64_t count) { return {rows, 1, count, count, count, 1, Along::kRow}; }
// Of [samples][channels][inner], `groups` rows per sample.
constexpr Rows GroupRows(int64_t samples, int64_t channels, int64_t inner, int64_t groups) {
  const int64_t segments = channels / groups;
  return {samples * groups, segments, inner, segments * inner, inner, groups, Along::kSegment};
}
// Of the same, one row per channel.
constexpr Rows ChannelRows(int64_t samples, int64_t channels, int64_t inner) {
  return {channels, samples, inner, inner, channels * inner, 1, Along::kNone};
}

// Pointers are to dense arrays of float, or double with `wide`; null where there is none. What is as large as x is of the type
// `stored`: the same, or FLOAT16 or BF16 beside float.
struct RowNormParams {
  Rows shape;
  bool wide = false;
  DType stored = DType::kF32;
  bool centred = true;          // else the mean is 0: RmsNorm
  bool zero_for_zero = false;   // variance + eps = 0 makes rstd 0 and not infinite
  bool given_variance = false;  // given_rstd is a variance
  bool swish = false;           // y = z / (1 + exp(-swish_scale * z))
  double swish_scale = 1;
  double eps = 0;
  double gamma_bias = 0;
  int64_t scale_rows = 1;  // rows that share an entry of scale and shift
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* beta = nullptr;
  const void* scale = nullptr;       // y = y * (1 + scale) + shift, along the row
  const void* shift = nullptr;
  const void* given_mean = nullptr;  // statistics of each row, if they are not to be computed
  const void* given_rstd = nullptr;
  void* y = nullptr;
  void* mean = nullptr;
  void* rstd = nullptr;
  void* variance = nullptr;
  void* moments = nullptr;  // mean and variance of each row, always double
  void* scratch = nullptr;
};

// With  u = (x - mean) * rstd,  d = dy (through swish and scale, where there are such),  p = d * gamma:
//   dx = rstd * (p - avg(p) - u * avg(p * u)) + dsum,  dgamma = sum of d * u,  dbeta = sum of d
struct RowNormBackwardParams {
  Rows shape;
  bool wide = false;
  DType stored = DType::kF32;
  bool constants = false;  // the statistics do not depend on x: dx = rstd * p
  bool rstd_is_variance = false;
  bool swish = false;
  double swish_scale = 1;
  double eps = 0;  // with rstd_is_variance
  double alpha = 1;
  int64_t scale_rows = 1;
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* mean = nullptr;
  const void* rstd = nullptr;
  const void* gamma = nullptr;
  const void* beta = nullptr;
  const void* scale = nullptr;
  const void* dsum = nullptr;
  void* dx = nullptr;
  void* dx_alpha = nullptr;  // alpha * dx
  void* dgamma = nullptr;
  void* dbeta = nullptr;
  void* dscale = nullptr;  // sum over the rows that share it of dy * (u * gamma + beta)
  void* dshift = nullptr;  // ... of dy
  void* scratch = nullptr;
};

// Sums of each row, one per channel: of x and x^2, or with dy of dy and dy * (x - mean).
struct RowSumsParams {
  Rows shape;
  bool wide = false;
  DType stored = DType::kF32;
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* mean = nullptr;
  const void* rstd = nullptr;
  void* sum = nullptr;     // x or dy
  void* second = nullptr;  // x^2 or dy * (x - mean)
  void* scaled = nullptr;  // second * rstd
  void* sum_again = nullptr;
  void* scratch = nullptr;
};

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_ROW_NORM_H_
