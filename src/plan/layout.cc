// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/layout.h"

#include <algorithm>

namespace anyacl {
namespace {

// Axes of size > 1, innermost (smallest stride) first.
int SortedAxes(const Tensor& t, int* axes) {
  int count = 0;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.dims[i] > 1) axes[count++] = i;
  }
  std::sort(axes, axes + count, [&](int a, int b) { return t.strides[a] < t.strides[b]; });
  return count;
}

bool IsDenseInOrder(const Tensor& t, const int* axes, int count) {
  int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    if (t.strides[axes[i]] != expected) return false;
    expected *= t.dims[axes[i]];
  }
  return true;
}

}  // namespace

bool ShareDenseOrder(std::span<const Tensor* const> tensors) {
  bool row_major = true;
  for (const Tensor* t : tensors) row_major = row_major && IsContiguous(*t);
  if (row_major) return true;
  int axes[kMaxRank];
  const int count = SortedAxes(*tensors[0], axes);
  for (const Tensor* t : tensors) {
    if (!IsDenseInOrder(*t, axes, count)) return false;
  }
  return true;
}

bool OverlapsItself(const Tensor& t) {
  int axes[kMaxRank];
  const int count = SortedAxes(t, axes);
  int64_t reach = 0;  // furthest element of the axes seen so far
  for (int i = 0; i < count; ++i) {
    const int64_t stride = t.strides[axes[i]];
    if (stride <= reach) return true;
    reach += (t.dims[axes[i]] - 1) * stride;
  }
  return false;
}

bool MayOverlap(const Tensor& a, const Tensor& b) {
  Extent ea, eb;
  if (a.data == nullptr || b.data == nullptr || a.empty() || b.empty()) return false;
  if (!GetExtent(a, &ea) || !GetExtent(b, &eb)) return true;
  const auto at = [](const Tensor& t, int64_t element) {
    return reinterpret_cast<intptr_t>(t.data) + element * static_cast<int64_t>(SizeOf(t.dtype));
  };
  return at(a, ea.begin) < at(b, eb.end) && at(b, eb.begin) < at(a, ea.end);
}

bool SameElements(const Tensor& a, const Tensor& b) {
  if (SizeOf(a.dtype) != SizeOf(b.dtype) || !(a.dims == b.dims)) return false;
  const int64_t size = static_cast<int64_t>(SizeOf(a.dtype));
  if (reinterpret_cast<intptr_t>(a.data) + a.offset * size !=
      reinterpret_cast<intptr_t>(b.data) + b.offset * size) {
    return false;
  }
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

}  // namespace anyacl
