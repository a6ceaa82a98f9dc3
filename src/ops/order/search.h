// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Where numbers would be inserted into sorted sequences:  out[r, i] = bisection of in[r, i] in sequence[r]
#ifndef ANYACL_OPS_ORDER_SEARCH_H_
#define ANYACL_OPS_ORDER_SEARCH_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::order {

struct SearchParams {
  const void* sequence;  // rows of the compute type
  const void* sorter;    // int64, places in the sequence in its order; may be null
  const void* in;        // of the compute type; null: `number`
  void* out;             // int64
  int64_t rows;          // of the sequence; `in` has as many
  int64_t length;        // of a sequence
  int64_t count;         // of numbers per sequence
  alignas(8) unsigned char number[8];
  pointwise::Compute compute;  // a real one
  bool right;            // behind equal ones
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_SEARCH_H_
