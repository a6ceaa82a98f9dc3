// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Soft-max of one row and its gradients, in long double; tests/gradient differentiates the forward functions.
#ifndef ANYACL_HARNESS_FAMILIES_SOFTMAX_FORMULAS_H_
#define ANYACL_HARNESS_FAMILIES_SOFTMAX_FORMULAS_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace anyacl::harness::softmax {

using Real = long double;
using Reals = std::vector<Real>;

inline Reals LogSoftmax(const Reals& x) {
  Real most = x[0];
  for (Real v : x) most = v > most || std::isnan(v) ? v : most;
  Real sum = 0;
  for (Real v : x) sum += std::exp(v - most);
  Reals y;
  for (Real v : x) y.push_back((v - most) - std::log(sum));
  return y;
}
inline Reals Softmax(const Reals& x) {
  Reals y = LogSoftmax(x);
  for (Real& v : y) v = std::exp(v);
  return y;
}
inline Reals SoftmaxBackward(const Reals& g, const Reals& y) {
  Real sum = 0;
  for (size_t i = 0; i < g.size(); ++i) sum += g[i] * y[i];
  Reals d;
  for (size_t i = 0; i < g.size(); ++i) d.push_back(y[i] * (g[i] - sum));
  return d;
}
inline Reals LogSoftmaxBackward(const Reals& g, const Reals& y) {
  Real sum = 0;
  for (Real v : g) sum += v;
  Reals d;
  for (size_t i = 0; i < g.size(); ++i) d.push_back(g[i] - std::exp(y[i]) * sum);
  return d;
}

}  // namespace anyacl::harness::softmax

#endif  // ANYACL_HARNESS_FAMILIES_SOFTMAX_FORMULAS_H_
