// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The engine of gated units: an axis is cut into two halves a and b, which a formula joins; a gradient has the shape that
// was cut. Arrays are dense, of the type `stored`: float, or double with `wide`, or FLOAT16 or BF16, which are computed in
// float; weight and threshold are of the type that is computed in. s is the logistic function.
#ifndef ANYACL_OPS_GATED_GATED_H_
#define ANYACL_OPS_GATED_GATED_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::gated {

enum class Formula : uint8_t {
  kGlu,             // a * s(b)
  kGluBackward,     // g * s(b), g * a * s(b) * s(-b)
  kGeGluErf,        // a * gelu(b), gelu(b)
  kGeGluTanh,
  kGeGluErfBackward,  // g * gelu(b) as it is given, g * a * gelu'(b)
  kGeGluTanhBackward,
  kSwiGlu,          // silu(a) * b
  kSwiGluBackward,  // g * b * s(a) * (1 + a * s(-a)), g * silu(a)
  kClipped,         // a' * s(alpha * a') * (b' + bias), a' = min(a, limit), b' = b within -limit and limit
  kClippedSilu,     // min(silu(a), limit) * b'
  kClippedBackward,
  kSwiGluGroup,         // silu(a) * b * weight[row]
  kSwiGluGroupClipped,  // ... with a' and b'
  kSitu,                // beta * tanh(a / beta) * s(a) * b
  kSituTwice,           // ... * linear_beta * tanh(b / linear_beta)
  kSituBackward,
  kSituTwiceBackward,
  kFatrelu,  // (a > threshold ? a : 0) * b
};
inline constexpr int kFormulas = static_cast<int>(Formula::kFatrelu) + 1;

struct Params {
  Formula formula = Formula::kGlu;
  bool wide = false;
  DType stored = DType::kF32;
  bool interleaved = false;  // a and b take turns; else a comes first
  bool swapped = false;      // b comes first
  bool gradient = false;     // out has both halves, in the order of x
  int64_t rows = 0;
  int64_t half = 0;  // numbers of one half of a row
  // alpha, limit, bias; limit; beta, linear_beta
  double scalars[3] = {};
  const void* x = nullptr;          // [rows, 2 * half]
  const void* gradient_in = nullptr;  // [rows, half]
  const void* gelu = nullptr;         // [rows, half]
  const void* weight = nullptr;     // [rows]
  const void* threshold = nullptr;  // one number
  // With `grouped`, rows behind the sum of these int64 numbers give zeros.
  bool grouped = false;
  const void* groups = nullptr;
  int64_t group_count = 0;
  void* out = nullptr;     // [rows, half], or [rows, 2 * half] for a gradient
  void* second = nullptr;  // [rows, half]
};

}  // namespace anyacl::gated

#endif  // ANYACL_OPS_GATED_GATED_H_
