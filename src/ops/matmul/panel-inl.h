// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The innermost product of matrices, compiled once per SIMD target: a panel of A times one of B, sums in registers.
#if defined(ANYACL_OPS_MATMUL_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_MATMUL_PANEL_INL_H_
#undef ANYACL_OPS_MATMUL_PANEL_INL_H_
#else
#define ANYACL_OPS_MATMUL_PANEL_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/matmul/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace HWY_NAMESPACE {
namespace gemm {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// Sums live in registers: rows x 2 vectors, beside two vectors of B and one number of A.
#if HWY_TARGET == HWY_AVX3
constexpr int kRows = 12;
constexpr int64_t kChunk = 192;  // of k: a panel of B fits the first cache
#elif HWY_TARGET == HWY_AVX2
constexpr int kRows = 6;
constexpr int64_t kChunk = 256;
#else
constexpr int kRows = 4;
constexpr int64_t kChunk = 256;
#endif
constexpr int64_t kColumns = 2 * kLanes;
constexpr int64_t kTileRows = (96 + kRows - 1) / kRows * kRows;
static_assert(kRows <= kMostPanelRows && kColumns <= kMostPanelColumns);
static_assert(kMostPanelRows % kRows == 0 && kMostPanelColumns % kColumns == 0 && kTileColumns % kColumns == 0);

// c += a * b over `depth` steps of k; with kFresh c = a * b.
template <bool kFresh = false>
HWY_INLINE void Panel(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t depth, float* HWY_RESTRICT c, int64_t row_step) {
  const D d;
  V sums[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = kFresh ? hn::Zero(d) : hn::LoadU(d, c + r * row_step);
    sums[r][1] = kFresh ? hn::Zero(d) : hn::LoadU(d, c + r * row_step + kLanes);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r]);
      sums[r][0] = hn::MulAdd(x, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(x, b1, sums[r][1]);
    }
    a += kRows;
    b += kColumns;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(sums[r][0], d, c + r * row_step);
    hn::StoreU(sums[r][1], d, c + r * row_step + kLanes);
  }
}

}  // namespace gemm
}  // namespace HWY_NAMESPACE
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
