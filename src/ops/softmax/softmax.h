// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The engine of soft-max: dense rows of the type `stored`: float, or double with `wide`, or FLOAT16 or BF16, which are computed in
// float (not for kCrossEntropy). m is a row's largest number, S = sum of exp(x - m).
#ifndef ANYACL_OPS_SOFTMAX_SOFTMAX_H_
#define ANYACL_OPS_SOFTMAX_SOFTMAX_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::softmax {

enum class Kind : uint8_t {
  kSoftmax,             // out = exp(x - m) / S
  kLogSoftmax,          // out = (x - m) - log(S)
  kSoftmaxBackward,     // out = y * (x - sum of x * y); x is the gradient, y what the forward gave
  kLogSoftmaxBackward,  // out = x - exp(y) * sum of x
  kCrossEntropy,        // out = softmax(x) - y; loss = -sum of y * logsoftmax(x)
};

struct Params {
  Kind kind = Kind::kSoftmax;
  bool wide = false;
  DType stored = DType::kF32;
  int64_t rows = 0;
  int64_t count = 0;  // of a row
  const void* x = nullptr;
  const void* y = nullptr;
  void* out = nullptr;
  void* loss = nullptr;
};

}  // namespace anyacl::softmax

#endif  // ANYACL_OPS_SOFTMAX_SOFTMAX_H_
