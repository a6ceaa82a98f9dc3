// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 8: graph capture.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/support.h"

namespace anyacl {
namespace {

constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

// Bytes on the device, and the two ways a stream changes them.
class CaptureTest : public StreamTest {
 protected:
  static constexpr size_t kBytes = 256;

  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtMalloc(&a_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMalloc(&b_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEventExWithFlag(&event_, ACL_EVENT_SYNC), ACL_SUCCESS);
    Set(a_, 1);
    Set(b_, 0);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(a_), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(b_), ACL_SUCCESS);
    StreamTest::TearDown();
  }

  static void Set(void* to, int value) {
    ASSERT_EQ(aclrtMemset(to, kBytes, value, kBytes), ACL_SUCCESS);
  }
  static int Get(const void* from) {
    unsigned char last = 0;
    EXPECT_EQ(aclrtMemcpy(&last, 1, static_cast<const char*>(from) + kBytes - 1, 1,
                          ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return last;
  }
  aclError CopyOn(aclrtStream stream, void* to, const void* from) {
    return aclrtMemcpyAsync(to, kBytes, from, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
  }
  // One copy from a to b.
  aclmdlRI CaptureCopy() {
    aclmdlRI model = nullptr;
    EXPECT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS) << RecentText();
    EXPECT_EQ(CopyOn(stream_, b_, a_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS) << RecentText();
    EXPECT_NE(model, nullptr);
    return model;
  }
  // What `submit` puts on stream_ never ends by itself.
  template <class Submit>
  void ExpectAbortEndsReplayOf(Submit&& submit) {
    aclmdlRI model = nullptr;
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    ASSERT_EQ(submit(), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRIExecuteAsync(model, other_), ACL_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it has begun
    EXPECT_EQ(aclrtStreamAbort(other_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 5000), 107023);
    EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  }

  // A capture in which `call` fails with `code` ends as invalid. event_ is one of its events.
  template <class Call>
  void ExpectInvalidates(aclError code, Call&& call) {
    aclmdlRI model = nullptr;
    aclmdlRICaptureStatus status;
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    ASSERT_EQ(CopyOn(stream_, b_, a_), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_EQ(call(), code) << RecentText();
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, nullptr), ACL_SUCCESS);
    EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED) << code;
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 507903) << code;
    EXPECT_EQ(model, nullptr);
  }
  void Replay(aclmdlRI model, aclrtStream stream) {
    EXPECT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS) << RecentText();
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << RecentText();
  }

  void* a_ = nullptr;
  void* b_ = nullptr;
  aclrtEvent event_ = nullptr;
};

TEST_F(CaptureTest, RecordsWithoutRunningAndReplaysOften) {
  const aclmdlRI model = CaptureCopy();
  EXPECT_EQ(Get(b_), 0);
  for (int i = 1; i <= 3; ++i) {
    Set(a_, i);
    Replay(model, i == 2 ? other_ : stream_);  // on any stream
    EXPECT_EQ(Get(b_), i);
  }
  uint32_t id = 0;
  EXPECT_EQ(aclmdlRIGetId(model, &id), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), 107017);
  EXPECT_EQ(aclmdlRIExecuteAsync(model, stream_), 107017);
  EXPECT_EQ(aclmdlRIDestroy(nullptr), 100000);
}

TEST_F(CaptureTest, HostFunctionsAreReplayedInOrder) {
  static std::atomic<int> calls;
  calls = 0;
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kThreadLocal), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_, [](void*) { ++calls; }, nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(calls, 0);
  Replay(model, stream_);
  Replay(model, stream_);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(CaptureTest, InfoTellsTheState) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI inside = nullptr, model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kRelaxed), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &inside), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(aclmdlRICaptureGetInfo(other_, &status, nullptr), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(model, inside);
  Replay(model, stream_);  // nothing was recorded
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(CaptureTest, BeginAndEndMustMatch) {
  aclmdlRI model = nullptr;
  EXPECT_ACL_FAILURE(107029, aclmdlRICaptureEnd(stream_, &model), "is not being captured");
  EXPECT_ACL_FAILURE(107031, aclmdlRICaptureBegin(nullptr, kGlobal), "default stream");
  EXPECT_EQ(aclmdlRICaptureBegin(stream_, static_cast<aclmdlRICaptureMode>(3)), 100000);
  EXPECT_EQ(aclmdlRICaptureBegin(&model, kGlobal), 107017);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kThreadLocal), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureBegin(stream_, kThreadLocal), 107027);
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, nullptr), 100000);
  InNewThread([&] { EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 107038); });
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kRelaxed), ACL_SUCCESS);
  InNewThread([&] { EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS); });
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(CaptureTest, WhatIsForbiddenInvalidatesIt) {
  aclrtStreamStatus status;
  aclrtEventRecordedStatus recorded;
  aclrtEventWaitStatus waited;
  char host[kBytes] = {};
  ExpectInvalidates(107027, [&] { return aclrtSynchronizeStream(stream_); });
  ExpectInvalidates(107027, [&] { return aclrtStreamQuery(stream_, &status); });
  ExpectInvalidates(107027, [&] { return aclrtSynchronizeDevice(); });
  ExpectInvalidates(107027, [&] { return aclrtStreamAbort(stream_); });
  ExpectInvalidates(107031, [&] { return CopyOn(nullptr, b_, a_); });
  ExpectInvalidates(107031, [&] { return aclrtSynchronizeStream(nullptr); });
  ExpectInvalidates(107031, [&] { return aclrtStreamQuery(nullptr, &status); });
  ExpectInvalidates(
      107030, [&] { return aclrtMemcpy(host, kBytes, a_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST); });
  ExpectInvalidates(107030, [&] { return aclrtMemset(a_, kBytes, 0, kBytes); });
  ExpectInvalidates(107030, [&] {  // in every thread
    aclError code = ACL_SUCCESS;
    InNewThread([&] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      code = aclrtMemset(a_, kBytes, 7, kBytes);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
    return code;
  });
  ExpectInvalidates(107041, [&] {
    return aclrtMemcpyAsync(host, kBytes, a_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream_);
  });
  ExpectInvalidates(107028, [&] { return aclrtSynchronizeEvent(event_); });
  ExpectInvalidates(107028, [&] { return aclrtQueryEventStatus(event_, &recorded); });
  ExpectInvalidates(107028, [&] { return aclrtQueryEventWaitStatus(event_, &waited); });
  EXPECT_EQ(Get(a_), 1);
}

// Nothing more is recorded, and the streams are free again after the end.
TEST_F(CaptureTest, AnInvalidOneTakesNothing) {
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107027);
  EXPECT_ACL_FAILURE(507903, CopyOn(stream_, b_, a_), "was made invalid by aclrtSynchronizeStream");
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), 507903);
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 507903);
  EXPECT_EQ(CopyOn(stream_, b_, a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(Get(b_), 1);
}

TEST_F(CaptureTest, WhatStaysLegalMeanwhile) {
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS);
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  InNewThread([&] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    aclmdlRICaptureMode mode = kRelaxed;
    EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemset(a_, kBytes, 7, kBytes), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  EXPECT_EQ(aclrtDestroyStream(stream_), 107027);  // refused, but it takes nothing from the capture
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS) << RecentText();
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(Get(a_), 7);
}

TEST_F(CaptureTest, ModesDecideWhoMaySynchronize) {
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kThreadLocal), ACL_SUCCESS);
  InNewThread([&] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemset(a_, kBytes, 3, kBytes), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  EXPECT_EQ(aclrtMemset(a_, kBytes, 2, kBytes), 107030);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), 507903);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kRelaxed), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(a_, kBytes, 4, kBytes), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(Get(a_), 4);
}

// b = a on one stream, then, on a second that joined, a = 9: the order counts.
TEST_F(CaptureTest, StreamsJoinByEventsAndMustBeJoinedBack) {
  aclmdlRI model = nullptr;
  for (const bool join_back : {false, true}) {
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS) << RecentText();
    ASSERT_EQ(CopyOn(stream_, b_, a_), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS) << RecentText();
    ASSERT_EQ(aclrtMemsetAsync(a_, kBytes, 9, kBytes, other_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureEnd(other_, &model), 107036);
    if (join_back) {
      ASSERT_EQ(aclrtRecordEvent(event_, other_), ACL_SUCCESS);
      ASSERT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_SUCCESS) << RecentText();
    }
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), join_back ? 0 : 107025) << RecentText();
    EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);  // an ordinary stream again
  }
  Replay(model, stream_);
  EXPECT_EQ(Get(b_), 1);
  EXPECT_EQ(Get(a_), 9);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(CaptureTest, EventsOfOutsideAndOfOtherCaptures) {
  aclrtEvent outside = nullptr;
  aclmdlRI model = nullptr, second = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&outside), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(outside, other_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107024, aclrtStreamWaitEvent(stream_, outside), "outside of the capture");
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 507903);
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, kGlobal), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(other_, kGlobal), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, event_), 107032);
  EXPECT_EQ(aclmdlRICaptureEnd(other_, &second), 507903) << "both are tied";
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), 507903);
  EXPECT_EQ(aclrtDestroyEvent(outside), ACL_SUCCESS);
}

TEST_F(CaptureTest, RunningModelsCannotBeDestroyed) {
  const aclmdlRI model = CaptureCopy();
  {
    Gate gate(stream_);
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    EXPECT_ACL_FAILURE(107037, aclmdlRIDestroy(model), "still running");
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(CaptureTest, AbortEndsAWaitInAReplay) {
  ANYACL_CPU_ONLY("a GPU waits by itself");
  ExpectAbortEndsReplayOf(
      [&] { return aclrtValueWait(a_, 77, ACL_STREAM_WAIT_VALUE_EQ, stream_); });
}

TEST_F(CaptureTest, AbortEndsABlockingCallbackInAReplay) {
  ANYACL_CPU_ONLY("a graph of the GPU calls the host on a thread of the driver");
  const auto nobody = static_cast<uint64_t>(-1);  // no thread ever asks for it
  ASSERT_EQ(aclrtSubscribeReport(nobody, stream_), ACL_SUCCESS);
  ExpectAbortEndsReplayOf(
      [&] { return aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream_); });
  EXPECT_EQ(aclrtUnSubscribeReport(nobody, stream_), ACL_SUCCESS);
}

// The stream of another life must not find itself in the capture of the one before.
TEST_F(CaptureTest, EndsWithItsStream) {
  aclrtContext context = nullptr;
  aclrtContext before = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&before), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, kGlobal), ACL_SUCCESS);
  aclmdlRICaptureStatus status;
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureGetInfo(stream, &status, &model), ACL_SUCCESS);
  ASSERT_EQ(CopyOn(stream, b_, a_), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetCurrentContext(before), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), 107017) << "it ended with the capture";
  Set(b_, 0);  // no capture forbids it
  for (int i = 0; i < 8; ++i) {
    aclrtStream next = nullptr;
    ASSERT_EQ(aclrtCreateStream(&next), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureGetInfo(next, &status, nullptr), ACL_SUCCESS);
    EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    EXPECT_EQ(aclrtDestroyStream(next), ACL_SUCCESS);
  }
}

// Whoever comes at the end of a capture is in it, runs, or is refused.
TEST_F(CaptureTest, BeginsAndEndsWhileOthersSubmit) {
  const Storm storm([&] {
    const aclError code = CopyOn(stream_, b_, a_);
    EXPECT_TRUE(code == ACL_SUCCESS || code == 507903) << code;
  });
  for (int i = 0; i < 300; ++i) {
    aclmdlRI model = nullptr;
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, kRelaxed), ACL_SUCCESS) << RecentText();
    ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS) << RecentText();
    ASSERT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS) << RecentText();
  }
}

TEST_F(CaptureTest, OfAnotherDevice) {
  const aclmdlRI model = CaptureCopy();
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107003, aclmdlRIExecuteAsync(model, nullptr), "captured on device 0");
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

}  // namespace
}  // namespace anyacl
