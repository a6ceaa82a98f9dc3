// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 3 (host functions, callbacks, exception callbacks).
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support.h"

namespace anyacl {
namespace {

// A user thread that serves callbacks until it is told to stop, as the documents show it.
class Server {
 public:
  Server() : thread_([this] { Serve(); }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Server() {
    stop_ = true;
    thread_.join();
  }
  uint64_t id() const { return id_; }

 private:
  void Serve() {
    id_ = static_cast<uint64_t>(pthread_self());
    while (!stop_) {
      const aclError result = aclrtProcessReport(5);
      EXPECT_TRUE(result == ACL_SUCCESS || result == 507012) << result;
    }
  }
  std::atomic<uint64_t> id_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Call {
  std::vector<int>* order;
  int number;
  std::atomic<uint64_t> thread{0};
};
void Note(void* data) {
  Call& call = *static_cast<Call*>(data);
  call.thread = static_cast<uint64_t>(pthread_self());
  call.order->push_back(call.number);
}

// --- host functions ---

TEST_F(StreamTest, HostFunctionRunsInOrderOnARuntimeThread) {
  std::vector<int> order;
  Call call{&order, 2};
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1, kLarge)), 0);
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, Note, &call), ACL_SUCCESS);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 3)), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_NE(call.thread.load(), static_cast<uint64_t>(pthread_self()));
  EXPECT_EQ(aclrtLaunchHostFunc(stream_, nullptr, nullptr), 100000);
}

TEST_F(StreamTest, HostFunctionOnAnIdleStreamIsNotRunInTheCaller) {
  std::vector<int> order;
  Call call{&order, 1};
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, Note, &call), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_NE(call.thread.load(), static_cast<uint64_t>(pthread_self()));
}

TEST_F(StreamTest, HostFunctionThatWaitsForItsOwnStreamIsRefused) {
  static std::atomic<int32_t> sync, event_sync, destroy;
  static aclrtEvent event;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  Blocker blocker(stream_);
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_,
                [](void* stream) {
                  sync = aclrtSynchronizeStream(stream);
                  event_sync = aclrtSynchronizeEvent(event);
                  destroy = aclrtDestroyStream(stream);
                },
                stream_),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  blocker.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(sync, 107000);
  EXPECT_EQ(event_sync, 107000);
  EXPECT_EQ(destroy, 107000);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

// Each has begun, and then waits in the way that is asked for.
struct Meeting {
  int32_t (*wait)(Meeting& meeting, int side);
  aclrtStream streams[2];
  std::atomic<int> here{0};
  std::atomic<int32_t> codes[2] = {-1, -1};

  template <int kSide>
  static void Attend(void* meeting) {
    auto& self = *static_cast<Meeting*>(meeting);
    Check(aclrtSetDevice(0));
    ++self.here;
    while (self.here < 2) std::this_thread::yield();
    self.codes[kSide] = self.wait(self, kSide);
    Check(aclrtResetDevice(0));
  }
  void Hold() {
    ASSERT_EQ(aclrtLaunchHostFunc(streams[0], Attend<0>, this), ACL_SUCCESS);
    ASSERT_EQ(aclrtLaunchHostFunc(streams[1], Attend<1>, this), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(streams[0]), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(streams[1]), ACL_SUCCESS);
  }
  static void Check(int32_t code) { EXPECT_EQ(code, ACL_SUCCESS); }
};

// One of them is refused, so the other one's wait ends.
TEST_F(StreamTest, HostFunctionsThatWaitForEachOtherGetACode) {
  constexpr int32_t (*kWays[])(Meeting&, int) = {
      [](Meeting&, int) { return aclrtSynchronizeDevice(); },
      [](Meeting& meeting, int side) { return aclrtSynchronizeStream(meeting.streams[1 - side]); },
      [](Meeting& meeting, int side) {
        return side == 0 ? aclrtSynchronizeDevice() : aclrtSynchronizeStream(meeting.streams[0]);
      },
  };
  for (const auto way : kWays) {
    Meeting meeting{way, {stream_, other_}};
    meeting.Hold();
    const int refused = (meeting.codes[0] == 107000) + (meeting.codes[1] == 107000);
    EXPECT_EQ(refused, 1) << meeting.codes[0] << " and " << meeting.codes[1];
    EXPECT_EQ(meeting.codes[0] + meeting.codes[1], 107000);
  }
}

// The one waits for the device, and with it for a stream that waits for an event behind the one.
TEST_F(StreamTest, HostFunctionAndEventThatWaitForEachOtherGetACode) {
  if (runtime::CurrentBackend().launches()) GTEST_SKIP() << "streams of a GPU wait there, where nobody sees it";
  static std::atomic<int32_t> code;
  code = -1;
  aclrtEvent behind = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&behind, ACL_EVENT_SYNC), ACL_SUCCESS);
  {
    Blocker blocker(stream_);
    ASSERT_EQ(aclrtLaunchHostFunc(
                  stream_,
                  [](void*) {
                    aclrtSetDevice(0);
                    code = aclrtSynchronizeDevice();
                    aclrtResetDevice(0);
                  },
                  nullptr),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(behind, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(other_, behind), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  const int32_t of_other = aclrtSynchronizeStream(other_);
  EXPECT_TRUE((code == 107000) != (of_other == 107000)) << code << " and " << of_other;
  EXPECT_EQ(aclrtDestroyEvent(behind), ACL_SUCCESS);
}

// Waits with an end are no business of ours, and nor is one stream's host function that waits for another.
TEST_F(StreamTest, HostFunctionMayWaitForAnotherStream) {
  static std::atomic<int32_t> code;
  code = -1;
  ASSERT_EQ(aclrtLaunchHostFunc(other_, [](void*) { usleep(2000); }, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_, [](void* other) { code = aclrtSynchronizeStream(other); }, other_),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(code, ACL_SUCCESS);
}

// --- subscribed callbacks ---

TEST_F(StreamTest, CallbackNeedsASubscription) {
  std::vector<int> order;
  Call call{&order, 1};
  EXPECT_ACL_FAILURE(107015, aclrtLaunchCallback(Note, &call, ACL_CALLBACK_BLOCK, stream_),
                     "aclrtSubscribeReport");
  EXPECT_EQ(aclrtUnSubscribeReport(1, stream_), 107015);
}

TEST_F(StreamTest, CallbackRunsOnTheSubscribedThread) {
  Server server;
  ASSERT_EQ(aclrtSubscribeReport(server.id(), stream_), ACL_SUCCESS);
  std::vector<int> order;
  Call call{&order, 2};
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 1, kLarge)), 0);
  ASSERT_EQ(aclrtLaunchCallback(Note, &call, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  ASSERT_EQ(Submit(stream_, AppendWork(&order, 3)), 0);  // waits for the callback
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(call.thread.load(), server.id());
  EXPECT_EQ(aclrtUnSubscribeReport(server.id(), stream_), ACL_SUCCESS);
}

TEST_F(StreamTest, NonBlockingCallbackDoesNotHoldTheStream) {
  // Nobody serves yet, and the stream still gets through.
  const auto self = static_cast<uint64_t>(pthread_self());
  ASSERT_EQ(aclrtSubscribeReport(self, stream_), ACL_SUCCESS);
  std::vector<int> order;
  Call call{&order, 1};
  ASSERT_EQ(aclrtLaunchCallback(Note, &call, ACL_CALLBACK_NO_BLOCK, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 1u);
  EXPECT_EQ(call.thread.load(), self);
  EXPECT_EQ(aclrtUnSubscribeReport(self, stream_), ACL_SUCCESS);
}

TEST_F(StreamTest, OneThreadServesSeveralStreams) {
  Server server;
  ASSERT_EQ(aclrtSubscribeReport(server.id(), stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSubscribeReport(server.id(), other_), ACL_SUCCESS);
  std::vector<int> a, b;
  Call first{&a, 1}, second{&b, 2};
  ASSERT_EQ(aclrtLaunchCallback(Note, &first, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(Note, &second, ACL_CALLBACK_BLOCK, other_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(first.thread.load(), server.id());
  EXPECT_EQ(second.thread.load(), server.id());
  EXPECT_EQ(aclrtUnSubscribeReport(server.id(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(server.id(), other_), ACL_SUCCESS);
}

TEST_F(StreamTest, OneStreamHasOneThread) {
  ASSERT_EQ(aclrtSubscribeReport(1, stream_), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107011, aclrtSubscribeReport(2, stream_), "served by thread 1 already");
  EXPECT_EQ(aclrtUnSubscribeReport(2, stream_), 107015);
  EXPECT_EQ(aclrtUnSubscribeReport(1, stream_), ACL_SUCCESS);
}

TEST_F(StreamTest, ProcessReportTimeouts) {
  EXPECT_ACL_FAILURE(507012, aclrtProcessReport(1), "no callback");
  EXPECT_EQ(aclrtProcessReport(0), 107000);
  EXPECT_EQ(aclrtProcessReport(-2), 107000);
}

TEST_F(StreamTest, UnsubscribingFreesABlockedStream) {
  ASSERT_EQ(aclrtSubscribeReport(1, stream_), ACL_SUCCESS);  // a thread that never serves
  std::vector<int> order;
  Call call{&order, 1};
  ASSERT_EQ(aclrtLaunchCallback(Note, &call, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 1), 507046);
  EXPECT_EQ(aclrtUnSubscribeReport(1, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107015);
  EXPECT_TRUE(order.empty());
}

TEST_F(StreamTest, AbortFreesABlockedStream) {
  ASSERT_EQ(aclrtSubscribeReport(1, stream_), ACL_SUCCESS);
  std::vector<int> order;
  Call call{&order, 1};
  ASSERT_EQ(aclrtLaunchCallback(Note, &call, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 107023);
  EXPECT_EQ(aclrtUnSubscribeReport(1, stream_), ACL_SUCCESS);
}

TEST_F(StreamTest, DestroyedStreamLosesItsSubscription) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSubscribeReport(1, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);  // likely the same object inside
  EXPECT_EQ(aclrtLaunchCallback(Note, nullptr, ACL_CALLBACK_BLOCK, stream), 107015);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, CallbackArguments) {
  ASSERT_EQ(aclrtSubscribeReport(1, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, stream_), 100000);
  EXPECT_EQ(aclrtLaunchCallback(Note, nullptr, static_cast<aclrtCallbackBlockType>(2), stream_),
            100000);
  EXPECT_EQ(aclrtUnSubscribeReport(1, stream_), ACL_SUCCESS);
}

// --- exception callbacks ---

struct Failure {
  uint32_t stream = 0, device = 0, code = 0, thread = 0, task = 0;
};
std::atomic<int> single_calls, first_calls, second_calls;
Failure last_failure;

void OnSingle(aclrtExceptionInfo* info) {
  ++single_calls;
  last_failure = {aclrtGetStreamIdFromExceptionInfo(info), aclrtGetDeviceIdFromExceptionInfo(info),
                  aclrtGetErrorCodeFromExceptionInfo(info), aclrtGetThreadIdFromExceptionInfo(info),
                  aclrtGetTaskIdFromExceptionInfo(info)};
}
void OnFirst(aclrtExceptionInfo*) { ++first_calls; }
void OnSecond(aclrtExceptionInfo*) { ++second_calls; }

TEST_F(StreamTest, ExceptionCallbacksCoexist) {
  single_calls = first_calls = second_calls = 0;
  ASSERT_EQ(aclrtSetExceptionInfoCallback(OnSingle), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackRegister(OnFirst), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackRegister(OnSecond), ACL_SUCCESS);
  ASSERT_EQ(Submit(stream_, FailingWork(0, kLarge)), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(single_calls, 0);  // only for failures
  ASSERT_EQ(Submit(stream_, FailingWork(507015, kLarge)), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(single_calls, 1);
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(second_calls, 1);
  int32_t id = -1;
  ASSERT_EQ(aclrtStreamGetId(stream_, &id), ACL_SUCCESS);
  EXPECT_EQ(last_failure.stream, static_cast<uint32_t>(id));
  EXPECT_EQ(last_failure.device, 0u);
  EXPECT_EQ(last_failure.code, 507015u);
  EXPECT_NE(last_failure.thread, 0u);
  ASSERT_EQ(aclrtSetExceptionInfoCallback(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackUnregister(OnFirst), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackUnregister(OnFirst), ACL_SUCCESS);  // unknown by now
  ASSERT_EQ(Submit(stream_, FailingWork(507015)), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(single_calls, 1);
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(second_calls, 2);
  ASSERT_EQ(aclrtExceptionInfoCallbackUnregister(OnSecond), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(nullptr), 107000);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(nullptr), 107000);
}

TEST(ExceptionInfo, GettersOfNull) {
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), 0xFFFFFFFFu);
}

}  // namespace
}  // namespace anyacl
