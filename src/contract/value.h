// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The arguments of one call as the contract sees them: descriptions, never memory.
#ifndef ANYACL_CONTRACT_VALUE_H_
#define ANYACL_CONTRACT_VALUE_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"

namespace anyacl {

// What an aclScalar holds: the bytes of one value and its type.
struct Scalar {
  DType dtype = DType::kUndefined;
  alignas(16) unsigned char bytes[16] = {};

  static Scalar OfFloat(float value);
  static Scalar Of(DType dtype, double value);  // any dtype of ConvertsTo; tests and tools
  static Scalar OfInt(int64_t value);
  // The value as FLOAT32, rounded once; 0 for types that do not convert.
  float AsFloat() const;
  double AsDouble() const;
  std::complex<double> AsComplex() const;
  // Whole numbers keep all their bits; others are cut off towards 0, NaN is 0.
  int64_t AsInt() const;
  bool AsBool() const;
};

struct BoolArray {
  std::vector<unsigned char> values;  // bytes: anything but 0 is true
};
struct IntArray {
  std::vector<int64_t> values;
};
struct FloatArray {
  std::vector<float> values;
};

// The members of a list argument, looked up once per call; an absent one is null.
struct TensorSpan {
  std::span<const Tensor* const> tensors;
  int dead = -1;  // index of the first handle that is no live tensor
};
struct ScalarSpan {
  std::span<const Scalar* const> scalars;
  int dead = -1;
};

namespace contract {

// One bound argument. Which member is meaningful follows from the argument's kind. Nothing is initialised
// by itself: a call binds a few of these in an array that is large enough for all.
struct Value {
  enum class State : uint8_t { kGiven, kNull, kDead };
  State state;
  union {
    const Tensor* tensor;
    const Scalar* scalar;
    const BoolArray* bools;
    const IntArray* ints;
    const FloatArray* floats;
    const TensorSpan* tensors;
    const ScalarSpan* scalars;
    const char* text;
    int64_t integer;
    double real;
    bool flag;
  };

  bool given() const { return state == State::kGiven; }
};

using Values = std::span<const Value>;

}  // namespace contract
}  // namespace anyacl

#endif  // ANYACL_CONTRACT_VALUE_H_
