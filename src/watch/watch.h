// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How tools look on while a program runs: every run of an operator is shown to all watchers, when it is called and around
// its work on the stream. Without a watcher that costs one relaxed load a call.
#ifndef ANYACL_WATCH_WATCH_H_
#define ANYACL_WATCH_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/call_spec.h"
#include "core/tensor.h"
#include "plan/layout.h"
#include "runtime/backend.h"
#include "watch/site.h"

namespace anyacl {
struct Operator;
}

namespace anyacl::watch {

class Watcher;

// One tensor of a call.
struct TensorUse {
  const char* name;
  int arg;   // of the call
  int item;  // of a list
  bool in_list;
  bool is_read;  // what its role allows
  bool is_written;
  bool is_touched;  // the plan reads or writes it at all; else only its description matters
  const void* handle;
  Tensor tensor;  // as phase 1 saw it, at the address of this run
  Span span;      // of the tensor
};

// One run of a plan, alive until its work is done; that of a captured run as long as its graph.
struct OperatorRun {
  uint64_t number = 0;  // of the runs of this process, in the order of their calls, from 1
  const Operator* op = nullptr;
  const char* name = "";    // "aclnnAdd"
  const char* family = "";  // "pointwise"
  // All arguments as phase 1 saw them; addresses may be those of an equal call before.
  std::shared_ptr<const contract::CallSpec> call;
  std::string caller;              // of phase 1, in a Python program: "train.py:12"; else empty
  std::vector<TensorUse> tensors;  // those that are given, in the order of the call
  unsigned char* workspace = nullptr;
  uint64_t workspace_bytes = 0;  // that phase 1 asked for
  uint64_t workspace_given = 0;  // that the caller says there are
  const Backend* backend = nullptr;
  int stream = -1;           // the stream's number, which no later one has
  int device = 0;            // of the stream
  bool is_captured = false;  // into a graph: it runs when that is replayed, as often as it is
  Site site;                 // of phase 2
};

// What tells one run from another, before it is spelled out.
struct RunOutline {
  // The same object for equal calls, as long as a thread remembers them.
  const std::shared_ptr<const contract::CallSpec>& call;
  const char* family;
  const void* workspace;
  int stream;
  std::span<const void* const> handles;  // of the tensors that are given
  std::span<const void* const> addresses;
};

enum class BlockKind { kDevice, kPinned, kRegistered, kMapped };

// Memory that came or went, as the program asked for it.
struct Block {
  BlockKind kind;
  uintptr_t begin;
  size_t bytes;
  size_t usable;  // that may be touched
  int device;
};

// A copy, fill or reduction of the runtime; what it touches as tensors of bytes.
struct Transfer {
  const char* function;
  std::optional<Tensor> from;
  Tensor to;
  int stream = -1;  // -1: it is done when the function returns, ordered by nothing but the caller
};

// What the host knows to be done.
struct Reached {
  int stream = -1;              // all work of the stream so far, or
  const void* event = nullptr;  // what was before the last record of the event
};

// Calls come from many threads at once. What they throw is dropped.
class Watcher {
 public:
  virtual ~Watcher() = default;

  // Whether it was shown a run of this outline, and would have nothing to say of another: if that is so of all watchers, none
  // is shown this one.
  virtual bool Knows(const RunOutline&) { return false; }

  // In the thread of the caller, after the checks of phase 2 and before the work is put on the stream.
  virtual void Called(const OperatorRun&) {}

  // On the stream, around the work; also around that of every replay. What Before returns is given to After, which does
  // not follow when the work failed. On a backend that launches, the work is on launch.native_stream in between, and
  // memory is to be read by transfers on that stream.
  virtual std::shared_ptr<void> Before(const OperatorRun&, const Launch&) { return nullptr; }
  virtual void After(const OperatorRun&, const Launch&, void* /*kept*/) {}

  // Memory of the program, when it gets it and when it gives it back; work that was put on streams may go on using it.
  virtual void Appeared(const Block&) {}
  virtual void Vanished(const Block&) {}

  // In the order of the calls, like Called.
  virtual void Transfers(const Transfer&) {}
  // Memory that other work of a stream may write: it counts as written, and nothing else is known of it.
  virtual void MayWrite(const void* /*address*/, size_t /*bytes*/) {}
  virtual void Records(const void* /*event*/, int /*stream*/) {}
  virtual void Waits(int /*stream*/, const void* /*event*/) {}
  // A function of the program, a graph or a word in memory takes its place on the stream: what that waits for, and who
  // waits for it, cannot be seen, nor what it reads and writes.
  virtual void Blurs(int /*stream*/) {}
  virtual void HostReached(const Reached&) {}

  // The last aclFinalize, or the end of a process that does without; then `at_exit`.
  virtual void Ends(bool /*at_exit*/) {}
};

// From now on it watches, and for good: nothing ever waits for it to be unused. At most kMostWatchers.
inline constexpr int kMostWatchers = 8;
void Add(Watcher& watcher);

inline constinit std::atomic<bool> is_on{false};
inline bool On() { return is_on.load(std::memory_order_relaxed); }

// The watcher at a place, or null behind the last one.
Watcher* At(int place);

// Tells all watchers, by one of the functions above.
template <class... Parameters, class... Arguments>
void Tell(void (Watcher::*what)(Parameters...), const Arguments&... arguments) noexcept {
  for (int i = 0; Watcher* const watcher = At(i); ++i) {
    try {
      (watcher->*what)(arguments...);
    } catch (...) {
    }
  }
}

// The line of Python that the calling thread is at; empty where there is none. Phase 1 asks: frameworks run phase 2 in threads of
// their own.
std::string CallerNow();

// Whether all watchers know such a run. It has its number if so.
bool IsKnown(const RunOutline& run) noexcept;
// Shows a run, which gets its number and site, to all watchers.
void Call(OperatorRun& run) noexcept;
// Calls Before of all watchers, and After of them when the work is done.
class Around {
 public:
  Around(const OperatorRun& run, const Launch& launch) noexcept;
  void Done() noexcept;

 private:
  const OperatorRun& run_;
  const Launch& launch_;
  std::shared_ptr<void> kept_[kMostWatchers];
  bool saw_begin_[kMostWatchers] = {};
};

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_WATCH_H_
