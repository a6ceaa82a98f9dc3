// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How often values occur, or fall between edges. Sums are formed in the order of the elements.
#ifndef ANYACL_OPS_ORDER_COUNT_H_
#define ANYACL_OPS_ORDER_COUNT_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::order {

struct CountParams {
  const void* in;       // dense; int64 for values, else of the compute type
  const void* weights;  // double, values only; may be null
  void* out;            // int64; double with weights
  int64_t count;
  int64_t bins;
  double low, high;              // the edges of floating bins
  int64_t whole_low, whole_high;  // of integer ones
  pointwise::Compute compute;    // a real one
  bool between;                  // edges, else values
  bool from_data;                // the edges are the extremes of the elements
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_COUNT_H_
