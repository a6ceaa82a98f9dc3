// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Exact or DOUBLE products of rows: out[b, l] = sum over k of x[b, k] * y[b, l, k]. Arrays are dense INT64, which wraps, or DOUBLE.
#ifndef ANYACL_OPS_MATMUL_DOTS_H_
#define ANYACL_OPS_MATMUL_DOTS_H_

#include <cstdint>

namespace anyacl {

struct DotsParams {
  const void* x;
  const void* y;
  void* out;
  int64_t batch;
  int64_t lines;
  int64_t k;
  bool whole;  // INT64
};

}  // namespace anyacl

#endif  // ANYACL_OPS_MATMUL_DOTS_H_
