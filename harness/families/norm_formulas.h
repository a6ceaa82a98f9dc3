// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Norms and their gradients in long double, in the plainest way: an element says which row it belongs to, and which coefficient.
// tests/gradient differentiates the forward functions.
#ifndef ANYACL_HARNESS_FAMILIES_NORM_FORMULAS_H_
#define ANYACL_HARNESS_FAMILIES_NORM_FORMULAS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace anyacl::harness::norm {

using Real = long double;
using Reals = std::vector<Real>;

// Where each of the elements belongs.
struct Places {
  int64_t rows = 0;
  int64_t coefficients = 0;
  std::vector<int64_t> row;
  std::vector<int64_t> coefficient;

  int64_t size() const { return static_cast<int64_t>(row.size()); }
  Real count() const { return static_cast<Real>(size()) / static_cast<Real>(rows); }  // of a row
};

// Elements of [samples, channels, inner].
template <class Row, class Coefficient>
Places PlacesOf(int64_t samples, int64_t channels, int64_t inner, int64_t rows, int64_t coefficients, Row row, Coefficient coefficient) {
  Places p{rows, coefficients, {}, {}};
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i) {
        p.row.push_back(row(n, c));
        p.coefficient.push_back(coefficient(n, c, i));
      }
    }
  }
  return p;
}
inline Places LayerPlaces(int64_t rows, int64_t count) {
  return PlacesOf(rows, 1, count, rows, count, [](int64_t n, int64_t) { return n; }, [](int64_t, int64_t, int64_t i) { return i; });
}
inline Places GroupPlaces(int64_t samples, int64_t channels, int64_t inner, int64_t groups) {
  return PlacesOf(samples, channels, inner, samples * groups, channels,
                  [=](int64_t n, int64_t c) { return n * groups + c / (channels / groups); },
                  [](int64_t, int64_t c, int64_t) { return c; });
}
inline Places BatchPlaces(int64_t samples, int64_t channels, int64_t inner) {
  return PlacesOf(samples, channels, inner, channels, channels, [](int64_t, int64_t c) { return c; },
                  [](int64_t, int64_t c, int64_t) { return c; });
}

struct Moments {
  Reals mean, variance, largest;  // of each row; largest |x|
};
inline Moments MomentsOf(const Reals& x, const Places& p, bool centred) {
  Moments m{Reals(p.rows), Reals(p.rows), Reals(p.rows)};
  if (centred) {
    for (int64_t i = 0; i < p.size(); ++i) m.mean[p.row[i]] += x[i];
    for (Real& mean : m.mean) mean /= p.count();  // exact for equal numbers
  }
  for (int64_t i = 0; i < p.size(); ++i) {
    const Real away = x[i] - m.mean[p.row[i]];
    m.variance[p.row[i]] += away * away / p.count();
    m.largest[p.row[i]] = std::max(m.largest[p.row[i]], std::fabs(x[i]));
  }
  return m;
}

inline Real Logistic(Real x) { return 1 / (1 + std::exp(-x)); }

// What stands between x and y.
struct Unit {
  Reals gamma, beta;  // empty: ones, zeros
  bool swish = false;
  Real swish_scale = 1;
  Reals beta_size = {};  // where beta is a sum: of the absolute values that were added up

  Real BetaSize(int64_t i) const { return beta_size.empty() ? std::fabs(Beta(i)) : beta_size[i]; }
  Real Gamma(int64_t i) const { return gamma.empty() ? 1 : gamma[i]; }
  Real Beta(int64_t i) const { return beta.empty() ? 0 : beta[i]; }
};

inline Reals Normalised(const Reals& x, const Places& p, const Reals& mean, const Reals& rstd, const Unit& unit) {
  Reals y(p.size());
  for (int64_t i = 0; i < p.size(); ++i) {
    const int64_t c = p.coefficient[i];
    y[i] = (x[i] - mean[p.row[i]]) * rstd[p.row[i]] * unit.Gamma(c) + unit.Beta(c);
    if (unit.swish) y[i] *= Logistic(unit.swish_scale * y[i]);
  }
  return y;
}
inline Reals ReciprocalRoots(const Reals& variance, Real eps) {
  Reals rstd;
  for (Real v : variance) rstd.push_back(1 / std::sqrt(v + eps));
  return rstd;
}

struct Gradients {
  Reals x, gamma, beta;
  Reals x_size, gamma_size, beta_size;  // sums of the absolute values that were added up
};
// With `constants` the statistics do not depend on x. Where x is a sum itself, x_size says of what size.
inline Gradients GradientsOf(const Reals& dy, const Reals& x, const Places& p, const Reals& mean, const Reals& rstd, const Unit& unit,
                             bool constants, const Reals& x_size = {}) {
  const int64_t n = p.size();
  Reals u(n), u_size(n), d(n), d_size(n), avg_p(p.rows), avg_pu(p.rows), size_p(p.rows), size_pu(p.rows);
  Gradients g{Reals(n), Reals(p.coefficients), Reals(p.coefficients), Reals(n), Reals(p.coefficients), Reals(p.coefficients)};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = p.row[i], c = p.coefficient[i];
    u[i] = (x[i] - mean[r]) * rstd[r];
    u_size[i] = std::fabs(u[i]) + (x_size.empty() ? 0 : x_size[i] * std::fabs(rstd[r]));
    d[i] = dy[i];
    d_size[i] = std::fabs(dy[i]);
    if (unit.swish) {
      const Real sz = unit.swish_scale * (u[i] * unit.Gamma(c) + unit.Beta(c));
      const Real s = Logistic(sz);
      d[i] *= s * (1 + sz * (1 - s));
      d_size[i] *= (1 + std::fabs(sz)) * (2 + std::fabs(sz));
    }
    g.gamma[c] += d[i] * u[i];
    g.beta[c] += d[i];
    g.gamma_size[c] += d_size[i] * u_size[i];
    g.beta_size[c] += d_size[i];
    const Real weight = unit.Gamma(c) / p.count();
    avg_p[r] += d[i] * weight;
    avg_pu[r] += d[i] * u[i] * weight;
    size_p[r] += d_size[i] * std::fabs(weight);
    size_pu[r] += d_size[i] * u_size[i] * std::fabs(weight);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = p.row[i];
    const Real one = d[i] * unit.Gamma(p.coefficient[i]), one_size = d_size[i] * std::fabs(unit.Gamma(p.coefficient[i]));
    g.x[i] = constants ? rstd[r] * one : rstd[r] * (one - avg_p[r] - u[i] * avg_pu[r]);
    g.x_size[i] = std::fabs(rstd[r]) * (constants ? one_size : one_size + size_p[r] + 2 * u_size[i] * size_pu[r]);
  }
  return g;
}

}  // namespace anyacl::harness::norm

#endif  // ANYACL_HARNESS_FAMILIES_NORM_FORMULAS_H_
