// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ranks.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

namespace anyacl::hccl_test {
namespace {

std::map<std::string, ProgramRow>& Programs() {
  static auto* const programs = new std::map<std::string, ProgramRow>;
  return *programs;
}

struct Failed {};

// A rank in the calling thread; a failed CHECK ends it.
bool Play(const ProgramRow& program, Rank self) {
  try {
    const uint32_t device = self.rank % 5;  // ANYACL_DEVICES of this test
    CHECK_OK(aclrtSetDevice(static_cast<int32_t>(device)));
    if (program.meets) {
      CHECK_OK(HcclCommInitRootInfo(self.ranks, self.info, self.rank, &self.comm));
      CHECK_OK(aclrtCreateStream(&self.stream));
    }
    program.run(self);
    if (self.stream) CHECK_OK(aclrtDestroyStream(self.stream));
    if (self.comm) CHECK_OK(HcclCommDestroy(self.comm));
    CHECK_OK(aclrtResetDevice(static_cast<int32_t>(device)));
    return true;
  } catch (const Failed&) {
    if (self.comm) HcclCommDestroy(self.comm);  // so that the others hear of it
    return false;
  }
}

void RunThreads(const ProgramRow& program, const Launch& launch) {
  HcclRootInfo info;
  ASSERT_EQ(aclrtSetDevice(0), 0);
  ASSERT_EQ(HcclGetRootInfo(&info), 0) << RecentText();
  std::vector<std::thread> threads;
  std::vector<int> good(launch.ranks, 1);
  for (uint32_t r = 0; r < launch.ranks; ++r) {
    if (static_cast<int>(r) == launch.missing) continue;
    threads.emplace_back([&, r] {
      Rank self{r, launch.ranks, &info};
      good[r] = Play(program, self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t r = 0; r < launch.ranks; ++r) EXPECT_TRUE(good[r]) << program.name << ": rank " << r << " failed";
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

pid_t Start(const std::vector<std::string>& words, const std::vector<std::string>& settings) {
  std::vector<char*> arguments, environment;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const std::string& setting : settings) environment.push_back(const_cast<char*>(setting.c_str()));
  for (char** one = environ; *one; ++one) environment.push_back(*one);
  environment.push_back(nullptr);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environment.data()), 0);
  return child;
}

void RunProcesses(const ProgramRow& program, const Launch& launch) {
  char folder[] = "/tmp/anyacl-hccl-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string program_file = std::filesystem::read_symlink("/proc/self/exe");  // beside which the plug-in for GPUs is found
  std::vector<pid_t> children(launch.ranks, -1);
  for (uint32_t r = 0; r < launch.ranks; ++r) {
    if (static_cast<int>(r) == launch.missing) continue;
    children[r] = Start({program_file, "--play", program.name, std::to_string(r), std::to_string(launch.ranks), folder}, launch.settings);
  }
  for (uint32_t r = 0; r < launch.ranks; ++r) {
    if (children[r] < 0) continue;
    int status = 0;
    waitpid(children[r], &status, 0);
    if (static_cast<int>(r) == launch.dies) {
      EXPECT_TRUE(WIFSIGNALED(status)) << program.name << ": rank " << r << " should have died";
    } else {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << program.name << ": rank " << r << " ended with " << status;
    }
  }
  std::filesystem::remove_all(folder);
}

// The first rank that runs leaves it in the folder, the others wait for it.
bool ShareRootInfo(const std::string& folder, bool makes_it, HcclRootInfo* info) {
  const std::string file = folder + "/root_info", partial = file + ".new";
  if (makes_it) {
    if (aclrtSetDevice(0) || HcclGetRootInfo(info)) return false;
    std::ofstream(partial, std::ios::binary).write(info->internal, sizeof(*info));
    return std::rename(partial.c_str(), file.c_str()) == 0;
  }
  for (int i = 0; i < 3000; ++i) {
    if (std::ifstream in(file, std::ios::binary); in.read(info->internal, sizeof(*info))) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

bool Register(const ProgramRow& row) { return Programs().emplace(row.name, row).second; }

const ProgramRow* FindProgram(const std::string& name) {
  const auto found = Programs().find(name);
  return found == Programs().end() ? nullptr : &found->second;
}

void Fail(const Rank& self, const char* file, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: rank %u of %u: %s\n", file, line, self.rank, self.ranks, text.c_str());
  throw Failed();
}

void RunRanks(const char* name, const Launch& launch) {
  const ProgramRow* const program = FindProgram(name);
  ASSERT_NE(program, nullptr) << name;
  if (launch.as == As::kThreads) {
    RunThreads(*program, launch);
  } else {
    RunProcesses(*program, launch);
  }
}

bool PlayedRank(int argc, char** argv, int* result) {
  if (argc != 6 || std::strcmp(argv[1], "--play") != 0) return false;
  alarm(240);  // a hang is a failure
  Rank self;
  self.rank = static_cast<uint32_t>(std::atoi(argv[3]));
  self.ranks = static_cast<uint32_t>(std::atoi(argv[4]));
  HcclRootInfo info;
  self.info = &info;
  const ProgramRow* const program = FindProgram(argv[2]);
  *result = program && ShareRootInfo(argv[5], self.rank == 0, &info) && Play(*program, self) ? 0 : 1;
  return true;
}

}  // namespace anyacl::hccl_test
