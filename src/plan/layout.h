// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Questions about how views lie in memory.
#ifndef ANYACL_PLAN_LAYOUT_H_
#define ANYACL_PLAN_LAYOUT_H_

#include <span>

#include "core/tensor.h"

namespace anyacl {

// True when all tensors (of equal dims) are dense in one common axis order, so that an element-wise
// kernel may walk them as flat arrays: row-major, channels-last, any permutation.
bool ShareDenseOrder(std::span<const Tensor* const> tensors);

// True unless the view surely writes no element twice.
bool OverlapsItself(const Tensor& t);

// True when the memory ranges of two views, at their present addresses, intersect.
bool MayOverlap(const Tensor& a, const Tensor& b);

// True when both views consist of the same elements at the same places.
bool SameElements(const Tensor& a, const Tensor& b);

}  // namespace anyacl

#endif  // ANYACL_PLAN_LAYOUT_H_
