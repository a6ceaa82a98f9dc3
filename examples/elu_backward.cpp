// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The gradient of ELU for six numbers: set up, call, check, print.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

// Every call returns 0 or a code; the library has a sentence for the code.
#define CHECK(call)                                                            \
  do {                                                                         \
    const int code = (call);                                                   \
    if (code != 0) {                                                           \
      const char* text = aclGetRecentErrMsg();                                 \
      std::fprintf(stderr, "%s gave %d: %s\n", #call, code, text ? text : ""); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

// Copies numbers to the device and describes them as a dense tensor.
aclTensor* MakeTensor(const std::vector<float>& values, const std::vector<int64_t>& shape,
                      void** memory) {
  const size_t bytes = values.size() * sizeof(float);
  CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(*memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = shape[i] * strides[i];
  return aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, strides.data(), 0, ACL_FORMAT_ND,
                         shape.data(), shape.size(), *memory);
}

void Print(const char* name, const std::vector<float>& values) {
  std::printf("%-9s", name);
  for (float value : values) std::printf(" %9.6f", value);
  std::printf("\n");
}

int main() {
  // A device and a stream.
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  uint32_t count = 0;
  CHECK(aclrtGetDeviceCount(&count));
  std::printf("%-9s 0 of %u, %s\n", "device", count, aclrtGetSocName());

  // Tensors and scalars.
  const std::vector<int64_t> shape = {2, 3};
  const std::vector<float> gradient = {1.0f, 1.0f, 1.0f, 0.5f, 0.5f, 0.5f};
  const std::vector<float> input = {-2.0f, -1.0f, -0.5f, 0.0f, 1.0f, 2.0f};
  std::vector<float> result(input.size(), 0.0f);
  void* memory[3] = {};
  aclTensor* gradOutput = MakeTensor(gradient, shape, &memory[0]);
  aclTensor* self = MakeTensor(input, shape, &memory[1]);
  aclTensor* gradInput = MakeTensor(result, shape, &memory[2]);
  float one = 1.0f;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  aclScalar* scale = aclCreateScalar(&one, ACL_FLOAT);
  aclScalar* inputScale = aclCreateScalar(&one, ACL_FLOAT);

  // Phase 1 checks the call and says how much workspace it needs; phase 2 puts it on the stream.
  const auto start = std::chrono::steady_clock::now();
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnEluBackwardGetWorkspaceSize(gradOutput, alpha, scale, inputScale, false, self,
                                         gradInput, &workspaceSize, &executor));
  void* workspace = nullptr;
  if (workspaceSize > 0) CHECK(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnEluBackward(workspace, workspaceSize, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;

  // The result, beside what the formula says.
  const size_t bytes = result.size() * sizeof(float);
  CHECK(aclrtMemcpy(result.data(), bytes, memory[2], bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::vector<float> expected;
  bool right = true;
  for (size_t i = 0; i < input.size(); ++i) {
    expected.push_back(input[i] > 0 ? gradient[i] : gradient[i] * std::exp(input[i]));
    right = right && std::fabs(result[i] - expected[i]) <= 1e-6f;
  }
  Print("gradient", result);
  Print("expected", expected);
  std::printf("%-9s %.1f us, the first call\n", "time", time.count());
  std::printf("%s\n", right ? "right" : "WRONG");

  // Give everything back.
  aclDestroyTensor(gradOutput);
  aclDestroyTensor(self);
  aclDestroyTensor(gradInput);
  aclDestroyScalar(alpha);
  aclDestroyScalar(scale);
  aclDestroyScalar(inputScale);
  for (void* block : memory) aclrtFree(block);
  if (workspace != nullptr) aclrtFree(workspace);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return right ? 0 : 1;
}
