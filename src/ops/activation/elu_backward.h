// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// EluBackward, element by element in float32 (g = dy[i]):
//
//   x <= 0, x is the forward result:  dx = (g * input_scale) * (x + negcoef)
//   x <= 0, x is the forward input:   dx = ((g * input_scale) * negcoef) * exp(x * input_scale)
//   else (x > 0 or NaN):              dx = g * scale
//
// negcoef = alpha * scale, rounded to float once. dx is rounded to the dtype of dy first and then
// converted to its own: a FLOAT16 gradient written as FLOAT is a FLOAT16 value. Complex outputs get
// imaginary part 0.
#ifndef ANYACL_OPS_ACTIVATION_ELU_BACKWARD_H_
#define ANYACL_OPS_ACTIVATION_ELU_BACKWARD_H_

#include <cmath>
#include <complex>
#include <cstdint>

#include "core/dtype.h"
#include "core/scalar.h"

namespace anyacl {

// Dense arrays of `count` elements; dx may be dy or x itself when it has their element size.
struct EluBackwardParams {
  const void* dy;
  const void* x;
  void* dx;
  int64_t count;
  DType dtype;      // of dy and x: FLOAT, FLOAT16 or BF16
  DType out_dtype;  // of dx: also DOUBLE, COMPLEX64, COMPLEX128
  bool is_result;   // x is the forward result, not the forward input
  float negcoef;
  float scale;
  float input_scale;
};

namespace reference {

// Forward, for finite differences: y = scale * x for x > 0, negcoef * (exp(x * input_scale) - 1)
// below.
template <class Acc>
Acc Elu(Acc x, Acc negcoef, Acc scale, Acc input_scale) {
  return x <= 0 ? negcoef * std::expm1(x * input_scale) : x * scale;
}

template <class Acc>
Acc EluBackward(Acc g, Acc x, bool is_result, Acc negcoef, Acc scale, Acc input_scale) {
  if (!(x <= 0)) return g * scale;
  if (is_result) return (g * input_scale) * (x + negcoef);
  return ((g * input_scale) * negcoef) * std::exp(x * input_scale);
}

// dx[i] from elements stored as T, computed in Acc and not rounded further: with Acc = double the
// oracle.
template <class Acc, class T>
Acc EluBackwardAt(const EluBackwardParams& p, int64_t i) {
  const Acc g = static_cast<Acc>(static_cast<const T*>(p.dy)[i]);
  const Acc x = static_cast<Acc>(static_cast<const T*>(p.x)[i]);
  return EluBackward<Acc>(g, x, p.is_result, p.negcoef, p.scale, p.input_scale);
}

// The operator: rounded to T, then converted to Out.
template <class Acc, class T, class Out>
void EluBackward(const EluBackwardParams& p) {
  Out* const dx = static_cast<Out*>(p.dx);
  for (int64_t i = 0; i < p.count; ++i) {
    const T rounded = static_cast<T>(EluBackwardAt<Acc, T>(p, i));
    dx[i] = static_cast<Out>(static_cast<float>(rounded));
  }
}

template <class Acc, class T>
void EluBackward(const EluBackwardParams& p) {
  switch (p.out_dtype) {
    case DType::kF32:
      return EluBackward<Acc, T, float>(p);
    case DType::kF16:
      return EluBackward<Acc, T, Half>(p);
    case DType::kBF16:
      return EluBackward<Acc, T, BFloat16>(p);
    case DType::kF64:
      return EluBackward<Acc, T, double>(p);
    case DType::kC64:
      return EluBackward<Acc, T, std::complex<float>>(p);
    case DType::kC128:
      return EluBackward<Acc, T, std::complex<double>>(p);
    default:
      return;
  }
}

template <class Acc>
void EluBackward(const EluBackwardParams& p) {
  switch (p.dtype) {
    case DType::kF32:
      return EluBackward<Acc, float>(p);
    case DType::kF16:
      return EluBackward<Acc, Half>(p);
    case DType::kBF16:
      return EluBackward<Acc, BFloat16>(p);
    default:
      return;
  }
}

}  // namespace reference
}  // namespace anyacl

#endif  // ANYACL_OPS_ACTIVATION_ELU_BACKWARD_H_
