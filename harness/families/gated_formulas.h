// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Gated units and their gradients, in long double; tests/gradient differentiates the forward functions. The sizes say how many
// roundings of which magnitude a computation in FLOAT may collect.
#ifndef ANYACL_HARNESS_FAMILIES_GATED_FORMULAS_H_
#define ANYACL_HARNESS_FAMILIES_GATED_FORMULAS_H_

#include <algorithm>
#include <cmath>

namespace anyacl::harness::gated {

using Real = long double;

struct Pair {
  Real first, second;
  Real first_size, second_size;
};

inline constexpr Real kPi = 3.14159265358979323846264338327950288L;

inline Real Logistic(Real x) { return 1 / (1 + std::exp(-x)); }
// Relative error of an exponential of something that was rounded itself.
inline Real Spread(Real x) { return 8 + 2 * std::fabs(x); }

inline Real Gelu(Real x, bool tanh) {
  if (!tanh) return x * std::erfc(-x / std::sqrt(2.0L)) / 2;
  const Real u = std::sqrt(2 / kPi) * (x + 0.044715L * x * x * x);
  return x * Logistic(2 * u);
}
inline Real GeluSlope(Real x, bool tanh) {
  if (!tanh) return std::erfc(-x / std::sqrt(2.0L)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  const Real u = std::sqrt(2 / kPi) * (x + 0.044715L * x * x * x);
  const Real s = Logistic(2 * u), rest = Logistic(-2 * u);
  return s + 2 * x * s * rest * std::sqrt(2 / kPi) * (1 + 3 * 0.044715L * x * x);
}
inline Real GeluSpread(Real x, bool tanh) {
  return tanh ? Spread(2 * (std::fabs(x) + 0.045L * std::fabs(x * x * x))) : 8;
}

inline Pair Glu(Real a, Real b) {
  const Real y = a * Logistic(b);
  return {y, 0, std::fabs(y) * Spread(b), 0};
}
inline Pair GluBackward(Real a, Real b, Real g) {
  const Real da = g * Logistic(b), db = da * a * Logistic(-b);
  return {da, db, std::fabs(da) * Spread(b), std::fabs(db) * 2 * Spread(b)};
}
inline Pair GeGlu(Real a, Real b, bool tanh) {
  const Real gelu = Gelu(b, tanh), spread = GeluSpread(b, tanh);
  // Far out gelu is subnormal.
  return {a * gelu, gelu, std::fabs(a * gelu) * spread + std::fabs(a) * 0x1p-124L, std::fabs(gelu) * spread};
}
inline Pair GeGluBackward(Real a, Real b, Real g, Real gelu, bool tanh) {
  const Real slope = GeluSlope(b, tanh);
  // The slope is a sum whose terms may cancel; they are no larger than 2.
  const Real spread = std::fabs(b) < 12 ? 2 * GeluSpread(b, tanh) : 4;
  return {g * gelu, g * a * slope, 2 * std::fabs(g * gelu), std::fabs(g * a) * std::min<Real>(spread, 200)};
}
inline Pair SwiGlu(Real a, Real b) {
  const Real y = a * Logistic(a) * b;
  return {y, 0, std::fabs(y) * Spread(a), 0};
}
inline Pair SwiGluBackward(Real a, Real b, Real g) {
  const Real s = Logistic(a), rest = Logistic(-a);
  const Real size = std::fabs(g * b) * s * (1 + std::fabs(a) * rest);
  return {g * b * s * (1 + a * rest), g * a * s, size * 2 * Spread(a), std::fabs(g * a * s) * Spread(a)};
}
inline Pair Clipped(Real a, Real b, Real alpha, Real limit, Real bias) {
  const Real gate = std::min(a, limit), up = std::clamp(b, -limit, limit);
  const Real weight = gate * Logistic(alpha * gate);
  return {weight * (up + bias), 0, std::fabs(weight) * (std::fabs(up) + std::fabs(bias)) * 2 * Spread(alpha * gate), 0};
}
inline Pair ClippedSilu(Real a, Real b, Real limit) {
  const Real gate = std::min(a * Logistic(a), limit), up = std::clamp(b, -limit, limit);
  return {gate * up, 0, std::fabs(gate * up) * Spread(a), 0};
}
inline Pair ClippedBackward(Real a, Real b, Real g, Real alpha, Real limit, Real bias) {
  const Real gate = std::min(a, limit), up = std::clamp(b, -limit, limit);
  const Real s = Logistic(alpha * gate), rest = Logistic(-alpha * gate);
  const Real da = a <= limit ? g * (up + bias) * s * (1 + alpha * gate * rest) : 0;
  const Real db = b >= -limit && b <= limit ? g * gate * s : 0;
  const Real size = std::fabs(g) * (std::fabs(up) + std::fabs(bias)) * s * (1 + std::fabs(alpha * gate) * rest);
  return {da, db, size * 3 * Spread(alpha * gate), std::fabs(db) * 2 * Spread(alpha * gate)};
}
inline Pair Situ(Real a, Real b, Real beta, Real linear) {
  const Real up = linear > 0 ? linear * std::tanh(b / linear) : b;
  const Real y = beta * std::tanh(a / beta) * Logistic(a) * up;
  return {y, 0, std::fabs(y) * 2 * Spread(a), 0};
}
inline Pair SituBackward(Real a, Real b, Real g, Real beta, Real linear) {
  const Real t = std::tanh(a / beta), s = Logistic(a), rest = Logistic(-a);
  const Real slope = 1 / (std::cosh(a / beta) * std::cosh(a / beta));
  const Real up = linear > 0 ? linear * std::tanh(b / linear) : b;
  const Real up_slope = linear > 0 ? 1 / (std::cosh(b / linear) * std::cosh(b / linear)) : 1;
  const Real spread = 4 * (Spread(a) + Spread(a / beta) + (linear > 0 ? Spread(b / linear) : 0));
  const Real da = g * up * s * (slope + beta * t * rest), db = g * beta * t * s * up_slope;
  return {da, db, std::fabs(g * up) * s * (slope + std::fabs(beta * t) * rest) * spread, std::fabs(db) * spread};
}

}  // namespace anyacl::harness::gated

#endif  // ANYACL_HARNESS_FAMILIES_GATED_FORMULAS_H_
