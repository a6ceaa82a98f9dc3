// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 2 (streams of contexts) and 3 (streams).
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/support.h"

namespace anyacl {
namespace {

aclrtStreamStatus StatusOf(aclrtStream stream) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  return status;
}

// --- order and asynchrony ---

TEST_F(StreamTest, RunsInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i) {  // more than the queue holds
    ASSERT_EQ(Submit(stream_, AppendWork(&order, i, i % 2 ? kLarge : 0)), 0);
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  ASSERT_EQ(order.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(order[i], i);
}

TEST_F(StreamTest, LargeWorkDoesNotRunInTheCaller) {
  std::thread::id ran;
  const Work work = runtime::MakeWork("where", kLarge, &ran, [](Work& w, const Launch&) {
    *runtime::PayloadOf<std::thread::id*>(w) = std::this_thread::get_id();
    return 0;
  });
  ASSERT_EQ(Submit(stream_, work), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_NE(ran, std::this_thread::get_id());
}

TEST_F(StreamTest, SmallWorkOnAnIdleStreamRunsInTheCaller) {
  ANYACL_CPU_ONLY("host code on a GPU's stream has a thread of its own");
  std::vector<int> order;
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1)), 0);
  EXPECT_EQ(order.size(), 1u);
  EXPECT_EQ(StatusOf(stream_), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, SmallWorkWaitsForItsTurn) {
  std::vector<int> order;
  Gate gate(stream_);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1)), 0);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(StatusOf(stream_), ACL_STREAM_STATUS_NOT_READY);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
  EXPECT_EQ(StatusOf(stream_), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, StreamsRunInParallel) {
  // Each waits for the other: in one queue this would never end.
  static std::atomic<int> arrived;
  arrived = 0;
  const auto meet = [](void*) {
    ++arrived;
    arrived.notify_all();
    for (int seen = arrived; seen < 2; seen = arrived) arrived.wait(seen);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, meet, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, meet, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
}

TEST_F(StreamTest, DefaultStreamIsNotOrderedWithOthers) {
  Gate gate(stream_);
  std::vector<int> order;
  ASSERT_EQ(Submit(nullptr, AppendWork(&order, 1, kLarge)), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
}

TEST_F(StreamTest, NullIsTheDefaultStream) {
  aclrtStream handle = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&handle), ACL_SUCCESS);
  ASSERT_NE(handle, nullptr);
  Gate gate(nullptr);
  EXPECT_EQ(StatusOf(handle), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamTest, SynchronizeDeviceWaitsForAllStreams) {
  std::vector<int> a, b;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Submit(stream_, AppendWork(&a, i, kLarge)), 0);
    ASSERT_EQ(Submit(other_, AppendWork(&b, i, kLarge)), 0);
  }
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(a.size(), 100u);
  EXPECT_EQ(b.size(), 100u);
}

TEST_F(StreamTest, ReleaseIsCalledOnceAfterRun) {
  static std::atomic<int> released;
  released = 0;
  for (const uint64_t cost : {uint64_t{0}, kLarge}) {
    Work work = FailingWork(0, cost);
    work.release = [](Work&) { ++released; };
    ASSERT_EQ(Submit(stream_, work), 0);
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(released, 2);
}

TEST_F(StreamTest, RefusedWorkIsNeitherRunNorReleased) {
  int local = 0;
  std::vector<int> order;
  Work work = AppendWork(&order, 1);
  work.release = [](Work&) { FAIL(); };
  EXPECT_EQ(Submit(&local, work), 107017);
  EXPECT_TRUE(order.empty());
}

TEST_F(StreamTest, FenceCoversWhatWasQueuedBefore) {
  EXPECT_TRUE(runtime::Fence::Capture().Done());
  Gate gate(stream_);
  const runtime::Fence fence = runtime::Fence::Capture();
  EXPECT_FALSE(fence.Done());
  Gate later(other_);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(fence.Done());  // although the other stream is busy by now
}

// --- handles ---

TEST_F(StreamTest, DeadAndForeignHandles) {
  aclrtStream dead = nullptr;
  ASSERT_EQ(aclrtCreateStream(&dead), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(dead), ACL_SUCCESS);
  int local = 0;
  for (aclrtStream wrong :
       {dead, static_cast<aclrtStream>(&local), reinterpret_cast<aclrtStream>(1)}) {
    aclrtStreamStatus status;
    EXPECT_ACL_FAILURE(107017, aclrtDestroyStream(wrong),
                       "aclrtDestroyStream: stream must be a live stream");
    EXPECT_EQ(aclrtDestroyStreamForce(wrong), 107017);
    EXPECT_EQ(aclrtSynchronizeStream(wrong), 107017);
    EXPECT_EQ(aclrtStreamQuery(wrong, &status), 107017);
    EXPECT_EQ(aclrtStreamAbort(wrong), 107017);
    EXPECT_EQ(Submit(wrong, FailingWork(0)), 107017);
  }
}

TEST_F(StreamTest, NullArguments) {
  EXPECT_EQ(aclrtCreateStream(nullptr), 100000);
  EXPECT_ACL_FAILURE(100000, aclrtDestroyStream(nullptr), "stream must not be null");
  EXPECT_EQ(aclrtDestroyStreamForce(nullptr), 100000);
  EXPECT_EQ(aclrtStreamQuery(stream_, nullptr), 100000);
}

TEST_F(StreamTest, DefaultStreamCannotBeDestroyed) {
  aclrtStream handle = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(handle), 107000);
}

TEST_F(StreamTest, DestroyWaits) {
  std::vector<int> order;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Submit(stream, AppendWork(&order, i, kLarge)), 0);
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1000u);
}

TEST_F(StreamTest, DestroyForceDoesNotWait) {
  static std::atomic<int> ran, released;
  ran = released = 0;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  Blocker blocker(stream);
  Work work = FailingWork(0);
  work.run = [](Work&, const Launch&) { return ran++; };
  work.release = [](Work&) { ++released; };
  ASSERT_EQ(Submit(stream, work), 0);
  const runtime::Fence fence = runtime::Fence::Capture();
  ASSERT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
  EXPECT_FALSE(fence.Done());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107017);
  blocker.Open();
  while (!fence.Done()) std::this_thread::yield();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(released, 1);
}

TEST_F(StreamTest, OfAnotherDeviceOrContext) {
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclGetRecentErrMsg();
  const Status status = SubmitWork(stream_, FailingWork(0));
  EXPECT_EQ(status.code(), 107003);
  EXPECT_NE(status.message().find("aclnnBroken: stream must belong to the current context"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);  // accepted for safety
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(Submit(stream_, FailingWork(0)), 107003);
  ASSERT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(Submit(stream_, FailingWork(0)), 0);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST_F(StreamTest, SubmitNeedsAContext) {
  InNewThread([this] { EXPECT_EQ(Submit(stream_, FailingWork(0)), 107002); });
}

TEST_F(StreamTest, DestroyedFromAnotherThread) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  InNewThread([stream] { EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS); });
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107017);
}

TEST_F(StreamTest, DestroyedByTwoThreadsAtOnce) {
  for (int round = 0; round < 100; ++round) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    ASSERT_EQ(Submit(stream, FailingWork(0, kLarge)), 0);
    int32_t mine = 0, theirs = 0;
    std::thread other([&] { theirs = aclrtDestroyStreamForce(stream); });
    mine = aclrtDestroyStream(stream);
    other.join();
    EXPECT_EQ(std::min(mine, theirs), ACL_SUCCESS);
    EXPECT_EQ(std::max(mine, theirs), 107017);  // exactly one of them
  }
}

TEST_F(StreamTest, LimitOfLiveStreams) {
  uint32_t available = 0;
  ASSERT_EQ(aclrtGetStreamAvailableNum(&available), ACL_SUCCESS);
  ASSERT_GE(available, 2000u);
  std::vector<aclrtStream> streams(available);
  for (aclrtStream& stream : streams) ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  aclrtStream one_more = nullptr;
  EXPECT_ACL_FAILURE(207008, aclrtCreateStream(&one_more), "too many streams");
  for (aclrtStream stream : streams) ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamAvailableNum(&available), ACL_SUCCESS);
  EXPECT_EQ(available, streams.size());
}

TEST_F(StreamTest, CreateAndDestroyManyTimes) {
  for (int i = 0; i < 500; ++i) {
    std::vector<int> order;
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    ASSERT_EQ(Submit(stream, AppendWork(&order, i, kLarge)), 0);
    ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    ASSERT_EQ(order.size(), 1u);
  }
}

// --- timeouts ---

TEST_F(StreamTest, TimeoutsAreMilliseconds) {
  Gate gate(stream_);
  EXPECT_ACL_FAILURE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 1), "time was up");
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(1), 507046);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(-1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 600000), ACL_SUCCESS);
}

TEST_F(StreamTest, ZeroAndBelowMinusOneAreRejected) {
  for (const int32_t timeout : {0, -2}) {
    EXPECT_ACL_FAILURE(107000, aclrtSynchronizeStreamWithTimeout(stream_, timeout),
                       "timeout must be -1");
    EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(timeout), 107000);
  }
}

// --- failures ---

TEST_F(StreamTest, FailureShowsAtTheNextSynchronize) {
  for (const uint64_t cost : {uint64_t{0}, kLarge}) {
    ASSERT_EQ(Submit(stream_, FailingWork(507015, cost)), 0);
    EXPECT_ACL_FAILURE(507015, aclrtSynchronizeStream(stream_),
                       "aclrtSynchronizeStream: aclnnBroken failed");
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
}

TEST_F(StreamTest, FailureShowsAtSynchronizeDevice) {
  ASSERT_EQ(Submit(other_, FailingWork(507015, kLarge)), 0);
  EXPECT_ACL_FAILURE(507015, aclrtSynchronizeDevice(), "aclnnBroken");
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

TEST_F(StreamTest, ContinuesAfterFailureByDefault) {
  std::vector<int> order;
  ASSERT_EQ(Submit(stream_, FailingWork(507015, kLarge)), 0);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1, kLarge)), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(order.size(), 1u);
}

TEST_F(StreamTest, ThrowingWorkIsAFailure) {
  Work work = FailingWork(0, kLarge);
  work.run = [](Work&, const Launch&) -> int32_t { throw std::bad_alloc(); };
  ASSERT_EQ(Submit(stream_, work), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 200000);
}

TEST(FailureMode, StopStopsTheContext) {
  ASSERT_EQ(aclrtSetDevice(3), ACL_SUCCESS);
  aclrtStream stream = nullptr, other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE),
                     "only once");
  EXPECT_EQ(aclrtSetStreamFailureMode(other, 2), 100000);
  aclrtStreamAttrValue value = {};
  EXPECT_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_SUCCESS);
  EXPECT_EQ(value.failureMode, 1u);
  std::vector<int> order;
  Blocker blocker(stream);
  ASSERT_EQ(SubmitWork(stream, FailingWork(507015, kLarge)).code(), 0);
  ASSERT_EQ(SubmitWork(stream, AppendWork(&order, 1, kLarge)).code(), 0);
  blocker.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  EXPECT_EQ(aclrtSynchronizeStream(other), 507015);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(SubmitWork(other, FailingWork(0)).code(), 507015);
  EXPECT_EQ(SubmitWork(nullptr, FailingWork(0)).code(), 507015);
  EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(3), ACL_SUCCESS);  // a new context is not stopped
  EXPECT_EQ(SubmitWork(nullptr, FailingWork(0)).code(), 0);
  EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
}

// --- abort ---

TEST_F(StreamTest, AbortDropsQueuedWork) {
  std::vector<int> order;
  static std::atomic<int> released;
  released = 0;
  Blocker blocker(stream_);
  Work work = AppendWork(&order, 1, kLarge);
  work.release = [](Work&) { ++released; };
  ASSERT_EQ(Submit(stream_, work), 0);
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  blocker.Open();
  EXPECT_ACL_FAILURE(107023, aclrtSynchronizeStream(stream_), "aclrtStreamAbort");
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Submit(stream_, AppendWork(&order, 2)), 0);  // usable again
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
}

TEST_F(StreamTest, AbortReachesAConcurrentSynchronize) {
  std::vector<int> order;
  Blocker blocker(stream_);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1, kLarge)), 0);
  std::atomic<bool> started{false};
  int32_t result = 0;
  std::thread waiter([&] {
    started = true;
    result = aclrtSynchronizeStream(stream_);
  });
  while (!started) std::this_thread::yield();
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  blocker.Open();
  waiter.join();
  EXPECT_EQ(result, 107023);
  EXPECT_TRUE(order.empty());
}

TEST_F(StreamTest, AbortEndsAnEventWait) {
  ANYACL_CPU_ONLY("the GPU waits by itself and cannot be called back");
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  Gate gate(other_);
  ASSERT_EQ(aclrtRecordEvent(event, other_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream_, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107023);  // although the gate is closed
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(StreamTest, DeviceTaskAbort) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  Blocker blocker(other_);
  ASSERT_EQ(aclrtRecordEvent(event, other_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream_, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 1), 507046);  // host code cannot be stopped
  blocker.Open();
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107022);
  EXPECT_EQ(aclrtSynchronizeStream(other_), 107022);
  aclrtSynchronizeStream(nullptr);
  EXPECT_EQ(aclrtDeviceTaskAbort(9, 0), 107001);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

// --- attributes ---

TEST_F(StreamTest, FlagsAndPriority) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 5, ACL_STREAM_FAST_LAUNCH | 0x80000000u),
            ACL_SUCCESS);
  uint32_t priority = 0, flags = 0;
  EXPECT_EQ(aclrtStreamGetPriority(stream, &priority), ACL_SUCCESS);
  EXPECT_EQ(priority, 5u);
  EXPECT_EQ(aclrtStreamGetPriority(stream_, &priority), ACL_SUCCESS);
  EXPECT_EQ(priority, 0u);
  EXPECT_EQ(aclrtStreamGetFlags(stream, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, ACL_STREAM_FAST_LAUNCH | 0x80000000u);  // unknown bits change nothing
  int32_t a = -1, b = -1;
  EXPECT_EQ(aclrtStreamGetId(stream, &a), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(stream_, &b), ACL_SUCCESS);
  EXPECT_NE(a, b);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, SomeKindsAreNotSynchronized) {
  for (const uint32_t flag :
       {ACL_STREAM_PERSISTENT, ACL_STREAM_DEVICE_USE_ONLY, ACL_STREAM_CPU_SCHEDULE}) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 0, flag), ACL_SUCCESS);
    Blocker blocker(stream);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);  // at once
    blocker.Open();
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }
}

TEST_F(StreamTest, Attributes) {
  aclrtStreamAttrValue value = {};
  value.userCustomTag = 42;
  EXPECT_EQ(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value), ACL_SUCCESS);
  value = {};
  EXPECT_EQ(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value), ACL_SUCCESS);
  EXPECT_EQ(value.userCustomTag, 42u);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream_, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream_, 2), 100000);
  uint32_t flag = 0;
  EXPECT_EQ(aclrtGetStreamOverflowSwitch(stream_, &flag), ACL_SUCCESS);
  EXPECT_EQ(flag, 1u);
  EXPECT_EQ(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value),
            ACL_SUCCESS);
  EXPECT_EQ(value.overflowSwitch, 1u);
  EXPECT_EQ(aclrtSetStreamAttribute(stream_, static_cast<aclrtStreamAttr>(9), &value), 100000);
  EXPECT_EQ(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_PRIORITY, nullptr), 100000);
}

TEST_F(StreamTest, ExecuteTimeoutsAreAccepted) {
  uint64_t actual = 0;
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(30), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(1000, &actual), ACL_SUCCESS);
  EXPECT_EQ(actual, 1000u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(1000, nullptr), 100000);
}

// --- words of memory ---

TEST_F(StreamTest, ValueWriteAndWait) {
  void* word = nullptr;
  ASSERT_EQ(aclrtMalloc(&word, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(word, 8, 0, 8), ACL_SUCCESS);
  std::vector<int> order;
  ASSERT_EQ(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_GEQ, stream_), ACL_SUCCESS);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1)), 0);
  ASSERT_EQ(aclrtValueWrite(word, 4, 0, other_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(stream_), ACL_STREAM_STATUS_NOT_READY);
  ASSERT_EQ(aclrtValueWrite(word, 6, 0, other_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
  for (const auto& [value, flag] : {std::pair<uint64_t, uint32_t>{6, ACL_STREAM_WAIT_VALUE_EQ},
                                    {2, ACL_STREAM_WAIT_VALUE_AND},
                                    {1, ACL_STREAM_WAIT_VALUE_NOR}}) {
    EXPECT_EQ(aclrtValueWait(word, value, flag, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_EQ, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  if (runtime::CurrentBackend().launches()) {  // the GPU waits by itself and cannot be called back
    EXPECT_EQ(aclrtValueWrite(word, 7, 0, other_), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107023);
  EXPECT_EQ(aclrtValueWait(word, 7, 4, stream_), 100000);
  EXPECT_EQ(aclrtValueWrite(word, 7, 1, stream_), 100000);
  EXPECT_EQ(aclrtValueWrite(nullptr, 7, 0, stream_), 100000);
  EXPECT_EQ(aclrtValueWrite(static_cast<char*>(word) + 1, 7, 0, stream_), 107000);
  alignas(8) uint64_t mine = 0;
  EXPECT_EQ(aclrtValueWrite(&mine, 7, 0, stream_), 107000);
  EXPECT_EQ(aclrtFree(word), ACL_SUCCESS);
}

// --- waiting ---

// With few cores it would take one from the kernels each time.
TEST_F(StreamTest, WaitersSleepThroughTheWorkBeforeTheirs) {
  ANYACL_CPU_ONLY("the driver waits");
  constexpr int kWorks = 300;
  Gate gate(stream_);
  for (int i = 0; i < kWorks; ++i) {
    const Work work = runtime::MakeWork("nap", kLarge, nullptr, [](Work&, const Launch&) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return 0;
    });
    ASSERT_EQ(Submit(stream_, work), 0);
  }
  const auto times_asleep = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const auto before = times_asleep();
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_LT(times_asleep() - before, kWorks / 10);
}

TEST_F(StreamTest, WaitersForDifferentWork) {
  constexpr int kWaiters = 8;
  std::vector<int> order;
  std::vector<aclrtEvent> events(kWaiters);
  Gate gate(stream_);
  for (int i = 0; i < kWaiters; ++i) {
    ASSERT_EQ(aclrtCreateEvent(&events[i]), ACL_SUCCESS);
    for (int k = 0; k < 5; ++k) ASSERT_EQ(Submit(stream_, AppendWork(&order, i, kLarge)), 0);
    ASSERT_EQ(aclrtRecordEvent(events[i], stream_), ACL_SUCCESS);
  }
  std::vector<std::thread> waiters;
  for (int i = kWaiters - 1; i >= 0; --i) {
    waiters.emplace_back([&, i] { EXPECT_EQ(aclrtSynchronizeEvent(events[i]), ACL_SUCCESS); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that most of them are asleep
  gate.Open();
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(order.size(), 5u * kWaiters);
  for (const aclrtEvent event : events) EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

// --- many threads, one stream ---

TEST_F(StreamTest, ManyThreadsSubmitToOneStream) {
  std::vector<int> order;  // guarded by the stream's order alone
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(Submit(stream_, AppendWork(&order, t, i % 5 ? 0 : kLarge)), 0);
        if (i % 50 == 0) {
          ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
        }
      }
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 2000u);
}

}  // namespace
}  // namespace anyacl
