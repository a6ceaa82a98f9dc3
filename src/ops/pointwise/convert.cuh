// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The conversions of conversions-inl.h on a GPU: the 16-bit types, and single elements of any dtype.
#ifndef ANYACL_OPS_POINTWISE_CONVERT_CUH_
#define ANYACL_OPS_POINTWISE_CONVERT_CUH_

#include "core/dtype.h"
#include "ops/pointwise/lanes.cuh"
#include "ops/pointwise/pointwise.h"

namespace anyacl {
namespace pointwise {
namespace device {

// Rounding to 16 bits by way of float is wrong at ties, unless what float cannot hold leaves a trace in its last bit.
HWY_INLINE float RoundedToOdd(double x) {
  const float cut = __double2float_rz(x);
  return x == x && static_cast<double>(cut) != x ? __uint_as_float(__float_as_uint(cut) | 1u) : cut;
}

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  HWY_INLINE explicit BFloat16(float x) {
    const uint32_t u = __float_as_uint(x);
    const uint32_t rounded = u + 0x7fffu + (u >> 16 & 1u);
    bits = static_cast<uint16_t>((x == x ? rounded : u | 0x400000u) >> 16);
  }
  HWY_INLINE explicit BFloat16(double x) : BFloat16(RoundedToOdd(x)) {}
  HWY_INLINE explicit operator float() const { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }
};

// By the two instructions there are for it; the header of CUDA's own type takes longer to compile than a group of formulas.
struct Half {
  uint16_t bits;

  Half() = default;
  HWY_INLINE explicit Half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  HWY_INLINE explicit Half(double x) : Half(RoundedToOdd(x)) {}
  HWY_INLINE explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};

#include "ops/pointwise/conversions-inl.h"

// What elements of V are converted to and from.
template <class V>
struct PlainOf {
  using Type = V;
  static HWY_INLINE V In(Type x) { return x; }
  static HWY_INLINE Type Out(V x) { return x; }
};
template <class T>
struct PlainOf<Lanes<T>> {
  using Type = T;
  static HWY_INLINE Lanes<T> In(T x) { return x; }
  static HWY_INLINE T Out(Lanes<T> x) { return x.v; }
};
template <class T>
struct PlainOf<Complex<T>> {
  using Type = Pair<T>;
  static HWY_INLINE Complex<T> In(Type x) { return {x.re, x.im}; }
  static HWY_INLINE Type Out(Complex<T> x) { return {x.re, x.im}; }
};

template <class V>
HWY_INLINE V LoadElement(const void* data, DType dtype, int64_t at) {
  using Plain = typename PlainOf<V>::Type;
  Plain result{};
  WithStorage(dtype, [&](auto* type) {
    using Storage = std::remove_pointer_t<decltype(type)>;
    result = Converted<Plain>(static_cast<const Storage*>(data)[at]);
  });
  return PlainOf<V>::In(result);
}

// 1 if the element is not 0: what logic starts from.
HWY_INLINE int64_t LoadTruth(const void* data, DType dtype, int64_t at) {
  int64_t result = 0;
  WithStorage(dtype, [&](auto* type) {
    using Storage = std::remove_pointer_t<decltype(type)>;
    result = Converted<Truth>(static_cast<const Storage*>(data)[at]).byte != 0;
  });
  return result;
}

template <class V>
HWY_INLINE void StoreElement(void* data, DType dtype, int64_t at, V value) {
  WithStorage(dtype, [&](auto* type) {
    using Storage = std::remove_pointer_t<decltype(type)>;
    static_cast<Storage*>(data)[at] = Converted<Storage>(PlainOf<V>::Out(value));
  });
}

// Rounded or wrapped to `dtype`.
template <class V>
HWY_NOINLINE V Cut(V value, DType dtype) {
  using Plain = typename PlainOf<V>::Type;
  Plain result{};
  WithStorage(dtype, [&](auto* type) {
    using Storage = std::remove_pointer_t<decltype(type)>;
    result = Converted<Plain>(Converted<Storage>(PlainOf<V>::Out(value)));
  });
  return PlainOf<V>::In(result);
}

}  // namespace device

// Whether there is a conversion: not every dtype that a tensor may have is one of numbers.
inline bool HasStorage(DType dtype) {
  constexpr DTypeSet kStorage = kFloatingTypes | kIntegerTypes | types::kBool | types::kComplex | DTypeSet{DType::kC32};
  return kStorage.Has(dtype);
}

}  // namespace pointwise
}  // namespace anyacl

#endif  // ANYACL_OPS_POINTWISE_CONVERT_CUH_
