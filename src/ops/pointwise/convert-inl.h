// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Runs of elements of any dtype into and out of the compute types, once per SIMD target, by the rules of conversions-inl.h.
#if defined(ANYACL_OPS_POINTWISE_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#undef ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#else
#define ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/scalar.h"
#include "cpu/simd-inl.h"
#include "ops/pointwise/blocks.h"
#include "ops/pointwise/pointwise.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace pointwise {
namespace HWY_NAMESPACE {

namespace simd = cpu::HWY_NAMESPACE;

#include "ops/pointwise/conversions-inl.h"

// Dense numbers that vectors convert faster than compilers do.
template <class To, class From>
HWY_INLINE bool ConvertVectors(const From* from, To* to, int64_t count) {
  if constexpr (kIsShort<From> && std::is_same_v<To, float>) {
    const int64_t lanes = simd::LaneCount();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) simd::Store1(simd::Load1(from + i), to + i);
    if (i < count) simd::StoreFirst(simd::LoadFirst(from + i, count - i), to + i, count - i);
    return true;
  } else if constexpr (kIsShort<To> && std::is_same_v<From, float>) {
    const int64_t lanes = simd::LaneCount();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) simd::Store1(simd::Load1(from + i), to + i);
    if (i < count) simd::StoreFirst(simd::LoadFirst(from + i, count - i), to + i, count - i);
    return true;
  } else {
    return false;
  }
}

template <class To, class From>
void ConvertRun(const void* source, int64_t from_step, void* target, int64_t to_step, int64_t count) {
  const From* const from = static_cast<const From*>(source);
  To* const to = static_cast<To*>(target);
  if (count == 0) return;  // there may be no memory
  if (from_step == 0) {
    const To one = Converted<To>(*from);
    if (to_step == 1) std::fill_n(to, count, one);  // the compiler's vectors; a step that it does not know takes single stores
    else for (int64_t i = 0; i < count; ++i) to[i * to_step] = one;
  } else if (from_step == 1 && to_step == 1) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(To));
    } else {
      if (ConvertVectors(from, to, count)) return;
      for (int64_t i = 0; i < count; ++i) to[i] = Converted<To>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = Converted<To>(from[i * from_step]);
  }
}

template <class Body>
HWY_INLINE void WithCompute(Compute compute, const Body& body) {
  switch (compute) {
    case Compute::kFloat: return body(static_cast<float*>(nullptr));
    case Compute::kDouble: return body(static_cast<double*>(nullptr));
    case Compute::kInt: return body(static_cast<int64_t*>(nullptr));
    case Compute::kUnsigned: return body(static_cast<uint64_t*>(nullptr));
    case Compute::kComplex: return body(static_cast<Pair<float>*>(nullptr));
    case Compute::kDoubleComplex: return body(static_cast<Pair<double>*>(nullptr));
  }
}

// Whether elements are not 0, as whole numbers: what logic on other dtypes starts from.
template <class From>
void TruthRun(const void* source, int64_t from_step, void* target, int64_t to_step, int64_t count) {
  const From* const from = static_cast<const From*>(source);
  int64_t* const to = static_cast<int64_t*>(target);
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = Converted<Truth>(from[i * from_step]).byte != 0;
}
inline RunConversion TruthOf(DType dtype) {
  RunConversion result = nullptr;
  WithStorage(dtype, [&](auto* from) { result = TruthRun<std::remove_pointer_t<decltype(from)>>; });
  return result;
}

// The conversions of one compute type; null for dtypes without numbers.
inline RunConversion LoadOf(DType dtype, Compute compute) {
  RunConversion result = nullptr;
  WithCompute(compute, [&](auto* to) {
    WithStorage(dtype, [&](auto* from) {
      result = ConvertRun<std::remove_pointer_t<decltype(to)>, std::remove_pointer_t<decltype(from)>>;
    });
  });
  return result;
}
inline RunConversion StoreOf(Compute compute, DType dtype) {
  RunConversion result = nullptr;
  WithCompute(compute, [&](auto* from) {
    WithStorage(dtype, [&](auto* to) {
      result = ConvertRun<std::remove_pointer_t<decltype(to)>, std::remove_pointer_t<decltype(from)>>;
    });
  });
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace pointwise
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
