// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A strided tensor as kernels see it: plain, part of a Params struct; strides count elements.
#ifndef ANYACL_CORE_VIEW_H_
#define ANYACL_CORE_VIEW_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl {

inline constexpr int kMaxAxes = 8;  // what operators take

struct View {
  void* data = nullptr;  // of the element with index 0 on every axis
  int64_t dims[kMaxAxes] = {};
  int64_t strides[kMaxAxes] = {};
  DType dtype = DType::kUndefined;
  int32_t rank = 0;

  int64_t numel() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= dims[i];
    return product;
  }
};

// The shape that a kernel gives to an output whose size the data decide. rank < 0: the result has dims[0] elements, and the
// output has no room for them.
struct FoundShape {
  int64_t rank;
  int64_t dims[kMaxAxes];
};

}  // namespace anyacl

#endif  // ANYACL_CORE_VIEW_H_
