// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the examples share: a check, a device, tensors in device memory, a table of results.
#ifndef ANYACL_EXAMPLES_EXAMPLE_H_
#define ANYACL_EXAMPLES_EXAMPLE_H_

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

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

// A device and a stream for as long as the object lives.
class Device {
 public:
  Device() {
    CHECK(aclInit(nullptr));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    uint32_t count = 0;
    CHECK(aclrtGetDeviceCount(&count));
    std::printf("%-9s 0 of %u, %s\n", "device", count, aclrtGetSocName());
  }
  ~Device() {
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  aclrtStream stream = nullptr;
};

// Numbers in device memory and their description as a dense FLOAT tensor.
class FloatTensor {
 public:
  FloatTensor(const std::vector<float>& values, const std::vector<int64_t>& shape)
      : count_(values.size()) {
    const size_t bytes = count_ * sizeof(float);
    CHECK(aclrtMalloc(&memory_, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(memory_, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    // No strides: row-major, one element behind the other.
    tensor = aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), memory_);
  }
  ~FloatTensor() {
    aclDestroyTensor(tensor);
    aclrtFree(memory_);
  }
  FloatTensor(const FloatTensor&) = delete;
  FloatTensor& operator=(const FloatTensor&) = delete;

  std::vector<float> Read() const {
    std::vector<float> values(count_);
    const size_t bytes = count_ * sizeof(float);
    CHECK(aclrtMemcpy(values.data(), bytes, memory_, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }

  void* memory() const { return memory_; }
  size_t count() const { return count_; }

  aclTensor* tensor = nullptr;

 private:
  size_t count_;
  void* memory_ = nullptr;
};

// Phase 2: workspace, run, wait. `run` is the operator's second function.
template <class Run>
void RunAndWait(Run run, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  void* workspace = nullptr;
  if (workspaceSize > 0) CHECK(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST));
  const auto start = std::chrono::steady_clock::now();
  CHECK(run(workspace, workspaceSize, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  std::printf("%-9s %.1f us, the first call\n", "time", time.count());
  if (workspace != nullptr) aclrtFree(workspace);
}

// Prints a result beside what the formula says; true when they agree.
inline bool Compare(const char* name, const std::vector<float>& result,
                    const std::vector<double>& expected) {
  bool right = true;
  std::printf("%-9s", name);
  for (float value : result) std::printf(" %9.5f", value);
  std::printf("\n%-9s", "expected");
  for (size_t i = 0; i < expected.size(); ++i) {
    std::printf(" %9.5f", expected[i]);
    right = right && std::fabs(result[i] - expected[i]) <= 1e-5 * (1 + std::fabs(expected[i]));
  }
  std::printf("\n");
  return right;
}

#endif  // ANYACL_EXAMPLES_EXAMPLE_H_
