// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What only a GPU can do, and the choice of the backend.
#include <cstring>

#include "aclnnop/aclnn_elu_backward.h"
#include "runtime/backends.h"
#include "runtime/support.h"

namespace anyacl {
namespace {

#define ANYACL_GPU_ONLY() \
  if (!runtime::CurrentBackend().launches()) GTEST_SKIP() << "only on a GPU"

TEST(Backends, UnknownName) {
  EXPECT_IN_FRESH_PROCESS({
    setenv("ANYACL_BACKEND", "tpu", 1);
    CHILD_EQ(aclInit(nullptr), 100000);
    CHILD_EQ(strstr(aclGetRecentErrMsg(), "ANYACL_BACKEND must be auto, cpu or cuda, got 'tpu'") !=
                 nullptr,
             true);
    CHILD_EQ(aclrtSetDevice(0), 100000);
  });
}

TEST(Backends, CudaWithoutADevice) {
  if (CudaBackend()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_IN_FRESH_PROCESS({
    setenv("ANYACL_BACKEND", "cuda", 1);
    CHILD_EQ(aclInit(nullptr), 207004);
    CHILD_EQ(strstr(aclGetRecentErrMsg(), "ANYACL_BACKEND is cuda, but there is no") != nullptr,
             true);
    CHILD_EQ(aclrtSetDevice(0), 207004);
    uint32_t count = 9;
    CHILD_OK(aclrtGetDeviceCount(&count));
    CHILD_EQ(count, 0);
  });
}

TEST(Backends, AutoTakesWhatIsThere) {
  EXPECT_IN_FRESH_PROCESS({
    setenv("ANYACL_BACKEND", "auto", 1);
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclrtSetDevice(0));
    CHILD_EQ(runtime::CurrentBackend().launches(), CudaBackend() != nullptr);
  });
}

// An address that nothing is mapped at. The context is lost by it, so in a process of its own.
TEST(Gpu, AsynchronousErrorsNameTheOperator) {
  ANYACL_GPU_ONLY();
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclrtSetDevice(0));
    void* nowhere = nullptr;
    CHILD_OK(aclrtReserveMemAddress(&nowhere, 1 << 21, 0, nullptr, 1));
    const int64_t count = 1024;
    float one = 1;
    aclScalar* const scalar = aclCreateScalar(&one, ACL_FLOAT);
    aclTensor* const tensor =
        aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, nowhere);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHILD_OK(aclnnEluBackwardGetWorkspaceSize(tensor, scalar, scalar, scalar, true, tensor, tensor,
                                              &size, &executor));
    CHILD_OK(aclnnEluBackward(nullptr, size, executor, nullptr));
    CHILD_EQ(aclrtSynchronizeStream(nullptr), 507015);
    const char* const text = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s\n", text);
    CHILD_EQ(strstr(text, "aclnnEluBackward") != nullptr, true);
  });
}

}  // namespace
}  // namespace anyacl
