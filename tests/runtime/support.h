// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the tests of streams, devices and start-up share.
#ifndef ANYACL_TESTS_RUNTIME_SUPPORT_H_
#define ANYACL_TESTS_RUNTIME_SUPPORT_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "runtime/memory_fixture.h"
#include "runtime/stream.h"
#include "runtime/submit.h"

namespace anyacl {

// All devices of this program; support.cc asks for them before the first call.
inline constexpr int kDevices = 4;

// What happens in a process of its own: fresh state, its own environment, and a real exit. The test binary
// is started again for it, so nothing of the library may be used before it in the same test.
#define EXPECT_IN_FRESH_PROCESS(...)                                      \
  do {                                                                    \
    GTEST_FLAG_SET(death_test_style, "threadsafe");                       \
    const auto anyacl_body = [] { __VA_ARGS__; };                         \
    EXPECT_EXIT(RunAndExit(anyacl_body), testing::ExitedWithCode(0), ""); \
  } while (false)

template <class Body>
void RunAndExit(Body&& body) {
  alarm(30);  // a hang is a failure
  body();
  exit(0);
}

// For use in such a process.
#define CHILD_EQ(call, wanted)                                                              \
  do {                                                                                      \
    const long long anyacl_got = static_cast<long long>(call);                              \
    if (anyacl_got != static_cast<long long>(wanted)) {                                     \
      std::fprintf(stderr, "%s:%d: %s gave %lld\n", __FILE__, __LINE__, #call, anyacl_got); \
      _exit(1);                                                                             \
    }                                                                                       \
  } while (false)
#define CHILD_OK(call) CHILD_EQ(call, ACL_SUCCESS)

// Runs `body` in a thread that has selected nothing yet.
template <class Body>
void InNewThread(Body&& body) {
  std::thread(static_cast<Body&&>(body)).join();
}

// Two threads that do `body` on device 0, again and again, until this goes out of scope.
class Storm {
 public:
  template <class Body>
  explicit Storm(Body body) {
    for (std::thread& thread : threads_) {
      thread = std::thread([this, body] {
        ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
        while (!over_) body();
        EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
      });
    }
  }
  ~Storm() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread threads_[2];
};

// The work of these tests is host code: a GPU's stream runs it on its own thread, the CPU's where it likes.
inline Status SubmitWork(aclrtStream stream, const Work& work) {
  if (!runtime::CurrentBackend().launches()) return runtime::Submit(stream, work);
  runtime::Stream* target = nullptr;
  ANYACL_RETURN_IF_ERROR(runtime::ResolveForSubmit(work.label, stream, &target));
  return target->Submit(work, runtime::Where::kOnStreamThread, nullptr);
}

// Work that returns a code, for what kernels do when they fail.
inline Work FailingWork(int32_t code, uint64_t cost_bytes = 0) {
  return runtime::MakeWork(
      "aclnnBroken", cost_bytes, code,
      [](Work& work, const Launch&) -> int32_t { return runtime::PayloadOf<int32_t>(work); });
}

// Large enough never to run in the caller.
inline constexpr uint64_t kLarge = uint64_t{1} << 40;

// Appends a number to a vector of ints, in stream order.
struct Append {
  std::vector<int>* to;
  int number;
};
inline Work AppendWork(std::vector<int>* to, int number, uint64_t cost_bytes = 0) {
  return runtime::MakeWork("append", cost_bytes, Append{to, number}, [](Work& work, const Launch&) {
    const Append& append = runtime::PayloadOf<Append>(work);
    append.to->push_back(append.number);
    return 0;
  });
}

// Host code on a stream that has begun and does not end before Open: what no abort can drop.
class Blocker {
 public:
  explicit Blocker(aclrtStream stream) {
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Run, this), ACL_SUCCESS);
    started_.wait(false);
  }
  ~Blocker() {
    Open();
    ended_.wait(false);
  }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  static void Run(void* self) {
    auto* const blocker = static_cast<Blocker*>(self);
    blocker->started_ = true;
    blocker->started_.notify_all();
    blocker->open_.wait(false);
    blocker->ended_ = true;
    blocker->ended_.notify_all();
  }

  std::atomic<bool> started_{false};
  std::atomic<bool> open_{false};
  std::atomic<bool> ended_{false};
};

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS); }
  void TearDown() override { EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS); }
};

class StreamTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&other_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(other_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  static int32_t Submit(aclrtStream stream, const Work& work) {
    return SubmitWork(stream, work).code();
  }

  aclrtStream stream_ = nullptr;
  aclrtStream other_ = nullptr;
};

}  // namespace anyacl

#endif  // ANYACL_TESTS_RUNTIME_SUPPORT_H_
