// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the guard knows of the program's memory.
#ifndef ANYACL_WATCH_BLOCKS_H_
#define ANYACL_WATCH_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "watch/site.h"
#include "watch/watch.h"
#include "watch/written.h"

namespace anyacl::watch {

// Bytes around a block that nobody may write. In front as many as keep its alignment.
inline constexpr size_t kZone = 512;
inline constexpr unsigned char kZoneByte = 0xa7;
inline constexpr unsigned char kFreedByte = 0xdb;

// What an operator did to a block last.
struct LastUse {
  const char* op = nullptr;
  const char* tensor = "";
  uint64_t run = 0;
  int stream = -1;
};

struct KnownBlock {
  explicit KnownBlock(const Block& block) : block(block), written(block.bytes) {}

  std::string Name() const;     // "device memory of 64 bytes at 0x7f..."
  std::string Details() const;  // who made it, freed it and used it last
  unsigned char* begin() const { return reinterpret_cast<unsigned char*>(block.begin); }
  // Where the red zone behind it ends.
  unsigned char* zone_end() const { return begin() + block.usable + kZone; }

  Block block;
  Site made;
  bool has_zones = false;
  bool is_freed = false;
  bool is_poisoned = false;  // and in quarantine
  Site freed;
  LastUse last;
  Written written;
};

// By address. All with the lock kWatch held.
class Blocks {
 public:
  KnownBlock& Add(const Block& block, const Site& site, bool has_zones);
  void Drop(uintptr_t begin) { blocks_.erase(begin); }
  KnownBlock* StartingAt(uintptr_t begin);
  // The block an address lies in, or in the tail or red zone behind it; null when there is none. Of mapped memory the
  // last piece of those that lie one behind the other counts for all: see EndOf.
  KnownBlock* Around(uintptr_t address);
  // Where the memory that an address lies in ends: of adjacent mapped blocks that of the last.
  uintptr_t EndOf(const KnownBlock& block) const;

  template <class Visit>
  void ForEach(Visit&& visit) {
    for (auto& [begin, block] : blocks_) visit(block);
  }

 private:
  std::map<uintptr_t, KnownBlock> blocks_;
};

// Looks at the red zones, says what was overwritten and mends it. `when`: lines for the details, made when they are needed.
using When = std::function<std::string()>;
void CheckZones(KnownBlock& block, const When& when);
// The same of memory that was freed.
void CheckFreed(KnownBlock& block);

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_BLOCKS_H_
