// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rows of scores over one part of a vocabulary; others have the other parts. The largest score of a row is known.
#ifndef ANYACL_OPS_LOSS_VOCABULARY_H_
#define ANYACL_OPS_LOSS_VOCABULARY_H_

#include <cstdint>

namespace anyacl::loss {

// exp = e^(x - most), divided by `total` if that is given; sum = the sum of its rows. A target in [start, start + count) is the
// row's: offset = target - start, mask = 0, predicted = x[offset] - most; else 0, 1, 0. Dense FLOAT, targets INT32.
struct VocabularyParams {
  const void* x;       // [rows, count]
  const void* most;    // [rows]
  const void* total;   // [rows] or null
  const void* target;  // [rows]; null: nothing of the following is written
  void* exp;           // as x
  void* sum;
  void* predicted;
  void* offset;
  void* mask;
  int64_t rows, count;
  int64_t start;
};

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_VOCABULARY_H_
