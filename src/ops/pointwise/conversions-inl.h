// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements of any dtype into and out of the compute types. The rules of every conversion of the library stand here:
// integers keep their low bits; floating numbers round to nearest even, or are cut off towards zero and saturate (8 and 16
// bits: through 32, as PyTorch); NaN is 0 as an integer and true as a BOOL. One text for CPUs and GPUs: included inside a
// namespace where Half and BFloat16 are (core/scalar.h or convert.cuh).

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
