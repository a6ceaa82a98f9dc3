// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One engine for everything that reads or writes a tensor at positions that other tensors name:
//
//   for each position p of the walk:   table[at(p) + sum over k of index_k[p] * step_k]  <-  or  ->  data[p]
//
// Axes on which the indices do not move are copied as runs. Positions that may hit the same element are gone through in
// order by one task, so the last write wins and sums have one order.
#ifndef ANYACL_OPS_INDEXING_WALK_H_
#define ANYACL_OPS_INDEXING_WALK_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::indexing {

enum class Action : uint8_t { kRead, kSet, kAdd, kMul, kMax, kMin, kDiv };

inline constexpr int kMaxIndices = 8;
inline constexpr int kMaxAxes = 16;

struct WalkParams {
  const void* index[kMaxIndices];  // INT32 or INT64
  void* table;
  void* data;
  const void* scale;  // of one number: kAdd adds the data times it; null: as it is
  void* hits;  // INT64, of a dense table, one per element: how often it was written; null: not counted
  int64_t index_strides[kMaxIndices][kMaxAxes];
  int64_t dims[kMaxAxes];
  int64_t table_strides[kMaxAxes];
  int64_t data_strides[kMaxAxes];
  int64_t size[kMaxIndices];  // valid are 0 to size - 1
  int64_t step[kMaxIndices];  // in elements of the table
  int32_t element_size;
  DType dtype;  // what kAdd and the like compute in: FLOAT, DOUBLE, INT64, COMPLEX64 or COMPLEX128
  Action action;
  uint8_t indices;
  // Axes in this order: lanes, on which every step has elements of its own; those gone through in order; runs.
  uint8_t lanes;
  uint8_t serial;
  uint8_t runs;
  uint8_t wraps;       // one bit per index: negative ones count from the end
  uint8_t wide;        // ... it is INT64
  bool keeps_first;    // with hits: the first one replaces what was there
};

// table = (table if `included` + the sum in it) / number of hits, where there were any; integers are cut to `bits` first and
// rounded down.
struct MeanParams {
  void* table;
  const void* hits;  // INT64
  int64_t count;
  DType dtype;   // of the table
  int32_t bits;  // 0: floating
  bool is_signed;
  bool included;
};

}  // namespace anyacl::indexing

#endif  // ANYACL_OPS_INDEXING_WALK_H_
