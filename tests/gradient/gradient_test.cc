// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The oracle itself: each backward reference is the derivative of its forward reference, by central
// differences in double, with the attributes of every case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "harness/cases.h"
#include "harness/data.h"
#include "ops/activation/elu_backward.h"
#include "ops/norm/batch_norm_elemt_backward.h"
#include "ops/norm/group_norm_backward.h"
#include "ops/norm/rms_norm_grad.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

// Four points: the error is h^4 / 30 times the fifth derivative.
double Derivative(const std::function<double(double)>& f, double x, double h) {
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

// Number of points compared; expectations inside.
using GradientCheck = int (*)(const contract::CallSpec& call);

int CheckEluBackward(const contract::CallSpec& call) {
  enum { kAlpha = 1, kScale = 2, kInputScale = 3 };
  const double scale = call.args[kScale].scalar.AsFloat();
  const double input_scale = call.args[kInputScale].scalar.AsFloat();
  const double negcoef = static_cast<double>(call.args[kAlpha].scalar.AsFloat()) * scale;
  const auto forward = [&](double x) {
    return reference::Elu<double>(x, negcoef, scale, input_scale);
  };
  const double h = 1e-3 / std::max(1.0, std::fabs(input_scale));
  int compared = 0;
  for (double x = -3; x <= 3; x += 0.0137) {
    if (std::fabs(x) < 3 * h) continue;  // the kink at 0
    const double slope = Derivative(forward, x, h);
    const double unit =
        std::fabs(scale) +
        std::fabs(negcoef * input_scale) * std::exp(std::max(0.0, x < 0 ? x * input_scale : 0.0));
    const double tolerance = 1e-10 * (unit + std::fabs(forward(x)) / h);
    for (double g : {1.0, -0.75}) {
      const double from_input =
          reference::EluBackward<double>(g, x, false, negcoef, scale, input_scale);
      EXPECT_NEAR(from_input, g * slope, tolerance) << "x = " << x << ", g = " << g;
      // The result tells the side of 0 only where the function keeps the sign of its input.
      const double y = forward(x);
      if ((y <= 0) == (x <= 0)) {
        const double from_result =
            reference::EluBackward<double>(g, y, true, negcoef, scale, input_scale);
        EXPECT_NEAR(from_result, g * slope, tolerance) << "y = " << y << ", g = " << g;
      }
      ++compared;
    }
  }
  return compared;
}

// ---- normalisations ----

using Numbers = std::vector<double>;

// Large, so that no set of equal elements has a steep gradient.
constexpr double kEps = 0.5;

Numbers RandomNumbers(int seed, int64_t count) {
  return harness::Generate(harness::Data::kRandom, seed, count);
}

double Dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Compares some entries of `gradient` with the slopes of `loss` in the entries of `at`, which it moves
// about. With kEps all derivatives are of order 1, so the differences are right to h^4 and to the
// rounding of the loss over h; `tolerance` is what the gradient itself is off by, per entry.
int CompareSlopes(const char* what, const std::function<double()>& loss, Numbers* at,
                  const Numbers& gradient, const std::function<double(int64_t)>& tolerance) {
  constexpr double kStep = 1e-3;
  const int64_t count = static_cast<int64_t>(at->size());
  const int64_t stride = std::max<int64_t>(1, count / 40);
  const double rounding = 1e-13 * (static_cast<double>(count) + std::fabs(loss()));
  int compared = 0;
  for (int64_t i = 0; i < count; i += stride) {
    const double x = (*at)[i];
    const double slope = Derivative(
        [&](double moved) {
          (*at)[i] = moved;
          return loss();
        },
        x, kStep);
    (*at)[i] = x;
    EXPECT_NEAR(gradient[i], slope, 1e-9 + rounding / kStep + tolerance(i)) << what << " " << i;
    ++compared;
  }
  return compared;
}

double Exact(int64_t) { return 0; }

int CheckGroupNormBackward(const contract::CallSpec& call) {
  enum { kGamma = 4, kN, kC, kHxW, kGroup };
  const int64_t n = call.args[kN].integer, c = call.args[kC].integer;
  const int64_t hxw = call.args[kHxW].integer, groups = call.args[kGroup].integer;
  int compared = 0;
  for (int seed = 1; compared <= 100; ++seed) {
    Numbers x = RandomNumbers(seed, n * c * hxw), beta = RandomNumbers(seed + 50, c);
    Numbers gamma = call.args[kGamma].null ? Numbers(c, 1) : RandomNumbers(seed + 60, c);
    const Numbers dy = RandomNumbers(seed + 70, n * c * hxw);
    Numbers y(x.size()), mean(n * groups), rstd(n * groups);
    const auto loss = [&] {
      reference::GroupNorm<double>(x.data(), gamma.data(), beta.data(), n, c, hxw, groups, kEps,
                                   y.data(), mean.data(), rstd.data());
      return Dot(dy, y);
    };
    loss();
    GroupNormBackwardParams p{};
    p.dy = dy.data();
    p.x = x.data();
    p.mean = mean.data();
    p.rstd = rstd.data();
    p.gamma = call.args[kGamma].null ? nullptr : gamma.data();
    p.n = n;
    p.c = c;
    p.hxw = hxw;
    p.groups = groups;
    Numbers dx(x.size()), dgamma(c), dbeta(c);
    reference::GroupNormBackwardOf<double, double, double>(p).Write(dx.data(), dgamma.data(),
                                                                    dbeta.data());
    compared += CompareSlopes("dx", loss, &x, dx, Exact);
    compared += CompareSlopes("dgamma", loss, &gamma, dgamma, Exact);
    compared += CompareSlopes("dbeta", loss, &beta, dbeta, Exact);
  }
  return compared;
}

// The batch norm that this operator ends: statistics over [outer, inner] of every channel.
struct BatchNorm {
  int64_t outer, c, inner;
  Numbers mean, invstd;

  BatchNorm(int64_t outer, int64_t c, int64_t inner)
      : outer(outer), c(c), inner(inner), mean(c), invstd(c) {}

  template <class Each>
  void ForChannel(int64_t channel, Each&& each) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) each((o * c + channel) * inner + k);
    }
  }
  double Count() const { return static_cast<double>(outer * inner); }

  void SetStatistics(const Numbers& x) {
    for (int64_t i = 0; i < c; ++i) {
      double sum = 0, squares = 0;
      ForChannel(i, [&](int64_t k) { sum += x[k]; });
      mean[i] = sum / Count();
      ForChannel(i, [&](int64_t k) { squares += (x[k] - mean[i]) * (x[k] - mean[i]); });
      invstd[i] = 1 / std::sqrt(squares / Count() + kEps);
    }
  }
  double Loss(const Numbers& x, const Numbers& weight, const Numbers& dy) {
    SetStatistics(x);
    double loss = 0;
    for (int64_t i = 0; i < c; ++i) {
      ForChannel(i, [&](int64_t k) { loss += dy[k] * (x[k] - mean[i]) * invstd[i] * weight[i]; });
    }
    return loss;
  }
};

int CheckBatchNormElemtBackward(const contract::CallSpec& call) {
  enum { kInput = 1, kWeight = 4, kCounter = 7 };
  const Dims& dims = call.args[kInput].tensor.dims;
  const int64_t inner = call.args[kInput].tensor.numel() / (dims[0] * dims[1]);
  const bool weighted = !call.args[kWeight].null;
  int compared = 0;
  for (int seed = 1; compared <= 100; ++seed) {
    BatchNorm norm(dims[0], dims[1], inner);
    Numbers x = RandomNumbers(seed, call.args[kInput].tensor.numel());
    const Numbers dy = RandomNumbers(seed + 70, static_cast<int64_t>(x.size()));
    const Numbers weight = weighted ? RandomNumbers(seed + 60, norm.c) : Numbers(norm.c, 1);
    const auto loss = [&] { return norm.Loss(x, weight, dy); };
    loss();
    Numbers sum_dy(norm.c), sum_dy_xmu(norm.c), counter(call.args[kCounter].tensor.numel(), 0.25);
    for (int64_t i = 0; i < norm.c; ++i) {
      norm.ForChannel(i, [&](int64_t k) {
        sum_dy[i] += dy[k];
        sum_dy_xmu[i] += dy[k] * (x[k] - norm.mean[i]);
      });
    }
    counter[0] = norm.Count() - 0.25 * static_cast<double>(counter.size() - 1);
    const auto operand = [](const Numbers& v) {
      return BatchNormElemtBackwardParams::Operand{v.data(), DType::kF64};
    };
    BatchNormElemtBackwardParams p{};
    p.dy = operand(dy);
    p.x = operand(x);
    p.mean = operand(norm.mean);
    p.invstd = operand(norm.invstd);
    if (weighted) p.weight = operand(weight);
    p.sum_dy = operand(sum_dy);
    p.sum_dy_xmu = operand(sum_dy_xmu);
    p.counter = operand(counter);
    p.counter_count = static_cast<int64_t>(counter.size());
    p.outer = norm.outer;
    p.c = norm.c;
    p.inner = inner;
    Numbers dx(x.size());
    reference::BatchNormElemtBackward<double>(p, dx.data());
    compared += CompareSlopes("dx", loss, &x, dx, Exact);
  }
  return compared;
}

int CheckRmsNormGrad(const contract::CallSpec& call) {
  enum { kX = 1, kRstd, kGamma };
  const int64_t cols = call.args[kGamma].tensor.numel();
  const int64_t rows = call.args[kX].tensor.numel() / cols;
  int compared = 0;
  for (int seed = 1; compared <= 100; ++seed) {
    Numbers x = RandomNumbers(seed, rows * cols), gamma = RandomNumbers(seed + 60, cols);
    const Numbers dy = RandomNumbers(seed + 70, rows * cols);
    Numbers y(x.size()), rstd(rows);
    const auto loss = [&] {
      reference::RmsNorm<double>(x.data(), gamma.data(), rows, cols, kEps, y.data(), rstd.data());
      return Dot(dy, y);
    };
    loss();
    const std::vector<float> stored(rstd.begin(), rstd.end());  // the operator knows FLOAT only
    RmsNormGradParams p{};
    p.dy = dy.data();
    p.x = x.data();
    p.rstd = stored.data();
    p.gamma = gamma.data();
    p.rows = rows;
    p.cols = cols;
    Numbers dx(x.size()), dgamma(cols);
    reference::RmsNormGrad<double, double, double>(p, dx.data(), dgamma.data());
    // rstd, rounded to 2^-24 of itself, is a factor of the terms of dx once and three times. With numbers
    // below 2 and rstd below sqrt(2) these are |dy*gamma*rstd| < 6 and |u*m*rstd| < 46.
    const double rounded = 0x1p-24 * (6 + 3 * 46);
    compared += CompareSlopes("dx", loss, &x, dx, [&](int64_t) { return rounded; });
    compared += CompareSlopes("dgamma", loss, &gamma, dgamma, [&](int64_t) {
      return 0x1p-24 * 6 * static_cast<double>(rows);  // |dy * u| < 2 * 2 * sqrt(2)
    });
  }
  return compared;
}

struct Entry {
  const char* op;
  GradientCheck check;
};
constexpr Entry kChecks[] = {
    {"aclnnEluBackward", CheckEluBackward},
    {"aclnnGroupNormBackward", CheckGroupNormBackward},
    {"aclnnBatchNormElemtBackward", CheckBatchNormElemtBackward},
    {"aclnnRmsNormGrad", CheckRmsNormGrad},
};

TEST(Gradient, BackwardReferenceIsTheDerivativeOfTheForwardReference) {
  for (const Operator* op : OperatorsWithCases()) {
    const auto entry = std::find_if(std::begin(kChecks), std::end(kChecks), [&](const Entry& e) {
      return std::strcmp(e.op, op->contract.op()) == 0;
    });
    ASSERT_NE(entry, std::end(kChecks)) << "no gradient check for " << op->contract.op();
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const harness::Case& row : cases.cases) {
      if (!row.Has("small") || row.Has("empty")) continue;
      SCOPED_TRACE(std::string(op->contract.op()) + " \"" + row.name + "\"");
      const auto call = harness::MakeCall(op->contract, cases, row, cases.types[0]);
      EXPECT_GT(entry->check(call.spec), 100);
    }
  }
}

}  // namespace
}  // namespace anyacl
