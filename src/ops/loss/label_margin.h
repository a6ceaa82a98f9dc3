// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_LOSS_LABEL_MARGIN_H_
#define ANYACL_OPS_LOSS_LABEL_MARGIN_H_

#include <cstdint>

namespace anyacl::loss {

// Rows of scores and of labels: those before the first -1. C classes, the labels that are classes marked with 1.
//   out[n] = sum over labels j and classes i that are none of max(0, 1 - (x[n, j] - x[n, i])) / C
struct LabelMarginParams {
  const void* x;       // [rows, classes], FLOAT or, if `wide`, DOUBLE
  const void* target;  // [rows, classes], INT64
  void* marks;         // as x
  void* out;           // [rows], DOUBLE
  int64_t rows, classes;
  bool wide;
};

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_LABEL_MARGIN_H_
