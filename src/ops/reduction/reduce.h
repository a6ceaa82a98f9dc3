// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One reducer over any axes of a strided tensor:  out[k] = finish(op over r of in[k, r])
//
// Kept axes make the results in row-major order, reduced axes the row-major sequence x_0, x_1, ... of each. In which order
// a sequence is folded follows from the shape alone: neither strides nor threads change a bit.
#ifndef ANYACL_OPS_REDUCTION_REDUCE_H_
#define ANYACL_OPS_REDUCTION_REDUCE_H_

#include <cstdint>

#include "core/dtype.h"
#include "core/view.h"
#include "ops/pointwise/pointwise.h"

namespace anyacl::reduction {

enum class Op : uint8_t {
  kSum,
  kSumOfNumbers,  // NaN counts as 0
  kProduct,
  kMax,           // the first of the largest; a NaN wins
  kMin,
  kAny,           // some element is not 0
  kAll,
  kSquares,       // sum of |x - center[k]|^2
  kLogSumExp,
};
inline constexpr int kOps = 9;

// Applied to each result.
enum class Finish : uint8_t { kNone, kDivide, kDivideAndRoot, kLog };

struct Axis {
  int64_t size;
  int64_t stride;  // elements
};

struct ReduceParams {
  const void* in;
  const void* center;  // double, one per result; kSquares only
  void* out;           // null: only places are asked for
  void* places;        // int64 each, kMax and kMin: which of the sequence it is; may be null
  void* scratch;
  int64_t results;
  int64_t length;  // of a sequence
  Axis kept[kMaxAxes];
  Axis over[kMaxAxes];
  double divisor;
  DType in_type;
  DType out_type;  // ResultType, or DOUBLE for FLOAT
  pointwise::Compute compute;
  Op op;
  Finish finish;
  int8_t kept_axes;
  int8_t over_axes;
  bool columns;  // many sequences side by side, else one after the other
  int64_t piece;  // of a sequence, folded by itself
};

// What the kernel writes: what the elements are computed in, or DOUBLE for FLOAT.
constexpr DType ResultType(Op op, pointwise::Compute compute) {
  if (op == Op::kAny || op == Op::kAll) return DType::kBool;
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI64, DType::kU64, DType::kC64, DType::kC128};
  return kTypes[static_cast<int>(compute)];
}

}  // namespace anyacl::reduction

#endif  // ANYACL_OPS_REDUCTION_REDUCE_H_
