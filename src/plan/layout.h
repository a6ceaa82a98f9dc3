// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Questions about how views lie in memory.
#ifndef ANYACL_PLAN_LAYOUT_H_
#define ANYACL_PLAN_LAYOUT_H_

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace anyacl {

// True when all tensors (of equal dims) are dense in one common axis order, so that an element-wise
// kernel may walk them as flat arrays: row-major, channels-last, any permutation.
bool ShareDenseOrder(std::span<const Tensor* const> tensors);

// True unless the view surely writes no element twice.
bool OverlapsItself(const Tensor& t);

// How a view lies in memory, found in one walk over its axes: this is done for every tensor of a call.
struct Span {
  uintptr_t begin =
      0;  // bytes it can touch at its present address: none without elements or address.
  uintptr_t end = 0;  // Unsigned: an address and a distance of up to 2^63 do not wrap
  int64_t bytes = 0;  // of its elements
  int64_t reach = 0;  // bytes from its first element to the end of its last, whatever the address
  bool row_major = true;
  bool overflow = false;  // it reaches beyond 63 bits: it cannot be
  bool Meets(const Span& other) const { return begin < other.end && other.begin < end; }
};
Span SpanOf(const Tensor& t);

// True when both views consist of the same elements at the same places.
bool SameElements(const Tensor& a, const Tensor& b);

// True when each element of `part` lies inside the element of `whole` at the same place: it is the same, or one of its two
// components. Who reads an element before it writes the one of that place may use both.
bool InsideElements(const Tensor& part, const Tensor& whole);

// True when some byte belongs to both views, gaps between strides considered: columns of one matrix share none.
// Views so odd that the answer takes long count as sharing.
bool ShareBytes(const Tensor& a, const Tensor& b);

// A tensor read as [n, c, s]: the sizes an operator was given.
struct ChannelShape {
  int64_t n;
  int64_t c;
  int64_t s;
};

// True for an [n, c, ...] view whose channels lie innermost: element (n, c, s) at (n*S + s)*C + c.
bool IsChannelsLast(const Tensor& t, const ChannelShape& shape);

// Elements that lie inside one step of an axis, for a view that is dense in whatever order.
int64_t ElementsInside(const Tensor& t, int axis);

// The same tensor as a row-major one: what a packed view becomes.
Tensor RowMajor(const Tensor& t);

}  // namespace anyacl

#endif  // ANYACL_PLAN_LAYOUT_H_
