// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Weights of 8 or 4 bits as numbers: (weight + offset) * scale in FLOAT, rounded once.
#ifndef ANYACL_OPS_MATMUL_DEQUANTISE_H_
#define ANYACL_OPS_MATMUL_DEQUANTISE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl {

struct DequantiseParams {
  const void* weight;
  int64_t rows;
  int64_t columns;
  int64_t row_step;      // elements of 8 or 4 bits
  int64_t column_step;
  int64_t pack;          // elements in a row that share a step of column_step; 1: each has its own
  int32_t bits;          // 8 or 4; the lower half of a byte comes first
  DType dtype;           // of out
  const float* scale;    // of an element: [row / row_group * scale_row + column / column_group * scale_column]
  const float* offset;   // the same, may be null
  int64_t row_group;
  int64_t column_group;
  int64_t scale_row;
  int64_t scale_column;
  void* out;             // dense [rows, columns]
};

}  // namespace anyacl

#endif  // ANYACL_OPS_MATMUL_DEQUANTISE_H_
