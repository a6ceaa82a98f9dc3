// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The life of executors: one use, many uses, new addresses, wrong uses. No wrong use may do more
// than give a code.
#include "plan/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness/call.h"
#include "harness/session.h"
#include "operators_with_cases.h"
#include "plan/elu_call.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

class ExecutorTest : public testing::Test {
 protected:
  void SetUp() override { TakeText(); }
  void Sync() { ASSERT_EQ(aclrtSynchronizeStream(stream()), 0); }
  aclrtStream stream() const { return session_.stream(); }
  void ExpectText(const std::string& part) {
    const std::string text = TakeText();
    EXPECT_NE(text.find(part), std::string::npos) << "wanted: " << part << "\n   got: " << text;
  }

  harness::Session session_;
};

aclOpExecutor* Foreign(uintptr_t bits) { return reinterpret_cast<aclOpExecutor*>(bits); }

// ---- one use ----

TEST_F(ExecutorTest, PhaseOneTouchesNothing) {
  EluCall call(64);
  aclOpExecutor* const executor = call.Plan();
  EXPECT_NE(executor, nullptr);
  EXPECT_TRUE(call.IsUntouched());
  EXPECT_EQ(call.Run(stream()), 0);
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
}

// The fault it would be there costs the process its device.
TEST_F(ExecutorTest, ElementsAcrossWordsAreRefusedOnAGpu) {
  if (!runtime::CurrentBackend().launches()) GTEST_SKIP() << "a CPU takes any address";
  EluCall call(64);
  call.Plan();
  ASSERT_EQ(aclSetRawTensorAddr(call.self, reinterpret_cast<char*>(call.x.data()) + 2), 0);
  EXPECT_EQ(call.Run(stream()), 161002);
  ExpectText("aclnnEluBackward: selfOrResult must lie at a multiple of 4 bytes on this backend, got");
  EXPECT_TRUE(call.IsUntouched());
}

TEST_F(ExecutorTest, SecondRunIsRefused) {
  EluCall call(64);
  call.Plan();
  EXPECT_EQ(call.Run(stream()), 0);
  EXPECT_EQ(call.Run(stream()), 561103);
  ExpectText(
      "AclNN_Inner_Error(EZ9999): aclnnEluBackward: executor was already run, destroyed, or is no "
      "executor");
  Sync();
}

TEST_F(ExecutorTest, DestroyAfterRunIsRefusedAndHarmless) {
  EluCall call(64);
  aclOpExecutor* const used = call.Plan();
  EXPECT_EQ(call.Run(stream()), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(used), 561103);
  EXPECT_EQ(aclDestroyOpExecutor(used), 561103);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(used), 561103);
  aclOpExecutor* const next = call.Plan();  // the slot may be the same, the handle is not
  EXPECT_NE(next, used);
  EXPECT_EQ(aclDestroyAclOpExecutor(used), 561103);
  EXPECT_EQ(call.Run(stream()), 0);
  Sync();
}

TEST_F(ExecutorTest, DestroyTwice) {
  EluCall call(64);
  aclOpExecutor* const executor = call.Plan();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
  EXPECT_EQ(call.Run(stream()), 561103);
  EXPECT_TRUE(call.IsUntouched());
}

TEST_F(ExecutorTest, NullAndForeignExecutors) {
  EluCall call(4);
  int64_t memory[32] = {};
  EXPECT_EQ(aclnnEluBackward(nullptr, 0, nullptr, stream()), 161001);
  ExpectText("aclnnEluBackward: executor must not be null");
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), 561103);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), 561103);
  for (aclOpExecutor* wrong :
       {Foreign(reinterpret_cast<uintptr_t>(memory)), Foreign(1), Foreign(~uintptr_t{0}),
        Foreign(reinterpret_cast<uintptr_t>(call.self))}) {
    EXPECT_EQ(aclnnEluBackward(nullptr, 0, wrong, stream()), 561103);
    EXPECT_EQ(aclDestroyAclOpExecutor(wrong), 561000);
    EXPECT_EQ(aclSetAclOpExecutorRepeatable(wrong), 561000);
    EXPECT_EQ(aclSetInputTensorAddr(wrong, 0, call.self, memory), 561000);
  }
}

TEST_F(ExecutorTest, EmptyTensorsNeedNoMemoryAndNoWorkspace) {
  EluCall call(0);
  for (aclTensor* t : {call.grad_output, call.self, call.grad_input}) {
    EXPECT_EQ(aclSetRawTensorAddr(t, nullptr), 0);
  }
  aclOpExecutor* const executor = call.Plan();
  EXPECT_EQ(call.size, 0u);
  EXPECT_NE(executor, nullptr);
  EXPECT_EQ(call.Run(stream()), 0);
  EXPECT_EQ(call.Run(stream()), 561103);
  Sync();
}

// ---- failures of phase 2 ----

TEST_F(ExecutorTest, NullWorkspaceIsRefusedAndConsumes) {
  EluCall call(8, 8, true);
  aclOpExecutor* const executor = call.Plan();
  ASSERT_GT(call.size, 0u);
  EXPECT_EQ(aclnnEluBackward(nullptr, call.size, executor, stream()), 161001);
  ExpectText("aclnnEluBackward: workspace must not be null when workspaceSize is " +
             std::to_string(call.size));
  EXPECT_EQ(call.Run(stream()), 561103);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
  EXPECT_TRUE(call.IsUntouched());
}

TEST_F(ExecutorTest, NullWorkspaceWithASizeIsRefusedEvenWhenNoneIsNeeded) {
  EluCall call(8);
  aclOpExecutor* const executor = call.Plan();
  ASSERT_EQ(call.size, 0u);
  EXPECT_EQ(aclnnEluBackward(nullptr, 64, executor, stream()), 161001);
}

TEST_F(ExecutorTest, SmallWorkspaceIsRefusedAndConsumes) {
  EluCall call(8, 8, true);
  for (uint64_t given : {uint64_t{0}, uint64_t{1}, uint64_t{63}}) {
    aclOpExecutor* const executor = call.Plan();
    ASSERT_GT(call.size, given);
    EXPECT_EQ(aclnnEluBackward(given ? call.workspace.data() : nullptr, given, executor, stream()),
              161002);
    ExpectText("workspaceSize must be at least the " + std::to_string(call.size) +
               " bytes of phase 1, got " + std::to_string(given));
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
  }
  aclOpExecutor* const executor = call.Plan();
  EXPECT_EQ(aclnnEluBackward(call.workspace.data(), call.size - 1, executor, stream()), 161002);
  EXPECT_TRUE(call.IsUntouched());
}

// Workspaces of any alignment, and longer than asked for.
TEST_F(ExecutorTest, WorkspaceMayLieAnywhere) {
  for (size_t shift : {0, 1, 7, 63, 64, 65}) {
    EluCall call(16, 5, true);
    call.Plan();
    harness::GuardedMemory memory(call.size, true, shift);
    EXPECT_EQ(aclnnEluBackward(memory.payload(), call.size, call.executor, stream()), 0);
    Sync();
    EXPECT_EQ(call.Wrong(), 0);
    EXPECT_EQ(memory.CheckGuards(), "") << "shift " << shift;
  }
}

TEST_F(ExecutorTest, NullDataIsFoundInPhaseTwo) {
  struct {
    aclTensor* EluCall::*tensor;
    const char* name;
  } constexpr kTensors[] = {{&EluCall::grad_output, "gradOutput"},
                            {&EluCall::self, "selfOrResult"},
                            {&EluCall::grad_input, "gradInput"}};
  for (const bool strided : {false, true}) {
    for (const auto& t : kTensors) {
      EluCall call(8, 4, strided);
      EXPECT_EQ(aclSetRawTensorAddr(call.*t.tensor, nullptr), 0);
      aclOpExecutor* const executor = call.Plan();
      EXPECT_EQ(call.Run(stream()), 161001);
      ExpectText(std::string("aclnnEluBackward: ") + t.name +
                 " has elements but its data pointer is null");
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
      EXPECT_TRUE(call.IsUntouched());
    }
  }
}

TEST_F(ExecutorTest, AnAddressSetAfterPhaseOneCounts) {
  EluCall call(8);
  EXPECT_EQ(aclSetRawTensorAddr(call.grad_input, nullptr), 0);
  call.Plan();
  EXPECT_EQ(aclSetRawTensorAddr(call.grad_input, call.dx.data()), 0);
  EXPECT_EQ(call.Run(stream()), 0);
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
}

TEST_F(ExecutorTest, DeadAndForeignStreams) {
  aclrtStream dead = nullptr;
  ASSERT_EQ(aclrtCreateStream(&dead), 0);
  ASSERT_EQ(aclrtDestroyStream(dead), 0);
  int64_t memory[32] = {};
  for (aclrtStream wrong :
       {dead, static_cast<aclrtStream>(memory), reinterpret_cast<aclrtStream>(uintptr_t{8})}) {
    EluCall call(8);
    aclOpExecutor* const executor = call.Plan();
    EXPECT_EQ(call.Run(wrong), 361001);
    ExpectText("(EZ9903): aclnnEluBackward: stream must be a live stream");
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
    EXPECT_TRUE(call.IsUntouched());
  }
}

TEST_F(ExecutorTest, NullStreamIsTheDefaultStream) {
  EluCall call(8);
  call.Plan();
  EXPECT_EQ(call.Run(nullptr), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
  EXPECT_EQ(call.Wrong(), 0);
}

TEST_F(ExecutorTest, ExecutorOfAnotherOperator) {
  const Operator other{.contract = contract::Contract({.op = "aclnnOther",
                                                       .stem = "other",
                                                       .summary = "",
                                                       .formulas = {},
                                                       .args = {},
                                                       .rules = {}}),
                       .plan = nullptr,
                       .family = "none"};
  const FollowTensor none = [](const void*, uint32_t, void**) { return false; };
  EluCall call(8);
  const Status status = RunExecutor(other, nullptr, 0, call.Plan(), stream(), none, [](const void*, const Dims&) {});
  EXPECT_EQ(status.code(), 561103);
  EXPECT_EQ(status.message(), "aclnnOther: executor was made by aclnnEluBackwardGetWorkspaceSize");
  EXPECT_EQ(call.Run(stream()), 561103) << "a failed phase 2 consumes";
  EXPECT_TRUE(call.IsUntouched());
}

// ---- many uses ----

TEST_F(ExecutorTest, RepeatableRunsManyTimes) {
  for (const bool strided : {false, true}) {
    EluCall call(16, 3, strided);
    aclOpExecutor* const executor = call.PlanRepeatable();
    for (int i = 0; i < 100; ++i) {
      call.dy.Write(std::vector<float>(call.dy.size(), static_cast<float>(i)));
      call.dx.Write(std::vector<float>(call.dx.size(), EluCall::kUntouched));
      ASSERT_EQ(call.Run(stream()), 0);
      Sync();
      ASSERT_EQ(call.Wrong(), 0) << "run " << i;
    }
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561103);
    EXPECT_EQ(call.Run(stream()), 561103);
  }
}

TEST_F(ExecutorTest, AFailedRunLeavesARepeatableExecutor) {
  EluCall call(8, 8, true);
  aclOpExecutor* const executor = call.PlanRepeatable();
  EXPECT_EQ(aclnnEluBackward(nullptr, call.size, executor, stream()), 161001);
  EXPECT_EQ(aclnnEluBackward(call.workspace.data(), 1, executor, stream()), 161002);
  EXPECT_EQ(call.Run(reinterpret_cast<aclrtStream>(uintptr_t{8})), 361001);
  EXPECT_EQ(call.Run(stream()), 0);
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, DestroyedWhileRunsArePending) {
  EluCall call(64, 3, true);
  aclOpExecutor* const executor = call.PlanRepeatable();
  Gate gate(stream());
  EXPECT_EQ(call.Run(stream()), 0);
  EXPECT_EQ(call.Run(stream()), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(call.Run(stream()), 561103);
  EXPECT_TRUE(call.IsUntouched());
  std::vector<std::unique_ptr<EluCall>>
      others;  // the slot must not serve these before the runs are over
  for (int i = 0; i < 20; ++i) {
    others.push_back(std::make_unique<EluCall>(7));
    others.back()->Plan();
  }
  gate.Open();
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
  for (auto& other : others) EXPECT_EQ(aclDestroyAclOpExecutor(other->executor), 0);
}

// ---- new addresses ----

TEST_F(ExecutorTest, NewAddressesByIndex) {
  using Setter = aclnnStatus (*)(aclOpExecutor*, const size_t, aclTensor*, void*);
  struct Names {
    Setter input, output, any;
  };
  for (const Names& set :
       {Names{aclSetInputTensorAddr, aclSetOutputTensorAddr, aclSetTensorAddr},
        Names{AclSetInputTensorAddr, AclSetOutputTensorAddr, AclSetTensorAddr}}) {
    EluCall call(32);
    aclOpExecutor* const executor = call.PlanRepeatable();
    const DeviceFloats dy(32, 5), x(32, 1), dx(32, 0);
    EXPECT_EQ(set.input(executor, 0, call.grad_output, dy.data()), 0);
    EXPECT_EQ(set.input(executor, 1, call.self, x.data()), 0);
    EXPECT_EQ(set.output(executor, 0, call.grad_input, dx.data()), 0);
    EXPECT_EQ(call.Run(stream()), 0);
    Sync();
    EXPECT_EQ(dx.Read(), std::vector<float>(32, 10));
    EXPECT_TRUE(call.IsUntouched());
    void* address = nullptr;  // the tensor knows too
    EXPECT_EQ(aclGetRawTensorAddr(call.grad_output, &address), 0);
    EXPECT_EQ(address, dy.data());

    const DeviceFloats dy2(32, 7), dx2(32, 0);  // over inputs, then outputs
    EXPECT_EQ(set.any(executor, 0, call.grad_output, dy2.data()), 0);
    EXPECT_EQ(set.any(executor, 1, call.self, x.data()), 0);
    EXPECT_EQ(set.any(executor, 2, call.grad_input, dx2.data()), 0);
    EXPECT_EQ(call.Run(stream()), 0);
    Sync();
    EXPECT_EQ(dx2.Read(), std::vector<float>(32, 14));
    EXPECT_EQ(dx.Read(), std::vector<float>(32, 10));

    EXPECT_EQ(set.input(executor, 2, call.self, x.data()), 161002);
    EXPECT_EQ(set.output(executor, 1, call.grad_input, dx.data()), 161002);
    EXPECT_EQ(set.any(executor, 3, call.grad_input, dx.data()), 161002);
    EXPECT_EQ(set.any(executor, SIZE_MAX, call.grad_input, dx.data()), 161002);
    ExpectText("index must name a tensor argument of aclnnEluBackward, got");
    EXPECT_EQ(set.input(executor, 0, nullptr, x.data()), 561103);
    EXPECT_EQ(set.input(nullptr, 0, call.self, x.data()), 561103);
    aclTensor* const dead = DenseTensor({32}, nullptr);
    aclDestroyTensor(dead);
    EXPECT_EQ(set.input(executor, 0, dead, x.data()), 161002);
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
    EXPECT_EQ(set.input(executor, 0, call.self, x.data()), 561103);
  }
}

// No operator takes a list yet; the functions answer all the same.
TEST_F(ExecutorTest, NewAddressesOfLists) {
  using Setter = aclnnStatus (*)(aclOpExecutor*, size_t, const size_t, aclTensorList*, void*);
  EluCall call(4);
  aclOpExecutor* const executor = call.PlanRepeatable();
  const aclTensor* const members[] = {DenseTensor({4}, nullptr)};
  aclTensorList* const list = aclCreateTensorList(members, 1);
  for (Setter set : {Setter{aclSetDynamicInputTensorAddr}, Setter{aclSetDynamicOutputTensorAddr},
                     Setter{aclSetDynamicTensorAddr}, Setter{AclSetDynamicInputTensorAddr},
                     Setter{AclSetDynamicOutputTensorAddr}, Setter{AclSetDynamicTensorAddr}}) {
    EXPECT_EQ(set(nullptr, 0, 0, list, call.dx.data()), 561103);
    EXPECT_EQ(set(executor, 0, 0, nullptr, call.dx.data()), 561103);
    EXPECT_EQ(set(executor, 0, 0, list, call.dx.data()), 161002);
  }
  aclDestroyTensorList(list);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, RawAddressesBetweenRuns) {
  EluCall call(32);
  aclOpExecutor* const executor = call.PlanRepeatable();
  for (int i = 0; i < 5; ++i) {
    const DeviceFloats dy(32, static_cast<float>(i)), dx(32, -1);
    EXPECT_EQ(aclSetRawTensorAddr(call.grad_output, dy.data()), 0);
    EXPECT_EQ(aclSetRawTensorAddr(call.grad_input, dx.data()), 0);
    EXPECT_EQ(call.Run(stream()), 0);
    Sync();
    EXPECT_EQ(dx.Read(), std::vector<float>(32, static_cast<float>(2 * i)));
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

// A run keeps the addresses it was started with, whatever is set while it waits.
// An address set on an executor is that executor's, though the tensor has it too.
TEST_F(ExecutorTest, ExecutorsThatShareATensorHaveTheirOwnAddresses) {
  EluCall call(4);
  aclOpExecutor* const first = call.PlanRepeatable();
  aclOpExecutor* const second = call.PlanRepeatable();
  DeviceFloats to_first(4, EluCall::kUntouched);
  DeviceFloats to_second(4, EluCall::kUntouched);
  DeviceFloats to_both(4, EluCall::kUntouched);
  ASSERT_EQ(aclSetOutputTensorAddr(first, 0, call.grad_input, to_first.data()), 0);
  ASSERT_EQ(aclSetOutputTensorAddr(second, 0, call.grad_input, to_second.data()), 0);
  ASSERT_EQ(aclnnEluBackward(nullptr, 0, first, stream()), 0) << TakeText();
  Sync();
  EXPECT_EQ(to_first.Read()[3], 6);
  EXPECT_EQ(to_second.Read()[3], EluCall::kUntouched);
  ASSERT_EQ(aclnnEluBackward(nullptr, 0, second, stream()), 0) << TakeText();
  Sync();
  EXPECT_EQ(to_second.Read()[3], 6);
  EXPECT_TRUE(call.IsUntouched());
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, to_both.data()), 0);
  ASSERT_EQ(aclnnEluBackward(nullptr, 0, first, stream()), 0) << TakeText();
  Sync();
  EXPECT_EQ(to_both.Read()[3], 6);
  EXPECT_EQ(aclDestroyAclOpExecutor(first), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(second), 0);
}

TEST_F(ExecutorTest, PendingRunsKeepTheirAddresses) {
  constexpr int kRuns = 40;
  EluCall call(33);
  aclOpExecutor* const executor = call.PlanRepeatable();
  std::vector<DeviceFloats> dy(kRuns), dx(kRuns);
  Gate gate(stream());
  for (int i = 0; i < kRuns; ++i) {
    dy[i] = DeviceFloats(33, static_cast<float>(i));
    dx[i] = DeviceFloats(33, -1);
    ASSERT_EQ(aclSetInputTensorAddr(executor, 0, call.grad_output, dy[i].data()), 0);
    ASSERT_EQ(aclSetOutputTensorAddr(executor, 0, call.grad_input, dx[i].data()), 0);
    ASSERT_EQ(call.Run(stream()), 0);
  }
  ASSERT_EQ(aclSetTensorAddr(executor, 0, call.grad_output, nullptr), 0);
  for (const auto& result : dx) ASSERT_EQ(result.Read(), std::vector<float>(33, -1));
  gate.Open();
  Sync();
  for (int i = 0; i < kRuns; ++i) {
    EXPECT_EQ(dx[i].Read(), std::vector<float>(33, static_cast<float>(2 * i))) << i;
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

// Phase 1 would have packed for such addresses; now only what needs no packing can run.
TEST_F(ExecutorTest, NewAddressesMustNotOverlapUnlessExactly) {
  EluCall call(64);
  aclOpExecutor* const executor = call.PlanRepeatable();
  ASSERT_EQ(aclSetOutputTensorAddr(executor, 0, call.grad_input, call.dy.data() + 1), 0);
  EXPECT_EQ(call.Run(stream()), 161002);
  ExpectText("aclnnEluBackward: gradInput must not overlap gradOutput at addresses set after phase 1");
  ASSERT_EQ(aclSetOutputTensorAddr(executor, 0, call.grad_input, call.dy.data()), 0);
  EXPECT_EQ(call.Run(stream()), 0) << TakeText();
  Sync();
  EXPECT_EQ(call.dy.Read()[63], 126);
  const DeviceFloats both(std::vector<float>(96, 1));
  ASSERT_EQ(aclSetOutputTensorAddr(executor, 0, call.grad_input, both.data()), 0);
  ASSERT_EQ(aclSetRawTensorAddr(call.self, both.data() + 32), 0);
  EXPECT_EQ(call.Run(stream()), 161002);
  ExpectText("gradInput must not overlap selfOrResult");
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, call.dx.data()), 0);
  EXPECT_EQ(call.Run(stream()), 0) << TakeText();
  Sync();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, AnAddressOfPhaseTwoMustNotOverlapEither) {
  EluCall call(64);
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, nullptr), 0);
  call.Plan();
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, call.x.data() + 1), 0);
  EXPECT_EQ(call.Run(stream()), 161002);
  ExpectText("gradInput must not overlap selfOrResult");
  EXPECT_EQ(call.Run(stream()), 561103) << "a failed phase 2 consumes";
}

// ---- threads and lifetimes ----

TEST_F(ExecutorTest, RunsOnAnotherThread) {
  EluCall call(1000, 3, true);
  call.Plan();
  aclnnStatus status = -1;
  std::thread([&] { status = aclrtSetDevice(0) == 0 ? call.Run(stream()) : -1; }).join();
  EXPECT_EQ(status, 0);
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
}

TEST_F(ExecutorTest, AThreadWithoutADeviceIsToldSo) {
  EluCall call(8);
  call.Plan();
  aclnnStatus status = 0;
  std::string text;
  std::thread([&] {
    status = call.Run(stream());
    text = TakeText();
  }).join();
  EXPECT_EQ(status, 361001);
  EXPECT_NE(text.find("aclnnEluBackward: "), std::string::npos);
  EXPECT_NE(text.find("aclrtSetDevice"), std::string::npos) << text;
  EXPECT_TRUE(call.IsUntouched());
}

TEST_F(ExecutorTest, TensorsMayGoRightAfterPhaseTwo) {
  for (const bool strided : {false, true}) {
    EluCall call(100, 3, strided);
    call.Plan();
    {
      Gate gate(stream());
      EXPECT_EQ(call.Run(stream()), 0);
      call.DestroyTensors();
      std::vector<aclTensor*> others;  // take their places
      for (int i = 0; i < 10; ++i) others.push_back(DenseTensor({3}, nullptr));
      gate.Open();
      Sync();
      for (aclTensor* t : others) aclDestroyTensor(t);
    }
    EXPECT_EQ(call.Wrong(), 0);
  }
}

TEST_F(ExecutorTest, ScalarsMayGoRightAfterPhaseOne) {
  EluCall call(100);
  call.Plan();
  aclDestroyScalar(call.alpha);
  aclDestroyScalar(call.scale);
  call.alpha = call.scale = nullptr;
  EXPECT_EQ(call.Run(stream()), 0);
  Sync();
  EXPECT_EQ(call.Wrong(), 0);
}

// ---- many threads ----

TEST_F(ExecutorTest, EightThreadsPlanRunAndDestroy) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&wrong, t] {
      wrong += aclrtSetDevice(0) != 0;
      aclrtStream mine = nullptr;
      wrong += aclrtCreateStream(&mine) != 0;
      for (int i = 0; i < 300; ++i) {
        EluCall call(17 + t, 3, i % 3 == 0);
        call.Plan();
        if (i % 7 == 0) {
          wrong += aclDestroyAclOpExecutor(call.executor) != 0;
          continue;
        }
        wrong += call.Run(mine) != 0;
        wrong += aclDestroyAclOpExecutor(call.executor) != 561103;
        wrong += aclrtSynchronizeStream(mine) != 0;
        wrong += call.Wrong() != 0;
      }
      wrong += aclrtDestroyStream(mine) != 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A mask that another thread destroys in the middle of phase 1 is either whole or gone.
TEST_F(ExecutorTest, MasksMayBeDestroyedByAnotherThread) {
  const Operator& op = OperatorNamed("aclnnGroupNormBackward");
  const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
  harness::Call call(op, harness::MakeCall(op.contract, cases, cases.cases[0], cases.types[0]));
  std::vector<RawArg> args(call.raw().begin(), call.raw().end());
  const auto is_mask = [](const contract::Arg& arg) { return arg.is_array(); };
  const auto& table = op.contract.args();
  const auto mask_at = std::find_if(table.begin(), table.end(), is_mask) - table.begin();
  const bool mask[] = {true, true, true};
  std::atomic<const aclBoolArray*> shared{aclCreateBoolArray(mask, 3)};
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) EXPECT_EQ(aclDestroyBoolArray(shared.exchange(aclCreateBoolArray(mask, 3))), 0);
  });
  for (int i = 0; i < 20000; ++i) {
    uint64_t size = 0;
    void* executor = nullptr;
    args[mask_at].handle = shared.load();
    const int32_t code = op.entry->get_workspace_size(args.data(), &size, &executor);
    ASSERT_TRUE(code == 0 || code == 161002) << code;
    if (code == 0) {
      EXPECT_EQ(aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor)), 0);
    }
  }
  over = true;
  other.join();
  aclDestroyBoolArray(shared.load());
}

// Of many that want the same executor exactly one gets it.
TEST_F(ExecutorTest, OneWinnerAmongThreads) {
  for (int round = 0; round < 100; ++round) {
    EluCall call(16);
    call.Plan();
    std::atomic<int> ran{0}, destroyed{0}, other{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        other += aclrtSetDevice(0) != 0;
        const aclnnStatus status =
            t % 2 ? call.Run(stream()) : aclDestroyAclOpExecutor(call.executor);
        if (status == 0) ++(t % 2 ? ran : destroyed);
        if (status != 0 && status != 561103) ++other;
      });
    }
    for (std::thread& thread : threads) thread.join();
    Sync();
    EXPECT_EQ(ran + destroyed, 1) << ran << " runs, " << destroyed << " destroys";
    EXPECT_EQ(other, 0);
    if (ran) {
      EXPECT_EQ(call.Wrong(), 0);
    }
  }
}

}  // namespace
}  // namespace anyacl
