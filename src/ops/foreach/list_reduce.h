// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_FOREACH_LIST_REDUCE_H_
#define ANYACL_OPS_FOREACH_LIST_REDUCE_H_

#include <cstdint>

namespace anyacl {

enum class ListReduce : int32_t {
  kNorm,       // result = p-norm
  kNonFinite,  // result = 1 if a number is not finite, else untouched
};

// Over `count` dense FLOAT numbers, or DOUBLE ones where `wide`.
struct ListReduceParams {
  const void* x;
  double* parts;  // ListReduceParts(count) of them
  void* result;   // kNorm: of the numbers' dtype; kNonFinite: FLOAT
  int64_t count;
  double p;
  ListReduce what;
  bool wide;
};

inline constexpr int64_t kListReducePart = 16384;  // numbers that one task sums up
inline int64_t ListReduceParts(int64_t count) { return count / kListReducePart + 1; }

}  // namespace anyacl

#endif  // ANYACL_OPS_FOREACH_LIST_REDUCE_H_
