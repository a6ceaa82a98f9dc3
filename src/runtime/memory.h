// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which memory of the process is ours. Not tied to devices, contexts or initialisation: programs
// free memory after they reset the device and finalised.
#ifndef ANYACL_RUNTIME_MEMORY_H_
#define ANYACL_RUNTIME_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "core/status.h"
#include "runtime/backend.h"
#include "runtime/context.h"
#include "runtime/stream.h"

namespace anyacl::runtime {

enum class MemoryKind {
  kDevice,      // aclrtMalloc
  kPinned,      // aclrtMallocHost
  kRegistered,  // the caller's memory, named to us by aclrtHostRegister
  kMapped,      // physical memory mapped into a reserved range
};

struct Block {
  MemoryKind kind = MemoryKind::kDevice;
  uintptr_t begin = 0;
  size_t bytes = 0;   // as the caller asked for
  size_t usable = 0;  // that may be touched, the tail included
  int device = 0;
  DeviceMemory* memory = nullptr;
  bool registered = false;  // pinned memory that the caller has registered, too
};

// What is known of an address. Without a block it is the caller's own, pageable memory.
struct Place {
  std::optional<Block> block;
  size_t extent = 0;  // usable bytes from the address on; adjacent mapped blocks count together

  bool pageable() const { return !block; }
  bool is_device() const {
    return block && (block->kind == MemoryKind::kDevice || block->kind == MemoryKind::kMapped);
  }
};

struct MemoryUsage {
  uint64_t current = 0;
  uint64_t peak = 0;
};

// The live blocks by address, and the bytes each device has given out.
class MemoryMap {
 public:
  static MemoryMap& Get();

  // False, and nothing changed, when it overlaps a block that is already there. Fresh memory where
  // registered memory used to be proves that the caller unmapped that without telling us.
  bool Insert(Block block);

  // Marks a pinned block, which needs nothing more, as registered or not; false when none that can be begins there.
  bool MarkRegistered(const void* begin, uint64_t bytes);
  bool UnmarkRegistered(const void* begin);
  // The block of that kind that begins exactly there.
  std::optional<Block> Remove(const void* begin, MemoryKind kind);
  Place Locate(const void* address) const;
  bool IsFree(uintptr_t begin, size_t bytes) const;

  MemoryUsage Usage(int device) const;
  void Count(int device, int64_t bytes);

 private:
  bool Add(Block* block);
  std::optional<Block> Take(const void* begin, MemoryKind kind);
  const Block* FindLocked(uintptr_t address) const;
  bool IsFreeLocked(uintptr_t begin, size_t bytes) const;
  void CutRegisteredLocked(uintptr_t begin, size_t bytes);
  void CountLocked(int device, int64_t bytes);

  std::map<uintptr_t, Block> blocks_;  // both guarded by kMemoryMap
  MemoryUsage usage_[kMaxDevices];
};

// Gives a block back to its backend once all work queued now is done. What that needs is made first, so that a block which
// was removed from the map is not lost for want of memory.
class BlockRelease {
 public:
  BlockRelease();
  void operator()(const Block& block) noexcept;

 private:
  struct Entry {
    Block block;
    Fence fence;
  };
  friend class PendingFrees;
  std::list<Entry> entry_;
};

// Freed, but waiting for such work.
size_t PendingFreeBytes();

// Gives back what was freed while work was queued, as far as that work is done. Cheap when there is
// nothing; allocations, frees and synchronising calls make it.
void ReclaimFrees();

// Runs `allocate` again after waiting for queued work when it returned null and freed memory waits
// for that work: to the caller it is free already.
void* AllocateOrReclaim(void* (*allocate)(void* context), void* context);
template <class Allocate>
void* AllocateOrReclaim(Allocate&& allocate) {
  return AllocateOrReclaim([](void* context) { return (*static_cast<Allocate*>(context))(); },
                           &allocate);
}

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_MEMORY_H_
