// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/value.h"

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

float Scalar::AsFloat() const {
  switch (dtype) {
    case DType::kF32:
      return Load<float>(*this);
    case DType::kF64:
      return static_cast<float>(Load<double>(*this));
    case DType::kF16:
      return static_cast<float>(Load<Half>(*this));
    case DType::kBF16:
      return static_cast<float>(Load<BFloat16>(*this));
    case DType::kI8:
      return static_cast<float>(Load<int8_t>(*this));
    case DType::kU8:
      return static_cast<float>(Load<uint8_t>(*this));
    case DType::kI16:
      return static_cast<float>(Load<int16_t>(*this));
    case DType::kU16:
      return static_cast<float>(Load<uint16_t>(*this));
    case DType::kI32:
      return static_cast<float>(Load<int32_t>(*this));
    case DType::kU32:
      return static_cast<float>(Load<uint32_t>(*this));
    case DType::kI64:
      return static_cast<float>(Load<int64_t>(*this));
    case DType::kU64:
      return static_cast<float>(Load<uint64_t>(*this));
    case DType::kBool:
      return bytes[0] != 0 ? 1.0f : 0.0f;
    default:
      return 0.0f;
  }
}

}  // namespace anyacl
