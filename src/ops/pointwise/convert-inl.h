// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements of any dtype into and out of the compute types, once per SIMD target. The rules of every conversion of the
// library stand here: integers keep their low bits; floating numbers round to nearest even, or are cut off towards zero
// and saturate (8 and 16 bits: through 32, as PyTorch); NaN is 0 as an integer and true as a BOOL.
#if defined(ANYACL_OPS_POINTWISE_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#undef ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#else
#define ANYACL_OPS_POINTWISE_CONVERT_INL_H_
#endif

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

// One byte; anything but 0 is true.
struct Truth {
  unsigned char byte;
};
template <class T>
struct Pair {  // a complex number in memory or as a compute type
  T re, im;
};

template <class T>
inline constexpr bool kIsPair = false;
template <class T>
inline constexpr bool kIsPair<Pair<T>> = true;
template <class T>
inline constexpr bool kIsShort = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// float or double to a whole number, cut off towards zero; NaN is 0.
template <class To, class From>
HWY_INLINE To Saturated(From x) {
  constexpr From kEnd = static_cast<From>(uint64_t{1} << 62) * (sizeof(To) == 8 ? 2 : 0) +
                        static_cast<From>(uint64_t{1} << 31) * (sizeof(To) == 4 ? 1 : 0);
  if (!(x == x)) return 0;
  if (x >= kEnd) return std::numeric_limits<To>::max();
  if (x < -kEnd) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

template <class From>
HWY_INLINE uint64_t ToUnsigned64(From x) {
  if (!(x == x)) return 0;
  if (x < 0) return static_cast<uint64_t>(Saturated<int64_t>(x));
  if (x >= static_cast<From>(18446744073709551616.0)) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(x);
}

template <class To, class From>
HWY_INLINE To WholeOf(From x) {
  if constexpr (std::is_integral_v<From>) return static_cast<To>(x);
  else if constexpr (std::is_same_v<To, uint64_t>) return ToUnsigned64(x);
  else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) return static_cast<To>(Saturated<int64_t>(x));
  else return static_cast<To>(Saturated<int32_t>(x));
}

// Every conversion: storage or compute type to storage or compute type.
template <class To, class From>
HWY_INLINE To Converted(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsPair<From>) {
    if constexpr (kIsPair<To>) {
      using Part = decltype(To::re);
      return {Converted<Part>(x.re), Converted<Part>(x.im)};
    } else if constexpr (std::is_same_v<To, Truth>) {
      return {static_cast<unsigned char>(Converted<Truth>(x.re).byte | Converted<Truth>(x.im).byte)};
    } else {
      return Converted<To>(x.re);
    }
  } else if constexpr (kIsPair<To>) {
    using Part = decltype(To::re);
    return {Converted<Part>(x), Converted<Part>(0.0f)};
  } else if constexpr (std::is_same_v<From, Truth>) {
    return Converted<To>(static_cast<int64_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<To, Truth>) {
    if constexpr (kIsShort<From>) return {static_cast<unsigned char>(static_cast<float>(x) != 0)};
    else return {static_cast<unsigned char>(x != 0)};
  } else if constexpr (kIsShort<From>) {
    return Converted<To>(static_cast<float>(x));
  } else if constexpr (kIsShort<To>) {
    // BFloat16 has numbers beyond 24 bits, which a float in between would round twice.
    constexpr bool kWide = std::is_same_v<From, double> || (std::is_integral_v<From> && std::is_same_v<To, BFloat16>);
    if constexpr (kWide) return To(static_cast<double>(x));
    else return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else {
    return WholeOf<To>(x);
  }
}

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
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = one;
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

// Calls body with a null pointer to the storage type of `dtype`; nothing for other dtypes.
template <class Body>
HWY_INLINE void WithStorage(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32: return body(static_cast<float*>(nullptr));
    case DType::kF16: return body(static_cast<Half*>(nullptr));
    case DType::kBF16: return body(static_cast<BFloat16*>(nullptr));
    case DType::kF64: return body(static_cast<double*>(nullptr));
    case DType::kI8: return body(static_cast<int8_t*>(nullptr));
    case DType::kI16: return body(static_cast<int16_t*>(nullptr));
    case DType::kI32: return body(static_cast<int32_t*>(nullptr));
    case DType::kI64: return body(static_cast<int64_t*>(nullptr));
    case DType::kU8: return body(static_cast<uint8_t*>(nullptr));
    case DType::kU16: return body(static_cast<uint16_t*>(nullptr));
    case DType::kU32: return body(static_cast<uint32_t*>(nullptr));
    case DType::kU64: return body(static_cast<uint64_t*>(nullptr));
    case DType::kBool: return body(static_cast<Truth*>(nullptr));
    case DType::kC32: return body(static_cast<Pair<Half>*>(nullptr));
    case DType::kC64: return body(static_cast<Pair<float>*>(nullptr));
    case DType::kC128: return body(static_cast<Pair<double>*>(nullptr));
    default: return;
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
