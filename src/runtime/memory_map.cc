// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/locks.h"
#include "core/once.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "watch/watch.h"

namespace anyacl::runtime {
namespace {

uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

watch::BlockKind KindOf(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return watch::BlockKind::kDevice;
    case MemoryKind::kPinned:
      return watch::BlockKind::kPinned;
    case MemoryKind::kRegistered:
      return watch::BlockKind::kRegistered;
    case MemoryKind::kMapped:
      return watch::BlockKind::kMapped;
  }
  return watch::BlockKind::kRegistered;
}

void Show(void (watch::Watcher::*what)(const watch::Block&), const Block& block) {
  if (!watch::On()) [[likely]]
    return;
  watch::Tell(what, watch::Block{KindOf(block.kind), block.begin, block.bytes, block.usable, block.device});
}

void GiveBack(const Block& block) {
  void* address = reinterpret_cast<void*>(block.begin);
  if (block.kind == MemoryKind::kPinned) {
    block.memory->FreeHost(address, block.bytes);
  } else {
    block.memory->Free(address, block.bytes, block.device);
  }
}

}  // namespace

// Freed blocks that queued work may still use. A fence made later covers all that an earlier one covers: the front is the
// first that is done, or nearly so where threads free at the same time.
class PendingFrees {
 public:
  static PendingFrees& Get() { return TheOne<PendingFrees>(); }

  void Add(std::list<BlockRelease::Entry>& entry) {
    const std::lock_guard lock(Mutex());
    bytes_ += entry.front().block.usable;
    waiting_.splice(waiting_.end(), entry);
  }

  void Reclaim() {
    if (bytes_ == 0) return;
    for (const BlockRelease::Entry& done : TakeDone()) GiveBack(done.block);
  }

  size_t bytes() const { return bytes_; }

 private:
  using Entries = std::list<BlockRelease::Entry>;

  static std::mutex& Mutex() { return LockOf(Lock::kPendingFrees); }

  Entries TakeDone() {
    Entries done;
    const std::lock_guard lock(Mutex());
    while (!waiting_.empty() && waiting_.front().fence.Done()) {
      bytes_ -= waiting_.front().block.usable;
      done.splice(done.end(), waiting_, waiting_.begin());
    }
    return done;
  }

  Entries waiting_;
  std::atomic<size_t> bytes_{0};
};

MemoryMap& MemoryMap::Get() { return TheOne<MemoryMap>(); }

// Programs register whole pages, and what follows their memory in its last page may be a small block of ours: the
// registration then ends where the block begins, whichever comes first.
bool MemoryMap::Insert(Block block) {
  if (!Add(&block)) return false;
  Show(&watch::Watcher::Appeared, block);
  return true;
}

bool MemoryMap::Add(Block* added) {
  Block& block = *added;
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  if (block.kind != MemoryKind::kRegistered) {
    CutRegisteredLocked(block.begin, block.usable);
  } else if (const auto next = blocks_.upper_bound(block.begin);
             next != blocks_.end() && next->second.kind != MemoryKind::kRegistered) {
    block.usable = block.bytes = std::min(block.usable, next->first - block.begin);
  }
  if (!IsFreeLocked(block.begin, block.usable)) return false;
  blocks_.emplace(block.begin, block);
  if (block.kind == MemoryKind::kDevice)
    CountLocked(block.device, static_cast<int64_t>(block.bytes));
  return true;
}

std::optional<Block> MemoryMap::Remove(const void* begin, MemoryKind kind) {
  std::optional<Block> block = Take(begin, kind);
  if (block) Show(&watch::Watcher::Vanished, *block);
  return block;
}

std::optional<Block> MemoryMap::Take(const void* begin, MemoryKind kind) {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  const auto found = blocks_.find(AddressOf(begin));
  if (found == blocks_.end() || found->second.kind != kind) return std::nullopt;
  const Block block = found->second;
  blocks_.erase(found);
  if (kind == MemoryKind::kDevice) CountLocked(block.device, -static_cast<int64_t>(block.bytes));
  return block;
}

bool MemoryMap::MarkRegistered(const void* begin, uint64_t bytes) {
  constexpr size_t kPage = 4096;
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  const auto found = blocks_.find(AddressOf(begin));
  if (found == blocks_.end() || found->second.kind != MemoryKind::kPinned) return false;
  Block& block = found->second;
  if (block.registered || bytes > (block.usable + kPage - 1) / kPage * kPage) return false;
  block.registered = true;
  return true;
}

bool MemoryMap::UnmarkRegistered(const void* begin) {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  const auto found = blocks_.find(AddressOf(begin));
  return found != blocks_.end() && std::exchange(found->second.registered, false);
}

Place MemoryMap::Locate(const void* address) const {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  const Block* block = FindLocked(AddressOf(address));
  if (!block) return {};
  Place place{*block, 0};
  uintptr_t end = block->begin + block->usable;
  if (block->kind == MemoryKind::kMapped) {
    for (auto next = blocks_.find(end);
         next != blocks_.end() && next->second.kind == MemoryKind::kMapped;
         next = blocks_.find(end)) {
      end += next->second.usable;
    }
  }
  place.extent = end - AddressOf(address);
  return place;
}

bool MemoryMap::IsFree(uintptr_t begin, size_t bytes) const {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  return IsFreeLocked(begin, bytes);
}

MemoryUsage MemoryMap::Usage(int device) const {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  return usage_[device];
}

void MemoryMap::Count(int device, int64_t bytes) {
  const std::lock_guard lock(LockOf(Lock::kMemoryMap));
  CountLocked(device, bytes);
}

const Block* MemoryMap::FindLocked(uintptr_t address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return nullptr;
  const Block& block = std::prev(next)->second;
  return address - block.begin < block.usable ? &block : nullptr;
}

bool MemoryMap::IsFreeLocked(uintptr_t begin, size_t bytes) const {
  if (FindLocked(begin)) return false;
  const auto next = blocks_.lower_bound(begin);
  return next == blocks_.end() || next->first - begin >= bytes;
}

void MemoryMap::CutRegisteredLocked(uintptr_t begin, size_t bytes) {
  auto block = blocks_.lower_bound(begin);
  if (block != blocks_.begin() && FindLocked(begin)) block = std::prev(blocks_.upper_bound(begin));
  while (block != blocks_.end() && block->second.kind == MemoryKind::kRegistered &&
         (block->first <= begin || block->first - begin < bytes)) {
    if (block->first < begin) {
      block->second.usable = block->second.bytes = begin - block->first;
      ++block;
    } else {
      block = blocks_.erase(block);
    }
  }
}

void MemoryMap::CountLocked(int device, int64_t bytes) {
  MemoryUsage& usage = usage_[device];
  usage.current += static_cast<uint64_t>(bytes);
  usage.peak = std::max(usage.peak, usage.current);
}

BlockRelease::BlockRelease() {
  Fence fence = Fence::Capture();
  if (!fence.Done()) entry_.push_back({{}, std::move(fence)});
}

void BlockRelease::operator()(const Block& block) noexcept {
  if (entry_.empty()) return GiveBack(block);
  entry_.front().block = block;
  PendingFrees::Get().Add(entry_);
}

size_t PendingFreeBytes() { return PendingFrees::Get().bytes(); }

void ReclaimFrees() { PendingFrees::Get().Reclaim(); }

void* AllocateOrReclaim(void* (*allocate)(void* context), void* context) {
  // Bounded, because queued work may wait for something this thread still has to do.
  constexpr std::chrono::seconds kPatience{10};
  ReclaimFrees();
  void* address = allocate(context);
  if (address || PendingFrees::Get().bytes() == 0 || Stream::OfThisThread()) return address;
  WaitAllStreams(kAllDevices, std::chrono::steady_clock::now() + kPatience);
  ReclaimFrees();
  return allocate(context);
}

}  // namespace anyacl::runtime
