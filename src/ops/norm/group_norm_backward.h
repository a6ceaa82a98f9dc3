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
// mean and rstd are taken as given. Sums over nothing are 0, so an empty batch clears dgamma and
// dbeta.
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

// T and P in memory, Acc in between; every result is converted once, to Dx or Dp. Null outputs are
// skipped. Nothing is stored on the way: sums are computed once for dgamma and dbeta and once more
// for dx.
template <class Acc, class T, class P>
class GroupNormBackwardOf {
 public:
  explicit GroupNormBackwardOf(const GroupNormBackwardParams& p)
      : p_(p), channels_(p.c / p.groups), samples_(p.hxw == 0 ? 0 : p.n) {}

  template <class Dx, class Dp>
  void Write(Dx* dx, Dp* dgamma, Dp* dbeta) const {
    if (dgamma || dbeta) WriteParameters(dgamma, dbeta);
    if (!dx) return;
    for (int64_t n = 0; n < samples_; ++n) {
      for (int64_t g = 0; g < p_.groups; ++g) WriteGroup(n, g, dx);
    }
  }

 private:
  struct Sums {
    Acc db = 0;
    Acc ds = 0;
  };

  static Acc Param(const void* data, int64_t i) {
    return static_cast<Acc>(static_cast<const P*>(data)[i]);
  }
  Acc Gamma(int64_t c) const { return p_.gamma ? Param(p_.gamma, c) : Acc{1}; }
  Acc Rstd(int64_t n, int64_t g) const { return Param(p_.rstd, n * p_.groups + g); }
  int64_t At(int64_t n, int64_t c, int64_t s) const {
    return p_.channels_last ? (n * p_.hxw + s) * p_.c + c : (n * p_.c + c) * p_.hxw + s;
  }
  Acc Dy(int64_t i) const { return static_cast<Acc>(static_cast<const T*>(p_.dy)[i]); }
  Acc Xhat(int64_t n, int64_t g, int64_t i) const {
    const Acc x = static_cast<Acc>(static_cast<const T*>(p_.x)[i]);
    return (x - Param(p_.mean, n * p_.groups + g)) * Rstd(n, g);
  }

  Sums Plane(int64_t n, int64_t c) const {
    Sums sums;
    for (int64_t s = 0; s < p_.hxw; ++s) {
      const int64_t i = At(n, c, s);
      sums.db += Dy(i);
      sums.ds += Dy(i) * Xhat(n, c / channels_, i);
    }
    return sums;
  }

  template <class Dp>
  void WriteParameters(Dp* dgamma, Dp* dbeta) const {
    for (int64_t c = 0; c < p_.c; ++c) {
      Sums total;
      for (int64_t n = 0; n < samples_; ++n) {
        const Sums plane = Plane(n, c);
        total.db += plane.db;
        total.ds += plane.ds;
      }
      if (dbeta) dbeta[c] = static_cast<Dp>(total.db);
      if (dgamma) dgamma[c] = static_cast<Dp>(total.ds);
    }
  }

  template <class Dx>
  void WriteGroup(int64_t n, int64_t g, Dx* dx) const {
    const int64_t first = g * channels_;
    const Acc count = static_cast<Acc>(channels_) * static_cast<Acc>(p_.hxw);
    Acc c1 = 0, c2 = 0;
    for (int64_t c = first; c < first + channels_; ++c) {
      const Sums plane = Plane(n, c);
      c1 += Gamma(c) * plane.db;
      c2 += Gamma(c) * plane.ds;
    }
    c1 /= count;
    c2 /= count;
    for (int64_t c = first; c < first + channels_; ++c) {
      for (int64_t s = 0; s < p_.hxw; ++s) {
        const int64_t i = At(n, c, s);
        dx[i] = static_cast<Dx>(Rstd(n, g) * (Gamma(c) * Dy(i) - c1 - Xhat(n, g, i) * c2));
      }
    }
  }

  const GroupNormBackwardParams& p_;
  const int64_t channels_;  // of one group
  const int64_t samples_;   // that have elements: the inputs of an empty batch are null
};

// Calls f.operator()<T, P>() for the dtypes of the call.
template <class F>
void WithGroupNormTypes(const GroupNormBackwardParams& p, F&& f) {
  const bool wide = p.param_dtype == DType::kF32;
  switch (p.dtype) {
    case DType::kF32:
      return f.template operator()<float, float>();
    case DType::kF16:
      return wide ? f.template operator()<Half, float>() : f.template operator()<Half, Half>();
    case DType::kBF16:
      return wide ? f.template operator()<BFloat16, float>()
                  : f.template operator()<BFloat16, BFloat16>();
    default:
      return;
  }
}

// The oracle: results before any rounding, into arrays that may be null. dx has the layout of x.
template <class Acc>
void GroupNormBackward(const GroupNormBackwardParams& p, Acc* dx, Acc* dgamma, Acc* dbeta) {
  WithGroupNormTypes(
      p, [&]<class T, class P>() { GroupNormBackwardOf<Acc, T, P>(p).Write(dx, dgamma, dbeta); });
}

// The operator.
template <class Acc>
void GroupNormBackward(const GroupNormBackwardParams& p) {
  WithGroupNormTypes(p, [&]<class T, class P>() {
    GroupNormBackwardOf<Acc, T, P>(p).Write(static_cast<T*>(p.dx), static_cast<P*>(p.dgamma),
                                            static_cast<P*>(p.dbeta));
  });
}

// Forward, for finite differences, with statistics of its own: y = (x - mean) * rstd * gamma +
// beta.
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
