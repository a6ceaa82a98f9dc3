// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Phase 2 allocates nothing: this program counts every allocation of the process, on every thread.
#include <gtest/gtest.h>

#include <vector>

#include "allocator.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"
#include "plan/elu_call.h"

namespace anyacl {
namespace {

template <class Body>
int64_t AllocationsOf(Body&& body) {
  allocator::Refuse(0, true);
  const allocator::Watch watch;
  body();
  return allocator::Made();
}

TEST(Allocation, TheCounterCounts) {
  EXPECT_GE(AllocationsOf([] { delete new std::vector<int>(100); }), 1);
}

class AllocationTest : public testing::Test {
 protected:
  // Runs once to warm the stream and its threads, then counts a run that a new plan prepared.
  void ExpectNone(EluCall& call) {
    for (int i = 0; i < 3; ++i) {
      call.Plan();
      ASSERT_EQ(call.Run(session_.stream()), 0);
      ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    }
    call.Plan();
    aclnnStatus status = -1;
    aclError synchronised = -1;
    EXPECT_EQ(AllocationsOf([&] { status = call.Run(session_.stream()); }), 0) << "in phase 2";
    EXPECT_EQ(AllocationsOf([&] { synchronised = aclrtSynchronizeStream(session_.stream()); }), 0)
        << "while the work ran";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(synchronised, 0);
    EXPECT_EQ(call.Wrong(), 0);
  }

  harness::Session session_;
};

TEST_F(AllocationTest, SmallWork) {
  EluCall call(16);
  ExpectNone(call);
}

TEST_F(AllocationTest, PackedWork) {
  EluCall call(64, 9, true);
  ExpectNone(call);
}

TEST_F(AllocationTest, WorkForAllThreads) {
  EluCall call(1 << 20);
  ExpectNone(call);
}

TEST_F(AllocationTest, PackedWorkForAllThreads) {
  EluCall call(1 << 10, 1 << 9, true);
  ExpectNone(call);
}

// Every operator, on one thread and on all, with and without packing.
TEST_F(AllocationTest, EveryOperator) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const harness::Case& row : cases.cases) {
      if (row.Has("large")) continue;
      for (const harness::TypeChoice& types : cases.types) {
        if (!types.bench) continue;
        harness::Call call(*op, harness::MakeCall(op->contract, cases, row, types));
        for (int i = 0; i < 2; ++i) ASSERT_EQ(call.Execute(session_.stream()), 0);
        ASSERT_EQ(call.Plan(), 0);
        int32_t status = -1;
        const int64_t made = AllocationsOf([&] {
          status = call.Run(session_.stream());
          if (status == 0) status = aclrtSynchronizeStream(session_.stream());
        });
        EXPECT_EQ(status, 0);
        EXPECT_EQ(made, 0) << op->contract.op() << " \"" << row.name << "\" " << types.label;
      }
    }
  }
}

TEST_F(AllocationTest, QueuedWork) {
  EluCall call(16);
  aclOpExecutor* const executor = call.PlanRepeatable();
  const auto queue = [&] {
    for (int i = 0; i < 16; ++i) {
      if (call.Run(session_.stream()) != 0) ADD_FAILURE();
    }
  };
  {
    const Gate warm(session_.stream());
    queue();
  }
  ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
  Gate gate(session_.stream());
  EXPECT_EQ(AllocationsOf(queue), 0);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

}  // namespace
}  // namespace anyacl
