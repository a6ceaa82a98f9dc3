// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the broken programs share. Each makes one mistake that programs really make; with the argument "right" it does it
// right. Only public headers: these are programs as users build them.
#ifndef ANYACL_TESTS_BUGS_PROGRAM_H_
#define ANYACL_TESTS_BUGS_PROGRAM_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_max_dim.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_relu.h"

inline constexpr int64_t kCount = 1024;
inline constexpr size_t kBytes = kCount * sizeof(float);

#define MUST(call)                                                        \
  do {                                                                    \
    if (const int code = (call); code != 0) {                             \
      const char* text = aclGetRecentErrMsg();                            \
      std::fprintf(stderr, "%s: %d %s\n", #call, code, text ? text : ""); \
      std::exit(2);                                                       \
    }                                                                     \
  } while (0)

inline void* Memory(size_t bytes = kBytes) {
  void* memory = nullptr;
  MUST(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return memory;
}

inline void Upload(void* memory, size_t bytes = kBytes) {
  const std::vector<char> zeros(bytes);
  MUST(aclrtMemcpy(memory, bytes, zeros.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

inline void* Input() {
  void* memory = Memory();
  Upload(memory);
  return memory;
}

inline aclTensor* Tensor(void* memory, std::vector<int64_t> shape = {kCount},
                         aclDataType dtype = ACL_FLOAT, std::vector<int64_t> strides = {},
                         int64_t offset = 0) {
  aclTensor* tensor =
      aclCreateTensor(shape.data(), shape.size(), dtype, strides.empty() ? nullptr : strides.data(),
                      offset, ACL_FORMAT_ND, shape.data(), shape.size(), memory);
  if (!tensor) std::exit(2);
  return tensor;
}

inline void Destroy(std::initializer_list<aclTensor*> tensors) {
  for (aclTensor* tensor : tensors) MUST(aclDestroyTensor(tensor));
}

inline void Free(std::initializer_list<void*> blocks) {
  for (void* memory : blocks) MUST(aclrtFree(memory));
}

// The program's own part; `right`: without the mistake.
struct Program {
  bool right;
  aclrtStream stream = nullptr;

  void Run();

  void Relu(aclTensor* self, aclTensor* out) { Relu(self, out, stream); }
  static void Relu(aclTensor* self, aclTensor* out, aclrtStream on) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    MUST(aclnnReluGetWorkspaceSize(self, out, &size, &executor));
    MUST(aclnnRelu(nullptr, size, executor, on));
  }
  void Wait() { MUST(aclrtSynchronizeStream(stream)); }
};

int main(int count, char**) {
  Program program{count > 1};
  MUST(aclInit(nullptr));
  MUST(aclrtSetDevice(0));
  MUST(aclrtCreateStream(&program.stream));
  program.Run();
  MUST(aclrtDestroyStream(program.stream));
  MUST(aclrtResetDevice(0));
  MUST(aclFinalize());
  return 0;
}

#endif  // ANYACL_TESTS_BUGS_PROGRAM_H_
