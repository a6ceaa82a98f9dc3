// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNormGrad over R rows of D columns; rstd is the reciprocal root mean square of each row:
//
//   u = x[i,j] * rstd[i]
//   m[i] = (1/D) sum_j dy[i,j] * gamma[j] * u[i,j]
//   dx[i,j] = (dy[i,j] * gamma[j] - u[i,j] * m[i]) * rstd[i]
//   dgamma[j] = sum_i dy[i,j] * u[i,j]
//
// With no rows dgamma is NaN: that is what the newest product does, and it is kept.
#ifndef ANYACL_OPS_NORM_RMS_NORM_GRAD_H_
#define ANYACL_OPS_NORM_RMS_NORM_GRAD_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype.h"
#include "core/scalar.h"

namespace anyacl {

struct RmsNormGradParams {
  const void* dy;
  const void* x;
  const void* rstd;   // FLOAT
  const void* gamma;
  void* dx;
  void* dgamma;       // FLOAT
  void* scratch;
  int64_t rows;
  int64_t cols;
  DType dtype;        // of dy, x, dx
  DType gamma_dtype;  // dtype or FLOAT
};

namespace reference {

// The oracle: T and G in memory, Acc in between; writes the results before any rounding.
template <class Acc, class T, class G>
void RmsNormGrad(const RmsNormGradParams& p, Acc* dx, Acc* dgamma) {
  const auto dy = [&](int64_t i) { return static_cast<Acc>(static_cast<const T*>(p.dy)[i]); };
  const auto x = [&](int64_t i) { return static_cast<Acc>(static_cast<const T*>(p.x)[i]); };
  const auto gamma = [&](int64_t j) { return static_cast<Acc>(static_cast<const G*>(p.gamma)[j]); };
  const Acc none = p.rows == 0 ? std::numeric_limits<Acc>::quiet_NaN() : Acc{0};
  for (int64_t j = 0; j < p.cols; ++j) dgamma[j] = none;
  for (int64_t i = 0; i < p.rows; ++i) {
    const Acc rstd = static_cast<Acc>(static_cast<const float*>(p.rstd)[i]);
    Acc sum = 0;
    for (int64_t j = 0; j < p.cols; ++j) {
      const int64_t k = i * p.cols + j;
      sum += dy(k) * gamma(j) * (x(k) * rstd);
    }
    const Acc m = sum / static_cast<Acc>(p.cols);
    for (int64_t j = 0; j < p.cols; ++j) {
      const int64_t k = i * p.cols + j;
      const Acc u = x(k) * rstd;
      dx[k] = (dy(k) * gamma(j) - u * m) * rstd;
      dgamma[j] += dy(k) * u;
    }
  }
}

// The operator: dx rounded to T, dgamma to float. Sums are taken again for every output that needs them, so
// that nothing has to be stored.
template <class Acc, class T, class G>
void RmsNormGrad(const RmsNormGradParams& p) {
  const auto dy = [&](int64_t i) { return static_cast<Acc>(static_cast<const T*>(p.dy)[i]); };
  const auto gamma = [&](int64_t j) { return static_cast<Acc>(static_cast<const G*>(p.gamma)[j]); };
  const auto rstd = [&](int64_t i) { return static_cast<Acc>(static_cast<const float*>(p.rstd)[i]); };
  const auto u = [&](int64_t i, int64_t j) {
    return static_cast<Acc>(static_cast<const T*>(p.x)[i * p.cols + j]) * rstd(i);
  };
  for (int64_t i = 0; i < p.rows; ++i) {
    Acc m = 0;
    for (int64_t j = 0; j < p.cols; ++j) m += dy(i * p.cols + j) * gamma(j) * u(i, j);
    m /= static_cast<Acc>(p.cols);
    for (int64_t j = 0; j < p.cols; ++j) {
      const int64_t k = i * p.cols + j;
      static_cast<T*>(p.dx)[k] = static_cast<T>((dy(k) * gamma(j) - u(i, j) * m) * rstd(i));
    }
  }
  for (int64_t j = 0; j < p.cols; ++j) {
    Acc sum = p.rows == 0 ? std::numeric_limits<Acc>::quiet_NaN() : Acc{0};
    for (int64_t i = 0; i < p.rows; ++i) sum += dy(i * p.cols + j) * u(i, j);
    static_cast<float*>(p.dgamma)[j] = static_cast<float>(sum);
  }
}

template <class Acc, class T>
void RmsNormGrad(const RmsNormGradParams& p) {
  p.gamma_dtype == DType::kF32 ? RmsNormGrad<Acc, T, float>(p) : RmsNormGrad<Acc, T, T>(p);
}

template <class Acc>
void RmsNormGrad(const RmsNormGradParams& p) {
  switch (p.dtype) {
    case DType::kF32: return RmsNormGrad<Acc, float>(p);
    case DType::kF16: return RmsNormGrad<Acc, Half>(p);
    case DType::kBF16: return RmsNormGrad<Acc, BFloat16>(p);
    default: return;
  }
}

// Forward, for finite differences: y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + eps).
template <class Acc>
void RmsNorm(const Acc* x, const Acc* gamma, int64_t rows, int64_t cols, Acc eps, Acc* y, Acc* rstd) {
  for (int64_t i = 0; i < rows; ++i) {
    Acc squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += x[i * cols + j] * x[i * cols + j];
    rstd[i] = 1 / std::sqrt(squares / static_cast<Acc>(cols) + eps);
    for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = x[i * cols + j] * rstd[i] * gamma[j];
  }
}

}  // namespace reference
}  // namespace anyacl

#endif  // ANYACL_OPS_NORM_RMS_NORM_GRAD_H_
