// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GroupNormBackward over x, dy of [N, C, S], S = HxW, in G groups of D = C/G channels, M = D*S:
//
//   xhat = (x - mean[n,g]) * rstd[n,g]
//   db[n,c] = sum_s dy                   ds[n,c] = sum_s dy * xhat
//   dbeta[c] = sum_n db[n,c]             dgamma[c] = sum_n ds[n,c]
//   c1[n,g] = sum_{c in g} gamma[c] * db[n,c] / M
//   c2[n,g] = sum_{c in g} gamma[c] * ds[n,c] / M
//   dx = rstd[n,g] * (gamma[c] * dy - c1[n,g] - xhat * c2[n,g])
//
// mean and rstd are taken as given. Sums over nothing are 0, so an empty batch clears dgamma and dbeta.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_H_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_H_

#include <cmath>
#include <cstdint>

#include "core/dtype.h"
#include "core/scalar.h"

namespace anyacl {

struct GroupNormBackwardParams {
  const void* dy;
  const void* x;
  const void* mean;   // [N, G]
  const void* rstd;   // [N, G]
  const void* gamma;  // [C]; null: ones
  void* dx;           // null: not wanted, as dgamma and dbeta
  void* dgamma;
  void* dbeta;
  void* scratch;
  int64_t n;
  int64_t c;
  int64_t hxw;
  int64_t groups;
  DType dtype;         // of dy, x, dx
  DType param_dtype;   // of mean, rstd, gamma, dgamma, dbeta
  bool channels_last;  // element (n, c, s) lies at (n*S + s)*C + c, else at (n*C + c)*S + s
};

namespace reference {

// The oracle: T and P in memory, Acc in between. Outputs that are null are skipped; the others receive
// the results before any rounding to T or P.
template <class Acc, class T, class P>
void GroupNormBackward(const GroupNormBackwardParams& p, Acc* dx, Acc* dgamma, Acc* dbeta) {
  const auto at = [&](int64_t n, int64_t c, int64_t s) {
    return p.channels_last ? (n * p.hxw + s) * p.c + c : (n * p.c + c) * p.hxw + s;
  };
  const auto dy = [&](int64_t i) { return static_cast<Acc>(static_cast<const T*>(p.dy)[i]); };
  const auto x = [&](int64_t i) { return static_cast<Acc>(static_cast<const T*>(p.x)[i]); };
  const auto param = [](const void* data, int64_t i) {
    return static_cast<Acc>(static_cast<const P*>(data)[i]);
  };
  const auto gamma = [&](int64_t c) { return p.gamma ? param(p.gamma, c) : Acc{1}; };
  const int64_t channels = p.c / p.groups;
  for (int64_t c = 0; c < p.c; ++c) {
    if (dgamma) dgamma[c] = 0;
    if (dbeta) dbeta[c] = 0;
  }
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t g = 0; g < p.groups; ++g) {
      const Acc mean = param(p.mean, n * p.groups + g);
      const Acc rstd = param(p.rstd, n * p.groups + g);
      Acc c1 = 0, c2 = 0;
      for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
        Acc db = 0, ds = 0;
        for (int64_t s = 0; s < p.hxw; ++s) {
          const int64_t i = at(n, c, s);
          db += dy(i);
          ds += dy(i) * ((x(i) - mean) * rstd);
        }
        if (dbeta) dbeta[c] += db;
        if (dgamma) dgamma[c] += ds;
        c1 += gamma(c) * db;
        c2 += gamma(c) * ds;
      }
      const Acc count = static_cast<Acc>(channels) * static_cast<Acc>(p.hxw);
      for (int64_t c = g * channels; dx && c < (g + 1) * channels; ++c) {
        for (int64_t s = 0; s < p.hxw; ++s) {
          const int64_t i = at(n, c, s);
          dx[i] = rstd * (gamma(c) * dy(i) - c1 / count - (x(i) - mean) * rstd * (c2 / count));
        }
      }
    }
  }
}

// Forward, for finite differences, with statistics of its own: y = (x - mean) * rstd * gamma + beta.
template <class Acc>
void GroupNorm(const Acc* x, const Acc* gamma, const Acc* beta, int64_t n, int64_t c, int64_t hxw,
               int64_t groups, Acc eps, Acc* y, Acc* mean, Acc* rstd) {
  const int64_t size = c / groups * hxw;
  for (int64_t i = 0; i < n * groups; ++i) {
    const Acc* group = x + i * size;
    Acc sum = 0, squares = 0;
    for (int64_t k = 0; k < size; ++k) sum += group[k];
    mean[i] = sum / static_cast<Acc>(size);
    for (int64_t k = 0; k < size; ++k) squares += (group[k] - mean[i]) * (group[k] - mean[i]);
    rstd[i] = 1 / std::sqrt(squares / static_cast<Acc>(size) + eps);
    for (int64_t k = 0; k < size; ++k) {
      const int64_t channel = (i % groups) * (c / groups) + k / hxw;
      y[i * size + k] = (group[k] - mean[i]) * rstd[i] * gamma[channel] + beta[channel];
    }
  }
}

}  // namespace reference
}  // namespace anyacl

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_H_
