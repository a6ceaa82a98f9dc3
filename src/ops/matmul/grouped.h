// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One group of a grouped product whose rows (or steps of k) a list in device memory says.
#ifndef ANYACL_OPS_MATMUL_GROUPED_H_
#define ANYACL_OPS_MATMUL_GROUPED_H_

#include <cstdint>

#include "ops/matmul/gemm.h"

namespace anyacl {

// What the numbers of the list are.
enum class GroupList : int32_t {
  kEnds,    // where each group ends
  kCounts,  // how many each has
  kPairs,   // (group, count), one behind the other; the first count below 1 ends the list
};

struct GroupedParams {
  GemmParams product;   // as if the group had all rows, or all of k
  const int64_t* list;
  int64_t entries;
  int64_t group;
  GroupList kind;
  bool along_k;
  const float* bias;    // [n], may be null
  void* y;              // of row 0; along k: of the group
  int64_t y_row;
  int64_t y_column;
  DType y_type;
};

}  // namespace anyacl

#endif  // ANYACL_OPS_MATMUL_GROUPED_H_
