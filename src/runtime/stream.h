// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream: work in order, and numbers that say how far it is.
//
// Every piece of work gets the next sequence number. "Done" is a comparison of numbers, so events, fences
// and synchronise need no objects of their own. Streams are never freed: a destroyed one goes back to a
// list of spares and keeps counting where it stopped. So a (Stream*, number) pair stays meaningful for
// ever, whoever destroys what in the meantime.
#ifndef ANYACL_RUNTIME_STREAM_H_
#define ANYACL_RUNTIME_STREAM_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl::runtime {

struct Context;

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kForever = Deadline::max();
inline constexpr uint64_t kEverything = ~uint64_t{0};

// Whether work may run in the calling thread when the stream is idle. Host functions may not.
enum class Where { kAnywhere, kOnStreamThread };

enum class WaitResult { kReached, kTimedOut, kAborted };

class Stream {
 public:
  // What a stream is created with, and what its attribute calls change.
  struct Settings {
    Context* context = nullptr;
    int device = 0;
    uint32_t priority = 0;
    uint32_t flags = 0;
    uint32_t failure_mode = 0;
    bool failure_mode_set = false;
    uint32_t overflow_switch = 0;
    uint32_t tag = 0;
    uint32_t cache_op_info = 0;
    uint32_t core_limits[2] = {0, 0};  // by aclrtDevResLimitType; 0: none
    bool is_default = false;
  };

  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // --- the engine: what a backend provides ---

  // Takes a copy of the work and returns its number in *sequence (may be null). Waits for room when the
  // queue is full. On failure the caller still owns the work.
  virtual Status Submit(const Work& work, Where where, uint64_t* sequence) = 0;

  // Number of the last work submitted so far.
  virtual uint64_t Submitted() const = 0;
  virtual bool Reached(uint64_t sequence) const = 0;

  // Blocks until the work of that number and all before it are done. With a `waiter`, which is the stream
  // whose thread waits here, an abort of the waiter ends the wait too.
  virtual WaitResult WaitFor(uint64_t sequence, Deadline deadline,
                             const Stream* waiter = nullptr) = 0;

  // True on the thread that runs this stream's queue: waiting for the stream there would never end.
  virtual bool OnOwnThread() const = 0;

  // Lets those in WaitFor look at their conditions again.
  virtual void WakeWaiters() = 0;

  // Everything submitted up to now counts as aborted: queued work is dropped, blocked work ends. Returns the
  // number of the first work that this concerns, or of the last one when the stream is idle.
  virtual uint64_t DropQueued() = 0;

  // Ends the life of the stream without waiting. Its worker, if any, calls Recycle when it is through.
  virtual void Close() = 0;

  // --- state every backend's stream has ---

  // Starts a new life; keeps counting.
  void Open(const Settings& settings);
  void LeaveContext() { context_.store(nullptr, std::memory_order_relaxed); }

  // In a forked child: the worker and everything queued are gone.
  void AfterFork();

  Context* context() const { return context_.load(std::memory_order_relaxed); }
  int device() const { return device_.load(std::memory_order_relaxed); }
  int32_t id() const { return id_.load(std::memory_order_relaxed); }
  void* handle() const { return handle_.load(std::memory_order_relaxed); }
  void set_handle(void* handle) { handle_.store(handle, std::memory_order_relaxed); }
  bool idle() const { return Reached(Submitted()); }

  Settings settings() const;
  template <class Change>
  auto Update(Change&& change) {
    const std::lock_guard lock(state_);
    return change(settings_);
  }

  // The work being run now was aborted and should end early. Only meaningful on the stream's thread.
  bool Aborting() const { return !Reached(aborted_.load(std::memory_order_acquire)); }
  uint64_t aborted() const { return aborted_.load(std::memory_order_acquire); }

  // Drops queued work and lets the next synchronise return `code`.
  void Abort(int32_t code, const char* reason);

  // Called by the engine after work failed: remembers it, runs the exception callbacks, and stops the
  // context when the stream's failure mode says so.
  void WorkFailed(const char* label, int32_t code, uint64_t sequence);

  // The failure of work up to that number, once; ok when there was none.
  Status TakeFailure(const char* function, uint64_t up_to);

  // Non-zero after a failure stopped the context: the code every further submit returns.
  int32_t stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void Stop(int32_t code);

  // All streams there ever were, newest first; never shrinks, safe without a lock.
  static Stream* First();
  Stream* next() const { return next_; }
  void Register();  // puts a new one there

 protected:
  // Engine's part of AfterFork.
  virtual void ForgetQueue() = 0;
  void MarkAborted(uint64_t sequence) { aborted_.store(sequence, std::memory_order_release); }

 private:
  struct Failure {
    int32_t code = 0;
    const char* label = "";
    uint64_t sequence = 0;
  };

  std::atomic<Context*> context_{nullptr};
  std::atomic<int32_t> stopped_{0};
  std::atomic<uint64_t> aborted_{0};
  std::atomic<int> device_{0};
  std::atomic<int32_t> id_{0};
  std::atomic<void*> handle_{nullptr};
  Stream* next_ = nullptr;

  mutable std::mutex state_;  // guards the two below
  Settings settings_;
  Failure failure_;
};

// The live stream behind a handle, or null. Does not take null for the default stream: see ResolveStream.
Stream* FindStream(const void* handle);

// The stream a call means: the default stream of the current context for a null handle. 107017 for a dead
// or foreign handle, 107002 when null and no context is current.
Status ResolveStream(const char* function, const void* handle, Stream** stream);

// The same for calls that put work on it: the stream must belong to the current context (107003).
Status ResolveForSubmit(const char* function, const void* handle, Stream** stream);

// Takes a spare stream of the backend of that device, or makes one, and gives it a handle. Null: too many.
Stream* CreateStream(const Stream::Settings& settings);

// Makes the handle dead, waits for the stream's work or drops it, and ends its life. False when the handle
// was dead already: of several concurrent calls one succeeds.
enum class PendingWork { kWait, kDrop };
bool EndStream(const void* handle, PendingWork pending);

// For engines: the stream has no worker and no work any more and may start a new life.
void Recycle(Stream* stream);

// Waits for all work of all streams of a device (kAllDevices: of all). False: the time was up.
inline constexpr int kAllDevices = -1;
bool WaitAllStreams(int device, Deadline deadline = kForever);

// Everything that was queued on any stream when it was made. Cheap, and without allocation, when all
// streams are idle.
class Fence {
 public:
  static Fence Capture();
  bool Done() const;

 private:
  std::vector<std::pair<const Stream*, uint64_t>> pending_;
};

// Wakes work that blocks a stream's thread (event waits, subscribed callbacks) so that it sees an abort.
void WakeBlockedWork();

// ms as the C API gives them: -1 forever. The caller has rejected 0 and less than -1.
Deadline DeadlineIn(int32_t milliseconds);

// Puts a small trivially copyable struct into a Work.
template <class Payload>
Work MakeWork(const char* label, uint64_t cost_bytes, const Payload& payload,
              int32_t (*run)(Work&, const Launch&), void (*release)(Work&) = nullptr) {
  static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= Work::kPayload);
  Work work;
  work.run = run;
  work.release = release;
  work.label = label;
  work.cost_bytes = cost_bytes;
  new (work.payload) Payload(payload);
  return work;
}
template <class Payload>
Payload& PayloadOf(Work& work) {
  return *std::launder(reinterpret_cast<Payload*>(work.payload));
}

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_STREAM_H_
