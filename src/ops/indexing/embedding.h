// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tables of rows, in their own dtype: bags of them taken together, and those that are named cut down to a norm.
#ifndef ANYACL_OPS_INDEXING_EMBEDDING_H_
#define ANYACL_OPS_INDEXING_EMBEDDING_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::indexing {

enum class BagMode : uint8_t { kSum, kMean, kMax };

// Bag b is made of the rows indices[offsets[b]], ..., indices[offsets[b + 1] - 1], but for the row `padding`. All dense.
struct BagParams {
  const void* weight;   // [rows, length]
  const void* indices;  // INT64
  const void* offsets;  // INT64
  const void* scales;   // of the indices, in the compute type; may be null
  void* out;            // [bags, length], in the compute type
  void* bag_of;         // INT64, of each index; may be null
  void* sizes;          // INT64, [bags] or one more, which is 0: indices that count
  void* places;         // INT64, [bags, length]: the row of each maximum, -1 where there is none; may be null
  int64_t rows, length, count, bags;
  int64_t sizes_length;
  int64_t padding;  // negative: none
  BagMode mode;
  DType dtype;      // of weight; DOUBLE computes in DOUBLE, the others in FLOAT
  bool last_offset;  // there is one more: the end of the last bag
};

// Rows that are named once or more: x * (limit / (norm + 1e-7)) where the norm is beyond the limit.
struct RowRenormParams {
  void* table;          // [rows, length]
  const void* indices;  // INT64
  void* scratch;
  int64_t rows, length, count;
  double limit;
  double p;
  DType dtype;
};

}  // namespace anyacl::indexing

#endif  // ANYACL_OPS_INDEXING_EMBEDDING_H_
