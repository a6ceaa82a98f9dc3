// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The guard: red zones and quarantine for every block of memory, and what each operator may touch of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <set>
#include <string_view>

#include "core/env.h"
#include "core/inline_vector.h"
#include "core/locks.h"
#include "core/once.h"
#include "plan/layout.h"
#include "watch/blocks.h"
#include "watch/report.h"
#include "watch/tools.h"

namespace anyacl::watch {
namespace {

constexpr size_t kQuarantine = size_t{64} << 20;  // bytes of freed memory that are kept
constexpr size_t kMostKept = size_t{16} << 20;    // of one block
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMargin = 64;  // bytes beside an output that are compared

std::mutex& Mutex() { return LockOf(Lock::kWatch); }

// Bytes [begin, end) that an operator may touch.
struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool empty() const { return begin >= end; }
  bool Meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

// Not elements of less than a byte, nor layouts that the view does not tell.
bool IsPlain(const Tensor& t) {
  const bool is_packed = t.dtype == DType::kI4 || t.dtype == DType::kU1 ||
                         (t.dtype >= DType::kF6E3M2 && t.dtype <= DType::kF4E1M2);
  return SizeOf(t.dtype) > 0 && !is_packed && !IsPrivate(t.format);
}

Range RangeOf(const TensorUse& use) {
  if (!use.is_touched || !IsPlain(use.tensor)) return {};
  return {use.span.begin, use.span.end};
}

Range WorkspaceOf(const OperatorRun& run) {
  if (!run.workspace) return {};
  const auto begin = reinterpret_cast<uintptr_t>(run.workspace);
  return {begin, begin + run.workspace_bytes};
}

std::string NameOf(const TensorUse& use) {
  return use.in_list ? fmt::format("{}[{}]", use.name, use.item) : use.name;
}

std::string Describe(const TensorUse& use) {
  const Tensor& t = use.tensor;
  return fmt::format("{} {} {} with strides {} and offset {} at {}", NameOf(use), Name(t.dtype),
                     ToString(t.dims), ToString(t.strides), t.offset, fmt::ptr(t.data));
}

std::string Describe(const OperatorRun& run) {
  return fmt::format("{} (call {}, stream {})", run.name, run.number, run.stream);
}

// What an operator works with, for reports.
struct Part {
  const OperatorRun& run;
  const TensorUse* use;  // null: the workspace

  std::string Name() const { return use ? NameOf(*use) : "workspace"; }
  std::string Line() const {
    return use ? "  " + Describe(*use) + "\n"
               : fmt::format("  workspace of {} bytes at {}\n", run.workspace_bytes,
                             fmt::ptr(run.workspace));
  }
};

std::string CalledBy(const OperatorRun& run) {
  return "  which was called by\n" + run.site.Lines();
}

void Blame(const OperatorRun& run, const std::string& sentence, const std::string& details) {
  Report("guard", fmt::format("{}: {}", Describe(run), sentence),
         details + "  called by\n" + run.site.Lines());
}

// Operators that read what their indices or lengths name, and leave the rest of an input alone.
bool Selects(std::string_view family) {
  return family == "indexing" || family == "attention" || family == "moe" || family == "rotary";
}

// The bytes beside the outputs of a run and behind its workspace, as they were before it.
struct Margins {
  enum Side { kBehind, kInFrontOf };
  struct Piece {
    const TensorUse* use;  // null: the workspace
    Side side;
    unsigned char* begin;
    size_t bytes;
    unsigned char content[kMargin];
  };
  InlineVector<Piece, 4> pieces;
  uint64_t others = 0;  // what else was going on, by Guard::others_
};

class Guard final : public Watcher {
 public:
  // --- memory ---

  void Appeared(const Block& block) override {
    const Site site = Site::Here();
    const bool has_zones =
        (block.kind == BlockKind::kDevice || block.kind == BlockKind::kPinned) && zones_;
    const std::lock_guard lock(Mutex());
    ++memory_;
    KnownBlock& known = blocks_.Add(block, site, has_zones);
    if (has_zones) live_.insert(&known);
  }

  void Vanished(const Block& block) override {
    const Site site = Site::Here();
    const std::lock_guard lock(Mutex());
    KnownBlock* const known = blocks_.StartingAt(block.begin);
    if (!known) return;
    ++memory_;
    CheckZones(*known, [] { return "  found when it was freed\n"; });
    known->is_freed = true;
    known->freed = site;
    live_.erase(known);
  }

  // --- the allocator behind the red zones; see Zoned ---

  void Dress(unsigned char* begin, size_t bytes, size_t usable) {
    zones_ = true;
    std::memset(begin - kZone, kZoneByte, kZone);
    std::memset(begin + bytes, kZoneByte, usable + kZone - bytes);
  }

  struct Kept {
    uintptr_t begin;
    size_t bytes;
    void (*give_back)(DeviceMemory& memory, void* begin, size_t bytes, int device);
    DeviceMemory* memory;
    int device;
  };

  // Takes freed memory that nobody uses any more, and gives the oldest back when there is too much.
  void Keep(const Kept& freed) {
    std::list<Kept> going{freed};
    {
      const std::lock_guard lock(Mutex());
      KnownBlock* const known = blocks_.StartingAt(freed.begin);
      if (known) {
        CheckZones(*known, [] { return "  found when queued work was done with it\n"; });
        live_.erase(known);
      }
      if (known && freed.bytes <= kMostKept) {
        std::memset(known->begin(), kFreedByte, freed.bytes);
        known->is_poisoned = true;
        kept_bytes_ += freed.bytes;
        kept_.splice(kept_.end(), going);
      }
      while (kept_bytes_ > kQuarantine) {
        Examine(kept_.front());
        kept_bytes_ -= kept_.front().bytes;
        going.splice(going.end(), kept_, kept_.begin());
      }
      if (!going.empty()) ++memory_;
      for (const Kept& one : going)
        blocks_.Drop(one.begin);  // who gets these addresses next is not known
    }
    for (const Kept& one : going)
      one.give_back(*one.memory, reinterpret_cast<void*>(one.begin), one.bytes, one.device);
  }

  // --- operators ---

  // Programs make the same call in loops. What it touches was looked at the first time, and whether memory was overwritten is seen
  // when the host waits, too.
  bool Knows(const RunOutline& run) override {
    if (Selects(run.family)) return false;  // it may write elsewhere this time
    const std::lock_guard lock(Mutex());
    const KnownRun& known = PlaceOf(run.call.get(), run.addresses);
    if (known.call != run.call || known.memory != memory_ || known.stream != run.stream ||
        known.workspace != run.workspace || !std::ranges::equal(known.addresses, run.addresses) ||
        !std::ranges::all_of(run.handles, IsAlive))
      return false;
    NoteStream(run.stream);
    return true;
  }

  void Called(const OperatorRun& run) override {
    const std::lock_guard lock(Mutex());
    for (const TensorUse& use : run.tensors) {
      CheckHandle(run, use);
      CheckPlace({run, &use}, RangeOf(use));
    }
    CheckWorkspace(run);
    CheckOverlaps(run);
    NoteStream(run.stream);
    if (!run.is_captured) Remember(run);
  }

  std::shared_ptr<void> Before(const OperatorRun& run, const Launch&) override {
    if (run.backend->launches()) return nullptr;
    const std::lock_guard lock(Mutex());
    for (const TensorUse& use : run.tensors) CheckWritten(run, use);
    return IsAlone(run.stream) ? TakeMargins(run) : nullptr;
  }

  void After(const OperatorRun& run, const Launch&, void* kept) override {
    const std::lock_guard lock(Mutex());
    if (kept) CompareMargins(run, *static_cast<Margins*>(kept));
    InlineVector<KnownBlock*, 8> touched;
    const auto touch = [&](KnownBlock* block) {
      if (std::find(touched.begin(), touched.end(), block) == touched.end())
        touched.push_back(block);
    };
    for (const TensorUse& use : run.tensors) {
      const Range range = RangeOf(use);
      KnownBlock* const block = blocks_.Around(range.empty() ? use.span.begin : range.begin);
      if (!block || !use.is_touched) continue;
      block->last = {run.name, use.name, run.number, run.stream};
      if (!use.is_written) continue;
      if (range.empty()) {  // how far it reaches only the operator knows
        block->written.Mark(use.span.begin - block->block.begin, block->block.bytes);
        continue;
      }
      touch(block);
      MarkWritten(*block, use.tensor, use.span);
    }
    if (const Range workspace = WorkspaceOf(run); !workspace.empty()) {
      if (KnownBlock* const block = blocks_.Around(workspace.begin)) {
        block->last = {run.name, "workspace", run.number, run.stream};
        touch(block);
      }
    }
    for (KnownBlock* block : touched)
      CheckZones(*block,
                 [&] { return fmt::format("  found after {}\n{}", Describe(run), CalledBy(run)); });
  }

  // --- the runtime ---

  void Transfers(const Transfer& transfer) override {
    const Site site = Site::Here();
    const std::lock_guard lock(Mutex());
    ++others_;
    if (transfer.stream >= 0) NoteStream(transfer.stream);
    CheckAlive(transfer.function, "dst", transfer.to, site);
    if (transfer.from) CheckAlive(transfer.function, "src", *transfer.from, site);
    if (KnownBlock* const block = blocks_.Around(reinterpret_cast<uintptr_t>(transfer.to.data)))
      MarkWritten(*block, transfer.to, SpanOf(transfer.to));
  }

  void MayWrite(const void* address, size_t bytes) override {
    const std::lock_guard lock(Mutex());
    ++others_;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    if (KnownBlock* const block = blocks_.Around(begin))
      block->written.Mark(begin - block->block.begin, bytes);
  }

  void Blurs(int stream) override {
    const std::lock_guard lock(Mutex());
    NoteStream(stream);
  }

  void HostReached(const Reached& reached) override {
    const std::lock_guard lock(Mutex());
    if (reached.stream >= 0) busy_.erase(reached.stream);
    CheckAll("  found when the host waited for work\n");
  }

  void Ends(bool at_exit) override {
    {
      const std::lock_guard lock(Mutex());
      CheckAll(at_exit ? "  found when the process ended\n" : "  found by aclFinalize\n");
      for (const Kept& kept : kept_) Examine(kept);
      if (!at_exit) ReportLeaks();
    }
    if (!at_exit) ReportLeakedHandles();
  }

 private:
  // --- all with the lock held ---

  // A run that was looked at.
  struct KnownRun {
    std::shared_ptr<const contract::CallSpec> call;
    std::vector<const void*> addresses;
    const void* workspace = nullptr;
    int stream = -1;
    uint64_t memory = 0;  // memory_ then
  };

  KnownRun& PlaceOf(const void* call, std::span<const void* const> addresses) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    uint64_t sum = reinterpret_cast<uintptr_t>(call);
    for (const void* address : addresses) sum = sum * 31 + reinterpret_cast<uintptr_t>(address);
    return known_[(sum * kFactor >> 32) % std::size(known_)];
  }

  void Remember(const OperatorRun& run) {
    std::vector<const void*> addresses;
    for (const TensorUse& use : run.tensors) addresses.push_back(use.tensor.data);
    KnownRun& place = PlaceOf(run.call.get(), addresses);
    place = {run.call, std::move(addresses), run.workspace, run.stream, memory_};
  }

  void CheckAll(const char* when) {
    for (KnownBlock* block : live_) CheckZones(*block, [when] { return when; });
  }

  void Examine(const Kept& kept) {
    KnownBlock* const block = blocks_.StartingAt(kept.begin);
    if (!block || !block->is_poisoned) return;
    CheckFreed(*block);
  }

  void ReportLeaks() {
    std::map<Site, std::pair<int, size_t>> sites;
    const KnownBlock* example = nullptr;
    blocks_.ForEach([&](KnownBlock& block) {
      if (block.is_freed || block.block.kind == BlockKind::kRegistered) return;
      auto& [count, bytes] = sites[block.made];
      ++count;
      bytes += block.block.bytes;
      example = &block;
    });
    if (!example) return;
    for (const auto& [site, sum] : sites) {
      Report("leaks",
             fmt::format("{} {} of memory with {} bytes in all {} never freed", sum.first,
                         sum.first == 1 ? "block" : "blocks", sum.second,
                         sum.first == 1 ? "was" : "were"),
             "  allocated by\n" + site.Lines());
    }
  }

  // Nothing of ours needs it any more, but other implementations of the interface read it in phase 2.
  static void CheckHandle(const OperatorRun& run, const TensorUse& use) {
    if (IsAlive(use.handle)) return;
    Blame(run,
          fmt::format(
              "{} was destroyed after phase 1, which phase 2 may read on other implementations",
              NameOf(use)),
          "  " + Describe(use) + "\n");
  }

  void CheckPlace(const Part& part, const Range& range) {
    if (range.empty()) return;
    const OperatorRun& run = part.run;
    const KnownBlock* const block = blocks_.Around(range.begin);
    if (!block) {
      return Blame(
          run,
          fmt::format(
              "{} lies at {:#x}, which is no memory of a device (aclrtMalloc did not give it)",
              part.Name(), range.begin),
          part.Line());
    }
    if (block->is_freed)
      return Blame(run, fmt::format("{} lies in {}, which was freed", part.Name(), block->Name()),
                   part.Line() + block->Details());
    const uintptr_t end = blocks_.EndOf(*block);
    if (range.end > end) {
      Blame(run,
            fmt::format("{} reaches {} bytes behind the end of {}", part.Name(), range.end - end,
                        block->Name()),
            part.Line() + block->Details());
    }
    const bool is_device =
        block->block.kind == BlockKind::kDevice || block->block.kind == BlockKind::kMapped;
    if (is_device && block->block.device != run.device) {
      Blame(run,
            fmt::format("{} lies on device {}, but the stream is of device {}", part.Name(),
                        block->block.device, run.device),
            part.Line() + block->Details());
    }
  }

  void CheckWorkspace(const OperatorRun& run) {
    const Range workspace = WorkspaceOf(run);
    if (workspace.empty()) return;
    CheckPlace({run, nullptr}, workspace);
    for (const TensorUse& use : run.tensors) {
      if (!RangeOf(use).Meets(workspace)) continue;
      Blame(run, fmt::format("the workspace and {} overlap", NameOf(use)),
            "  " + Describe(use) + "\n");
    }
  }

  static void CheckOverlaps(const OperatorRun& run) {
    for (size_t i = 0; i < run.tensors.size(); ++i) {
      const TensorUse& output = run.tensors[i];
      if (!output.is_written || RangeOf(output).empty()) continue;
      for (size_t k = 0; k < i; ++k) {
        const TensorUse& other = run.tensors[k];
        if (!other.is_written || !RangeOf(other).Meets(RangeOf(output)) ||
            !ShareBytes(output.tensor, other.tensor))
          continue;
        Blame(run, fmt::format("the outputs {} and {} overlap", NameOf(other), NameOf(output)),
              fmt::format("  {}\n  {}\n", Describe(other), Describe(output)));
      }
    }
  }

  void CheckWritten(const OperatorRun& run, const TensorUse& use) {
    if (!use.is_read || use.is_written) return;  // what is written, too, is often not read at all
    const Range range = RangeOf(use);
    KnownBlock* const block = range.empty() ? nullptr : blocks_.Around(range.begin);
    if (!block ||
        block->written.HasAll(range.begin - block->block.begin, range.end - block->block.begin) ||
        (Selects(run.family) && !block->written.none()))
      return;
    Written::Gap gap;
    size_t all = 0;
    const auto base = reinterpret_cast<uintptr_t>(use.tensor.data) - block->block.begin;
    ForEachPiece(use.tensor, [&](int64_t offset, int64_t bytes) {
      block->written.Find(base + static_cast<size_t>(offset), static_cast<size_t>(bytes), &gap);
      all += static_cast<size_t>(bytes);
    });
    if (gap.bytes == 0) return;
    Report(
        "guard",
        fmt::format(
            "{}: {} is read, but {} of its {} bytes were never written, the first is byte {} of {}",
            Describe(run), NameOf(use), gap.bytes, all, gap.first, block->Name()),
        "  " + Describe(use) + "\n" + CalledBy(run) + block->Details());
    MarkWritten(*block, use.tensor, use.span);
  }

  static void MarkWritten(KnownBlock& block, const Tensor& t, const Span& span) {
    if (block.written.HasAll(span.begin - block.block.begin, span.end - block.block.begin)) return;
    const auto base = reinterpret_cast<uintptr_t>(t.data) - block.block.begin;
    ForEachPiece(t, [&](int64_t offset, int64_t bytes) {
      block.written.Mark(base + static_cast<size_t>(offset), static_cast<size_t>(bytes));
    });
  }

  void CheckAlive(const char* function, const char* argument, const Tensor& t, const Site& site) {
    const KnownBlock* const block = blocks_.Around(reinterpret_cast<uintptr_t>(t.data));
    if (!block || !block->is_freed) return;
    Report("guard",
           fmt::format("{}: {} lies in {}, which was freed", function, argument, block->Name()),
           block->Details() + "  called by\n" + site.Lines());
  }

  // --- margins: only while nothing but this stream is at work, or others may write there rightly ---

  void NoteStream(int stream) {
    busy_.insert(stream);
    if (busy_.size() > 1) ++others_;
  }
  bool IsAlone(int stream) const {
    return busy_.empty() || (busy_.size() == 1 && *busy_.begin() == stream);
  }

  // Null: there is nothing to compare.
  std::shared_ptr<Margins> TakeMargins(const OperatorRun& run) {
    const Range workspace = WorkspaceOf(run);
    InlineVector<Range, 8> written;
    written.push_back(workspace);
    for (const TensorUse& use : run.tensors) {
      if (use.is_written) written.push_back(RangeOf(use));
    }
    std::shared_ptr<Margins> margins;
    const auto take = [&](Range margin, const TensorUse* use, Margins::Side side) {
      const KnownBlock* const block = blocks_.Around(margin.begin);
      if (!block || block->is_freed || block->block.kind == BlockKind::kMapped) return;
      margin.begin = std::max(margin.begin, block->block.begin);
      margin.end = std::min(margin.end, block->block.begin + block->block.bytes);
      const bool is_written = std::any_of(written.begin(), written.end(),
                                          [&](const Range& range) { return range.Meets(margin); });
      if (margin.empty() || is_written) return;
      if (!margins) margins = std::make_shared<Margins>();
      Margins::Piece piece{
          use, side, reinterpret_cast<unsigned char*>(margin.begin), margin.end - margin.begin, {}};
      std::memcpy(piece.content, piece.begin, piece.bytes);
      margins->pieces.push_back(piece);
    };
    if (!workspace.empty())
      take({workspace.end, workspace.end + kMargin}, nullptr, Margins::kBehind);
    for (const TensorUse& use : run.tensors) {
      const Range range = use.is_written ? RangeOf(use) : Range();
      const KnownBlock* const block = range.empty() ? nullptr : blocks_.Around(range.begin);
      if (!block) continue;
      if (range.end < block->block.begin + block->block.bytes)
        take({range.end, range.end + kMargin}, &use, Margins::kBehind);
      if (range.begin - block->block.begin >= kMargin)
        take({range.begin - kMargin, range.begin}, &use, Margins::kInFrontOf);
    }
    if (margins) margins->others = others_;
    return margins;
  }

  void CompareMargins(const OperatorRun& run, const Margins& margins) {
    if (margins.others != others_) return;
    for (const Margins::Piece& piece : margins.pieces) {
      if (std::memcmp(piece.begin, piece.content, piece.bytes) == 0) continue;
      const auto first =
          std::mismatch(piece.content, piece.content + piece.bytes, piece.begin).first;
      Report("guard",
             fmt::format("{}: memory {} {} was overwritten, from byte {} of {} on", Describe(run),
                         piece.side == Margins::kBehind ? "behind" : "in front of",
                         piece.use ? NameOf(*piece.use) : "the workspace", first - piece.content,
                         piece.bytes),
             CalledBy(run));
    }
  }

  std::atomic<bool> zones_{false};
  // The rest is guarded by kWatch.
  Blocks blocks_;
  std::set<KnownBlock*> live_;  // those with red zones
  std::list<Kept> kept_;        // oldest first
  size_t kept_bytes_ = 0;
  uint64_t memory_ = 0;  // counts blocks that came or went
  KnownRun known_[64];
  std::set<int> busy_;   // streams that may have work
  uint64_t others_ = 0;  // counts what was done beside a stream's own work
};

Guard& Get() { return TheOne<Guard>(); }

// Memory whose blocks lie between red zones. Everything else is that of the one behind it.
class Zoned final : public DeviceMemory {
 public:
  explicit Zoned(DeviceMemory& inner) : inner_(inner) {}

  void* Allocate(size_t bytes, int device) override {
    return Dressed(inner_.Allocate(Whole(bytes), device), bytes);
  }
  void Free(void* address, size_t bytes, int device) override {
    Keep(address, bytes, device, [](DeviceMemory& memory, void* begin, size_t size, int of) {
      memory.Free(begin, size, of);
    });
  }
  void* AllocateHost(size_t bytes) override {
    return Dressed(inner_.AllocateHost(Whole(bytes)), bytes);
  }
  void FreeHost(void* address, size_t bytes) override {
    Keep(address, bytes, 0,
         [](DeviceMemory& memory, void* begin, size_t size, int) { memory.FreeHost(begin, size); });
  }
  size_t UsableSize(size_t bytes) const override { return inner_.UsableSize(bytes); }

  bool RegisterHost(void* address, size_t bytes) override {
    return inner_.RegisterHost(address, bytes);
  }
  void UnregisterHost(void* address) override { inner_.UnregisterHost(address); }
  bool HostCanAccess() const override { return inner_.HostCanAccess(); }
  MemoryInfo Info(int device) const override { return inner_.Info(device); }
  Status Copy(const RowCopy& copy, const Launch& launch) override {
    return inner_.Copy(copy, launch);
  }
  Status Fill(void* to, int unit, uint32_t pattern, size_t count, const Launch& launch) override {
    return inner_.Fill(to, unit, pattern, count, launch);
  }
  Status Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
                const Launch& launch) override {
    return inner_.Reduce(to, from, elements, dtype, op, launch);
  }
  bool CanReduce(DType dtype) const override { return inner_.CanReduce(dtype); }
  bool WriteValue(uint64_t* word, uint64_t value, const Launch& launch) override {
    return inner_.WriteValue(word, value, launch);
  }
  bool WaitValue(uint64_t* word, uint64_t value, uint32_t condition,
                 const Launch& launch) override {
    return inner_.WaitValue(word, value, condition, launch);
  }
  size_t Granularity() const override { return inner_.Granularity(); }
  void* ReserveRange(size_t bytes, void* hint) override { return inner_.ReserveRange(bytes, hint); }
  void ReleaseRange(void* range, size_t bytes) override { inner_.ReleaseRange(range, bytes); }
  bool AllocatePhysical(size_t bytes, int device, uint64_t* id) override {
    return inner_.AllocatePhysical(bytes, device, id);
  }
  void FreePhysical(uint64_t id, size_t bytes, int device) override {
    inner_.FreePhysical(id, bytes, device);
  }
  bool Map(void* address, size_t bytes, uint64_t id, size_t offset) override {
    return inner_.Map(address, bytes, id, offset);
  }
  void Unmap(void* address, size_t bytes) override { inner_.Unmap(address, bytes); }

 private:
  // Large blocks begin at a large page, as they do without zones.
  static size_t Front(size_t bytes) { return bytes >= kLargePage ? kLargePage : kZone; }
  // Absurd sizes stay absurd.
  size_t Whole(size_t bytes) const {
    return bytes > SIZE_MAX / 2 ? bytes : Front(bytes) + inner_.UsableSize(bytes) + kZone;
  }

  void* Dressed(void* whole, size_t bytes) const {
    if (!whole) return nullptr;
    unsigned char* const begin = static_cast<unsigned char*>(whole) + Front(bytes);
    Get().Dress(begin, bytes, inner_.UsableSize(bytes));
    return begin;
  }

  template <class GiveBack>
  void Keep(void* address, size_t bytes, int device, GiveBack) {
    Get().Keep({reinterpret_cast<uintptr_t>(address), bytes,
                [](DeviceMemory& memory, void* begin, size_t size, int of) {
                  auto& zoned = static_cast<Zoned&>(memory);
                  GiveBack()(zoned.inner_, static_cast<unsigned char*>(begin) - Front(size),
                             zoned.Whole(size), of);
                },
                this, device});
  }

  DeviceMemory& inner_;
};

}  // namespace

Watcher& TheGuard() { return Get(); }

// Of memory that the host cannot reach nothing can be filled here, and no backend has two memories.
DeviceMemory& Guarded(DeviceMemory& memory) {
  if (!On() || !env::IsOn(env::Var::ANYACL_GUARD) || !memory.HostCanAccess()) return memory;
  static constinit std::atomic<Zoned*> zoned{nullptr};
  return MadeOnce(zoned, [&] { return new Zoned(memory); });
}

}  // namespace anyacl::watch
