// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the replay of a call needs to know: which of its own objects and addresses stand for those of the trace.
#ifndef ANYACL_TOOLS_REPLAY_H_
#define ANYACL_TOOLS_REPLAY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "trace_file.h"

namespace anyacl::tool {

// Shared by the threads of a replay.
class Translation {
 public:
  // The address or handle that stands for one of the trace. Memory that no call gave out is the program's own: it gets
  // memory of ours, in which addresses lie as they did there.
  void* Of(uint64_t recorded);
  // Remembers what a call gave out.
  void Learn(uint64_t recorded, const void* now);
  void LearnMemory(const MemoryRange& recorded, const void* now);

  // The same for threads. Their numbers come again when they have ended, so it is the first whose last call ends after `ticket`.
  uint64_t ThreadOf(uint64_t recorded, uint64_t ticket);
  void LearnThread(uint64_t recorded, uint64_t last_ticket, uint64_t now);

  // The same for bytes that mean something, as those by which ranks meet; and the pointers that they hold.
  std::string OfBytes(const std::string& recorded);
  void LearnBytes(const std::string& recorded, std::string now);
  bool KnowsBytes(const std::string& recorded);

  // A communicator that is not made here, because it is one with other processes.
  void LeaveOut(uint64_t communicator);
  bool IsLeftOut(uint64_t communicator);

 private:
  struct Memory {
    uint64_t bytes;
    char* now;
  };
  std::optional<void*> KnownLocked(uint64_t recorded) const;
  void* WindowLocked(uint64_t recorded);

  std::mutex mutex_;
  std::unordered_map<uint64_t, void*> handles_;
  std::map<uint64_t, Memory> memory_;
  std::map<uint64_t, char*> windows_;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> threads_;  // by number and last ticket
  std::map<std::string, std::string> bytes_;
  std::map<uint64_t, bool> left_out_;
};

// What one replayed call came to.
struct Replayed {
  Traced result;
  bool left_out = false;
  int same_digests = 0;
  int other_digests = 0;
};

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_REPLAY_H_
