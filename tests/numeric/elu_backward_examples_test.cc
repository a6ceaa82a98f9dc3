// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results of aclnnEluBackward worked out by hand, so that nothing here shares code with the
// library.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "aclnnop/aclnn_elu_backward.h"
#include "device_floats.h"
#include "harness/session.h"

namespace anyacl {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Attribute {
  Attribute(float value) : scalar(aclCreateScalar(&value, ACL_FLOAT)) {}  // NOLINT: implicit
  Attribute(void* value, aclDataType dtype) : scalar(aclCreateScalar(value, dtype)) {}
  ~Attribute() { aclDestroyScalar(scalar); }
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;
  aclScalar* scalar;
};

class EluBackwardExamples : public testing::Test {
 protected:
  using Floats = std::vector<float>;

  Floats Run(Floats g, Floats x, bool is_result, const Attribute& alpha = 1,
             const Attribute& scale = 1, const Attribute& input_scale = 1) {
    const DeviceFloats memory[] = {DeviceFloats(g), DeviceFloats(x), DeviceFloats(g.size(), -99)};
    const int64_t dims[] = {static_cast<int64_t>(g.size())};
    const auto tensor = [&](const DeviceFloats& values) {
      return aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, values.data());
    };
    aclTensor* const tensors[] = {tensor(memory[0]), tensor(memory[1]), tensor(memory[2])};
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(
        aclnnEluBackwardGetWorkspaceSize(tensors[0], alpha.scalar, scale.scalar, input_scale.scalar,
                                         is_result, tensors[1], tensors[2], &size, &executor),
        0);
    EXPECT_EQ(aclnnEluBackward(nullptr, size, executor, session_.stream()), 0);
    EXPECT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    for (aclTensor* t : tensors) aclDestroyTensor(t);
    return memory[2].Read();
  }

  harness::Session session_;
};

TEST_F(EluBackwardExamples, TheDocumentsExample) {
  const Floats v = {-2, -1, 0, 1};
  EXPECT_EQ(Run(v, v, true), (Floats{2, -0.0f, 0, 1}));
  const Floats from_input = Run(v, v, false);
  const double expected[] = {-0.270670566, -0.367879441, 0, 1};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(from_input[i], expected[i], 6e-8) << i;  // two last places
}

TEST_F(EluBackwardExamples, NanInXTakesTheUpperBranch) {
  for (const bool is_result : {true, false}) {
    EXPECT_EQ(Run({3, -4}, {kNaN, -kNaN}, is_result, 1, 2, 5), (Floats{6, -8}));
  }
}

TEST_F(EluBackwardExamples, BothZerosTakeTheLowerBranch) {
  // With scale 2 and alpha 3 the branches differ: 6 below, 2 above.
  EXPECT_EQ(Run({1, 1}, {0.0f, -0.0f}, true, 3, 2), (Floats{6, 6}));
  EXPECT_EQ(Run({1, 1}, {0.0f, -0.0f}, false, 3, 2), (Floats{6, 6}));
}

TEST_F(EluBackwardExamples, NothingLeaksFromTheOtherBranch) {
  EXPECT_EQ(Run({2, 2}, {kInf, 1e38f}, false, 1, 1, 1), (Floats{2, 2}));  // exp(inf) is not taken
  EXPECT_EQ(Run({2}, {kInf}, true), (Floats{2}));
  EXPECT_EQ(Run({0}, {kInf}, false, 1, 3), (Floats{0}));
}

TEST_F(EluBackwardExamples, Infinities) {
  EXPECT_EQ(Run({5, -5}, {-kInf, -kInf}, false), (Floats{0, -0.0f}));
  EXPECT_TRUE(std::isnan(Run({kInf}, {-kInf}, false)[0]));  // inf * 0
  EXPECT_EQ(Run({kInf, -kInf}, {1, 1}, false, 1, 2), (Floats{kInf, -kInf}));
  EXPECT_EQ(Run({2, -2}, {-kInf, -kInf}, true), (Floats{-kInf, kInf}));
  EXPECT_EQ(Run({1}, {-200}, false, 1, 1, -1), (Floats{-kInf}));  // exp grows: -1 * exp(200)
}

TEST_F(EluBackwardExamples, NanInTheGradientStays) {
  for (const bool is_result : {true, false}) {
    for (float r : Run({kNaN, kNaN}, {-1, 1}, is_result)) EXPECT_TRUE(std::isnan(r));
  }
}

// negcoef is alpha * scale, rounded to FLOAT32 once; scalars of other types become FLOAT32 first.
TEST_F(EluBackwardExamples, ScalarsAreFloats) {
  double tenth = 0.1;
  EXPECT_EQ(Run({1}, {0}, true, {&tenth, ACL_DOUBLE}), (Floats{0.1f}));
  double third = 1.0 / 3;
  EXPECT_EQ(Run({1}, {0}, true, {&tenth, ACL_DOUBLE}, {&third, ACL_DOUBLE}),
            (Floats{0.1f * static_cast<float>(third)}));
  int64_t big = 16777217;  // 2^24 + 1
  EXPECT_EQ(Run({1}, {0}, true, {&big, ACL_INT64}), (Floats{16777216}));
  uint8_t yes = 1;
  EXPECT_EQ(Run({3}, {2}, true, 1, {&yes, ACL_BOOL}), (Floats{3}));
  uint16_t half = 0x3800;
  EXPECT_EQ(Run({3}, {2}, true, 1, {&half, ACL_FLOAT16}), (Floats{1.5f}));
  uint16_t bf16 = 0x4040;
  EXPECT_EQ(Run({3}, {2}, true, 1, {&bf16, ACL_BF16}), (Floats{9}));
  int8_t minus = -2;
  EXPECT_EQ(Run({3}, {2}, true, 1, {&minus, ACL_INT8}), (Floats{-6}));
}

TEST_F(EluBackwardExamples, SubnormalsAreKept) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Run({tiny, -3 * tiny}, {1, 1}, true), (Floats{tiny, -3 * tiny}));
  EXPECT_EQ(Run({1, 1}, {-tiny, -1 + 0x1p-24f}, true, 0), (Floats{-tiny, -1 + 0x1p-24f}));
}

TEST_F(EluBackwardExamples, NanAlphaReachesTheLowerBranchOnly) {
  const Floats result = Run({1, 1}, {-1, 1}, true, kNaN);
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_EQ(result[1], 1);
}

}  // namespace
}  // namespace anyacl
