// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Element by element:  out[i] = formula(in0[i], in1[i], ..., scalars)
//
// Inputs are converted to one of a few compute types, the formula is applied, the result is converted to out's dtype.
// So a formula is compiled once per compute type, and the engine (walk, conversions) once for all.
#ifndef ANYACL_OPS_POINTWISE_POINTWISE_H_
#define ANYACL_OPS_POINTWISE_POINTWISE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::pointwise {

enum class Formula : uint16_t;  // all of them: ops/pointwise/formulas.h

// What a formula is applied to. Integers and BOOL are 64 bits wide, so that no sum or product is lost before it is
// cut to its dtype; FLOAT16 and BF16 are computed in FLOAT.
enum class Compute : uint8_t { kFloat, kDouble, kInt, kUnsigned, kComplex, kDoubleComplex };
inline constexpr int kComputeTypes = 6;

// Sets of compute types, as formulas.inc names them.
enum : unsigned {
  kReal = 1u << static_cast<int>(Compute::kFloat) | 1u << static_cast<int>(Compute::kDouble),
  kWhole = 1u << static_cast<int>(Compute::kInt) | 1u << static_cast<int>(Compute::kUnsigned),
  kComplex = 1u << static_cast<int>(Compute::kComplex) | 1u << static_cast<int>(Compute::kDoubleComplex),
};

constexpr Compute ComputeOf(DType computed) {
  switch (computed) {
    case DType::kF64:
      return Compute::kDouble;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kBool:
      return Compute::kInt;
    case DType::kU64:
      return Compute::kUnsigned;
    case DType::kC32:
    case DType::kC64:
      return Compute::kComplex;
    case DType::kC128:
      return Compute::kDoubleComplex;
    default:  // FLOAT16, BF16 and what is narrower
      return Compute::kFloat;
  }
}

constexpr int64_t SizeOfCompute(Compute compute) {
  return compute == Compute::kFloat ? 4 : compute == Compute::kDoubleComplex ? 16 : 8;
}

inline constexpr int kMaxInputs = 4;
inline constexpr int kMaxScalars = 6;
inline constexpr int kMaxWalkAxes = 8;  // after merging

// One element-wise pass. Axes are merged as far as all tensors allow, outermost first; strides count elements.
struct Params {
  const void* in[kMaxInputs];
  void* out;
  int64_t count;  // of out's elements
  int64_t dims[kMaxWalkAxes];
  int64_t in_strides[kMaxInputs][kMaxWalkAxes];
  int64_t out_strides[kMaxWalkAxes];
  // In the compute type: float, double, int64_t, or two of the first for complex numbers.
  alignas(16) unsigned char scalars[kMaxScalars][16];
  DType in_types[kMaxInputs];
  DType out_type;
  DType computed;
  Formula formula;
  Compute compute;
  uint8_t inputs;
  uint8_t axes;        // at least 1
  uint8_t constants;   // one bit each: the input is scalars[constant_of[k]] for all elements
  uint8_t constant_of[kMaxInputs];
  uint8_t cut_inputs;  // one bit each: rounded or wrapped to `computed` before the formula
  bool cut_result;     // ... and after it
};

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_POINTWISE_H_
