// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Whether any of many truths holds.
#ifndef ANYACL_OPS_POINTWISE_ANY_H_
#define ANYACL_OPS_POINTWISE_ANY_H_

#include <cstdint>

namespace anyacl::pointwise {

// One BOOL of `count` dense ones; `invert`: whether none of them holds.
struct AnyParams {
  const void* in;
  void* out;
  int64_t count;
  bool invert;
};

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_ANY_H_
