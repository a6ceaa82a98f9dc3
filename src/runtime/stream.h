// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream: the engine of its backend, and what all streams have in common: settings, failures, handle.
//
// Streams are never freed: a destroyed one goes back to a list of spares and its engine keeps counting where it
// stopped. So a (Stream*, number) pair stays meaningful for ever, whoever destroys what in the meantime; events
// and fences are made of such pairs.
#ifndef ANYACL_RUNTIME_STREAM_H_
#define ANYACL_RUNTIME_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/locks.h"
#include "core/status.h"
#include "runtime/engine.h"

namespace anyacl::runtime {

class GraphCapture;
struct Context;

inline constexpr uint64_t kEverything = ~uint64_t{0};

class Stream final : public StreamHooks {
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

  explicit Stream(const Backend& backend) : engine_(*backend.NewEngine(*this)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // --- the engine; see engine.h ---

  // While the stream is being captured the work is recorded and *sequence stays.
  Status Submit(const Work& work, Where where, uint64_t* sequence);
  uint64_t Submitted() const { return engine_.Submitted(); }
  bool Reached(uint64_t sequence) const { return engine_.Reached(sequence); }
  // Without a deadline kCircular rather than for ever, where host functions wait for each other's streams.
  WaitResult WaitFor(uint64_t sequence, Deadline deadline, const Stream* waiter = nullptr);
  bool OnOwnThread() const { return engine_.OnOwnThread(); }
  void WakeWaiters() { engine_.WakeWaiters(); }
  bool Aborting() const { return engine_.Aborting(); }
  uint64_t DropQueued() { return engine_.DropQueued(); }
  void Close() { engine_.Close(); }
  StreamEngine& engine() const { return engine_; }

  // --- state every backend's stream has ---

  // Starts a new life; keeps counting.
  Status Open(const Settings& settings);
  void LeaveContext() { context_.store(nullptr, std::memory_order_relaxed); }

  // In a forked child: the worker and everything queued are gone.
  void AfterFork();
  // A stream whose life has ended, or null. It is nobody else's then.
  static Stream* TakeSpare();

  Context* context() const { return context_.load(std::memory_order_relaxed); }
  int device() const { return device_.load(std::memory_order_relaxed); }
  int32_t id() const { return id_.load(std::memory_order_relaxed); }
  void* handle() const { return handle_.load(std::memory_order_relaxed); }
  void set_handle(void* handle) { handle_.store(handle, std::memory_order_relaxed); }
  bool idle() const { return Reached(Submitted()); }

  Settings settings() const;
  template <class Change>
  auto Update(Change&& change) {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));
    return change(settings_);
  }

  // Drops queued work and lets the next synchronise return `code`.
  void Abort(int32_t code, const char* reason);

  // Remembers the failure, runs the exception callbacks, and stops the context when the stream's failure
  // mode says so.
  void WorkFailed(const char* label, int32_t code, uint64_t sequence, std::string detail) override;
  void Ended() noexcept override;

  // The failure of work up to that number, once; ok when there was none.
  Status TakeFailure(const char* function, uint64_t up_to);

  // Non-zero after a failure stopped the context: the code every further submit returns.
  int32_t stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void Stop(int32_t code);

  // For watchers: the host knows that all its work so far is done; something nobody can look into is put on it.
  void TellReached() const;
  void TellBlurred() const;

  // The capture that records this stream's work now, or null. Set by capture.cc.
  GraphCapture* capture() const { return capture_.load(std::memory_order_acquire); }
  void set_capture(GraphCapture* capture) { capture_.store(capture, std::memory_order_release); }

  // The one whose thread this is, or null.
  static const Stream* OfThisThread();
  // The one that runs work which was put on `submitted`: another one when it was captured and is being replayed.
  static const Stream& RunnerOf(const Stream& submitted) {
    if (submitted.OnOwnThread()) return submitted;
    const Stream* const here = OfThisThread();
    return here ? *here : submitted;
  }

  // All streams there ever were, newest first; never shrinks, safe without a lock.
  static Stream* First();
  Stream* next() const { return next_; }
  void Register();  // puts a new one there

 private:
  struct Wait {
    const Stream* target = nullptr;
    uint64_t sequence = 0;
  };

  Status SubmitPlain(const Work& work, Where where, uint64_t* sequence);
  // With what trace/switches.h asks for.
  Status SubmitWatched(const Work& work, Where where, uint64_t* sequence);

  // Notes for what this thread, if it is a stream's, is about to wait. False: that waits for this thread.
  static bool EnterWait(const Stream* target, uint64_t sequence);
  static void LeaveWait();

  struct Failure {
    int32_t code = 0;
    const char* label = "";
    uint64_t sequence = 0;
    std::string detail;
  };

  StreamEngine& engine_;
  std::atomic<GraphCapture*> capture_{nullptr};
  std::atomic<Context*> context_{nullptr};
  std::atomic<int32_t> stopped_{0};
  std::atomic<int> device_{0};
  std::atomic<int32_t> id_{0};
  std::atomic<void*> handle_{nullptr};
  Stream* next_ = nullptr;

  Stream* next_spare_ = nullptr;  // guarded by kSpareStreams
  Wait waits_for_;  // what its thread waits for without a deadline; guarded by kWaits

  Settings settings_;  // these two are guarded by kStreams
  Failure failure_;
};

// The live stream behind a handle, or null. Does not take null for the default stream: see ResolveStream.
Stream* FindStream(const void* handle);

// The stream a call means: the default stream of the current context for a null handle. 107017 for a dead
// or foreign handle, 107002 when null and no context is current.
Status ResolveStream(const char* function, const void* handle, Stream** stream);

// The same for calls that put work on it: the stream must belong to the current context (107003).
Status ResolveForSubmit(const char* function, const void* handle, Stream** stream);

// Takes a spare stream or makes one, opens it and gives it a handle. 207008 when there are too many.
Status CreateStream(const char* function, const Stream::Settings& settings, Stream** stream);

// Makes the handle dead, waits for the stream's work or drops it, and ends its life. False when the handle
// was dead already: of several concurrent calls one succeeds.
enum class PendingWork { kWait, kDrop };
bool EndStream(const void* handle, PendingWork pending);

// Waits for all work of all streams of a device (kAllDevices: of all). kCircular: for all but one that cannot end.
inline constexpr int kAllDevices = -1;
WaitResult WaitAllStreams(int device, Deadline deadline = kForever);
// The sentence of such a failure.
Status CircularWait(const char* function);

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

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_STREAM_H_
