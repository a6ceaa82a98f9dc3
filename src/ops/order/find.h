// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results whose size the data decide: where a tensor is not 0, and what is different in it. They are written one behind
// the other, and their shapes are left as FoundShape.
#ifndef ANYACL_OPS_ORDER_FIND_H_
#define ANYACL_OPS_ORDER_FIND_H_

#include <cstdint>

#include "core/view.h"
#include "ops/pointwise/pointwise.h"

namespace anyacl::order {

// The indices of the elements that are not 0, in row-major order.
struct NonzeroParams {
  const void* in;  // BOOL, dense
  void* out;       // int64
  void* shape;
  void* scratch;
  int64_t count;
  int64_t room;  // elements of out
  int64_t fixed;   // 0, or so many elements are written, and no shape: surplus ones are dropped, missing ones are kNowhere
  int64_t dims[kMaxAxes];
  int32_t rank;
  bool by_axis;  // a row of indices per axis, else a row per element
  bool repeats;  // with `fixed`: a single one stands for all of them
};

// An index outside of every axis, also when it is counted from the end.
inline constexpr int64_t kNowhere = INT64_MIN;

// The elements of `wide` where the mask is set, one behind the other in `narrow`, or the other way round.
struct MaskedParams {
  const void* mask;  // BOOL, dense
  void* wide;
  void* narrow;
  void* shape;  // of what was found; null when `narrow` is read
  void* scratch;
  int64_t count;
  int64_t room;     // elements of narrow
  int32_t element;  // bytes
};

// The slices of a dense tensor [outer, slices, inner] that are different: of equal ones the first.
struct UniqueParams {
  const void* in;      // the elements as they are, `element` bytes each
  const void* keys;    // the same as numbers of the compute type
  const void* order;   // int64, the places of the slices in their order; null: see `sorted`
  void* values;
  void* value_shape;
  void* inverse;       // int64, which of the values each slice is; may be null
  void* counts;        // of `count_type`; may be null
  void* count_shape;   // may be null
  void* scratch;
  int64_t outer, slices, inner;
  int64_t value_room, count_room;
  int64_t dims[kMaxAxes];  // of the values, with the number of different slices at `axis`
  int32_t rank;
  int32_t axis;
  int32_t element;
  DType count_type;  // INT64 or INT32
  pointwise::Compute compute;
  bool sorted;  // the kernel sorts the slices; else it takes them as they come and only neighbours are compared
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_FIND_H_
