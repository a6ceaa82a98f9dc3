// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_INDEXING_REPEAT_H_
#define ANYACL_OPS_INDEXING_REPEAT_H_

#include <cstdint>

namespace anyacl::indexing {

// out = 0 as often as the first count says, 1 as often as the second, ..., then `rest`; counts below 0 are none.
struct RepeatParams {
  const void* counts;  // INT64, one per item, or one for all
  void* out;           // INT64
  int64_t items;
  int64_t size;  // of out
  int64_t rest;
  bool one_count;
};

}  // namespace anyacl::indexing

#endif  // ANYACL_OPS_INDEXING_REPEAT_H_
