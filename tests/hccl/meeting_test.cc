// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How ranks meet: communicators beside each other and of each other, ranks that do not come, and strangers.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ranks.h"

namespace anyacl::hccl_test {
namespace {

// Expects that the ranks of a communicator add up.
void CheckSum(Rank& self, HcclComm comm, float own, float want) {
  const Buffer buffer(std::vector<uint8_t>(4));
  CHECK_OK(aclrtMemcpy(buffer.at(), 4, &own, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  float got = 0;
  CHECK_OK(aclrtMemcpy(&got, 4, buffer.at(), 4, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_THAT(got == want, std::to_string(got));
}

// --- several communicators ---

PROGRAM(Several) {
  uint32_t number = 99;
  CHECK_OK(HcclGetRankId(self.comm, &number));
  CHECK_THAT(number == self.rank);
  CHECK_OK(HcclGetRankSize(self.comm, &number));
  CHECK_THAT(number == self.ranks);

  // The even ranks and the odd ones, backwards, under names of their own.
  std::vector<uint32_t> members;
  for (uint32_t r = 0; r < self.ranks; ++r) {
    if (r % 2 == self.rank % 2) members.insert(members.begin(), r);
  }
  const auto place = static_cast<uint32_t>(std::find(members.begin(), members.end(), self.rank) - members.begin());
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  std::strcpy(config.hcclCommName, self.rank % 2 ? "odd" : "even");
  HcclComm half = nullptr, again = nullptr;
  CHECK_OK(HcclCreateSubCommConfig(&self.comm, members.size(), members.data(), 7, place, &config, &half));
  char name[128];
  CHECK_OK(HcclGetCommName(half, name));
  CHECK_THAT(std::string(name) == (self.rank % 2 ? "odd" : "even"));
  CHECK_OK(HcclGetRankId(half, &number));
  CHECK_THAT(number == place);

  // All of them once more, and somebody who is in none.
  for (uint32_t r = 0; r < self.ranks; ++r) members.resize(self.ranks), members[r] = r;
  CHECK_OK(HcclCreateSubCommConfig(&self.comm, self.ranks, members.data(), 8, self.rank, nullptr, &again));
  HcclComm none = self.comm;
  CHECK_OK(HcclCreateSubCommConfig(&self.comm, 0, nullptr, 0xFFFFFFFF, 0, nullptr, &none));
  CHECK_THAT(none == nullptr);

  float all = 0, mine = 0;
  for (uint32_t r = 0; r < self.ranks; ++r) {
    all += static_cast<float>(r + 1);
    if (r % 2 == self.rank % 2) mine += static_cast<float>(r + 1);
  }
  for (int round = 0; round < 3; ++round) {
    CheckSum(self, half, static_cast<float>(self.rank + 1), mine);
    CheckSum(self, again, static_cast<float>(self.rank + 1), all);
    CheckSum(self, self.comm, static_cast<float>(self.rank + 1), all);
  }
  CHECK_OK(HcclCommDestroy(half));
  CheckSum(self, again, 1, static_cast<float>(self.ranks));
  CHECK_OK(HcclCommDestroy(again));
  CHECK_CODE(HcclCommDestroy(again), HCCL_E_PARA);
  HcclResult error = HCCL_E_INTERNAL;
  CHECK_OK(HcclGetCommAsyncError(self.comm, &error));
  CHECK_THAT(error == HCCL_SUCCESS);
}

TEST(Meeting, SeveralCommunicators) {
  for (const As as : {As::kThreads, As::kProcesses}) {
    for (const uint32_t ranks : {1, 2, 5}) RunRanks("Several", {as, ranks});
  }
}

// The struct of an older toolkit ends after hcclJobID, of one without names after 32 bytes: nothing behind is read.
LONE_PROGRAM(OldConfigs) {
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  std::strcpy(config.hcclCommName, "old");
  config.hcclExecTimeOut = -5;  // nonsense, were it read
  for (const size_t size : {size_t{312}, size_t{32}}) {
    std::memcpy(config.reserved, &size, sizeof(size));
    HcclRootInfo info;
    CHECK_OK(HcclGetRootInfo(&info));
    CHECK_OK(HcclCommInitRootInfoConfig(1, &info, 0, &config, &self.comm));
    char name[128];
    CHECK_OK(HcclGetCommName(self.comm, name));
    CHECK_THAT((std::string(name) == "old") == (size == 312), name);
    CHECK_OK(HcclCommDestroy(self.comm));
  }
  const size_t size = sizeof(config);
  std::memcpy(config.reserved, &size, sizeof(size));
  CHECK_CODE(HcclCommInitRootInfoConfig(1, self.info, 0, &config, &self.comm), HCCL_E_PARA);
  config.reserved[8] = 0;
  CHECK_CODE(HcclCommInitRootInfoConfig(1, self.info, 0, &config, &self.comm), HCCL_E_PARA);
  self.comm = nullptr;
}
TEST(Meeting, OldConfigs) { RunRanks("OldConfigs", {As::kThreads, 1}); }

TEST(Meeting, InitAllOnDevices) {
  HcclComm comms[3];
  int32_t devices[] = {2, 0, 1};
  ASSERT_EQ(HcclCommInitAll(3, devices, comms), 0) << RecentText();
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      aclrtStream stream = nullptr;
      EXPECT_EQ(aclrtSetDevice(devices[r]), 0);
      EXPECT_EQ(aclrtCreateStream(&stream), 0);
      const Buffer buffer(std::vector<uint8_t>{static_cast<uint8_t>(r + 1)});
      EXPECT_EQ(HcclAllReduce(buffer.at(), buffer.at(), 1, HCCL_DATA_TYPE_UINT8, HCCL_REDUCE_SUM, comms[r], stream), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
      EXPECT_EQ(buffer.Read()[0], 6);
      EXPECT_EQ(HcclCommDestroy(comms[r]), 0);
      EXPECT_EQ(aclrtDestroyStream(stream), 0);
      EXPECT_EQ(aclrtResetDevice(devices[r]), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  devices[1] = 2;
  EXPECT_EQ(HcclCommInitAll(3, devices, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(6, nullptr, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(0, nullptr, comms), HCCL_E_PARA);
}

// --- who does not come ---

LONE_PROGRAM(OneIsMissing) {
  const double start = Seconds();
  CHECK_CODE(HcclCommInitRootInfo(self.ranks, self.info, self.rank, &self.comm), HCCL_E_TIMEOUT);
  self.comm = nullptr;
  const std::string text = RecentText();
  CHECK_TEXT(text, "rank 1 of 3 did not come");
  CHECK_TEXT(text, "HCCL_CONNECT_TIMEOUT");
  CHECK_THAT(Seconds() - start < 4, text);
}
TEST(Meeting, MissingRankIsNamed) {
  RunRanks("OneIsMissing", {As::kProcesses, 3, {"HCCL_CONNECT_TIMEOUT=2"}, 1});
}

// Rank 0 made the root info and never enters.
LONE_PROGRAM(RootStaysAway) {
  if (self.rank == 0) {
    sleep(4);
    return;
  }
  CHECK_CODE(HcclCommInitRootInfo(self.ranks, self.info, self.rank, &self.comm), HCCL_E_TIMEOUT);
  self.comm = nullptr;
  CHECK_TEXT(RecentText(), "rank 0");
}
TEST(Meeting, MissingRootIsNamed) { RunRanks("RootStaysAway", {As::kProcesses, 2, {"HCCL_CONNECT_TIMEOUT=1"}}); }

// Its process has ended.
LONE_PROGRAM(RootIsGone) {
  if (self.rank == 0) return;
  sleep(1);
  const double start = Seconds();
  CHECK_CODE(HcclCommInitRootInfo(self.ranks, self.info, self.rank, &self.comm), HCCL_E_TCP_CONNECT);
  self.comm = nullptr;
  CHECK_THAT(Seconds() - start < 2, "it waited for nobody");
}
TEST(Meeting, RootThatIsGone) { RunRanks("RootIsGone", {As::kProcesses, 2}); }

LONE_PROGRAM(Disagree) {
  const uint32_t ranks = self.rank == 1 ? 2 : 3;
  CHECK_CODE(HcclCommInitRootInfo(ranks, self.info, self.rank % ranks, &self.comm), HCCL_E_PARA);
  self.comm = nullptr;
}
TEST(Meeting, RanksThatDisagree) { RunRanks("Disagree", {As::kThreads, 2}); }

LONE_PROGRAM(Twice) {
  CHECK_CODE(HcclCommInitRootInfo(3, self.info, self.rank > 0, &self.comm), HCCL_E_PARA);
  self.comm = nullptr;
  CHECK_TEXT(RecentText(), "rank 1 of 3 came twice");
}
TEST(Meeting, RankThatComesTwice) { RunRanks("Twice", {As::kProcesses, 3}); }

// --- strangers ---

// The port is all a stranger has; he finds it by looking at what the process listens on.
std::vector<uint16_t> ListeningPorts() {
  std::vector<uint16_t> ports;
  for (int fd = 3; fd < 256; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens) continue;
    sockaddr_in address = {};
    size = sizeof(address);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    EXPECT_EQ(address.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    ports.push_back(ntohs(address.sin_port));
  }
  return ports;
}

int ConnectTo(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

// Silent ones, loud ones and ones that know how it goes but not the secret, again and again, on all ports.
void Bother(const std::atomic<bool>& over, std::atomic<int>* answered) {
  std::vector<int> open;
  while (!over) {
    for (const uint16_t port : ListeningPorts()) {
      for (int way = 0; way < 3; ++way) {
        const int fd = ConnectTo(port);
        if (fd < 0) continue;
        char bytes[4096] = {1};  // as if of the right version
        if (way == 1) (void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
        if (way == 2) {
          const timeval patience{0, 20000};
          setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
          (void)!recv(fd, bytes + 100, 16, MSG_WAITALL);
          (void)!send(fd, bytes, 200, MSG_NOSIGNAL);
          if (recv(fd, bytes, sizeof(bytes), 0) > 0) ++*answered;  // to someone who has proved nothing
        }
        open.push_back(fd);
      }
    }
    while (open.size() > 100) close(open.front()), open.erase(open.begin());
  }
  for (const int fd : open) close(fd);
}

PROGRAM(AddUp) { CheckSum(self, self.comm, 1, static_cast<float>(self.ranks)); }

TEST(Meeting, StrangersAreDropped) {
  const size_t before = ListeningPorts().size();
  std::atomic<bool> over{false};
  std::atomic<int> answered{0};
  std::thread stranger([&] { Bother(over, &answered); });
  for (int round = 0; round < 5; ++round) RunRanks("AddUp", {As::kThreads, 3});
  over = true;
  stranger.join();
  EXPECT_EQ(answered, 0);
  EXPECT_EQ(ListeningPorts().size(), before);  // nothing to knock at once they have met
}

// Someone else listens where the root should: no rank shows the secret to him.
TEST(Meeting, FalseRootIsRecognised) {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  HcclRootInfo info;
  ASSERT_EQ(HcclGetRootInfo(&info), 0);
  const std::string mine(info.internal, sizeof(info));
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  // His port in the place of ours, and an id that is not of this process.
  const std::vector<uint16_t> ports = ListeningPorts();
  const uint16_t his = ntohs(address.sin_port);
  bool changed = false;
  for (size_t i = 0; i + 2 <= 128; ++i) {
    uint16_t word;
    std::memcpy(&word, info.internal + i, 2);
    if (word == his || std::find(ports.begin(), ports.end(), word) == ports.end()) continue;
    std::memcpy(info.internal + i, &his, 2);
    changed = true;
  }
  ASSERT_TRUE(changed);
  for (int i = 32; i < 40; ++i) info.internal[i] = static_cast<char>(~info.internal[i]);
  std::thread impostor([&] {
    const int fd = accept(listener, nullptr, nullptr);
    char bytes[256] = {};
    (void)!send(fd, bytes, 16, MSG_NOSIGNAL);
    const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    const std::string heard(bytes, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    EXPECT_EQ(heard.find(mine.substr(16, 16)), std::string::npos);  // the secret
    (void)!send(fd, bytes, 8, MSG_NOSIGNAL);
    close(fd);
  });
  HcclComm comm = nullptr;
  EXPECT_EQ(HcclCommInitRootInfo(2, &info, 1, &comm), HCCL_E_TCP_CONNECT);
  EXPECT_NE(RecentText().find("does not know the secret"), std::string::npos);
  impostor.join();
  close(listener);
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

// --- the environment ---

LONE_PROGRAM(BadInterface) {
  HcclRootInfo info;
  CHECK_CODE(HcclGetRootInfo(&info), HCCL_E_NOT_FOUND);
  CHECK_TEXT(RecentText(), "no_such_interface");
  setenv("HCCL_SOCKET_IFNAME", "^lo", 1);
  setenv("HCCL_IF_IP", "nonsense", 1);
  CHECK_CODE(HcclGetRootInfo(&info), HCCL_E_PARA);
  setenv("HCCL_IF_IP", "192.0.2.1", 1);  // of nobody
  CHECK_CODE(HcclGetRootInfo(&info), HCCL_E_NETWORK);
  unsetenv("HCCL_IF_IP");
  for (const char* name : {"lo", "=lo", "^eth,en,docker,wl,br,veth"}) {
    setenv("HCCL_SOCKET_IFNAME", name, 1);
    CHECK_OK(HcclGetRootInfo(&info));
    CHECK_OK(HcclCommInitRootInfo(1, &info, 0, &self.comm));
    CHECK_OK(HcclCommDestroy(self.comm));
  }
  self.comm = nullptr;
}
TEST(Meeting, InterfaceOfTheEnvironment) {
  ASSERT_EQ(setenv("HCCL_SOCKET_IFNAME", "no_such_interface", 1), 0);
  HcclRootInfo info;
  ASSERT_EQ(aclrtSetDevice(0), 0);
  EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_NOT_FOUND);
  Rank self{0, 1, nullptr};
  EXPECT_NO_THROW(FindProgram("BadInterface")->run(self));
  unsetenv("HCCL_SOCKET_IFNAME");
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

}  // namespace
}  // namespace anyacl::hccl_test
