// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The sets of possible values contain every float evaluation, and little else: an oracle that takes
// everything would let everything pass.
#include "numeric/possible.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace anyacl::numeric {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool Has(const Possible& p, float value) {
  return std::isnan(value) ? p.nan() : p.low() <= value && value <= p.high();
}

TEST(Possible, OneOperationHasTheFloatResultAndItsNeighboursOnly) {
  const float values[] = {1.0f,   -3.0f,  0.1f,  1e-30f, -1e-40f, 3e38f,    0.0f,
                          1e-20f, -2e19f, 7e-9f, 65504,  -1.5f,   1.25e-38f};
  for (const float a : values) {
    for (const float b : values) {
      const Possible product = Possible(a) * b, sum = Possible(a) + b, quotient = Possible(a) / b;
      EXPECT_TRUE(Has(product, a * b)) << a << " * " << b;
      EXPECT_TRUE(Has(sum, a + b)) << a << " + " << b;
      EXPECT_TRUE(Has(quotient, a / b)) << a << " / " << b;
      const double size = std::fabs(static_cast<double>(a) * b);
      if (size > 1e-30 && size < 3e38) {
        EXPECT_LE(product.high() - product.low(), 2.1 * 0x1p-24 * size);
      }
      const double larger = std::fabs(a) + std::fabs(b);
      if (larger < 3e38) {
        EXPECT_LE(sum.high() - sum.low(), 2.1 * 0x1p-24 * larger);
      }
    }
  }
}

TEST(Possible, NanAndInfinitiesFollowTheirRules) {
  const auto only_nan = [](const Possible& p) { return p.nan() && std::isnan(p.low()); };
  EXPECT_TRUE(only_nan(Possible(kNaN) + 1));
  EXPECT_TRUE(only_nan(Possible(kInf) - kInf));
  EXPECT_TRUE(only_nan(Possible(kInf) * 0));
  EXPECT_TRUE(only_nan(Possible(0) / 0));
  EXPECT_TRUE((Possible(kInf) + 1).IsExactly(kInf));
  EXPECT_TRUE((Possible(kInf) * -2).IsExactly(-kInf));
  EXPECT_TRUE((Possible(-3) / 0).IsExactly(-kInf));
  EXPECT_TRUE((Possible(5) / kInf).IsExactly(0));
  // What may be too large may be infinite, and what then comes may be NaN, but need not.
  const Possible large = Possible(3e38) * 2;
  EXPECT_TRUE(Has(large, static_cast<float>(kInf)) && !large.nan() && large.low() > 3e38);
  const Possible lost = large * 0;
  EXPECT_TRUE(Has(lost, 0) && lost.nan());
  const Possible gone = Possible(1e-30) * 1e-30 * kInf;  // 0 or not 0, times infinity
  EXPECT_TRUE(Has(gone, static_cast<float>(kInf)) && gone.nan());
}

TEST(PossibleSum, HasEveryOrderOfSummation) {
  std::minstd_rand random(1);
  for (const int count : {1, 2, 3, 10, 100, 5000}) {
    std::vector<float> terms;
    PossibleSum sum;
    double exact = 0, magnitude = 0;
    for (int i = 0; i < count; ++i) {
      terms.push_back(static_cast<float>(random()) * 0x1p-31f + (count == 10 ? 1e4f : -0.25f));
      sum.Add(terms.back());
      exact += terms.back();
      magnitude += std::fabs(terms.back());
    }
    const Possible total = sum.Total();
    for (int stride : {1, 7, 64}) {  // as many accumulators
      std::vector<float> partial(stride);
      for (int i = 0; i < count; ++i) partial[i % stride] += terms[i];
      float result = 0;
      for (float p : partial) result += p;
      EXPECT_TRUE(Has(total, result)) << count << " terms, " << stride << " accumulators";
    }
    EXPECT_TRUE(Has(total, static_cast<float>(exact)) || count == 1);
    EXPECT_LE(total.high() - total.low(), 2.01 * 4 * std::sqrt(2048) * 0x1p-24 * magnitude);
  }
}

TEST(PossibleSum, IntegersAreExact) {
  PossibleSum sum;
  for (int i = 0; i < 100; ++i) sum.Add(i % 2 ? 3 : -3);
  EXPECT_TRUE(sum.Total().IsExactly(0));
  sum.Add(0.1);
  EXPECT_FALSE(sum.Total().IsExactly(0.1));
}

TEST(PossibleSum, OverflowOnTheWay) {
  PossibleSum sum;
  for (const double term : {3e38, 3e38, -3e38, -3e38}) sum.Add(term);
  const Possible total = sum.Total();
  EXPECT_TRUE(total.nan() && total.high() == kInf && total.low() == -kInf);
  PossibleSum one_sided;
  one_sided.Add(kInf);
  one_sided.Add(-5);
  EXPECT_TRUE(one_sided.Total().IsExactly(kInf));
}

}  // namespace
}  // namespace anyacl::numeric
