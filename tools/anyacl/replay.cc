// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl replay: the calls of a trace again, each in a thread that stands for its own. A call begins when all those have
// ended that had ended when it began.
#include "replay.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "library.h"
#include "replay_calls.h"

namespace anyacl::tool {
namespace {

using contract::ArgKind;
using trace::Value;

constexpr uint64_t kWindow = uint64_t{1} << 34;
constexpr uint64_t kSmallest = 4096;   // below are numbers, not addresses
constexpr uint64_t kHandleBits = uint64_t{0xf} << 60;
constexpr size_t kMostShown = 10;

}  // namespace

std::optional<void*> Translation::KnownLocked(uint64_t recorded) const {
  const auto handle = handles_.find(recorded);
  if (handle != handles_.end()) return handle->second;
  auto range = memory_.upper_bound(recorded);
  if (range == memory_.begin()) return std::nullopt;
  --range;
  const uint64_t offset = recorded - range->first;
  if (offset >= range->second.bytes) return std::nullopt;
  return range->second.now + offset;
}

// Twice as much as it may begin in: what lies at its end goes on behind it.
void* Translation::WindowLocked(uint64_t recorded) {
  char*& window = windows_[recorded / kWindow];
  if (!window) {
    void* const made = mmap(nullptr, 2 * kWindow, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    window = static_cast<char*>(made);
  }
  return window + recorded % kWindow;
}

void* Translation::Of(uint64_t recorded) {
  const std::lock_guard lock(mutex_);
  if (const auto known = KnownLocked(recorded)) return *known;
  if (recorded < kSmallest || (recorded & kHandleBits) != 0) return reinterpret_cast<void*>(recorded);
  return WindowLocked(recorded);
}

void Translation::Learn(uint64_t recorded, const void* now) {
  const std::lock_guard lock(mutex_);
  if (recorded < kSmallest || (recorded & kHandleBits) != 0 || !KnownLocked(recorded)) {
    handles_[recorded] = const_cast<void*>(now);
  }
}

uint64_t Translation::ThreadOf(uint64_t recorded, uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  auto found = threads_.lower_bound({recorded, ticket});
  const auto is_it = [&] { return found != threads_.end() && found->first.first == recorded; };
  if (!is_it() && found != threads_.begin()) --found;  // one that has made its last call
  return is_it() ? found->second : recorded;
}

void Translation::LearnThread(uint64_t recorded, uint64_t last_ticket, uint64_t now) {
  const std::lock_guard lock(mutex_);
  threads_[{recorded, last_ticket}] = now;
}

void Translation::LearnMemory(const MemoryRange& recorded, const void* now) {
  const std::lock_guard lock(mutex_);
  auto next = memory_.lower_bound(recorded.begin);
  if (next != memory_.begin()) {  // what was freed there before
    const auto before = std::prev(next);
    before->second.bytes = std::min(before->second.bytes, recorded.begin - before->first);
  }
  while (next != memory_.end() && next->first < recorded.begin + recorded.bytes) next = memory_.erase(next);
  memory_[recorded.begin] = {recorded.bytes, static_cast<char*>(const_cast<void*>(now))};
  handles_.erase(recorded.begin);
}

std::string Translation::OfBytes(const std::string& recorded) {
  const std::lock_guard lock(mutex_);
  const auto known = bytes_.find(recorded);
  if (known != bytes_.end()) return known->second;
  std::string now = recorded;
  for (size_t at = 0; at + sizeof(uint64_t) <= now.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, now.data() + at, sizeof(word));
    const bool looks_like_address = word >> 40 != 0 && word >> 47 == 0;
    const auto translated = KnownLocked(word);
    if (!translated && !looks_like_address) continue;
    void* const here = translated ? *translated : WindowLocked(word);
    std::memcpy(now.data() + at, &here, sizeof(here));
  }
  return now;
}

void Translation::LearnBytes(const std::string& recorded, std::string now) {
  constexpr size_t kSecret = 64;  // shorter ones are plain facts
  if (recorded.size() < kSecret) return;
  const std::lock_guard lock(mutex_);
  bytes_[recorded] = std::move(now);
}

bool Translation::KnowsBytes(const std::string& recorded) {
  const std::lock_guard lock(mutex_);
  return bytes_.count(recorded) != 0;
}

void Translation::LeaveOut(uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  left_out_[communicator] = true;
}

bool Translation::IsLeftOut(uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  return left_out_.count(communicator) != 0;
}

void CompareDigest(const TracedCall& call, size_t param, const void* data, Replayed* replayed) {
  const Traced* const count = call.Arg("count");
  const Traced* const height = call.Arg("height");
  const auto rows = height ? static_cast<uint64_t>(height->integer) : 1;
  const auto bytes = static_cast<uint64_t>((count ? count : call.Arg("width"))->integer);
  uint64_t digest = 0;
  const auto* row = static_cast<const char*>(data);
  for (uint64_t i = 0; i < rows; ++i) {
    digest = trace::Digest(row, bytes, digest);
    if (height) row += call.Arg("dpitch")->integer;
  }
  ++(digest == call.after.at(param).address ? replayed->same_digests : replayed->other_digests);
}

namespace {

// --- operators, through the table that the library has of them ---

const Entry* FindEntry(const std::string& name) {
  static const auto& entries = *[] {
    auto* const all = new std::map<std::string, const Entry*>;
    for (const Operator* op : Library().operators()) (*all)[op->entry->op] = op->entry;
    return all;
  }();
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : found->second;
}

RawArg ArgumentOf(ArgKind kind, const Traced& value, Translation& translation) {
  RawArg arg;
  switch (kind) {
    case ArgKind::kInt:
      arg.integer = value.integer;
      break;
    case ArgKind::kBool:
      arg.flag = value.integer != 0;
      break;
    case ArgKind::kReal:
      arg.real = value.real;
      break;
    case ArgKind::kString:
      arg.handle = value.kind == Value::kText ? value.bytes.c_str() : nullptr;
      break;
    default:
      arg.handle = value.kind == Value::kPointer ? translation.Of(value.address) : nullptr;
  }
  return arg;
}

void SetStatus(int32_t status, Replayed* replayed) {
  replayed->result.kind = Value::kInteger;
  replayed->result.integer = status;
}

void ReplayPhase1(const Entry& entry, const TracedCall& call, Translation& translation, Replayed* replayed) {
  std::vector<RawArg> args;
  for (size_t i = 0; i < entry.args.size(); ++i) args.push_back(ArgumentOf(entry.args[i].kind, call.args[i], translation));
  uint64_t size = 0;
  void* executor = nullptr;
  const bool has_size = call.args[args.size()].kind != Value::kNull;
  const bool has_executor = call.args[args.size() + 1].kind != Value::kNull;
  SetStatus(entry.get_workspace_size(args.data(), has_size ? &size : nullptr, has_executor ? &executor : nullptr), replayed);
  const Traced* const made = call.After("executor");
  if (executor && made) translation.Learn(made->address, executor);
}

void ReplayPhase2(const Entry& entry, const TracedCall& call, Translation& translation, Replayed* replayed) {
  const auto pointer = [&](size_t i) {
    return call.args[i].kind == Value::kPointer ? translation.Of(call.args[i].address) : nullptr;
  };
  SetStatus(entry.run(pointer(0), static_cast<uint64_t>(call.args[1].integer), pointer(2), pointer(3)), replayed);
}

bool ReplayOperator(const TracedCall& call, Translation& translation, Replayed* replayed) {
  constexpr std::string_view kPhase1 = "GetWorkspaceSize";
  std::string name = call.function->name;
  const bool is_phase1 = name.size() > kPhase1.size() && name.ends_with(kPhase1);
  if (is_phase1) name.resize(name.size() - kPhase1.size());
  const Entry* const entry = FindEntry(name);
  if (!entry || (is_phase1 ? entry->args.size() + 2 : 4) != call.args.size()) return false;
  is_phase1 ? ReplayPhase1(*entry, call, translation, replayed) : ReplayPhase2(*entry, call, translation, replayed);
  return true;
}

// --- communicators of several processes ---

bool MeetsOthers(const TracedCall& call, Translation& translation) {
  const Traced* const info = call.Arg("rootInfo");
  return info && info->kind == Value::kBytes && call.Arg("nRanks") && !translation.KnowsBytes(info->bytes);
}

bool LeaveOut(const TracedCall& call, Translation& translation) {
  bool left_out = MeetsOthers(call, translation);
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Traced& value = call.args[i];
    const bool is_communicator = call.function->params[i].type.rfind("HcclComm", 0) == 0;
    if (is_communicator) left_out = left_out || translation.IsLeftOut(value.address);
    for (const uint64_t pointer : value.pointers) left_out = left_out || translation.IsLeftOut(pointer);
  }
  if (!left_out) return false;
  for (const auto& [param, value] : call.after) {
    if (call.function->params[param].type == "HcclComm*") translation.LeaveOut(value.address);
  }
  return true;
}

// --- the whole ---

class Replayer {
 public:
  Replayer(const Trace& trace, int patience_s) : trace_(trace), patience_(patience_s), done_(trace.calls.size()) {
    for (size_t i = 0; i < trace.calls.size(); ++i) {
      of_thread_[trace.calls[i].thread].push_back(i);
      if (trace.calls[i].returned) ends_.emplace_back(trace.calls[i].return_ticket, i);
    }
    std::sort(ends_.begin(), ends_.end());
  }

  int Run() {
    std::vector<std::thread> threads;
    for (const auto& [thread, calls] : of_thread_) {
      threads.emplace_back([this, thread = thread, &calls = calls] { RunThread(thread, calls); });
    }
    GiveUpWhenNothingReturns();
    for (std::thread& thread : threads) thread.join();
    return Report();
  }

 private:
  void RunThread(uint32_t thread, const std::vector<size_t>& calls) {
    const TracedCall& last = trace_.calls[calls.back()];
    translation_.LearnThread(trace_.threads.at(thread).handle, last.returned ? last.return_ticket : UINT64_MAX,
                             reinterpret_cast<uint64_t>(pthread_self()));
    Barrier();
    for (const size_t i : calls) {
      WaitForTurn(i);
      Replayed replayed;
      ReplayOne(trace_.calls[i], &replayed);
      Done(i, replayed);
    }
  }

  // Every thread has its number.
  void Barrier() {
    std::unique_lock lock(mutex_);
    ++present_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return present_ == of_thread_.size(); });
  }

  void WaitForTurn(size_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_end_ == ends_.size() || ends_[next_end_].first > trace_.calls[i].ticket; });
    running_.insert(i);
  }

  // What the program did itself, its callbacks and what it wrote to memory, is missing here: calls may wait for it for ever.
  // Threads that hang cannot be ended, only the process.
  void GiveUpWhenNothingReturns() {
    std::unique_lock lock(mutex_);
    while (ended_ < done_.size()) {
      const size_t before = ended_;
      if (changed_.wait_for(lock, patience_, [&] { return ended_ != before; })) continue;
      std::string waiting;
      for (const size_t i : running_) waiting += fmt::format("{}{}", waiting.empty() ? "" : ", ", trace_.calls[i].function->name);
      std::fflush(stdout);
      fmt::print(stderr, "anyacl: the replay is given up after {} of {} calls: for {} seconds none has returned, and these wait: {}\n",
                 ended_, done_.size(), patience_.count(), waiting);
      std::_Exit(1);
    }
  }

  void ReplayOne(const TracedCall& call, Replayed* replayed) {
    if (!call.returned) {  // the program ended in it
      replayed->left_out = true;
      return;
    }
    if (LeaveOut(call, translation_)) {
      replayed->left_out = true;
      return;
    }
    const ReplayTable& table = ReplayCalls();
    const auto known = table.find(call.function->name);
    if (known != table.end()) return known->second(call, translation_, replayed);
    if (!ReplayOperator(call, translation_, replayed)) SetStatus(-1, replayed);
  }

  void Done(size_t i, const Replayed& replayed) {
    const std::lock_guard lock(mutex_);
    done_[i] = true;
    running_.erase(i);
    ++ended_;
    while (next_end_ < ends_.size() && done_[ends_[next_end_].second]) ++next_end_;
    Count(trace_.calls[i], replayed);
    changed_.notify_all();
  }

  void Count(const TracedCall& call, const Replayed& replayed) {
    left_out_ += replayed.left_out;
    same_digests_ += replayed.same_digests;
    other_digests_ += replayed.other_digests;
    if (replayed.left_out) return;
    ++replayed_;
    if (IsSame(call, replayed)) return;
    if (different_++ >= kMostShown) return;
    fmt::print("{}: {} now, {} in the trace{}{}\n", call.function->name, Word(call, replayed.result), Word(call, call.result),
               call.error.empty() ? "" : ": ", call.error);
  }

  static bool IsSame(const TracedCall& call, const Replayed& replayed) {
    if (call.function->is_status) return replayed.result.integer == call.result.integer;
    if (replayed.result.kind != Value::kPointer && replayed.result.kind != Value::kNull) return true;
    return (replayed.result.kind == Value::kNull) == (call.result.kind == Value::kNull);
  }

  static std::string Word(const TracedCall& call, const Traced& result) {
    if (call.function->is_status) return result.integer == -1 ? "not known" : std::to_string(result.integer);
    return result.kind == Value::kNull ? "null" : "an object";
  }

  int Report() const {
    fmt::print("replayed {} calls of {} threads: ", replayed_, of_thread_.size());
    fmt::print("{}\n", different_ == 0 ? "every status is that of the trace"
                                       : fmt::format("{} statuses differ from the trace", different_));
    if (left_out_ > 0) fmt::print("left out {} calls: unfinished ones, and those to other processes\n", left_out_);
    if (trace_.header.holds_data) {
      fmt::print("{} of {} results read back have the same bytes\n", same_digests_, same_digests_ + other_digests_);
    }
    return different_ == 0 && other_digests_ == 0 ? 0 : 1;
  }

  const Trace& trace_;
  const std::chrono::seconds patience_;
  Translation translation_;
  std::map<uint32_t, std::vector<size_t>> of_thread_;
  std::vector<std::pair<uint64_t, size_t>> ends_;  // return tickets, in order

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;  // these are guarded by mutex_
  std::set<size_t> running_;
  size_t ended_ = 0;
  size_t next_end_ = 0;
  size_t present_ = 0;
  size_t replayed_ = 0;
  size_t left_out_ = 0;
  size_t different_ = 0;
  int same_digests_ = 0;
  int other_digests_ = 0;
};

// As the program had it, as far as the user does not say otherwise.
void SetEnvironment(const Trace& trace) {
  const char* const end = std::end(trace.header.environment);
  for (const char* word = trace.header.environment; word < end && *word; word += std::strlen(word) + 1) {
    const char* const equals = std::strchr(word, '=');
    if (equals) setenv(std::string(word, equals).c_str(), equals + 1, 0);
  }
}

}  // namespace

int ReplayTrace(const std::string& path, int patience_s) {
  const Trace trace = ReadTrace(path);
  unsetenv("ANYACL_TRACE");  // it may name this very file
  SetEnvironment(trace);
  return Replayer(trace, patience_s).Run();
}

}  // namespace anyacl::tool
