// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A formula over a block of dense numbers of one compute type, once per SIMD target. Included by <group>.cpu.cc.
#if defined(ANYACL_OPS_POINTWISE_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_POINTWISE_BLOCKS_INL_H_
#undef ANYACL_OPS_POINTWISE_BLOCKS_INL_H_
#else
#define ANYACL_OPS_POINTWISE_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "ops/pointwise/blocks.h"
#include "ops/pointwise/lanes-inl.h"
#include "ops/pointwise/pointwise.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace pointwise {
namespace HWY_NAMESPACE {

// How many inputs a formula takes follows from its function.
template <class F, int kInputs, class V>
HWY_INLINE V Apply(const V* x, const V* s) {
  if constexpr (kInputs == 0) return F::Of(s);
  if constexpr (kInputs == 1) return F::Of(x[0], s);
  if constexpr (kInputs == 2) return F::Of(x[0], x[1], s);
  if constexpr (kInputs == 3) return F::Of(x[0], x[1], x[2], s);
  if constexpr (kInputs == 4) return F::Of(x[0], x[1], x[2], x[3], s);
}

// Vectors of T, and at the end one that is filled up.
template <class F, int kInputs, class T>
void VectorBlock(const void* const* in, void* out, int64_t count, const void* scalars) {
  using V = Lanes<T>;
  V s[kMaxScalars];
  for (int i = 0; i < kMaxScalars; ++i) {
    T one;
    std::memcpy(&one, static_cast<const unsigned char*>(scalars) + 16 * i, sizeof(T));
    s[i] = V(one);
  }
  const int64_t step = static_cast<int64_t>(V::Count());
  V x[kInputs + 1];
  int64_t i = 0;
  for (; i + step <= count; i += step) {
    for (int k = 0; k < kInputs; ++k) x[k] = V::Load(static_cast<const T*>(in[k]) + i);
    Apply<F, kInputs>(x, s).Store(static_cast<T*>(out) + i);
  }
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i) * sizeof(T);
  T part[V::kMost];
  for (int k = 0; k < kInputs; ++k) {
    std::fill_n(part, V::kMost, T(1));  // harmless in every formula
    std::memcpy(part, static_cast<const T*>(in[k]) + i, rest);
    x[k] = V::Load(part);
  }
  Apply<F, kInputs>(x, s).Store(part);
  std::memcpy(static_cast<T*>(out) + i, part, rest);
}

// One number at a time.
template <class F, int kInputs, class T>
void PlainBlock(const void* const* in, void* out, int64_t count, const void* scalars) {
  T s[kMaxScalars];
  for (int i = 0; i < kMaxScalars; ++i) {
    std::memcpy(&s[i], static_cast<const unsigned char*>(scalars) + 16 * i, sizeof(T));
  }
  for (int64_t i = 0; i < count; ++i) {
    T x[kInputs + 1];
    for (int k = 0; k < kInputs; ++k) x[k] = static_cast<const T*>(in[k])[i];
    static_cast<T*>(out)[i] = Apply<F, kInputs>(x, s);
  }
}

// The blocks of a formula; null for compute types it has no meaning in.
template <class F, int kInputs, unsigned kTypes>
constexpr Blocks BlocksOf() {
  Blocks blocks{};
  if constexpr ((kTypes & kReal) != 0) {
    blocks.of[static_cast<int>(Compute::kFloat)] = VectorBlock<F, kInputs, float>;
    blocks.of[static_cast<int>(Compute::kDouble)] = VectorBlock<F, kInputs, double>;
  }
  if constexpr ((kTypes & kWhole) != 0) {
    blocks.of[static_cast<int>(Compute::kInt)] = PlainBlock<F, kInputs, int64_t>;
    blocks.of[static_cast<int>(Compute::kUnsigned)] = PlainBlock<F, kInputs, uint64_t>;
  }
  if constexpr ((kTypes & kComplex) != 0) {
    blocks.of[static_cast<int>(Compute::kComplex)] = PlainBlock<F, kInputs, Complex<float>>;
    blocks.of[static_cast<int>(Compute::kDoubleComplex)] = PlainBlock<F, kInputs, Complex<double>>;
  }
  return blocks;
}

}  // namespace HWY_NAMESPACE
}  // namespace pointwise
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
