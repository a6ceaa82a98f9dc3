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

uintptr_t AddressOf(const Tensor& t, int64_t element) {
  return reinterpret_cast<uintptr_t>(t.data) + static_cast<uintptr_t>(element) * SizeOf(t.dtype);
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
    int64_t length;
    // Beyond all addresses: other rules refuse it.
    if (__builtin_mul_overflow(t.dims[axes[i]] - 1, stride, &length) || __builtin_add_overflow(reach, length, &reach)) return false;
  }
  return false;
}

Span SpanOf(const Tensor& t) {
  Span span;
  int64_t last = t.offset;
  int64_t count = 1;
  for (int i = t.rank() - 1; i >= 0; --i) {
    const int64_t dim = t.dims[i];
    if (dim == 0) return {};
    span.row_major = span.row_major && (dim == 1 || t.strides[i] == count);
    int64_t reach;
    span.overflow |= __builtin_mul_overflow(dim - 1, t.strides[i], &reach);
    span.overflow |= __builtin_add_overflow(last, reach, &last);
    span.overflow |= __builtin_mul_overflow(count, dim, &count);
  }
  span.overflow |= __builtin_sub_overflow(last, t.offset, &span.reach);
  const int64_t size = static_cast<int64_t>(SizeOf(t.dtype));
  int64_t end;
  span.overflow |= __builtin_add_overflow(last, int64_t{1}, &last);
  span.overflow |= __builtin_mul_overflow(last, size, &end);
  span.overflow |= __builtin_mul_overflow(count, size, &span.bytes);
  span.overflow |= __builtin_add_overflow(span.reach, int64_t{1}, &span.reach);
  span.overflow |= __builtin_mul_overflow(span.reach, size, &span.reach);
  if (span.overflow || t.data == nullptr) return span;
  span.begin = AddressOf(t, t.offset);
  span.end = AddressOf(t, last);
  return span;
}

bool SameElements(const Tensor& a, const Tensor& b) { return SizeOf(a.dtype) == SizeOf(b.dtype) && InsideElements(a, b); }

bool InsideElements(const Tensor& part, const Tensor& whole) {
  const int64_t size = static_cast<int64_t>(SizeOf(part.dtype)), room = static_cast<int64_t>(SizeOf(whole.dtype));
  if (!(part.dims == whole.dims) || size > room) return false;
  const uintptr_t first = AddressOf(part, part.offset), start = AddressOf(whole, whole.offset);
  if (first < start || first - start > static_cast<uintptr_t>(room - size)) return false;
  for (int i = 0; i < part.rank(); ++i) {
    if (part.dims[i] < 2) continue;
    if (static_cast<__int128>(part.strides[i]) * size != static_cast<__int128>(whole.strides[i]) * room) return false;
  }
  return true;
}

namespace {

// Looks for factors low_i <= k_i <= high_i with  from <= sum k_i * stride_i <= to.
class FactorSearch {
 public:
  void Add(int64_t stride, int64_t low, int64_t high) {
    for (int i = 0; i < count_; ++i) {
      if (terms_[i].stride != stride) continue;
      terms_[i].low += low;
      terms_[i].high += high;
      return;
    }
    terms_[count_++] = {stride, low, high, 0, 0};
  }
  bool Find(int64_t from, int64_t to) {
    std::sort(terms_, terms_ + count_, [](const Term& a, const Term& b) { return a.stride > b.stride; });
    int64_t low = 0, high = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      terms_[i].low_of_rest = low;
      terms_[i].high_of_rest = high;
      low += terms_[i].low * terms_[i].stride;
      high += terms_[i].high * terms_[i].stride;
    }
    return Find(0, from, to);
  }

 private:
  struct Term {
    int64_t stride, low, high;
    int64_t low_of_rest, high_of_rest;  // what all smaller strides together can give
  };
  static int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

  bool Find(int level, int64_t from, int64_t to) {
    if (level == count_) return from <= 0 && 0 <= to;
    if (--budget_ < 0) return true;
    const Term& term = terms_[level];
    const int64_t first = std::max(term.low, -FloorDiv(-(from - term.high_of_rest), term.stride));
    const int64_t last = std::min(term.high, FloorDiv(to - term.low_of_rest, term.stride));
    for (int64_t k = first; k <= last; ++k) {
      if (Find(level + 1, from - k * term.stride, to - k * term.stride)) return true;
    }
    return false;
  }

  Term terms_[2 * kMaxRank];
  int count_ = 0;
  int budget_ = 10000;
};

}  // namespace

bool ShareBytes(const Tensor& a, const Tensor& b) {
  const Span of_a = SpanOf(a), of_b = SpanOf(b);
  if (!of_a.Meets(of_b)) return false;
  const int64_t size_a = static_cast<int64_t>(SizeOf(a.dtype)), size_b = static_cast<int64_t>(SizeOf(b.dtype));
  if (size_a == 0 || size_b == 0) return false;  // dtypes without elements in memory
  FactorSearch search;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] > 1 && a.strides[i] != 0) search.Add(a.strides[i] * size_a, 0, a.dims[i] - 1);
  }
  for (int i = 0; i < b.rank(); ++i) {
    if (b.dims[i] > 1 && b.strides[i] != 0) search.Add(b.strides[i] * size_b, 1 - b.dims[i], 0);
  }
  // Element of a minus element of b, relative to the first ones: they touch within these distances.
  const int64_t apart = static_cast<int64_t>(of_b.begin - of_a.begin);
  return search.Find(apart - size_a + 1, apart + size_b - 1);
}

bool IsChannelsLast(const Tensor& t, const ChannelShape& shape) {
  if (t.rank() < 3 || t.dims[0] != shape.n || t.dims[1] != shape.c) return false;
  if (shape.c > 1 && t.strides[1] != 1) return false;
  int64_t expected = shape.c;
  for (int i = t.rank() - 1; i >= 2; --i) {
    if (t.dims[i] > 1 && t.strides[i] != expected) return false;
    expected *= t.dims[i];
  }
  return shape.n <= 1 || t.strides[0] == expected;
}

int64_t ElementsInside(const Tensor& t, int axis) {
  return t.dims[axis] > 1 ? t.strides[axis] : t.numel();
}

Tensor RowMajor(const Tensor& t) {
  Tensor dense = t;
  dense.strides = ContiguousStrides(t.dims);
  return dense;
}

}  // namespace anyacl
