// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A child of fork can use the library whatever other threads were doing in it, and nothing it does changes its parent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/acl_meta.h"
#include "core/error_text.h"
#include "plan/elu_call.h"
#include "plan/plan.h"
#include "sanitized.h"

namespace anyacl {
namespace {

constexpr size_t kBytes = 2 << 20;

#define CHECK_OK(call)                                                               \
  do {                                                                               \
    const int anyacl_code = static_cast<int>(call);                                  \
    if (anyacl_code != 0) {                                                          \
      const char* const anyacl_text = aclGetRecentErrMsg();                          \
      std::fprintf(stderr, "%s gave %d: %s\n", #call, anyacl_code, anyacl_text ? anyacl_text : ""); \
      _exit(3);                                                                      \
    }                                                                                \
  } while (false)

aclrtPhysicalMemProp Prop() {
  aclrtPhysicalMemProp prop = {};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  return prop;
}

struct Mapping {
  void* range = nullptr;
  aclrtDrvMemHandle physical = nullptr;

  int Make() {
    const aclrtPhysicalMemProp prop = Prop();
    int code = aclrtReserveMemAddress(&range, kBytes, 0, nullptr, 1);
    if (code == 0) code = aclrtMallocPhysical(&physical, kBytes, &prop, 0);
    return code != 0 ? code : aclrtMapMem(range, kBytes, 0, physical, 0);
  }
  int Drop() {
    int code = aclrtUnmapMem(range);
    if (code == 0) code = aclrtFreePhysical(physical);
    return code != 0 ? code : aclrtReleaseMemAddress(range);
  }
};

// Runs `body` in a child, which has some seconds for it; its status.
template <class Body>
int InChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool HoldsOnly(const void* memory, size_t bytes, unsigned char value) {
  const auto* const first = static_cast<const unsigned char*>(memory);
  return first[0] == value && std::memcmp(first, first + 1, bytes - 1) == 0;
}

class ForkTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef ANYACL_SANITIZE_thread
    GTEST_SKIP() << "ThreadSanitizer does not support threads in a forked child";
#endif
    ASSERT_EQ(aclrtSetDevice(0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream_), 0);
  }
  void TearDown() override {
    if (!stream_) return;
    EXPECT_EQ(aclrtDestroyStream(stream_), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  }
  aclrtStream stream_ = nullptr;
};

TEST_F(ForkTest, MappedMemoryOfTheParentStaysAsItIs) {
  Mapping kept, freed;
  ASSERT_EQ(kept.Make(), 0);
  ASSERT_EQ(freed.Make(), 0);
  std::memset(kept.range, 1, kBytes);
  std::memset(freed.range, 2, kBytes);
  const int status = InChild([&] {
    if (!HoldsOnly(kept.range, kBytes, 1)) _exit(1);
    CHECK_OK(aclrtMemset(kept.range, kBytes, 7, kBytes));
    if (!HoldsOnly(kept.range, kBytes, 7)) _exit(2);
    CHECK_OK(freed.Drop());
    Mapping own;
    CHECK_OK(own.Make());
    CHECK_OK(aclrtMemset(own.range, kBytes, 9, kBytes));
    // A grandchild: what its parent had made its own stays its parent's.
    const int below = InChild([&] {
      if (!HoldsOnly(kept.range, kBytes, 7) || !HoldsOnly(own.range, kBytes, 9)) _exit(4);
      CHECK_OK(aclrtMemset(own.range, kBytes, 11, kBytes));
      CHECK_OK(own.Drop());
    });
    if (below != 0 || !HoldsOnly(own.range, kBytes, 9)) _exit(5);
    CHECK_OK(own.Drop());
    CHECK_OK(kept.Drop());
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(HoldsOnly(kept.range, kBytes, 1));
  EXPECT_TRUE(HoldsOnly(freed.range, kBytes, 2));
  Mapping later;  // nor is it given out twice
  ASSERT_EQ(later.Make(), 0);
  std::memset(later.range, 3, kBytes);
  EXPECT_TRUE(HoldsOnly(kept.range, kBytes, 1));
  for (Mapping* mapping : {&kept, &freed, &later}) EXPECT_EQ(mapping->Drop(), 0);
}

TEST_F(ForkTest, ChildOfACaptureIsNotCaptured) {
  DeviceFloats block(64, 0);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 0);
  ASSERT_EQ(aclrtMemsetAsync(block.data(), 64, 1, 64, stream_), 0);
  EXPECT_EQ(InChild([&] {
              float values[16];
              CHECK_OK(aclrtMemcpy(values, 64, block.data(), 64, ACL_MEMCPY_DEVICE_TO_HOST));
              CHECK_OK(aclrtSynchronizeStream(stream_));
              CHECK_OK(aclrtSynchronizeDevice());
              aclmdlRICaptureStatus status;
              CHECK_OK(aclmdlRICaptureGetInfo(stream_, &status, nullptr));
              if (status != ACL_MODEL_RI_CAPTURE_STATUS_NONE) _exit(1);
            }),
            0);
  aclmdlRI model = nullptr;
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 0);
  EXPECT_EQ(aclmdlRIDestroy(model), 0);
}

// --- while threads do everything ---

void Nothing(void*) {}

// One round of each kind of call. All of them must succeed.
void Everything() {
  CHECK_OK(aclrtSetDevice(0));
  const int init = aclInit(nullptr);
  if (init != 0 && init != ACL_ERROR_REPEAT_INITIALIZE) CHECK_OK(init);
  aclrtStream stream = nullptr, other = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  CHECK_OK(aclrtCreateStream(&other));
  aclrtEvent event = nullptr;
  CHECK_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  CHECK_OK(aclrtLaunchHostFunc(stream, Nothing, nullptr));
  CHECK_OK(aclrtRecordEvent(event, stream));
  CHECK_OK(aclrtStreamWaitEvent(other, event));
  CHECK_OK(aclrtSynchronizeStream(other));
  CHECK_OK(aclrtDestroyEvent(event));
  {
    EluCall call(64, 33, true);
    CHECK_OK(call.TryPlan());
    if (call.size > 0) call.workspace = DeviceFloats(call.size / sizeof(float) + 1, 0);
    CHECK_OK(call.Run(stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    EluCall large(1 << 10, 1 << 8);
    CHECK_OK(large.TryPlan());
    CHECK_OK(large.Run(stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    aclmdlRI model = nullptr;
    CHECK_OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    CHECK_OK(aclrtMemsetAsync(call.dx.data(), 64, 0, 64, stream));
    CHECK_OK(aclmdlRICaptureEnd(stream, &model));
    CHECK_OK(aclmdlRIExecuteAsync(model, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclmdlRIDestroy(model));
  }
  Mapping mapping;
  CHECK_OK(mapping.Make());
  std::memset(mapping.range, 1, 64);
  CHECK_OK(mapping.Drop());
  void* block = nullptr;
  CHECK_OK(aclrtMalloc(&block, 3 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtFree(block));
  CHECK_OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"));
  aclrtExceptionInfoCallback listener = [](aclrtExceptionInfo*) {};
  CHECK_OK(aclrtExceptionInfoCallbackRegister(listener));
  CHECK_OK(aclrtExceptionInfoCallbackUnregister(listener));
  if (aclrtFree(nullptr) == 0) _exit(6);
  if (!aclGetRecentErrMsg() && aclrtFree(nullptr) == 0) _exit(7);  // another thread may have taken the text
  ForceKernel("");
  const uint64_t thread = static_cast<uint64_t>(pthread_self());
  CHECK_OK(aclrtSubscribeReport(thread, stream));
  CHECK_OK(aclrtUnSubscribeReport(thread, stream));
  aclrtContext context = nullptr;
  CHECK_OK(aclrtCreateContext(&context, 0));
  CHECK_OK(aclrtDestroyContext(context));
  CHECK_OK(aclrtSetDevice(0));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtDestroyStream(other));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclrtResetDevice(0));
}

TEST_F(ForkTest, ChildrenDoNotHangWhateverThreadsDo) {
  ANYACL_FORKS_BESIDE_THREADS();
  constexpr int kChildren = 300;
  constexpr int kThreads = 8;
  error_text::SetProcessScope(true);
  Mapping mapped;
  ASSERT_EQ(mapped.Make(), 0);
  void *heap = nullptr, *pinned = nullptr;
  ASSERT_EQ(aclrtMalloc(&heap, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMallocHost(&pinned, kBytes), 0);
  void* const blocks[] = {heap, pinned, mapped.range};
  for (void* block : blocks) std::memset(block, 5, kBytes);

  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (!over) Everything();
    });
  }
  int failed = 0;
  for (int i = 0; i < kChildren; ++i) {
    failed += InChild([&] {
      for (void* block : blocks) {
        for (size_t at = 0; at < kBytes; at += 64 << 10) std::memset(static_cast<unsigned char*>(block) + at, 6, 64);
      }
      Everything();
      CHECK_OK(mapped.Drop());
      CHECK_OK(aclrtFree(heap));
      CHECK_OK(aclrtFreeHost(pinned));
    }) != 0;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0) << "of " << kChildren << " children";
  for (void* block : blocks) EXPECT_TRUE(HoldsOnly(block, kBytes, 5));
  EXPECT_EQ(aclrtFree(heap), 0);
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
  EXPECT_EQ(mapped.Drop(), 0);
  error_text::SetProcessScope(false);
}

}  // namespace
}  // namespace anyacl
