// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/data.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "core/scalar.h"

namespace anyacl::harness {
namespace {

// splitmix64 of a counter: any element alone, in any order.
uint64_t Bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xd1342543de82ef95u + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// In (0, 1), neither end.
double Unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }
double Signed(uint64_t bits) { return 2 * Unit(bits) - 1; }

double Hostile(uint64_t bits) {
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kList[] = {kNaN,    -kNaN,    kInf,  -kInf, 0.0,    -0.0,   1e-40,
                                     -1e-40,  6e-8,     -6e-8, 65504, -65504, 3.3e38, -3.3e38,
                                     1.2e-38, -1.2e-38, 88.9,  -88.9, -104,   1,      -1};
  const uint64_t pick = (bits >> 3) % 64;
  return pick < std::size(kList) ? kList[pick] : 2 * Signed(bits);
}

template <class T>
struct Type {
  using type = T;
};

template <class F>
auto WithType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(Type<float>());
    case DType::kF64:
      return f(Type<double>());
    case DType::kF16:
      return f(Type<Half>());
    case DType::kBF16:
      return f(Type<BFloat16>());
    case DType::kC64:
      return f(Type<std::complex<float>>());
    case DType::kC128:
      return f(Type<std::complex<double>>());
    case DType::kI8:
      return f(Type<int8_t>());
    case DType::kU8:
      return f(Type<uint8_t>());
    case DType::kI16:
      return f(Type<int16_t>());
    case DType::kU16:
      return f(Type<uint16_t>());
    case DType::kI32:
      return f(Type<int32_t>());
    case DType::kU32:
      return f(Type<uint32_t>());
    case DType::kI64:
      return f(Type<int64_t>());
    case DType::kU64:
      return f(Type<uint64_t>());
    case DType::kBool:
      return f(Type<bool>());
    default:
      throw std::invalid_argument(Name(dtype) + " has no numbers");
  }
}

template <class T>
T Make(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr double kMin = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) return 0;
    if (value >= kMax) return std::numeric_limits<T>::max();
    return value <= kMin ? std::numeric_limits<T>::min() : static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return {static_cast<float>(value), 0};
  } else {
    return T(value);
  }
}

template <class T>
double Value(T element) {
  if constexpr (requires { element.real(); }) {
    return static_cast<double>(element.real());
  } else {
    return static_cast<double>(element);
  }
}

template <class T>
double Load(const void* from) {
  std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> element;  // poison is no bool
  std::memcpy(&element, from, sizeof(T));
  return Value(element);
}

template <class T>
void Store(double value, void* to) {
  const T element = Make<T>(value);
  std::memcpy(to, &element, sizeof(T));
}

}  // namespace

const char* Name(Data data) {
  switch (data) {
    case Data::kExact:
      return "exact";
    case Data::kRandom:
      return "random";
    case Data::kOffset:
      return "offset";
    case Data::kSmall:
      return "small";
    case Data::kTiny:
      return "tiny";
    case Data::kHostile:
      return "hostile";
  }
  return "";
}

double Generate(Data data, uint64_t seed, uint64_t index) {
  const uint64_t bits = Bits(seed, index);
  switch (data) {
    case Data::kExact:
      return static_cast<double>(static_cast<int64_t>(bits % 17) - 8) / 4;
    case Data::kRandom:
      return 2 * Signed(bits);
    case Data::kOffset:
      return 1e4 + Signed(bits);
    case Data::kSmall:
      return (bits & 1 ? -1 : 1) * std::pow(10, -8 * Unit(bits));
    case Data::kTiny:
      return (bits & 1 ? -1 : 1) * std::pow(10, -30 - 15 * Unit(bits));
    case Data::kHostile:
      return Hostile(bits);
  }
  return 0;
}

std::vector<double> Generate(Data data, uint64_t seed, int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = Generate(data, seed, static_cast<uint64_t>(i));
  return values;
}

void Encode(DType dtype, double value, void* element) {
  WithType(dtype, [&]<class T>(Type<T>) { Store<T>(value, element); });
}

double Decode(DType dtype, const void* element) {
  return WithType(dtype, [&]<class T>(Type<T>) { return Load<T>(element); });
}

std::vector<unsigned char> Encode(DType dtype, std::span<const double> values) {
  return WithType(dtype, [&]<class T>(Type<T>) {
    std::vector<unsigned char> bytes(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) Store<T>(values[i], bytes.data() + i * sizeof(T));
    return bytes;
  });
}

std::vector<double> Decode(DType dtype, std::span<const unsigned char> bytes) {
  return WithType(dtype, [&]<class T>(Type<T>) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) values[i] = Load<T>(bytes.data() + i * sizeof(T));
    return values;
  });
}

bool HasNumbers(DType dtype) {
  return IsFloating(dtype) || IsInteger(dtype) || IsComplex(dtype) || dtype == DType::kBool;
}

}  // namespace anyacl::harness
