// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A program in the manner of the published samples: only <iostream>, <vector>, acl.h and the operator's
// header, C++11, printf and std::array used all the same, variables without a first value.
#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

#define RETURN_IF_FAILED(call)                                                              \
  do {                                                                                      \
    auto result = (call);                                                                   \
    if (result != ACL_SUCCESS) {                                                            \
      printf("%s failed: %d\n%s\n", #call, static_cast<int>(result), aclGetRecentErrMsg()); \
      return 1;                                                                             \
    }                                                                                       \
  } while (0)

namespace {

int MakeTensor(const std::vector<float>& host, const std::vector<int64_t>& shape, void** memory,
               aclTensor** tensor) {
  const size_t bytes = host.size() * sizeof(float);
  RETURN_IF_FAILED(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  RETURN_IF_FAILED(aclrtMemcpy(*memory, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; i--) {
    strides[i] = strides[i + 1] * shape[i + 1];
  }
  *tensor = aclCreateTensor(shape.data(), shape.size(), aclDataType::ACL_FLOAT, strides.data(), 0,
                            aclFormat::ACL_FORMAT_ND, shape.data(), shape.size(), *memory);
  return *tensor == nullptr ? 1 : 0;
}

}  // namespace

int main() {
  const int32_t device = 0;
  aclrtStream stream;
  RETURN_IF_FAILED(aclInit(nullptr));
  RETURN_IF_FAILED(aclrtSetDevice(device));
  RETURN_IF_FAILED(aclrtCreateStream(&stream));

  const std::vector<int64_t> shape = {2, 3};
  const std::array<float, 6> expected = {1.0f, 1.5f, 0.0f, 4.0f, 2.5f, 6.0f};
  const std::vector<float> grad_output = {1, 2, 3, 4, 5, 6};
  const std::vector<float> result = {0.5f, -0.25f, -1.0f, 2.0f, -0.5f, 0.0f};
  std::vector<float> grad_input(6, -1.0f);
  void* grad_output_memory = nullptr;
  void* result_memory = nullptr;
  void* grad_input_memory = nullptr;
  aclTensor* grad_output_tensor = nullptr;
  aclTensor* result_tensor = nullptr;
  aclTensor* grad_input_tensor = nullptr;
  if (MakeTensor(grad_output, shape, &grad_output_memory, &grad_output_tensor) != 0 ||
      MakeTensor(result, shape, &result_memory, &result_tensor) != 0 ||
      MakeTensor(grad_input, shape, &grad_input_memory, &grad_input_tensor) != 0) {
    return 1;
  }
  float one = 1.0f;
  aclScalar* alpha = aclCreateScalar(&one, aclDataType::ACL_FLOAT);
  aclScalar* scale = aclCreateScalar(&one, aclDataType::ACL_FLOAT);
  aclScalar* input_scale = aclCreateScalar(&one, aclDataType::ACL_FLOAT);

  uint64_t workspace_size = 0;
  aclOpExecutor* executor;
  RETURN_IF_FAILED(aclnnEluBackwardGetWorkspaceSize(grad_output_tensor, alpha, scale, input_scale,
                                                    true, result_tensor, grad_input_tensor,
                                                    &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) {
    RETURN_IF_FAILED(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  RETURN_IF_FAILED(aclnnEluBackward(workspace, workspace_size, executor, stream));
  RETURN_IF_FAILED(aclrtSynchronizeStream(stream));
  const size_t bytes = grad_input.size() * sizeof(float);
  RETURN_IF_FAILED(
      aclrtMemcpy(grad_input.data(), bytes, grad_input_memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  int wrong = 0;
  for (size_t i = 0; i < grad_input.size(); i++) {
    printf("result[%zu] is: %f\n", i, grad_input[i]);
    wrong += grad_input[i] != expected[i];
  }

  aclDestroyTensor(grad_output_tensor);
  aclDestroyTensor(result_tensor);
  aclDestroyTensor(grad_input_tensor);
  aclDestroyScalar(alpha);
  aclDestroyScalar(scale);
  aclDestroyScalar(input_scale);
  aclrtFree(grad_output_memory);
  aclrtFree(result_memory);
  aclrtFree(grad_input_memory);
  if (workspace_size > 0) aclrtFree(workspace);
  aclrtDestroyStream(stream);
  aclrtResetDevice(device);
  aclFinalize();
  return wrong;
}
