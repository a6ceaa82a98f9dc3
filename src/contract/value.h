// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The arguments of one call as the contract sees them: descriptions, never memory.
#ifndef ANYACL_CONTRACT_VALUE_H_
#define ANYACL_CONTRACT_VALUE_H_

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
  // The value as FLOAT32, rounded once; 0 for types that do not convert.
  float AsFloat() const;
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
