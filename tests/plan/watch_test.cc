// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What a watcher is shown of a run: when it is called, around its work, again at every replay of a graph.
#include "watch/watch.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "elu_call.h"
#include "harness/session.h"

namespace anyacl {
namespace {

class Notes final : public watch::Watcher {
 public:
  void Called(const watch::OperatorRun& run) override {
    lines.push_back("called");
    called = run;
  }
  std::shared_ptr<void> Before(const watch::OperatorRun& run, const Launch&) override {
    lines.push_back("before");
    if (throws) throw std::string("watchers may fail");
    return std::make_shared<uint64_t>(run.number);
  }
  void After(const watch::OperatorRun& run, const Launch&, void* kept) override {
    lines.push_back("after");
    EXPECT_EQ(*static_cast<uint64_t*>(kept), run.number);
  }

  std::vector<std::string> Take() {
    std::vector<std::string> taken;
    taken.swap(lines);
    return taken;
  }

  std::vector<std::string> lines;
  watch::OperatorRun called;
  bool throws = false;
};

using Lines = std::vector<std::string>;

class WatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    notes = new Notes;
    watch::Add(*notes);
  }
  void SetUp() override { notes->Take(); }
  void Run(EluCall& call) {
    call.Plan();
    ASSERT_EQ(call.Run(session.stream()), 0) << TakeText();
    ASSERT_EQ(aclrtSynchronizeStream(session.stream()), 0);
  }

  static Notes* notes;
  harness::Session session;
};
Notes* WatchTest::notes;

TEST_F(WatchTest, SeesTheCallAndItsArguments) {
  EluCall call(8, 4);
  Run(call);
  EXPECT_EQ(notes->Take(), (Lines{"called", "before", "after"}));
  EXPECT_EQ(call.Wrong(), 0);
  const watch::OperatorRun& run = notes->called;
  EXPECT_STREQ(run.name, "aclnnEluBackward");
  EXPECT_GE(run.stream, 0);
  EXPECT_FALSE(run.is_captured);
  EXPECT_EQ(run.workspace_bytes, call.size);
  ASSERT_EQ(run.tensors.size(), 3u);
  EXPECT_STREQ(run.tensors[0].name, "gradOutput");
  EXPECT_EQ(run.tensors[0].tensor.data, call.dy.data());
  EXPECT_TRUE(run.tensors[0].is_read && run.tensors[0].is_touched && !run.tensors[0].is_written);
  EXPECT_STREQ(run.tensors[2].name, "gradInput");
  EXPECT_EQ(run.tensors[2].tensor.dims, (Dims{8, 4}));
  EXPECT_TRUE(run.tensors[2].is_written);
  ASSERT_EQ(run.call->args.size(), 7u);
  EXPECT_EQ(run.call->args[2].scalar.AsDouble(), 2);
  EXPECT_TRUE(run.call->args[4].flag);
}

TEST_F(WatchTest, SeesTheAddressOfTheRun) {
  EluCall call(4, 1);
  DeviceFloats other(std::vector<float>(4, 3));
  call.Plan();
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_output, other.data()), 0);
  ASSERT_EQ(call.Run(session.stream()), 0) << TakeText();
  ASSERT_EQ(aclrtSynchronizeStream(session.stream()), 0);
  EXPECT_EQ(notes->called.tensors[0].tensor.data, other.data());
}

TEST_F(WatchTest, SeesEveryReplay) {
  EluCall call(8, 4);
  call.Plan();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(session.stream(), ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), 0);
  ASSERT_EQ(call.Run(session.stream()), 0) << TakeText();
  ASSERT_EQ(aclmdlRICaptureEnd(session.stream(), &model), 0);
  EXPECT_TRUE(notes->called.is_captured);
  notes->Take();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aclmdlRIExecuteAsync(model, session.stream()), 0);
  ASSERT_EQ(aclrtSynchronizeStream(session.stream()), 0);
  if (!notes->called.backend->launches()) {  // a GPU replays what was launched, without the host
    EXPECT_EQ(notes->Take(), (Lines{"before", "after", "before", "after"}));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), 0);
}

TEST_F(WatchTest, AFailureOfAWatcherIsItsOwn) {
  notes->throws = true;
  EluCall call(8, 4);
  Run(call);
  notes->throws = false;
  EXPECT_EQ(call.Wrong(), 0);
  EXPECT_EQ(notes->Take(), (Lines{"called", "before"}));
}

TEST_F(WatchTest, ACallThatIsRefusedIsNotShown) {
  EluCall call(8, 4);
  call.Plan();
  EXPECT_NE(call.Run(reinterpret_cast<aclrtStream>(16)), 0);
  call.Plan();
  std::thread([&] { EXPECT_NE(call.Run(session.stream()), 0) << "without a device"; }).join();
  EXPECT_EQ(notes->Take(), Lines{});
}

}  // namespace
}  // namespace anyacl
