// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "watch/blocks.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

#include "watch/report.h"

namespace anyacl::watch {
namespace {

const char* NameOf(BlockKind kind) {
  switch (kind) {
    case BlockKind::kDevice:
      return "device memory";
    case BlockKind::kPinned:
      return "host memory";
    case BlockKind::kRegistered:
      return "registered host memory";
    case BlockKind::kMapped:
      return "mapped device memory";
  }
  return "memory";
}

struct Damage {
  size_t bytes = 0;
  size_t first = 0;
};

// Bytes that are not what they were filled with; mended.
Damage FindDamage(unsigned char* begin, size_t bytes, unsigned char filling) {
  // A zone is equal to itself one byte further when all its bytes are the same.
  if (bytes == 0 || (begin[0] == filling && std::memcmp(begin, begin + 1, bytes - 1) == 0))
    return {};
  Damage damage;
  for (size_t i = 0; i < bytes; ++i) {
    if (begin[i] == filling) continue;
    if (damage.bytes++ == 0) damage.first = i;
    begin[i] = filling;
  }
  return damage;
}

void ReportDamage(const KnownBlock& block, const Damage& damage, const std::string& where,
                  const std::string& when) {
  Report("guard",
         fmt::format("{} {} {} of {} were overwritten", damage.bytes,
                     damage.bytes == 1 ? "byte" : "bytes", where, block.Name()),
         when + block.Details());
}

}  // namespace

std::string KnownBlock::Name() const {
  return fmt::format("{} of {} bytes at {:#x}", NameOf(block.kind), block.bytes, block.begin);
}

std::string KnownBlock::Details() const {
  std::string text;
  if (last.op) {
    text += fmt::format("  last operator on it: {} (call {}, stream {}), its {}\n", last.op,
                        last.run, last.stream, last.tensor);
  }
  if (is_freed) text += "  freed by\n" + freed.Lines();
  return text + "  allocated by\n" + made.Lines();
}

KnownBlock& Blocks::Add(const Block& block, const Site& site, bool has_zones) {
  const uintptr_t end = block.begin + block.usable;
  auto old = blocks_.lower_bound(block.begin);
  if (old != blocks_.begin() &&
      std::prev(old)->first + std::prev(old)->second.block.usable > block.begin)
    --old;
  while (old != blocks_.end() && old->first < end) old = blocks_.erase(old);
  KnownBlock& known = blocks_.emplace(block.begin, block).first->second;
  known.made = site;
  known.has_zones = has_zones;
  if (block.kind != BlockKind::kDevice) known.written.MarkAll();  // the host writes it as it likes
  return known;
}

KnownBlock* Blocks::StartingAt(uintptr_t begin) {
  const auto found = blocks_.find(begin);
  return found == blocks_.end() ? nullptr : &found->second;
}

KnownBlock* Blocks::Around(uintptr_t address) {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return nullptr;
  KnownBlock& block = std::prev(next)->second;
  const size_t reach = block.block.usable + (block.has_zones ? kZone : 0);
  return address - block.block.begin < reach ? &block : nullptr;
}

uintptr_t Blocks::EndOf(const KnownBlock& block) const {
  uintptr_t end = block.block.begin + block.block.bytes;
  if (block.block.kind != BlockKind::kMapped) return end;
  for (auto next = blocks_.find(end);
       next != blocks_.end() && next->second.block.kind == BlockKind::kMapped &&
       !next->second.is_freed;
       next = blocks_.find(end)) {
    end += next->second.block.bytes;
  }
  return end;
}

void CheckZones(KnownBlock& block, const When& when) {
  if (!block.has_zones || block.is_poisoned) return;
  unsigned char* const end = block.begin() + block.block.bytes;
  const Damage behind = FindDamage(end, static_cast<size_t>(block.zone_end() - end), kZoneByte);
  if (behind.bytes > 0) {
    ReportDamage(block, behind,
                 fmt::format("behind the end, from byte {} behind it on,", behind.first), when());
  }
  const Damage front = FindDamage(block.begin() - kZone, kZone, kZoneByte);
  if (front.bytes > 0) {
    ReportDamage(
        block, front,
        fmt::format("in front of the begin, from byte {} in front of it on,", kZone - front.first),
        when());
  }
}

void CheckFreed(KnownBlock& block) {
  const Damage damage = FindDamage(block.begin(), block.block.bytes, kFreedByte);
  if (damage.bytes > 0)
    ReportDamage(block, damage,
                 fmt::format("from byte {} on, after they were freed,", damage.first), "");
}

}  // namespace anyacl::watch
