// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The elements of rows in their order: all of them, the first few, or one. The order is that of the stable sort: equal
// elements (-0 and 0 too) by their places, NaN greater than every number.
#ifndef ANYACL_OPS_ORDER_SELECT_H_
#define ANYACL_OPS_ORDER_SELECT_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::order {

enum class Pick : uint8_t {
  kFirst,      // the first `count` of the order
  kOne,        // number `count` of it
  kMedian,     // the lower one; the first NaN if there is one
  kNanMedian,  // of the numbers; the first NaN if there are none
};

struct SelectParams {
  const void* in = nullptr;  // rows of the compute type
  void* values = nullptr;    // of the same; may be null
  void* places = nullptr;    // int64; may be null
  void* scratch = nullptr;
  int64_t rows = 0;
  int64_t length = 0;
  int64_t count = 0;
  int64_t of_nothing = 0;  // kMedian: what an integer row of length 0 gives; a floating one gives NaN
  pointwise::Compute compute = pointwise::Compute::kFloat;  // a real one
  Pick pick = Pick::kFirst;
  bool descending = false;
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_SELECT_H_
