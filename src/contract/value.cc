// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/value.h"

#include <array>
#include <cstring>

#include "core/scalar.h"

namespace anyacl {
namespace {

template <class T>
T Load(const Scalar& s) {
  T value;
  std::memcpy(&value, s.bytes, sizeof(T));
  return value;
}

template <class T>
Scalar Store(DType dtype, T value) {
  Scalar s;
  s.dtype = dtype;
  std::memcpy(s.bytes, &value, sizeof(T));
  return s;
}

}  // namespace

Scalar Scalar::OfFloat(float value) { return Store(DType::kF32, value); }

Scalar Scalar::Of(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return Store(dtype, static_cast<float>(value));
    case DType::kF64:
      return Store(dtype, value);
    case DType::kF16:
      return Store(dtype, Half(value).bits);
    case DType::kBF16:
      return Store(dtype, BFloat16(value).bits);
    case DType::kI8:
      return Store(dtype, static_cast<int8_t>(value));
    case DType::kU8:
      return Store(dtype, static_cast<uint8_t>(value));
    case DType::kI16:
      return Store(dtype, static_cast<int16_t>(value));
    case DType::kU16:
      return Store(dtype, static_cast<uint16_t>(value));
    case DType::kI32:
      return Store(dtype, static_cast<int32_t>(value));
    case DType::kU32:
      return Store(dtype, static_cast<uint32_t>(value));
    case DType::kI64:
      return Store(dtype, static_cast<int64_t>(value));
    case DType::kU64:
      return Store(dtype, static_cast<uint64_t>(value));
    case DType::kBool:
      return Store(dtype, static_cast<uint8_t>(value != 0));
    case DType::kC64:
      return Store(dtype, static_cast<float>(value));
    case DType::kC128:
      return Store(dtype, value);
    default:
      return Store(dtype, uint8_t{0});
  }
}

Scalar Scalar::OfInt(int64_t value) { return Store(DType::kI64, value); }

namespace {

// Calls visit with the value in its own C++ type; complex numbers as std::complex<double>.
template <class Visit>
auto Visited(const Scalar& s, Visit&& visit) {
  switch (s.dtype) {
    case DType::kF32:
      return visit(Load<float>(s));
    case DType::kF64:
      return visit(Load<double>(s));
    case DType::kF16:
      return visit(static_cast<float>(Load<Half>(s)));
    case DType::kBF16:
      return visit(static_cast<float>(Load<BFloat16>(s)));
    case DType::kI8:
      return visit(Load<int8_t>(s));
    case DType::kU8:
      return visit(Load<uint8_t>(s));
    case DType::kI16:
      return visit(Load<int16_t>(s));
    case DType::kU16:
      return visit(Load<uint16_t>(s));
    case DType::kI32:
      return visit(Load<int32_t>(s));
    case DType::kU32:
      return visit(Load<uint32_t>(s));
    case DType::kI64:
      return visit(Load<int64_t>(s));
    case DType::kU64:
      return visit(Load<uint64_t>(s));
    case DType::kBool:
      return visit(s.bytes[0] != 0);
    case DType::kC32: {
      const auto parts = Load<std::array<Half, 2>>(s);
      return visit(std::complex<double>(static_cast<double>(parts[0]), static_cast<double>(parts[1])));
    }
    case DType::kC64:
      return visit(std::complex<double>(Load<std::complex<float>>(s)));
    case DType::kC128:
      return visit(Load<std::complex<double>>(s));
    default:
      return visit(0);
  }
}

// Real numbers as T; of a complex one the real part.
template <class T>
T RealAs(const Scalar& s) {
  return Visited(s, [](auto value) {
    if constexpr (requires { value.real(); }) {
      return static_cast<T>(value.real());
    } else {
      return static_cast<T>(value);
    }
  });
}

}  // namespace

float Scalar::AsFloat() const { return IsComplex(dtype) || dtype == DType::kC32 ? 0.0f : RealAs<float>(*this); }
double Scalar::AsDouble() const { return RealAs<double>(*this); }

std::complex<double> Scalar::AsComplex() const {
  return Visited(*this, [](auto value) {
    if constexpr (requires { value.real(); }) {
      return std::complex<double>(value);
    } else {
      return std::complex<double>(static_cast<double>(value));
    }
  });
}

int64_t Scalar::AsInt() const {
  if (!IsFloating(dtype) && !IsComplex(dtype) && dtype != DType::kC32) return RealAs<int64_t>(*this);
  const double value = AsDouble();
  if (!(value >= -0x1p63)) return value == value ? INT64_MIN : 0;
  return value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MAX;
}

bool Scalar::AsBool() const {
  return Visited(*this, [](auto value) { return value != decltype(value)(0); });
}

}  // namespace anyacl
