// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// INT8 results of products: saturated round(y * s) + o. A 64-bit word per column holds s, as the bits of a FLOAT, below, and o, a
// signed number of 9 bits, from bit 37 on.
#ifndef ANYACL_OPS_MATMUL_REQUANTISE_H_
#define ANYACL_OPS_MATMUL_REQUANTISE_H_

#include <cstdint>

namespace anyacl {

struct RequantiseParams {
  const float* y;  // dense [rows, columns]
  const int64_t* words;
  int8_t* out;
  int64_t rows;
  int64_t columns;
};

struct QuantWordsParams {
  const float* scale;
  const float* offset;  // may be null
  int64_t* words;
  int64_t count;
  int64_t scale_step;   // 0: one for all
  int64_t offset_step;
};

}  // namespace anyacl

#endif  // ANYACL_OPS_MATMUL_REQUANTISE_H_
