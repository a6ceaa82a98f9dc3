// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A program to be traced, replayed and made to fail: client WHAT. Prints what its calls returned.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "hccl/hccl.h"

namespace {

constexpr int64_t kElements = 1 << 10;
constexpr size_t kBytes = kElements * sizeof(float);

int Say(const char* what, int status) {
  std::printf("%s %d\n", what, status);
  return status;
}

aclTensor* MakeTensor(void* data, aclDataType dtype = ACL_FLOAT, int64_t elements = kElements) {
  const int64_t dims[] = {2, elements / 2};
  return aclCreateTensor(dims, 2, dtype, nullptr, 0, ACL_FORMAT_ND, dims, 2, data);
}

int RunAdd(const aclTensor* self, const aclTensor* other, aclTensor* out, aclrtStream stream) {
  float one = 1;
  aclScalar* const alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int status = Say("phase1", aclnnAddGetWorkspaceSize(self, other, alpha, out, &size, &executor));
  aclDestroyScalar(alpha);
  if (status != 0) return status;
  void* workspace = nullptr;
  if (size > 0) aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST);
  status = Say("phase2", aclnnAdd(workspace, size, executor, stream));
  return status;
}

// A sum on a stream, from numbers of the host and back.
int Add() {
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  Say("stream", aclrtCreateStream(&stream));
  std::vector<float> numbers(kElements);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) * 0.5F;
  void* memory[3] = {};
  for (void*& m : memory) Say("malloc", aclrtMalloc(&m, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  aclrtMemcpy(memory[0], kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpyAsync(memory[1], kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream);
  aclTensor* const self = MakeTensor(memory[0]);
  aclTensor* const other = MakeTensor(memory[1]);
  aclTensor* const out = MakeTensor(memory[2]);
  RunAdd(self, other, out, stream);
  Say("synchronize", aclrtSynchronizeStream(stream));
  Say("read", aclrtMemcpy(numbers.data(), kBytes, memory[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("sum %.1f\n", static_cast<double>(numbers[kElements - 1]));
  for (const aclTensor* tensor : {self, other, out}) aclDestroyTensor(tensor);
  for (void* m : memory) aclrtFree(m);
  Say("destroy", aclrtDestroyStream(stream));
  return 0;
}

// Mistakes, each with its code.
int Mistakes() {
  aclrtSetDevice(0);
  void* memory = nullptr;
  aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclTensor* const self = MakeTensor(memory);
  aclTensor* const wrong = MakeTensor(memory, ACL_FLOAT, 8);
  RunAdd(self, nullptr, self, nullptr);
  RunAdd(self, self, wrong, nullptr);
  Say("free", aclrtFree(static_cast<char*>(memory) + 4));
  Say("stream", aclrtSynchronizeStream(reinterpret_cast<aclrtStream>(uintptr_t{0x1234})));
  Say("size", aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST));
  Say("destroy", aclDestroyTensor(self));
  Say("twice", aclDestroyTensor(self));
  return 0;
}

// Two threads, two streams, an event between them, a host function, and a subscribed thread.
int Threads() {
  aclrtSetDevice(0);
  aclrtContext context = nullptr;
  aclrtGetCurrentContext(&context);
  aclrtStream first = nullptr;
  aclrtStream second = nullptr;
  aclrtCreateStream(&first);
  aclrtCreateStream(&second);
  aclrtEvent event = nullptr;
  aclrtCreateEvent(&event);
  void* memory = nullptr;
  aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
  std::thread other([&] {
    aclrtSetCurrentContext(context);
    Say("wait", aclrtStreamWaitEvent(second, event));
    Say("set", aclrtMemsetAsync(memory, kBytes, 1, kBytes / 2, second));
    Say("synchronize", aclrtSynchronizeStream(second));
  });
  Say("host", aclrtLaunchHostFunc(first, [](void*) {}, nullptr));
  Say("record", aclrtRecordEvent(event, first));
  other.join();
  std::thread reports([&] {
    aclrtSetCurrentContext(context);
    Say("report", aclrtProcessReport(10000));
  });
  uint64_t thread = 0;
  const pthread_t handle = reports.native_handle();
  std::memcpy(&thread, &handle, sizeof(handle));
  Say("subscribe", aclrtSubscribeReport(thread, first));
  Say("launch", aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, first));
  reports.join();
  Say("synchronize", aclrtSynchronizeStream(first));
  Say("unsubscribe", aclrtUnSubscribeReport(thread, first));
  return 0;
}

// Ranks that are threads, which meet by a root info.
int Ranks() {
  HcclRootInfo info;
  aclrtSetDevice(0);
  Say("root", HcclGetRootInfo(&info));
  const auto rank = [&](uint32_t number) {
    aclrtSetDevice(static_cast<int32_t>(number));
    HcclComm comm = nullptr;
    HcclCommInitRootInfo(2, &info, number, &comm);
    void* memory = nullptr;
    aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(memory, kBytes, 0, kBytes);
    const int status = HcclAllReduce(memory, memory, kElements, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, nullptr);
    const int ended = aclrtSynchronizeStream(nullptr);
    HcclCommDestroy(comm);
    return status + ended;
  };
  int statuses[2] = {};
  std::thread one([&] { statuses[1] = rank(1); });
  statuses[0] = rank(0);
  one.join();
  return Say("ranks", statuses[0] + statuses[1]);
}

// As frameworks find functions.
int ByName() {
  void* const library = dlopen("libanyacl.so", RTLD_NOW);
  const auto count = reinterpret_cast<int (*)(uint32_t*)>(library ? dlsym(library, "aclrtGetDeviceCount") : nullptr);
  uint32_t devices = 0;
  return Say("count", count ? count(&devices) : -1);
}

// A stream waits for a word that the program writes itself, which a replay cannot know.
int WaitForTheHost() {
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  void* word = nullptr;
  aclrtMalloc(&word, sizeof(uint64_t), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(word, sizeof(uint64_t), 0, sizeof(uint64_t));
  Say("wait", aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_GEQ, stream));
  __atomic_store_n(static_cast<uint64_t*>(word), 1, __ATOMIC_RELEASE);
  Say("synchronize", aclrtSynchronizeStream(stream));
  return 0;
}

int Fork() {
  aclrtSetDevice(0);
  const pid_t child = fork();
  if (child == 0) {
    uint32_t count = 0;
    _exit(aclrtGetDeviceCount(&count) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  uint32_t count = 0;
  aclrtGetDeviceCount(&count);
  return Say("child", status);
}

int Crash() {
  aclrtSetDevice(0);
  void* memory = nullptr;
  aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
  std::fflush(stdout);
  std::abort();
}

// Nanoseconds of a call that does next to nothing: the best of many short loops, as the machine may be busy.
int Cost() {
  aclrtSetDevice(0);
  int32_t device = 0;
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    constexpr int kCalls = 200;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) aclrtGetDevice(&device);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kCalls);
  }
  std::printf("%.1f\n", best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "add") return Add();
  if (what == "mistakes") return Mistakes();
  if (what == "threads") return Threads();
  if (what == "ranks") return Ranks();
  if (what == "by_name") return ByName();
  if (what == "wait_for_the_host") return WaitForTheHost();
  if (what == "fork") return Fork();
  if (what == "crash") return Crash();
  if (what == "cost") return Cost();
  std::fprintf(stderr, "client add|mistakes|threads|ranks|by_name|wait_for_the_host|fork|crash|cost\n");
  return 2;
}
