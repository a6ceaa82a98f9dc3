// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A million calls do not grow the process, and a long one does not hold its caller.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "harness/session.h"
#include "plan/elu_call.h"

namespace anyacl {
namespace {

#if defined(ANYACL_SANITIZE_address) || defined(ANYACL_SANITIZE_thread)
constexpr int kCycles = 50'000;
constexpr int64_t kLong = int64_t{8} << 20;
#else
constexpr int kCycles = 1'000'000;
constexpr int64_t kLong = int64_t{64} << 20;
#endif

int64_t ResidentKiB() {
  FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  while (std::fgets(line, sizeof(line), file)) {
    if (std::sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  }
  std::fclose(file);
  return kib;
}

class EnduranceTest : public testing::Test {
 protected:
  template <class Cycle>
  void ExpectFlat(int cycles, Cycle&& cycle) {
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(cycle(), 0);
    const int64_t before = ResidentKiB();
    for (int i = 0; i < cycles; ++i) ASSERT_EQ(cycle(), 0) << "cycle " << i;
    const int64_t after = ResidentKiB();
    EXPECT_GT(before, 0);
    // One leaked byte per cycle would be a megabyte; the allocator's own noise is less.
    EXPECT_LT(after - before, 512) << "KiB in " << cycles << " cycles, from " << before;
  }
  harness::Session session_;
};

TEST_F(EnduranceTest, PlanAndRun) {
  EluCall call(16);
  ExpectFlat(kCycles, [&] {
    const aclnnStatus planned = call.TryPlan();
    return planned != 0 ? planned : call.Run(session_.stream());
  });
  EXPECT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
  EXPECT_EQ(call.Wrong(), 0);
}

TEST_F(EnduranceTest, PlanAndRunWithPacks) {
  EluCall call(4, 4, true);
  call.Plan();
  ExpectFlat(kCycles / 10, [&] {
    const aclnnStatus ran = call.Run(session_.stream());
    return ran != 0 ? ran : call.TryPlan();
  });
  EXPECT_EQ(aclDestroyAclOpExecutor(call.executor), 0);
  EXPECT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
}

TEST_F(EnduranceTest, EveryHandleMadeAnew) {
  ExpectFlat(kCycles / 10, [&] {
    EluCall call(16);
    const aclnnStatus planned = call.TryPlan();
    if (planned != 0) return planned;
    const aclnnStatus ran = call.Run(session_.stream());
    const aclError synchronised = aclrtSynchronizeStream(session_.stream());
    return ran != 0 ? ran : synchronised;
  });
}

TEST_F(EnduranceTest, PlansThatAreNeverRun) {
  EluCall call(4, 4, true);
  ExpectFlat(kCycles / 10, [&] {
    const aclnnStatus planned = call.TryPlan();
    return planned != 0 ? planned : aclDestroyAclOpExecutor(call.executor);
  });
}

TEST_F(EnduranceTest, RefusedRuns) {
  EluCall call(4, 4, true);
  ExpectFlat(kCycles / 10, [&] {
    const aclnnStatus planned = call.TryPlan();
    if (planned != 0) return planned;
    return aclnnEluBackward(nullptr, call.size, call.executor, session_.stream()) == 161001 ? 0
                                                                                            : -1;
  });
}

TEST_F(EnduranceTest, RefusedCalls) {
  EluCall call(16);
  ExpectFlat(kCycles / 10, [&] {
    const aclnnStatus status =
        aclnnEluBackwardGetWorkspaceSize(call.grad_output, call.alpha, call.scale, call.alpha, true,
                                         nullptr, call.grad_input, &call.size, &call.executor);
    return status == 161001 ? 0 : -1;
  });
}

// Phase 2 of a long piece of work returns while it runs. No fixed time: the call is compared with
// the wait. On a busy machine the caller may lose its core at the wrong moment, so one of a few
// tries must show it.
TEST_F(EnduranceTest, LongWorkDoesNotHoldTheCaller) {
  using Clock = std::chrono::steady_clock;
  EluCall call(kLong);
  double best = 1;
  for (int i = 0; i < 8 && best >= 0.25; ++i) {
    call.Plan();
    const auto start = Clock::now();
    ASSERT_EQ(call.Run(session_.stream()), 0);
    const auto returned = Clock::now();
    ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    const auto done = Clock::now();
    best = std::min(best, (returned - start) / std::chrono::duration<double>(done - start));
  }
  EXPECT_LT(best, 0.25) << "phase 2 took this part of the whole time";
  RecordProperty("part", std::to_string(best));
  EXPECT_EQ(call.Wrong(), 0);
}

}  // namespace
}  // namespace anyacl
