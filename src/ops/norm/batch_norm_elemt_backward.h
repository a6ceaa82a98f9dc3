// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// BatchNormElemtBackward, the last step of a synchronised batch norm, per element of channel c:
//
//   count = sum of all elements of counter
//   dx = ((dy - sum_dy[c]/count) - (x - mean[c]) * (sum_dy_xmu[c]/count * invstd[c]^2)) * (invstd[c] * weight[c])
//
// All in float32 in this order. count == 0 divides by zero as IEEE says.
#ifndef ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_H_
#define ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_H_

#include <cstdint>

#include "core/dtype.h"
#include "core/scalar.h"

namespace anyacl {

// dy, x, dx lie densely as [outer, c, inner]: channels-first, channels-last and every other dense order
// of the axes have this form.
struct BatchNormElemtBackwardParams {
  struct Operand {
    const void* data;
    DType dtype;
  };
  Operand dy;
  Operand x;
  Operand mean;
  Operand invstd;
  Operand weight;  // data null: ones
  Operand sum_dy;
  Operand sum_dy_xmu;
  Operand counter;
  void* dx;
  DType dx_dtype;
  void* scratch;
  int64_t outer;
  int64_t c;
  int64_t inner;
  int64_t counter_count;
};

namespace reference {

// One element of any of the operator's dtypes; DOUBLE only for whoever tests this oracle.
inline double LoadAsDouble(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kF16:
      return static_cast<double>(static_cast<const Half*>(data)[i]);
    case DType::kBF16:
      return static_cast<double>(static_cast<const BFloat16*>(data)[i]);
    case DType::kI32:
      return static_cast<const int32_t*>(data)[i];
    case DType::kF64:
      return static_cast<const double*>(data)[i];
    default:
      return 0;
  }
}

// Calls store(i, dx[i]) for every element; the value is not rounded to dx's dtype.
template <class Acc, class Store>
void EachBatchNormElemtBackward(const BatchNormElemtBackwardParams& p, const Store& store) {
  const auto load = [](const BatchNormElemtBackwardParams::Operand& t, int64_t i) {
    return static_cast<Acc>(LoadAsDouble(t.data, t.dtype, i));
  };
  Acc count = 0;
  for (int64_t i = 0; i < p.counter_count; ++i) count += load(p.counter, i);
  for (int64_t o = 0; o < p.outer; ++o) {
    for (int64_t c = 0; c < p.c; ++c) {
      const Acc invstd = load(p.invstd, c);
      const Acc weight = p.weight.data ? load(p.weight, c) : Acc{1};
      const Acc mean_dy = load(p.sum_dy, c) / count;
      const Acc slope = load(p.sum_dy_xmu, c) / count * (invstd * invstd);
      for (int64_t k = 0; k < p.inner; ++k) {
        const int64_t i = (o * p.c + c) * p.inner + k;
        const Acc centred = load(p.x, i) - load(p.mean, c);
        store(i, ((load(p.dy, i) - mean_dy) - centred * slope) * (invstd * weight));
      }
    }
  }
}

// The oracle: writes the results before any rounding to dx's dtype.
template <class Acc>
void BatchNormElemtBackward(const BatchNormElemtBackwardParams& p, Acc* dx) {
  EachBatchNormElemtBackward<Acc>(p, [&](int64_t i, Acc value) { dx[i] = value; });
}

// The operator: rounded once, to dx's dtype.
template <class Acc, class Out>
void RoundedBatchNormElemtBackward(const BatchNormElemtBackwardParams& p) {
  Out* const dx = static_cast<Out*>(p.dx);
  EachBatchNormElemtBackward<Acc>(p, [&](int64_t i, Acc value) { dx[i] = static_cast<Out>(value); });
}

template <class Acc>
void BatchNormElemtBackward(const BatchNormElemtBackwardParams& p) {
  switch (p.dx_dtype) {
    case DType::kF32: return RoundedBatchNormElemtBackward<Acc, float>(p);
    case DType::kF16: return RoundedBatchNormElemtBackward<Acc, Half>(p);
    case DType::kBF16: return RoundedBatchNormElemtBackward<Acc, BFloat16>(p);
    default: return;
  }
}

}  // namespace reference
}  // namespace anyacl

#endif  // ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_H_
