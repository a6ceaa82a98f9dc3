// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One step of an optimizer over dense arrays. g is the gradient, divided by grad_scale, then negated with `maximize`.
//
// kAdam:  g += l2 var
//         m += (g - m)(1 - beta1);  v = beta2 v + (1 - beta2) g^2;  u = v, or max(extra, v) with amsgrad
//         var = var (1 - lr decay) - lr / c1 * n / (sqrt(u) / sqrt(c2) + eps),  n = m, or beta1 m + (1 - beta1) g with nesterov
//         extra = u with keeps_max; extra = ema extra + (1 - ema) var with has_ema
// kSgd:   g += l2 var
//         m = first_step ? g : momentum m + (1 - dampening) g;  d = m, or g + momentum m with nesterov; without m d = g
//         var -= lr d
#ifndef ANYACL_OPS_OPTIM_UPDATE_H_
#define ANYACL_OPS_OPTIM_UPDATE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::optim {

enum class Method : uint8_t { kAdam, kSgd };

// Where c1 and c2 come from.
enum class Correction : uint8_t {
  kNone,    // 1
  kStep,    // 1 - beta^t, t = step + step_offset
  kPowers,  // 1 - power, given
  kBefore,  // 1 - power * beta
};

// A number on the device, if there is one; else the value is known already.
struct Number {
  const void* data = nullptr;
  DType dtype = DType::kUndefined;
  double value = 0;
};

struct Array {
  void* data = nullptr;  // null: absent
  DType dtype = DType::kUndefined;
};

struct UpdateParams {
  Array var, m, v, extra, grad;
  int64_t count;
  Number lr, beta1, beta2, eps, decay, step, beta1_power, beta2_power, grad_scale, found_inf;
  double l2;
  double ema;
  double momentum;
  double dampening;
  int64_t step_offset;
  Method method;
  Correction correction;
  bool wide;           // computed in double, not float
  bool maximize;
  bool nesterov;
  bool amsgrad;
  bool keeps_max;
  bool has_ema;
  bool first_step;
  bool corrects_rate;  // eps is added to sqrt(v) as it is: c2 belongs to the rate
};

struct AmpParams {
  const void* scale;
  const void* found;
  const void* tracker;   // INT32
  void* new_scale;
  void* new_tracker;
  DType dtype;           // of the scale and of what was found
  double growth;
  double backoff;
  int64_t interval;
};

}  // namespace anyacl::optim

#endif  // ANYACL_OPS_OPTIM_UPDATE_H_
