// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results do not depend on the floating-point mode of the caller, nor of the thread that made ours start.
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "runtime/support.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace anyacl {
namespace {

// Rounds towards zero, and what overflows or is invalid traps where it can; on x86 subnormals count as zero, too.
void SetOddMode() {
  std::fesetround(FE_TOWARDZERO);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
#ifdef __x86_64__
  constexpr unsigned kZeroSubnormals = 0x8040;
  _mm_setcsr(_mm_getcsr() | kZeroSubnormals);
#endif
}

aclTensor* MakeTensor(const std::vector<float>& values) {
  const int64_t count = static_cast<int64_t>(values.size()), stride = 1;
  const size_t bytes = values.size() * sizeof(float);
  void* data = nullptr;
  CHILD_OK(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHILD_OK(aclrtMemcpy(data, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return aclCreateTensor(&count, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &count, 1, data);
}

// dx of EluBackward from the input, with scale 0.3337 and alpha 1, behind a host function.
std::vector<float> Gradients(float dy, float x, size_t count, aclrtHostFunc before = nullptr) {
  aclrtStream stream = nullptr;
  CHILD_OK(aclrtCreateStream(&stream));
  if (before) CHILD_OK(aclrtLaunchHostFunc(stream, before, nullptr));
  float one = 1, third = 0.3337f;
  aclTensor* const tensors[] = {MakeTensor(std::vector<float>(count, dy)),
                                MakeTensor(std::vector<float>(count, x)),
                                MakeTensor(std::vector<float>(count, 7))};
  aclScalar* const alpha = aclCreateScalar(&one, ACL_FLOAT);
  aclScalar* const scale = aclCreateScalar(&third, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHILD_OK(aclnnEluBackwardGetWorkspaceSize(tensors[0], alpha, scale, alpha, false, tensors[1],
                                            tensors[2], &size, &executor));
  CHILD_OK(aclnnEluBackward(nullptr, 0, executor, stream));
  CHILD_OK(aclrtSynchronizeStream(stream));
  std::vector<float> result(count);
  void* data = nullptr;
  CHILD_OK(aclGetRawTensorAddr(tensors[2], &data));
  CHILD_OK(aclrtMemcpy(result.data(), count * sizeof(float), data, count * sizeof(float),
                       ACL_MEMCPY_DEVICE_TO_HOST));
  return result;
}

// Small work runs in the caller, large work in threads that this call starts.
TEST(FloatMode, OfTheCallerDoesNotCount) {
  EXPECT_IN_FRESH_PROCESS({
    const volatile float tiny = 1e-38f, third = 0.3337f, tenth = 0.1f;
    const float subnormal = tiny * third, rounded = tenth * third;
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclrtSetDevice(0));
    SetOddMode();
    const std::vector<float> small = Gradients(1e-38f, 1, 4), large = Gradients(1e-38f, 1, 4000000);
    const std::vector<float> odd = Gradients(0.1f, 1, 4), huge = Gradients(1e30f, 1e30f, 4);
    CHILD_EQ(std::fegetround(), FE_TOWARDZERO);
    std::fesetenv(FE_DFL_ENV);
    for (const float value : small) CHILD_EQ(value == subnormal, true);
    for (const float value : large) CHILD_EQ(value == subnormal, true);
    for (const float value : odd) CHILD_EQ(value == rounded, true);
    CHILD_EQ(huge[0] > 1e29f, true);
    for (const float value : Gradients(1e-38f, 1, 4000000)) CHILD_EQ(value == subnormal, true);
  });
}

TEST(FloatMode, OfAHostFunctionDoesNotCount) {
  EXPECT_IN_FRESH_PROCESS({
    const volatile float tiny = 1e-38f, third = 0.3337f;
    const float subnormal = tiny * third;
    CHILD_OK(aclrtSetDevice(0));
    const auto set_odd_mode = [](void*) { SetOddMode(); };
    for (const float value : Gradients(1e-38f, 1, 4000000, set_odd_mode))
      CHILD_EQ(value == subnormal, true);
  });
}

// Rules compare in long double, which has a mode of its own on x86.
TEST(FloatMode, RulesDoNotTrap) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclrtSetDevice(0));
    SetOddMode();
    const int traps = fegetexcept();
    aclTensor* const tensor = MakeTensor({1, 2});
    float nan = std::numeric_limits<float>::quiet_NaN();
    aclScalar* const scalar = aclCreateScalar(&nan, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHILD_OK(aclnnEluBackwardGetWorkspaceSize(tensor, scalar, scalar, scalar, true, tensor, tensor,
                                              &size, &executor));
    CHILD_EQ(fegetexcept(), traps);
    CHILD_EQ(std::fegetround(), FE_TOWARDZERO);
    volatile long double one = 1;
    CHILD_EQ(one + one == 2, true);  // what happened before does not trap now
  });
}

}  // namespace
}  // namespace anyacl
