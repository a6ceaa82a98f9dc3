// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A client that links nothing of ours, in the manner of a framework's plug-in: it opens libraries by
// name, asks each of them for each function and runs one call with what it found.
//   plugin_client LIBRARY...   (found through LD_LIBRARY_PATH)
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

namespace {

std::vector<void*> libraries;

// Every library must know every name: plug-ins ask the operator library for aclCreateTensor too.
void* Find(const char* name) {
  void* found = nullptr;
  for (void* library : libraries) {
    void* const address = dlsym(library, name);
    if (address == nullptr || (found != nullptr && address != found)) {
      std::printf("%s is at %p in one library and at %p in another\n", name, found, address);
      return nullptr;
    }
    found = address;
  }
  return found;
}

#define ANYACL_CALL(function) reinterpret_cast<decltype(&function)>(Find(#function))

bool IsComplete() {
  for (const char* name :
       {"aclInit", "aclFinalize", "aclrtSetDevice", "aclrtResetDevice", "aclrtMalloc", "aclrtFree",
        "aclrtMemcpy", "aclrtSynchronizeStream", "aclCreateTensor", "aclCreateScalar",
        "aclDestroyTensor", "aclDestroyScalar", "aclnnEluBackwardGetWorkspaceSize",
        "aclnnEluBackward"}) {
    if (Find(name) == nullptr) return false;
  }
  return true;
}

constexpr int64_t kCount = 4;
constexpr size_t kBytes = kCount * sizeof(float);

float* ToDevice(const float* host) {
  void* memory = nullptr;
  if (ANYACL_CALL(aclrtMalloc)(&memory, kBytes, ACL_MEM_MALLOC_NORMAL_ONLY) != 0) return nullptr;
  ANYACL_CALL(aclrtMemcpy)(memory, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
  return static_cast<float*>(memory);
}

aclTensor* Wrap(float* memory) {
  return ANYACL_CALL(aclCreateTensor)(&kCount, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &kCount, 1,
                                      memory);
}

int EluBackward(float* dy, float* x, float* dx) {
  float one = 1;
  aclTensor* tensors[] = {Wrap(dy), Wrap(x), Wrap(dx)};
  aclScalar* scalar = ANYACL_CALL(aclCreateScalar)(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int code = ANYACL_CALL(aclnnEluBackwardGetWorkspaceSize)(
      tensors[0], scalar, scalar, scalar, false, tensors[1], tensors[2], &size, &executor);
  void* workspace = nullptr;
  if (size > 0) ANYACL_CALL(aclrtMalloc)(&workspace, size, ACL_MEM_MALLOC_NORMAL_ONLY);
  if (code == 0) code = ANYACL_CALL(aclnnEluBackward)(workspace, size, executor, nullptr);
  // Plug-ins destroy the objects before the work is known to be done.
  for (aclTensor* tensor : tensors) ANYACL_CALL(aclDestroyTensor)(tensor);
  ANYACL_CALL(aclDestroyScalar)(scalar);
  if (code == 0) code = ANYACL_CALL(aclrtSynchronizeStream)(nullptr);
  if (workspace != nullptr) ANYACL_CALL(aclrtFree)(workspace);
  return code;
}

int Run() {
  const float dy[kCount] = {1, 2, 3, 4};
  const float x[kCount] = {1, -1, 0, -3};
  float dx[kCount] = {};
  float* const memory[] = {ToDevice(dy), ToDevice(x), ToDevice(dx)};
  const int code = EluBackward(memory[0], memory[1], memory[2]);
  ANYACL_CALL(aclrtMemcpy)(dx, kBytes, memory[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST);
  for (float* block : memory) ANYACL_CALL(aclrtFree)(block);
  if (code != 0) std::printf("code %d\n", code);
  int wrong = code != 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const float expected = x[i] > 0 ? dy[i] : dy[i] * std::exp(x[i]);
    if (std::fabs(dx[i] - expected) <= 1e-6f) continue;
    std::printf("[%d] is %g, must be %g\n", static_cast<int>(i), dx[i], expected);
    ++wrong;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_LAZY);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    libraries.push_back(library);
  }
  if (!IsComplete()) return 1;
  if (ANYACL_CALL(aclInit)(nullptr) != 0 || ANYACL_CALL(aclrtSetDevice)(0) != 0) return 1;
  const int wrong = Run();
  if (ANYACL_CALL(aclrtResetDevice)(0) != 0 || ANYACL_CALL(aclFinalize)() != 0) return 1;
  return wrong == 0 ? 0 : 1;
}
