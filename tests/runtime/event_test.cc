// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 3 (events).
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/support.h"

namespace anyacl {
namespace {

class EventTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtCreateEventExWithFlag(&event_, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE),
              ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
    StreamTest::TearDown();
  }
  static bool Complete(aclrtEvent event) {
    aclrtEventStatus old_sense = ACL_EVENT_STATUS_RESERVED;
    aclrtEventRecordedStatus new_sense = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_EQ(aclrtQueryEvent(event, &old_sense), ACL_SUCCESS);
    EXPECT_EQ(aclrtQueryEventStatus(event, &new_sense), ACL_SUCCESS);
    EXPECT_EQ(old_sense == 0, new_sense == 1);  // opposite senses
    return new_sense == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }

  aclrtEvent event_ = nullptr;
};

// --- what a record captures ---

TEST_F(EventTest, BothQuerySenses) {
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_FALSE(Complete(event_));
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event_));
}

TEST_F(EventTest, CapturesOnlyWorkBefore) {
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  Gate gate(stream_);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event_));
}

TEST_F(EventTest, ExEventIsCompleteBeforeTheFirstRecord) {
  EXPECT_TRUE(Complete(event_));
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
}

TEST_F(EventTest, PlainEventIsNotReadyBeforeTheFirstRecord) {
  aclrtEvent plain = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&plain), ACL_SUCCESS);
  EXPECT_FALSE(Complete(plain));
  EXPECT_EQ(aclrtSynchronizeEvent(plain), ACL_SUCCESS);  // but nothing hangs
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, plain), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(plain), ACL_SUCCESS);
}

TEST_F(EventTest, RecordAgainReplaces) {
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event_));
  Gate gate(other_);
  ASSERT_EQ(aclrtRecordEvent(event_, other_), ACL_SUCCESS);
  EXPECT_FALSE(Complete(event_));
  Gate earlier(stream_);  // no longer matters
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
}

// --- waits ---

TEST_F(EventTest, WaitOrdersStreams) {
  std::vector<int> order;
  Gate gate(stream_);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1)), 0);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  ASSERT_EQ(Submit(other_, AppendWork(&order, 2)), 0);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(EventTest, WaitIsNotChangedByLaterRecords) {
  Gate gate(stream_);
  aclrtStream third = nullptr;
  ASSERT_EQ(aclrtCreateStream(&third), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  std::vector<int> order;
  ASSERT_EQ(Submit(other_, AppendWork(&order, 1)), 0);
  {
    Gate closed(third);
    ASSERT_EQ(aclrtRecordEvent(event_, third), ACL_SUCCESS);
    gate.Open();
    EXPECT_EQ(aclrtSynchronizeStream(other_),
              ACL_SUCCESS);  // although the last record is still pending
    EXPECT_EQ(order.size(), 1u);
    EXPECT_FALSE(Complete(event_));
  }
  EXPECT_EQ(aclrtDestroyStream(third), ACL_SUCCESS);
}

TEST_F(EventTest, WaitOnTheSameStreamAndOnACompleteEvent) {
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_SUCCESS);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  EXPECT_EQ(aclrtStreamQuery(other_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(EventTest, WaitStatus) {
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEventWaitStatus(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_NOT_READY);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

TEST_F(EventTest, WaitTimeoutIsInSecondsAndShowsLater) {
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(aclrtStreamWaitEventWithTimeout(other_, event_, 1), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107019, aclrtSynchronizeStream(other_),
                     "aclrtStreamWaitEventWithTimeout failed");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
  EXPECT_EQ(aclrtStreamWaitEventWithTimeout(other_, event_, -1), 107000);
  ASSERT_EQ(aclrtSetOpWaitTimeout(1), ACL_SUCCESS);  // for waits without a limit of their own
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), 107019);
  ASSERT_EQ(aclrtSetOpWaitTimeout(0), ACL_SUCCESS);
}

TEST_F(EventTest, ZeroSecondsIsNoLimit) {
  std::vector<int> order;
  Gate gate(stream_);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1)), 0);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithTimeout(other_, event_, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithFlag(other_, event_, 0, ACL_EVENT_WAIT_DEFAULT), ACL_SUCCESS);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
}

// --- host waits ---

TEST_F(EventTest, SynchronizeTimeoutIsInMilliseconds) {
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(507047, aclrtSynchronizeEventWithTimeout(event_, 1), "time was up");
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 0), 107000);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -2), 107000);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -1), ACL_SUCCESS);
}

TEST_F(EventTest, FailureShowsAtSynchronize) {
  ASSERT_EQ(Submit(stream_, FailingWork(507015, kLarge)), 0);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), 507015);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

// --- times ---

TEST_F(EventTest, ElapsedTimeIsRealMilliseconds) {
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&end), ACL_SUCCESS);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); },
                nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(end, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  const std::chrono::duration<float, std::milli> whole = std::chrono::steady_clock::now() - before;
  float ms = -1;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_SUCCESS);
  EXPECT_GE(ms, 20.0f);
  EXPECT_LE(ms, whole.count());
  EXPECT_EQ(aclrtEventElapsedTime(&ms, end, event_), 107007);
  uint64_t a = 0, b = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &a), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventGetTimestamp(end, &b), ACL_SUCCESS);
  EXPECT_GE(b - a, 20000u);  // microseconds
  EXPECT_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
}

TEST_F(EventTest, ElapsedTimeNeedsBothReached) {
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC),
            ACL_SUCCESS);  // without TIME_LINE, as clients do
  float ms = -1;
  EXPECT_ACL_FAILURE(107006, aclrtEventElapsedTime(&ms, event_, end),
                     "startEvent was never recorded");
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107006, aclrtEventElapsedTime(&ms, event_, end),
                     "endEvent was never recorded");
  {
    Gate gate(stream_);
    ASSERT_EQ(aclrtRecordEvent(end, stream_), ACL_SUCCESS);
    EXPECT_ACL_FAILURE(107006, aclrtEventElapsedTime(&ms, event_, end),
                       "endEvent has not been reached");
  }
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_SUCCESS);
  EXPECT_GE(ms, 0.0f);
  EXPECT_EQ(aclrtEventElapsedTime(nullptr, event_, end), 100000);
  EXPECT_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
}

// --- life ---

TEST_F(EventTest, DestroyWhilePendingDoesNotBlock) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  std::vector<int> order;
  Gate gate(stream_);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event), ACL_SUCCESS);
  ASSERT_EQ(Submit(other_, AppendWork(&order, 1)), 0);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), 107017);
  EXPECT_TRUE(order.empty());  // the wait still holds
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
}

TEST_F(EventTest, OutlivesTheStreamAndTheDevice) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(Submit(stream, FailingWork(0, kLarge)), 0);
  ASSERT_EQ(aclrtRecordEvent(event_, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event_));
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  uint64_t stamp = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &stamp), ACL_SUCCESS);
}

TEST_F(EventTest, DeadForeignAndNullHandles) {
  int local = 0;
  aclrtEventRecordedStatus status;
  EXPECT_ACL_FAILURE(107017, aclrtRecordEvent(&local, stream_), "event must be a live event");
  EXPECT_EQ(aclrtRecordEvent(stream_, stream_), 107017);
  EXPECT_EQ(aclrtRecordEvent(event_, &local), 107017);
  EXPECT_EQ(aclrtRecordEvent(nullptr, stream_), 100000);
  EXPECT_EQ(aclrtDestroyEvent(nullptr), 100000);
  EXPECT_EQ(aclrtCreateEvent(nullptr), 100000);
  EXPECT_EQ(aclrtSynchronizeEvent(&local), 107017);
  EXPECT_EQ(aclrtQueryEventStatus(&local, &status), 107017);
  EXPECT_EQ(aclrtQueryEventStatus(event_, nullptr), 100000);
}

TEST_F(EventTest, FlagsThatStandAlone) {
  aclrtEvent event = nullptr;
  EXPECT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_IPC | ACL_EVENT_SYNC), 100000);
  EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_EXTERNAL | ACL_EVENT_TIME_LINE), 100000);
  EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_EXTERNAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEventWithFlag(event, stream_, ACL_EVENT_RECORD_EXTERNAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEventWithFlag(event, stream_, 2), 100000);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, FlagZeroMayBeWaitedOn) {  // as clients do
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, ResetGivesTheInitialStateInStreamOrder) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event));
  {
    Gate gate(other_);
    ASSERT_EQ(aclrtResetEvent(event, other_), ACL_SUCCESS);
    EXPECT_TRUE(Complete(event));
  }
  EXPECT_FALSE(Complete(event));
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(Complete(event));
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, OtherDevice) {
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclrtStream far = nullptr;
  ASSERT_EQ(aclrtCreateStream(&far), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107003, aclrtRecordEvent(event_, far), "event is of device 0");
  EXPECT_EQ(aclrtStreamWaitEvent(far, event_), 107003);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);  // from any device
  EXPECT_TRUE(Complete(event_));
  EXPECT_EQ(aclrtDestroyStream(far), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST_F(EventTest, LimitOfLiveEvents) {
  uint32_t available = 0;
  ASSERT_EQ(aclrtGetEventAvailNum(&available), ACL_SUCCESS);
  ASSERT_GE(available, 60000u);
  std::vector<aclrtEvent> events(available);
  for (aclrtEvent& event : events) ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  aclrtEvent one_more = nullptr;
  EXPECT_EQ(aclrtCreateEvent(&one_more), 207007);
  uint32_t a = 0, b = 0;
  EXPECT_EQ(aclrtGetEventId(events[0], &a), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetEventId(events[1], &b), ACL_SUCCESS);
  EXPECT_NE(a, b);
  for (aclrtEvent event : events) ASSERT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

// A race in the program, which gives codes and nothing worse.
TEST_F(EventTest, DestroyedWhileOthersUseIt) {
  std::atomic<aclrtEvent> shared{nullptr};
  {
    const Storm storm([&] {
      aclrtEventRecordedStatus status;
      const aclrtEvent event = shared;
      if (!event) return;
      for (const aclError code :
           {aclrtRecordEvent(event, stream_), aclrtQueryEventStatus(event, &status),
            aclrtStreamWaitEvent(other_, event), aclrtResetEvent(event, other_)}) {
        EXPECT_TRUE(code == ACL_SUCCESS || code == 107017) << code;
      }
    });
    for (int i = 0; i < 2000; ++i) {
      aclrtEvent event = nullptr;
      ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
      shared = event;
      std::this_thread::yield();
      ASSERT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    }
  }
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

TEST_F(EventTest, RecordedFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      aclrtStream const stream = t % 2 ? stream_ : other_;
      aclrtStream const waiter = t % 2 ? other_ : stream_;
      for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(Submit(stream, FailingWork(0, i % 2 ? kLarge : 0)), 0);
        ASSERT_EQ(aclrtRecordEvent(event_, stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtStreamWaitEvent(waiter, event_), ACL_SUCCESS);
        aclrtEventRecordedStatus status;
        ASSERT_EQ(aclrtQueryEventStatus(event_, &status), ACL_SUCCESS);
      }
      EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

}  // namespace
}  // namespace anyacl
