// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Ranks as threads of this process or as processes of their own, which run the same programs.
#ifndef ANYACL_TESTS_HCCL_RANKS_H_
#define ANYACL_TESTS_HCCL_RANKS_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace anyacl::hccl_test {

// What a program gets: its rank, a device that is current, and for most a communicator and a stream.
struct Rank {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  HcclRootInfo* info = nullptr;
  HcclComm comm = nullptr;
  aclrtStream stream = nullptr;
};
using Program = void (*)(Rank&);

struct ProgramRow {
  const char* name;
  Program run;
  bool meets = true;  // gets a communicator
};
// A program by its name, of all that PROGRAM or LONE_PROGRAM registered.
const ProgramRow* FindProgram(const std::string& name);
bool Register(const ProgramRow& row);
#define PROGRAM_ROW(name, meets)                                                          \
  void name(Rank& self);                                                                  \
  [[maybe_unused]] const bool name##_is_there = Register(ProgramRow{#name, name, meets}); \
  void name([[maybe_unused]] Rank& self)
#define PROGRAM(name) PROGRAM_ROW(name, true)
#define LONE_PROGRAM(name) PROGRAM_ROW(name, false)  // makes its own communicators, of self.info

enum class As { kThreads, kProcesses };

// Runs it on so many ranks; a rank fails when a CHECK of it does. `settings`: NAME=value for processes. `missing` never
// starts; `dies`: is expected to be killed.
struct Launch {
  As as = As::kThreads;
  uint32_t ranks = 1;
  std::vector<std::string> settings = {};
  int missing = -1;
  int dies = -1;
};
void RunRanks(const char* program, const Launch& launch);

// Set by main: also tests that take long.
inline bool with_slow_ones = false;

// For main: plays one rank when this process was started for it; false otherwise.
bool PlayedRank(int argc, char** argv, int* result);

inline std::string RecentText() {
  const char* const text = aclGetRecentErrMsg();
  return text ? text : "";
}

// These are for programs: they say where, and end the rank.
[[noreturn]] void Fail(const Rank& self, const char* file, int line, const std::string& text);
#define CHECK_THAT(condition, ...)                                                                 \
  do {                                                                                             \
    if (!(condition)) Fail(self, __FILE__, __LINE__, #condition " " + std::string(__VA_ARGS__));   \
  } while (false)
#define CHECK_CODE(call, wanted)                                                                   \
  do {                                                                                             \
    aclGetRecentErrMsg();                                                                          \
    const int got_code = static_cast<int>(call);                                                   \
    if (got_code != static_cast<int>(wanted)) {                                                    \
      Fail(self, __FILE__, __LINE__, #call " gave " + std::to_string(got_code) + ": " + RecentText()); \
    }                                                                                              \
  } while (false)
#define CHECK_OK(call) CHECK_CODE(call, 0)
#define CHECK_TEXT(text, part)                                                                     \
  do {                                                                                             \
    const std::string got_text = (text); /* once: reading a text may clear it */                   \
    CHECK_THAT(got_text.find(part) != std::string::npos, got_text);                                \
  } while (false)

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Bytes in device memory.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {
    if (bytes) {
      EXPECT_EQ(aclrtMalloc(&at_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    }
  }
  explicit Buffer(const std::vector<uint8_t>& content) : Buffer(content.size()) { Write(content); }
  ~Buffer() {
    if (at_) aclrtFree(at_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* at(size_t offset = 0) const { return at_ ? static_cast<char*>(at_) + offset : nullptr; }
  void Write(const std::vector<uint8_t>& content) {
    if (bytes_) {
      EXPECT_EQ(aclrtMemcpy(at_, bytes_, content.data(), content.size(), ACL_MEMCPY_HOST_TO_DEVICE), 0);
    }
  }
  std::vector<uint8_t> Read() const {
    std::vector<uint8_t> content(bytes_);
    if (bytes_) {
      EXPECT_EQ(aclrtMemcpy(content.data(), bytes_, at_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    }
    return content;
  }

 private:
  size_t bytes_;
  void* at_ = nullptr;
};

}  // namespace anyacl::hccl_test

#endif  // ANYACL_TESTS_HCCL_RANKS_H_
