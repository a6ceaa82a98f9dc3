// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Races: two accesses to the same memory, one of them a write, without an order between them. Every stream has a clock: how
// much of every stream is done before its next work begins. Work takes its place in the order when it is called, so that
// what is found does not depend on how fast things run. The host is one more: it knows what it has waited for, whichever
// thread did.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/locks.h"
#include "core/once.h"
#include "plan/layout.h"
#include "watch/report.h"
#include "watch/site.h"
#include "watch/tools.h"

namespace anyacl::watch {
namespace {

constexpr int kHost = -1;

// How much of each stream is done, by its number.
class Clock {
 public:
  uint64_t Of(int stream) const {
    const auto found = done_.find(stream);
    return found == done_.end() ? 0 : found->second;
  }
  uint64_t Tick(int stream) { return ++done_[stream]; }
  void Join(const Clock& other) {
    for (const auto& [stream, count] : other.done_) {
      uint64_t& mine = done_[stream];
      mine = std::max(mine, count);
    }
  }

 private:
  std::map<int, uint64_t> done_;
};

// One operator, copy or fill, as reports name it.
struct Actor {
  const char* function;
  uint64_t call;  // the number of an operator's run; 0: none
  int stream;
  uint64_t time;  // of the stream
  Site site;

  std::string Name() const {
    const std::string name = call == 0 ? function : fmt::format("{}, call {}", function, call);
    return stream == kHost ? name + " (host)" : fmt::format("{} (stream {})", name, stream);
  }
};

// What it touches.
struct Part {
  const char* name;  // "out"
  int item = -1;     // of a list

  std::string Name() const { return item < 0 ? name : fmt::format("{}[{}]", name, item); }
};

struct Access {
  std::shared_ptr<const Actor> actor;
  Part part;
  Tensor view;
  bool writes;
};

// What was last done to a stretch of memory: one write, and of every stream the reads since.
struct Stretch {
  uintptr_t end;
  std::shared_ptr<const Access> write;
  std::vector<std::shared_ptr<const Access>> reads;
};

class Races final : public Watcher {
 public:
  void Called(const OperatorRun& run) override {
    if (run.is_captured) return;  // it has no place in the order before it is replayed
    const std::lock_guard lock(Mutex());
    const auto actor = Begin(run.name, run.number, run.stream, run.site);
    for (const TensorUse& use : run.tensors) {
      if (use.is_touched)
        Touch(actor, {use.name, use.in_list ? use.item : -1}, use.tensor, use.span, use.is_written);
    }
    if (run.workspace && run.workspace_bytes > 0)
      Touch(actor, {"workspace"}, Bytes(run.workspace, run.workspace_bytes), true);
  }

  void Transfers(const Transfer& transfer) override {
    const Site site = Site::Here();
    const std::lock_guard lock(Mutex());
    const auto actor = Begin(transfer.function, 0, transfer.stream, site);
    if (transfer.from) Touch(actor, {"src"}, *transfer.from, false);
    Touch(actor, {"dst"}, transfer.to, true);
  }

  void Records(const void* event, int stream) override {
    const std::lock_guard lock(Mutex());
    events_[event] = ClockOf(stream);
  }

  void Waits(int stream, const void* event) override {
    const std::lock_guard lock(Mutex());
    if (const auto record = events_.find(event); record != events_.end())
      ClockOf(stream).Join(record->second);
  }

  // Its order is not known any more before the host waits for it, nor is that of those that know how far it is.
  void Blurs(int stream) override {
    const std::lock_guard lock(Mutex());
    blurred_.insert(stream);
    host_.Join(ClockOf(stream));
  }

  void HostReached(const Reached& reached) override {
    const std::lock_guard lock(Mutex());
    if (reached.stream >= 0) host_.Join(ClockOf(reached.stream));
    blurred_.erase(reached.stream);
    if (const auto record = events_.find(reached.event); record != events_.end())
      host_.Join(record->second);
  }

  void Vanished(const Block& block) override {
    const std::lock_guard lock(Mutex());
    Cut(block.begin);
    Cut(block.begin + block.usable);
    memory_.erase(memory_.lower_bound(block.begin),
                  memory_.lower_bound(block.begin + block.usable));
  }

 private:
  using Memory = std::map<uintptr_t, Stretch>;

  static std::mutex& Mutex() { return LockOf(Lock::kWatch); }

  static Tensor Bytes(void* begin, uint64_t count) {
    Tensor t;
    t.dtype = DType::kU8;
    t.dims = {static_cast<int64_t>(count)};
    t.strides = {1};
    t.data = begin;
    return t;
  }

  Clock& ClockOf(int stream) { return stream == kHost ? host_ : clocks_[stream]; }

  // The next work of a stream: it begins after what the host knows to be done.
  std::shared_ptr<const Actor> Begin(const char* function, uint64_t call, int stream,
                                     const Site& site) {
    Clock& clock = ClockOf(stream);
    clock.Join(host_);
    return std::make_shared<const Actor>(Actor{function, call, stream, clock.Tick(stream), site});
  }

  bool IsBefore(const Access& old, const Actor& actor) {
    return old.actor->stream == kHost || old.actor == nullptr ||
           ClockOf(actor.stream).Of(old.actor->stream) >= old.actor->time;
  }

  // Splits the stretch that goes on across an address.
  void Cut(uintptr_t at) {
    auto next = memory_.lower_bound(at);
    if (next == memory_.begin()) return;
    const auto stretch = std::prev(next);
    if (stretch->second.end <= at) return;
    Stretch rest = stretch->second;
    stretch->second.end = at;
    memory_.emplace_hint(next, at, std::move(rest));
  }

  void Touch(const std::shared_ptr<const Actor>& actor, const Part& part, const Tensor& view,
             bool writes) {
    Touch(actor, part, view, SpanOf(view), writes);
  }
  void Touch(const std::shared_ptr<const Actor>& actor, const Part& part, const Tensor& view,
             const Span& span, bool writes) {
    if (span.begin >= span.end || span.overflow || blurred_.contains(actor->stream)) return;
    const auto access = std::make_shared<const Access>(Access{actor, part, view, writes});
    Cut(span.begin);
    Cut(span.end);
    uintptr_t at = span.begin;
    auto stretch = memory_.lower_bound(span.begin);
    while (at < span.end) {
      const bool is_new = stretch == memory_.end() || stretch->first > at;
      if (is_new) {
        const uintptr_t end =
            stretch == memory_.end() ? span.end : std::min(span.end, stretch->first);
        stretch = memory_.emplace_hint(stretch, at, Stretch{end, nullptr, {}});
      }
      Note(stretch->second, access);
      at = stretch->second.end;
      ++stretch;
    }
  }

  void Note(Stretch& stretch, const std::shared_ptr<const Access>& access) {
    if (stretch.write) Compare(*stretch.write, *access);
    if (access->writes) {
      for (const auto& read : stretch.reads) Compare(*read, *access);
      stretch.reads.clear();
      stretch.write = access;
      return;
    }
    std::erase_if(stretch.reads,
                  [&](const auto& read) { return read->actor->stream == access->actor->stream; });
    stretch.reads.push_back(access);
  }

  void Compare(const Access& old, const Access& access) {
    if (old.actor == access.actor || IsBefore(old, *access.actor) ||
        !ShareBytes(old.view, access.view))
      return;
    const int first = old.actor->stream, second = access.actor->stream;
    const std::string missing =
        second == kHost
            ? fmt::format(
                  "the host did not wait for stream {} (aclrtSynchronizeStream, or an event)",
                  first)
            : fmt::format(
                  "stream {} does not wait for an event that was recorded on stream {} behind the "
                  "first, nor did the "
                  "host wait for it before the second",
                  second, first);
    Report("races",
           fmt::format("{} {} {} while {} may still {} it as {}: {}", access.actor->Name(),
                       access.writes ? "writes" : "reads", access.part.Name(), old.actor->Name(),
                       old.writes ? "write" : "read", old.part.Name(), missing),
           "  the first was called by\n" + old.actor->site.Lines() +
               "  the second was called by\n" + access.actor->site.Lines());
  }

  // All guarded by kWatch.
  Clock host_;
  std::map<int, Clock> clocks_;
  std::map<const void*, Clock> events_;
  std::set<int> blurred_;  // streams
  Memory memory_;
};

}  // namespace

Watcher& TheRaces() { return TheOne<Races>(); }

}  // namespace anyacl::watch
