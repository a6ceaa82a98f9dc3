// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Sums of rows, compiled once per SIMD target.
#if defined(ANYACL_OPS_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_SUMS_INL_H_
#undef ANYACL_OPS_SUMS_INL_H_
#else
#define ANYACL_OPS_SUMS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace HWY_NAMESPACE {

// Sums that grow side by side, whatever the width of a vector.
constexpr int64_t kSums = 16;

// Sum of f(0), f(1), ... in an order that depends on the count alone.
template <class F>
HWY_INLINE double SumOf(int64_t count, const F& f) {
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) sums[k] += f(i + k);
  }
  for (; i < count; ++i) sums[i % kSums] += f(i);
  for (int64_t width = kSums / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
