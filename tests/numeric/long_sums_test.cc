// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Sums over many terms of one sign, where every addition rounds upon all that was added before: a chain of n additions in
// FLOAT is off by about sqrt(n) / 8 of the sum's last place, and by more in the worst of many columns. Whatever the shape,
// no sum may be further off than four.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"
#include "sanitized.h"

namespace anyacl {
namespace {

constexpr double kMost = 4;  // epsilons of the sum

// Each of these is added up in another way on the CPU, or has long chains on the GPU.
const Dims kShapes[] = {
    {1368, 20},     // one thread
    {2048, 16},     // the same, in groups of rows
    {2047, 1},      //
    {52, 600},      // the same, some rows more than are added in one go
    {511, 8200},    // few long rows: by columns
    {130, 70'001},  // the same, longer than a cluster of the GPU holds
    {50, 66'000},   // as many as are added in one go
    {1030, 33'000},  // long rows, and more chains of them than one chain has rows; in FLOAT alone
    {3, 66'000},    //
    {5000, 33},     // 64 blocks of rows
    {16'384, 100},  //
    {100'001, 24},  // 390 blocks
    {600'000, 8},   // 2343 blocks
    {4096, 1024},   // blocks whose rows are long
};

// Positive numbers between 1 and 2 that every dtype has.
std::vector<double> Positive(std::mt19937_64& random, DType dtype, int64_t count) {
  const int bits = dtype == DType::kF32 ? 23 : dtype == DType::kF16 ? 10 : 7;
  std::vector<double> values(count);
  for (double& v : values) v = 1 + std::ldexp(static_cast<double>(random() >> (64 - bits)), -bits);
  return values;
}

class LongSumsTest : public testing::Test {
 protected:
  // How far dgamma is off at worst, in epsilons of the sum.
  double ErrorOf(const Dims& dims, const harness::TypeChoice& types) {
    enum { kDy, kX, kRstd, kGamma, kDx, kDgamma };
    const Operator& op = OperatorNamed("aclnnRmsNormGrad");
    const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
    harness::Attributes attributes("");
    harness::Call call(op, cases.make(dims, types.dtypes, attributes));
    std::mt19937_64 random(static_cast<uint64_t>(dims[0]));
    const int64_t rows = dims[0], cols = dims[1];
    const std::vector<double> dy = Positive(random, call.spec().args[kDy].tensor.dtype, rows * cols);
    const std::vector<double> x = Positive(random, call.spec().args[kX].tensor.dtype, rows * cols);
    call.SetInput(kDy, dy);
    call.SetInput(kX, x);
    call.SetInput(kRstd, std::vector<double>(rows, 1));  // then only sums round
    EXPECT_EQ(call.Execute(session_.stream()), 0) << aclGetRecentErrMsg();
    std::vector<long double> exact(cols);
    for (int64_t i = 0; i < rows * cols; ++i) exact[i % cols] += static_cast<long double>(dy[i]) * x[i];
    const std::vector<double> got = call.Values(kDgamma);
    double worst = 0;
    for (int64_t j = 0; j < cols; ++j) {
      worst = std::max(worst, static_cast<double>(std::fabs(got[j] - exact[j]) / exact[j]));
    }
    return worst / std::numeric_limits<float>::epsilon();
  }

  harness::Session session_;
};

TEST_F(LongSumsTest, DgammaOfRmsNormGrad) {
  for (const Dims& dims : kShapes) {
    if (kSanitized && Numel(dims) > 300'000) continue;
    for (const harness::TypeChoice& types : harness::CasesOf("aclnnRmsNormGrad").types) {
      if (!types.bench || (Numel(dims) > 20'000'000 && types.dtypes[0] != DType::kF32)) continue;
      const double error = ErrorOf(dims, types);
      EXPECT_LE(error, kMost) << ToString(dims) << " " << types.label;
      RecordProperty(ToString(dims) + " " + types.label, std::to_string(error));
    }
  }
}

}  // namespace
}  // namespace anyacl
