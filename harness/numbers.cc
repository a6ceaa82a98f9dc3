// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements of any dtype as exact numbers. Written for clarity: none of this is shared with the library's conversions.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

// A binary floating type: bits of precision (with the leading one), smallest normal exponent, largest finite number.
struct Format {
  int precision;
  int least_exponent;
  Real largest;
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kC32:
      return {11, -14, 65504};
    case DType::kBF16:
      return {8, -126, std::ldexp(Real{255}, 120)};
    case DType::kF8E5M2:
      return {3, -14, 57344};
    case DType::kF8E4M3FN:
      return {4, -6, 448};
    case DType::kF64:
    case DType::kC128:
      return {53, -1022, std::numeric_limits<double>::max()};
    default:
      return {24, -126, std::numeric_limits<float>::max()};
  }
}

// To nearest, ties to even, subnormals kept.
Real RoundedTo(const Format& format, Real x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), format.least_exponent);
  const Real unit = std::ldexp(Real{1}, exponent - format.precision + 1);
  const Real rounded = std::nearbyint(x / unit) * unit;
  return std::fabs(rounded) > format.largest ? std::copysign(std::numeric_limits<Real>::infinity(), x) : rounded;
}

bool IsComplexType(DType t) { return IsComplex(t) || t == DType::kC32; }
bool IsSigned(DType t) { return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64; }
int BitsOf(DType t) { return static_cast<int>(8 * SizeOf(t)); }

// Low bits of a whole number, which may need more than 64 bits of its own sign.
Real Wrapped(DType dtype, Real whole) {
  const Real range = std::ldexp(Real{1}, BitsOf(dtype));
  Real rest = std::fmod(whole, range);
  if (rest < 0) rest += range;
  return IsSigned(dtype) && rest >= range / 2 ? rest - range : rest;
}

unsigned ShortBits(DType dtype, Real x) {
  const Format format = FormatOf(dtype);
  const int width = dtype == DType::kF8E5M2 || dtype == DType::kF8E4M3FN ? 8 : 16;
  const int mantissa = format.precision - 1;
  const unsigned sign = std::signbit(x) ? 1u << (width - 1) : 0;
  const unsigned top = ((1u << (width - 1 - mantissa)) - 1) << mantissa;  // exponent of infinities
  if (std::isnan(x)) return dtype == DType::kF8E4M3FN ? 0x7fu : top | 1u << (mantissa - 1);
  x = std::fabs(RoundedTo(format, x));
  if (std::isinf(x)) return dtype == DType::kF8E4M3FN ? sign | 0x7fu : sign | top;
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), format.least_exponent);
  const unsigned units = static_cast<unsigned>(std::ldexp(x, mantissa - exponent));
  if (units < 1u << mantissa) return sign | units;  // subnormal
  return sign | static_cast<unsigned>(exponent - format.least_exponent + 1) << mantissa | (units & ((1u << mantissa) - 1));
}

Real OfShortBits(DType dtype, unsigned bits) {
  const Format format = FormatOf(dtype);
  const int width = dtype == DType::kF8E5M2 || dtype == DType::kF8E4M3FN ? 8 : 16;
  const int mantissa = format.precision - 1;
  const bool negative = bits >> (width - 1) & 1;
  const unsigned exponent = bits >> mantissa & ((1u << (width - 1 - mantissa)) - 1);
  const unsigned units = bits & ((1u << mantissa) - 1);
  const unsigned top = (1u << (width - 1 - mantissa)) - 1;
  Real value;
  if (dtype == DType::kF8E4M3FN ? (bits & 0x7fu) == 0x7fu : exponent == top && units != 0) {
    return std::numeric_limits<Real>::quiet_NaN();
  }
  if (dtype != DType::kF8E4M3FN && exponent == top) {
    value = std::numeric_limits<Real>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<Real>(units), format.least_exponent - mantissa);
  } else {
    value = std::ldexp(static_cast<Real>(units | 1u << mantissa),
                       static_cast<int>(exponent) - 1 + format.least_exponent - mantissa);
  }
  return negative ? -value : value;
}

template <class T>
void Put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}
template <class T>
T Take(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

Real RoundedReal(DType dtype, Real x) {
  if (dtype == DType::kBool) return x != 0 ? 1 : 0;  // NaN too
  if (!IsInteger(dtype)) return RoundedTo(FormatOf(dtype), x);
  if (std::isnan(x)) return 0;
  if (std::isinf(x)) x = std::copysign(std::ldexp(Real{1}, 70), x);
  return Wrapped(dtype, std::trunc(x)) + 0;  // integers have no -0
}

}  // namespace

Number Rounded(DType dtype, Number value) {
  if (dtype == DType::kBool) return value != Number(0) || std::isnan(value.real()) || std::isnan(value.imag()) ? 1 : 0;
  if (!IsComplexType(dtype)) return RoundedReal(dtype, value.real());
  return {RoundedTo(FormatOf(dtype), value.real()), RoundedTo(FormatOf(dtype), value.imag())};
}

Real UlpOf(DType dtype, Real value) {
  if (IsInteger(dtype) || dtype == DType::kBool || !std::isfinite(value)) return 0;
  const Format format = FormatOf(dtype);
  const int exponent = value == 0 ? format.least_exponent : std::max(std::ilogb(value), format.least_exponent);
  return std::ldexp(Real{1}, exponent - format.precision + 1);
}

void EncodeNumber(DType dtype, Number value, unsigned char* element) {
  const Number v = Rounded(dtype, value);
  switch (dtype) {
    case DType::kF32: return Put(element, static_cast<float>(v.real()));
    case DType::kF64: return Put(element, static_cast<double>(v.real()));
    case DType::kF16:
    case DType::kBF16: return Put(element, static_cast<uint16_t>(ShortBits(dtype, v.real())));
    case DType::kF8E5M2:
    case DType::kF8E4M3FN: return Put(element, static_cast<uint8_t>(ShortBits(dtype, v.real())));
    case DType::kI8: return Put(element, static_cast<int8_t>(v.real()));
    case DType::kI16: return Put(element, static_cast<int16_t>(v.real()));
    case DType::kI32: return Put(element, static_cast<int32_t>(v.real()));
    case DType::kI64: return Put(element, static_cast<int64_t>(v.real()));
    case DType::kU8: return Put(element, static_cast<uint8_t>(v.real()));
    case DType::kU16: return Put(element, static_cast<uint16_t>(v.real()));
    case DType::kU32: return Put(element, static_cast<uint32_t>(v.real()));
    case DType::kU64: return Put(element, static_cast<uint64_t>(v.real()));
    case DType::kBool: return Put(element, static_cast<uint8_t>(v.real() != 0));
    case DType::kC32:
      Put(element, static_cast<uint16_t>(ShortBits(DType::kF16, v.real())));
      return Put(element + 2, static_cast<uint16_t>(ShortBits(DType::kF16, v.imag())));
    case DType::kC64:
      Put(element, static_cast<float>(v.real()));
      return Put(element + 4, static_cast<float>(v.imag()));
    case DType::kC128:
      Put(element, static_cast<double>(v.real()));
      return Put(element + 8, static_cast<double>(v.imag()));
    default:
      throw std::invalid_argument("no numbers of " + Name(dtype));
  }
}

Number DecodeNumber(DType dtype, const unsigned char* element) {
  switch (dtype) {
    case DType::kF32: return Take<float>(element);
    case DType::kF64: return Take<double>(element);
    case DType::kF16:
    case DType::kBF16: return OfShortBits(dtype, Take<uint16_t>(element));
    case DType::kF8E5M2:
    case DType::kF8E4M3FN: return OfShortBits(dtype, Take<uint8_t>(element));
    case DType::kI8: return Take<int8_t>(element);
    case DType::kI16: return Take<int16_t>(element);
    case DType::kI32: return Take<int32_t>(element);
    case DType::kI64: return Take<int64_t>(element);
    case DType::kU8: return Take<uint8_t>(element);
    case DType::kU16: return Take<uint16_t>(element);
    case DType::kU32: return Take<uint32_t>(element);
    case DType::kU64: return Take<uint64_t>(element);
    case DType::kBool: return Take<uint8_t>(element) != 0 ? 1 : 0;
    case DType::kC32:
      return {OfShortBits(DType::kF16, Take<uint16_t>(element)), OfShortBits(DType::kF16, Take<uint16_t>(element + 2))};
    case DType::kC64: return {Take<float>(element), Take<float>(element + 4)};
    case DType::kC128: return {Take<double>(element), Take<double>(element + 8)};
    default:
      throw std::invalid_argument("no numbers of " + Name(dtype));
  }
}

}  // namespace anyacl::harness
