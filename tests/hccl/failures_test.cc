// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What happens when a rank dies, stays away, or calls something else; and calls that are wrong in themselves.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <regex>
#include <thread>

#include "ranks.h"
#include "sanitized.h"

namespace anyacl::hccl_test {
namespace {

HcclResult Sum(Rank& self, const Buffer& buffer, uint64_t count) {
  return HcclAllReduce(buffer.at(), buffer.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, self.comm, self.stream);
}

// The stream has failed and says who; the communicator is of no use any more and says so at once.
void CheckBroken(Rank& self, HcclResult code, const std::string& who) {
  CHECK_THAT(aclrtSynchronizeStream(self.stream) != 0, "the stream knows of no failure");
  CHECK_TEXT(RecentText(), who);
  HcclResult error = HCCL_SUCCESS;
  CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  CHECK_THAT(error == code, std::to_string(error) + " " + RecentText());
  const Buffer buffer(16);
  CHECK_CODE(Sum(self, buffer, 4), code);
  CHECK_TEXT(RecentText(), who);
}

// --- ranks that die ---

template <size_t kCount>
void OneDies(Rank& self) {
  const Buffer buffer(std::vector<uint8_t>(kCount * 4));
  const double start = Seconds();
  for (int i = 0; i < 100000 && Seconds() - start < 60; ++i) {
    if (self.rank == 1 && i == 20) kill(getpid(), SIGKILL);
    const HcclResult code = Sum(self, buffer, kCount);
    if (code != 0 || aclrtSynchronizeStream(self.stream) != 0) break;
  }
  CHECK_TEXT(RecentText(), "rank 1 of");
  CHECK_THAT(Seconds() - start < 10, "it took long");
  HcclResult error = HCCL_SUCCESS;
  CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  CHECK_THAT(error == HCCL_E_REMOTE);
}
PROGRAM(DiesBetweenShort) { OneDies<4>(self); }
PROGRAM(DiesBetweenLong) { OneDies<300000>(self); }
TEST(Failures, KilledRankIsNamed) {
  for (const uint32_t ranks : {2, 3, 5}) {
    RunRanks("DiesBetweenShort", {As::kProcesses, ranks, {}, -1, 1});
    RunRanks("DiesBetweenLong", {As::kProcesses, ranks, {}, -1, 1});
  }
}

// Nothing is under way: whoever asks is told soon.
PROGRAM(DiesIdle) {
  HcclResult error = HCCL_SUCCESS;
  CHECK_OK(HcclBarrier(self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  if (self.rank == 1) kill(getpid(), SIGKILL);
  const double start = Seconds();
  while (error == HCCL_SUCCESS && Seconds() - start < 5) {
    usleep(10000);
    CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  }
  CHECK_THAT(error == HCCL_E_REMOTE);
  CHECK_TEXT(RecentText(), "rank 1 of 3 is gone");
}
TEST(Failures, IdleRanksHear) { RunRanks("DiesIdle", {As::kProcesses, 3, {}, -1, 1}); }

// Whoever has destroyed its communicator has not died.
PROGRAM(LeavesEarly) {
  CHECK_OK(HcclBarrier(self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  if (self.rank == 0) return;
  usleep(300 * 1000);
  HcclResult error = HCCL_E_INTERNAL;
  CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  CHECK_THAT(error == HCCL_SUCCESS, RecentText());
}
TEST(Failures, GoodbyeIsNoFailure) {
  RunRanks("LeavesEarly", {As::kProcesses, 3});
  RunRanks("LeavesEarly", {As::kThreads, 3});
}

// --- ranks that stay away ---

PROGRAM(StaysAway) {
  const double start = Seconds();
  const Buffer buffer(std::vector<uint8_t>(400000));
  if (self.rank == 2) {
    sleep(3);
    CHECK_OK(Sum(self, buffer, 100000));  // too late
    CHECK_THAT(aclrtSynchronizeStream(self.stream) != 0);
    const std::string text = RecentText();
    CHECK_TEXT(text, "gave up: ");
    CHECK_TEXT(text, "rank 2 of 3 did not come within 1 s");
    return;
  }
  CHECK_OK(Sum(self, buffer, 100000));
  CHECK_THAT(aclrtSynchronizeStream(self.stream) != 0);
  const std::string text = RecentText();
  CHECK_TEXT(text, "rank 2 of 3 did not come within 1 s");
  CHECK_THAT(Seconds() - start < 2.5, "it took long");
}
TEST(Failures, MissingRankIsNamed) { RunRanks("StaysAway", {As::kProcesses, 3, {"HCCL_EXEC_TIMEOUT=1"}}); }

// Half of the ranks are on another host, and the link to it is cut: two_hosts.py. Nobody closes a connection.
PROGRAM(LinkIsCut) {
  const Buffer buffer(std::vector<uint8_t>(400000));
  const double start = Seconds();
  double last = start;  // when a sum was there
  while (Seconds() - start < 60) {
    CHECK_OK(Sum(self, buffer, 100000));
    if (aclrtSynchronizeStream(self.stream) != 0) break;
    last = Seconds();
  }
  const std::string text = RecentText();
  const bool is_near = self.rank < self.ranks / 2;
  CHECK_THAT(std::regex_search(text, std::regex(is_near ? "ranks? [^:]*[23]" : "ranks? [^:]*[01]")), text);
  HcclResult error = HCCL_SUCCESS;
  CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  CHECK_THAT(error == HCCL_E_TIMEOUT || error == HCCL_E_REMOTE, std::to_string(error));
  const double limit = std::atof(std::getenv("HCCL_EXEC_TIMEOUT"));
  CHECK_THAT(Seconds() - last < limit + (kSanitized ? 10 : 3), text);
}

LONE_PROGRAM(LimitOfTheConfig) {
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  config.hcclExecTimeOut = 1;
  CHECK_OK(HcclCommInitRootInfoConfig(self.ranks, self.info, self.rank, &config, &self.comm));
  CHECK_OK(aclrtCreateStream(&self.stream));
  const Buffer buffer(16);
  if (self.rank == 1) {
    sleep(2);
    return;
  }
  CHECK_OK(HcclRecv(buffer.at(), 4, HCCL_DATA_TYPE_FP32, 1, self.comm, self.stream));
  CheckBroken(self, HCCL_E_TIMEOUT, "rank 1 of 2 did not come within 1 s");
}
TEST(Failures, LimitOfTheConfig) { RunRanks("LimitOfTheConfig", {As::kThreads, 2}); }

// An abort of the stream ends the wait, long before any limit.
PROGRAM(AbortEnds) {
  const Buffer buffer(16);
  if (self.rank == 1) {
    usleep(600 * 1000);
    return;
  }
  const double start = Seconds();
  CHECK_OK(HcclRecv(buffer.at(), 4, HCCL_DATA_TYPE_FP32, 1, self.comm, self.stream));
  usleep(100 * 1000);
  CHECK_OK(aclrtStreamAbort(self.stream));
  aclrtSynchronizeStream(self.stream);
  CHECK_THAT(Seconds() - start < 0.5, "the abort waited");
}
TEST(Failures, AbortEndsAWait) { RunRanks("AbortEnds", {As::kThreads, 2}); }

// --- ranks that call something else ---

PROGRAM(OtherCount) {
  const Buffer buffer(64);
  CHECK_OK(Sum(self, buffer, self.rank == 0 ? 4 : 5));
  CHECK_THAT(aclrtSynchronizeStream(self.stream) != 0);
  const std::string text = RecentText();
  CHECK_TEXT(text, "count 4");
  CHECK_TEXT(text, "count 5");
}
PROGRAM(OtherCall) {
  const Buffer buffer(64), other(64);
  if (self.rank == 0) {
    CHECK_OK(Sum(self, buffer, 4));
  } else {
    CHECK_OK(HcclAllGather(other.at(), buffer.at(), 4, HCCL_DATA_TYPE_FP32, self.comm, self.stream));
  }
  CHECK_THAT(aclrtSynchronizeStream(self.stream) != 0);
  const std::string text = RecentText();
  CHECK_TEXT(text, "HcclAllGather");
  CHECK_TEXT(text, "HcclAllReduce");
}
TEST(Failures, CallsThatDoNotMatch) {
  RunRanks("OtherCall", {As::kThreads, 2});
  RunRanks("OtherCount", {As::kThreads, 2});
}

// --- ends ---

// Work that is queued still is done after the communicator was destroyed.
PROGRAM(DestroyedWithWork) {
  const Buffer buffer(std::vector<uint8_t>(400000, static_cast<uint8_t>(0)));
  const auto late = +[](void*) { usleep(100 * 1000); };
  CHECK_OK(aclrtLaunchHostFunc(self.stream, late, nullptr));
  if (self.rank == 0) CHECK_OK(aclrtMemset(buffer.at(), 400000, 7, 400000));
  CHECK_OK(HcclBroadcast(buffer.at(), 400000, HCCL_DATA_TYPE_INT8, 0, self.comm, self.stream));
  const double start = Seconds();
  CHECK_OK(HcclCommDestroy(self.comm));
  CHECK_THAT(Seconds() - start < 0.08, "it waited");
  self.comm = nullptr;
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(buffer.Read() == std::vector<uint8_t>(400000, 7));
}
TEST(Failures, DestroyDoesNotWait) {
  RunRanks("DestroyedWithWork", {As::kThreads, 3});
  RunRanks("DestroyedWithWork", {As::kProcesses, 3});
}

// A child has a copy of the connections, and must neither use them nor keep them open when the parent dies.
PROGRAM(Forks) {
  const Buffer buffer(std::vector<uint8_t>(16));
  CHECK_OK(Sum(self, buffer, 4));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const pid_t child = fork();
  if (child == 0) {
    HcclResult error = HCCL_SUCCESS;
    const bool told = HcclGetCommAsyncError(self.comm, &error) == 0 && error == HCCL_E_UNAVAIL && Sum(self, buffer, 4) != 0;
    if (self.rank == 0) _exit(told ? 0 : 1);
    alarm(20);
    pause();
    _exit(1);
  }
  if (self.rank == 0) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_THAT(status == 0, "the child used its parent's communicator");
  }
  CHECK_OK(Sum(self, buffer, 4));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  if (self.rank == 1) kill(getpid(), SIGKILL);  // the child lives on
  CHECK_THAT(Sum(self, buffer, 4) != 0 || aclrtSynchronizeStream(self.stream) != 0);
  CHECK_TEXT(RecentText(), "rank 1 of 2");
}
TEST(Failures, ForkedChildren) {
#ifdef ANYACL_SANITIZE_thread
  GTEST_SKIP() << "a fork takes all locks, which are more than ThreadSanitizer can follow";
#endif
  RunRanks("Forks", {As::kProcesses, 2, {}, -1, 1});
}

// --- calls that are wrong in themselves ---

LONE_PROGRAM(WrongCalls) {
  HcclComm comm = nullptr;
  CHECK_CODE(HcclGetRootInfo(nullptr), HCCL_E_PTR);
  CHECK_CODE(HcclCommInitRootInfo(0, self.info, 0, &comm), HCCL_E_PARA);
  CHECK_CODE(HcclCommInitRootInfo(2, self.info, 2, &comm), HCCL_E_PARA);
  CHECK_CODE(HcclCommInitRootInfo(1, nullptr, 0, &comm), HCCL_E_PTR);
  CHECK_CODE(HcclCommInitRootInfo(1, self.info, 0, nullptr), HCCL_E_PTR);
  HcclRootInfo nonsense;
  std::memset(&nonsense, 7, sizeof(nonsense));
  CHECK_CODE(HcclCommInitRootInfo(1, &nonsense, 0, &comm), HCCL_E_PARA);
  CHECK_OK(HcclCommInitRootInfo(1, self.info, 0, &comm));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  const Buffer buffer(64);
  void* const b = buffer.at();
  const auto fp32 = HCCL_DATA_TYPE_FP32;
  const auto sum = HCCL_REDUCE_SUM;
  const auto bad_type = static_cast<HcclDataType>(13);
  CHECK_CODE(HcclAllReduce(b, b, 4, bad_type, sum, comm, stream), HCCL_E_PARA);
  CHECK_TEXT(RecentText(), "HcclAllReduce: dataType");
  CHECK_CODE(HcclAllReduce(b, b, 4, HCCL_DATA_TYPE_RESERVED, sum, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAllReduce(b, b, 4, HCCL_DATA_TYPE_INT128, sum, comm, stream), HCCL_E_NOT_SUPPORT);
  CHECK_CODE(HcclAllReduce(b, b, 4, fp32, static_cast<HcclReduceOp>(4), comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAllReduce(nullptr, b, 4, fp32, sum, comm, stream), HCCL_E_PTR);
  CHECK_CODE(HcclAllReduce(b, nullptr, 4, fp32, sum, comm, stream), HCCL_E_PTR);
  CHECK_CODE(HcclAllReduce(b, b, 4, fp32, sum, nullptr, stream), HCCL_E_PTR);
  CHECK_CODE(HcclAllReduce(b, b, 4, fp32, sum, b, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAllReduce(b, b, 4, fp32, sum, comm, b), HCCL_E_RUNTIME);
  CHECK_CODE(HcclAllReduce(buffer.at(2), buffer.at(2), 4, fp32, sum, comm, stream), HCCL_E_PARA);
  CHECK_TEXT(RecentText(), "aligned");
  CHECK_CODE(HcclAllReduce(b, buffer.at(4), 4, fp32, sum, comm, stream), HCCL_E_PARA);
  CHECK_TEXT(RecentText(), "overlap");
  CHECK_CODE(HcclAllReduce(b, b, uint64_t{1} << 60, fp32, sum, comm, stream), HCCL_E_PARA);
  CHECK_OK(HcclAllReduce(nullptr, nullptr, 0, fp32, sum, comm, stream));
  CHECK_CODE(HcclBroadcast(b, 4, fp32, 1, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclReduce(b, b, 4, fp32, sum, 1, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclScatter(b, b, 4, fp32, 1, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclSend(b, 4, fp32, 1, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclRecv(b, 4, fp32, 7, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclBatchSendRecv(nullptr, 1, comm, stream), HCCL_E_PTR);
  HcclSendRecvItem item = {HCCL_SEND, b, 4, fp32, 0};
  CHECK_CODE(HcclBatchSendRecv(&item, 0, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclBatchSendRecv(&item, 1, comm, stream), HCCL_E_PARA);  // to itself, and nobody receives
  item.sendRecvType = HCCL_SEND_RECV_RESERVED;
  CHECK_CODE(HcclBatchSendRecv(&item, 1, comm, stream), HCCL_E_PARA);
  const uint64_t four = 4, five = 5, zero = 0;
  CHECK_CODE(HcclAllGatherV(b, 4, buffer.at(16), nullptr, &zero, fp32, comm, stream), HCCL_E_PTR);
  CHECK_CODE(HcclAllGatherV(b, 4, buffer.at(16), &five, &zero, fp32, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclReduceScatterV(b, &five, &zero, buffer.at(32), 4, fp32, sum, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAlltoAllV(b, &four, &zero, fp32, buffer.at(32), &five, &zero, fp32, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAlltoAll(b, 4, fp32, buffer.at(32), 5, fp32, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAlltoAll(b, 4, fp32, buffer.at(32), 4, HCCL_DATA_TYPE_INT32, comm, stream), HCCL_E_PARA);
  CHECK_CODE(HcclAlltoAllVC(b, nullptr, fp32, buffer.at(32), fp32, comm, stream), HCCL_E_PTR);
  CHECK_CODE(HcclBarrier(b, stream), HCCL_E_PARA);
  CHECK_CODE(HcclGetRankId(comm, nullptr), HCCL_E_PTR);
  CHECK_CODE(HcclGetRankSize(b, nullptr), HCCL_E_PARA);
  CHECK_CODE(HcclGetCommName(comm, nullptr), HCCL_E_PTR);
  CHECK_CODE(HcclGetCommAsyncError(comm, nullptr), HCCL_E_PTR);
  uint32_t ids[] = {0, 0};
  HcclComm sub = nullptr;
  CHECK_CODE(HcclCreateSubCommConfig(&comm, 2, ids, 0, 0, nullptr, &sub), HCCL_E_PARA);
  CHECK_CODE(HcclCreateSubCommConfig(&comm, 1, ids, 0, 1, nullptr, &sub), HCCL_E_PARA);
  HcclConfigValue value = {1};
  CHECK_OK(HcclSetConfig(HCCL_DETERMINISTIC, value));
  value.value = 0;
  CHECK_OK(HcclGetConfig(HCCL_DETERMINISTIC, &value));
  CHECK_THAT(value.value == 1);
  CHECK_OK(HcclSetCommConfig(comm, HCCL_DETERMINISTIC, value));
  value.value = 0;
  CHECK_OK(HcclGetCommConfig(comm, HCCL_DETERMINISTIC, &value));
  CHECK_THAT(value.value == 1);
  value.value = 9;
  CHECK_CODE(HcclSetConfig(HCCL_DETERMINISTIC, value), HCCL_E_PARA);
  CHECK_CODE(HcclSetConfig(HCCL_ACCELERATOR, value), HCCL_E_NOT_SUPPORT);
  CHECK_CODE(HcclGetConfig(HCCL_CONFIG_RESERVED, &value), HCCL_E_PARA);
  CHECK_THAT(HcclGetCommConfigCapability() == 0xFFF);
  CHECK_THAT(std::string(HcclGetErrorString(HCCL_E_TIMEOUT)) == "timeout");
  CHECK_THAT(std::string(HcclGetErrorString(static_cast<HcclResult>(200))) == "unknown error");
  // The root info was used.
  CHECK_OK(aclrtSynchronizeStream(stream));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(HcclCommDestroy(comm));
  CHECK_CODE(HcclCommInitRootInfo(2, self.info, 0, &comm), HCCL_E_TCP_CONNECT);
}
TEST(Failures, WrongCalls) { RunRanks("WrongCalls", {As::kThreads, 1}); }

TEST(Failures, NoDevice) {
  std::thread([] {
    HcclRootInfo info;
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_RUNTIME);
  }).join();
}

}  // namespace
}  // namespace anyacl::hccl_test
