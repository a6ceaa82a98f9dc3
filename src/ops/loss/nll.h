// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Losses that read one class of each sample. C classes, w their weights, y a sample's class, m = 1 unless y is to be ignored:
//
//   l[n] = m w[y] * -x[n, y] * (1 - e) + e / C * m * sum over c of w[c] * -x[n, c]
//   out  = l, its sum, or its sum divided by the sum of m w[y];   total = sum of m w[y]
#ifndef ANYACL_OPS_LOSS_NLL_H_
#define ANYACL_OPS_LOSS_NLL_H_

#include <cstdint>

#include "core/view.h"

namespace anyacl::loss {

inline constexpr int64_t kNllPart = 4096;  // samples that one task sums up

// `wide`: computed in double, and so are out and total; else in float.
struct NllParams {
  View x;       // samples, then classes
  View target;  // samples: INT64, INT32 or UINT8
  View weight;  // classes; data null: 1
  void* out;    // one per sample, or one; dense
  void* total;  // may be null
  void* parts;    // NllParts doubles
  int64_t samples;
  int64_t classes;
  int64_t ignored;     // this class and those that do not exist
  int64_t reduction;
  double smoothing;
  bool wide;
  bool single;  // one sample without an axis of its own: total is its weight even without a reduction
};

// out[n, y] = -w[y] * g[n], divided by total for a mean; other elements are 0 already.
struct NllBackwardParams {
  View gradient;  // of the samples, or one for all
  View target;
  View weight;
  View total;
  View out;       // samples, then classes
  int64_t samples;
  int64_t classes;
  int64_t ignored;
  bool mean;
  bool wide;
};

// With q = exp(log_prob), S the sum of all weights, s = g (divided by the sum of m w[y] for a mean), a = m s (1 - e) w[y] and
// b = m s e / C:   out[n, c] = q[n, c] * (a + b S) - (c == y ? a : 0) - b w[c], exactly 0 where m is 0.
// Arrays are dense FLOAT.
struct CrossEntropyGradParams {
  const void* gradient;  // samples of them, or one
  const void* log_prob;
  const void* target;    // INT64
  const void* weight;    // null: 1
  void* out;
  int64_t samples;
  int64_t classes;
  int64_t ignored;
  int64_t reduction;
  double smoothing;
};

constexpr int64_t NllParts(int64_t samples) { return 2 * (samples / kNllPart + 1); }

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_NLL_H_
