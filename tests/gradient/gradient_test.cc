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

#include "harness/cases.h"
#include "ops/activation/elu_backward.h"
#include "ops/operators.h"

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

struct Entry {
  const char* op;
  GradientCheck check;
};
constexpr Entry kChecks[] = {
    {"aclnnEluBackward", CheckEluBackward},
};

TEST(Gradient, BackwardReferenceIsTheDerivativeOfTheForwardReference) {
  for (const Operator* op : Operators()) {
    const auto entry = std::find_if(std::begin(kChecks), std::end(kChecks), [&](const Entry& e) {
      return std::strcmp(e.op, op->contract.op()) == 0;
    });
    ASSERT_NE(entry, std::end(kChecks)) << "no gradient check for " << op->contract.op();
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const harness::Case& row : cases.cases) {
      if (!row.Has("small")) continue;
      SCOPED_TRACE(std::string(op->contract.op()) + " \"" + row.name + "\"");
      const auto call = harness::MakeCall(op->contract, cases, row, cases.types[0]);
      EXPECT_GT(entry->check(call.spec), 100);
    }
  }
}

}  // namespace
}  // namespace anyacl
