// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/tensor.h"

#include <atomic>

namespace anyacl {

std::string ToString(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.rank(); ++i) {
    if (i) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

Dims ContiguousStrides(const Dims& dims) {
  Dims strides = dims;
  int64_t step = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // An absurd shape may overflow here; Numel refuses it before any stride is used.
    if (__builtin_mul_overflow(step, dims[i], &step)) step = 0;
  }
  return strides;
}

void Tensor::Identify() {
  static std::atomic<uint64_t> last{0};
  number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  hash = static_cast<uint64_t>(dtype);
  for (int i = 0; i < rank(); ++i) {
    hash =
        (hash + static_cast<uint64_t>(dims[i])) * kHashFactor + static_cast<uint64_t>(strides[i]);
  }
}

bool IsContiguous(const Tensor& t) {
  const int64_t n = t.numel();
  if (n == 0 || n == 1) return true;
  int64_t expected = 1;
  for (int i = t.rank() - 1; i >= 0; --i) {
    if (t.dims[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.dims[i];
  }
  return true;
}

bool GetExtent(const Tensor& t, Extent* extent) {
  int64_t last = t.offset;
  if (t.empty()) {
    *extent = {t.offset, t.offset};
    return true;
  }
  for (int i = 0; i < t.rank(); ++i) {
    int64_t span;
    if (__builtin_mul_overflow(t.dims[i] - 1, t.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last)) {
      return false;
    }
  }
  if (__builtin_add_overflow(last, int64_t{1}, &last)) return false;
  *extent = {t.offset, last};
  return true;
}

}  // namespace anyacl
