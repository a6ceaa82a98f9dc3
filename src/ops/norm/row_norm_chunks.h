// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the SIMD code of the engine of norms gives to its walk over rows and chunks.
#ifndef ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_
#define ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_

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
};

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_ROW_NORM_CHUNKS_H_
