// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The 16-bit number types in plain scalar code: nearest-even, subnormals kept. References and tests use
// these; kernels bring their own vector conversions, so that an error in one shows against the other.
#ifndef ANYACL_CORE_SCALAR_H_
#define ANYACL_CORE_SCALAR_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace anyacl {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // keep it a NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit BFloat16(double value) : BFloat16(RoundToOddFloat(value)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  explicit operator double() const { return static_cast<float>(*this); }

 private:
  friend struct Half;
  // Rounding double -> float -> 16 bits twice is wrong at ties; a float rounded to odd is safe.
  static float RoundToOddFloat(double value) {
    float f = static_cast<float>(value);
    if (std::isnan(value) || std::isinf(f) || static_cast<double>(f) == value) return f;
    uint32_t u = std::bit_cast<uint32_t>(f);
    const bool too_large = std::fabs(static_cast<double>(f)) > std::fabs(value);
    if (too_large) u -= 1;  // truncate towards zero, then make the lowest bit sticky
    return std::bit_cast<float>(u | 1u);
  }
};

struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      bits = static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
      bits = sign | 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, in units of 2^-24
      const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
      bits = static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
    } else {
      const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
      bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
    }
  }
  explicit Half(double value) : Half(BFloat16::RoundToOddFloat(value)) {}
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

}  // namespace anyacl

#endif  // ANYACL_CORE_SCALAR_H_
