// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Connectionist temporal classification. A sample's labels y with blanks around them are its states l = (blank, y1, blank, y2,
// ..., blank); a way through time stays in a state, goes to the next or, past a blank between different labels, to the one after.
//
//   alpha[t, s] = ln P(labels up to l[s] at times up to t),  beta[t, s] = ln P(labels from l[s] on at times from t on)
//   nll         = -ln(e^alpha[T - 1, last] + e^alpha[T - 1, last but one])
//   out[t, c]   = g (e^x[t, c] - e^(ln(sum over s with l[s] = c of e^(alpha + beta)[t, s]) + nll - x[t, c]))
#ifndef ANYACL_OPS_LOSS_CTC_H_
#define ANYACL_OPS_LOSS_CTC_H_

#include <algorithm>
#include <cstdint>

namespace anyacl::loss {

inline constexpr int64_t kCtcSamples = 128;  // of one step: their lengths are in its Params

// Arrays are dense, of FLOAT or, if `wide`, DOUBLE.
struct Ctc {
  const void* x;        // logarithms of probabilities, [steps, samples, classes]
  const void* targets;  // INT64
  int64_t steps, samples, classes;
  int64_t blank;
  int64_t first, count;   // samples of this step
  int64_t first_target;   // of the first one
  int64_t target_stride;  // from sample to sample; 0: they lie one behind the other
  int32_t lengths[kCtcSamples][2];  // times and labels of each
  bool wide;
  bool zero_infinity;
};

struct CtcParams {
  Ctc ctc;
  void* nll;    // [samples]
  void* alpha;  // [samples, steps, width]
  int64_t width;
};

struct CtcBackwardParams {
  Ctc ctc;
  const void* gradient;  // [samples]
  const void* nll;       // [samples]
  void* out;             // as x
  void* scratch;         // CtcTasks times CtcTaskNumbers
  int64_t most_states;
};

// Numbers for alpha, two rows of beta and one of classes.
constexpr int64_t CtcTaskNumbers(int64_t steps, int64_t most_states, int64_t classes) { return (steps + 2) * most_states + classes; }
constexpr int64_t CtcTasks(int64_t numbers, int64_t count) { return std::clamp<int64_t>((int64_t{8} << 20) / numbers, 1, count); }

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_CTC_H_
