// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A backend's part of a stream. Pure interfaces: the CUDA plug-in implements them in a library of its own.
//
// Every piece of work gets the next sequence number, and "done" is a comparison of numbers.
#ifndef ANYACL_RUNTIME_ENGINE_H_
#define ANYACL_RUNTIME_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl::runtime {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kForever = Deadline::max();

// Device work may run or be launched in the calling thread. Host code, which may block, may not: it gets
// the stream's own thread.
enum class Where { kAnywhere, kOnStreamThread };

// kCircular: what is waited for waits for the thread that asks. Engines never say so; streams do.
enum class WaitResult { kReached, kTimedOut, kAborted, kCircular };

// When a stream reached a point; asked only after it did.
class Stamp {
 public:
  virtual ~Stamp() = default;
  virtual int64_t Nanoseconds() const = 0;  // on the host's steady clock
  // From an earlier stamp of the same backend. Negative when that one was reached later.
  virtual double MillisecondsSince(const Stamp& start) const = 0;
};

// What an engine tells the stream it drives.
class StreamHooks {
 public:
  // Work failed: of that label and number, or, when `detail` says so, before it.
  virtual void WorkFailed(const char* label, int32_t code, uint64_t sequence,
                          std::string detail) = 0;
  // After Close: nothing uses the stream any more, it may start a new life.
  virtual void Ended() noexcept = 0;

 protected:
  ~StreamHooks() = default;
};

class StreamEngine {
 public:
  virtual ~StreamEngine() = default;

  // Begins a new life; numbers go on. `priority` 0 is the highest, 7 the lowest.
  virtual Status Open(int device, uint32_t priority) = 0;

  // Takes a copy of the work and returns its number in *sequence (may be null). May wait for room. On
  // failure the caller still owns the work.
  virtual Status Submit(const Work& work, Where where, uint64_t* sequence) = 0;

  // Marks the point behind all work so far, with the time at which it is reached.
  virtual Status Record(const char* label, std::shared_ptr<Stamp>* stamp, uint64_t* sequence) = 0;

  // Lets later work wait, on the device, for work of another engine of the same backend. False when only a
  // thread of the host can wait.
  virtual bool Follow(StreamEngine& other, uint64_t sequence, uint64_t* number) = 0;

  // Number of the last work submitted so far.
  virtual uint64_t Submitted() const = 0;
  virtual bool Reached(uint64_t sequence) = 0;
  // Somebody will ask when the present end is reached: lets Reached tell it apart from what comes later.
  virtual void Mark() = 0;

  // Blocks until the work of that number and all before it are done. With a `waiter`, which is the engine
  // whose thread waits here, an abort of the waiter ends the wait too.
  virtual WaitResult WaitFor(uint64_t sequence, Deadline deadline, StreamEngine* waiter) = 0;

  // True on the thread that runs this stream's host code: waiting for the stream there would never end.
  virtual bool OnOwnThread() const = 0;

  // Lets those in WaitFor look at their conditions again.
  virtual void WakeWaiters() = 0;

  // Everything submitted up to now counts as aborted: queued work is dropped, blocked work ends; what a
  // device has begun still finishes. Returns the number of the first work that this concerns, or of the
  // last one when the stream is idle.
  virtual uint64_t DropQueued() = 0;
  // Work up to here was aborted and is not through yet.
  virtual bool Aborting() = 0;

  // Ends the life of the stream without waiting; StreamHooks::Ended follows when nothing is left.
  virtual void Close() = 0;

  // In a forked child: the threads and everything queued are gone.
  virtual void ForgetQueue() = 0;
};

// Work that was recorded instead of run, over one stream or several that were joined, and its replays.
class Recording {
 public:
  virtual ~Recording() = default;

  virtual Status Begin(StreamEngine& origin) = 0;
  // Takes over the work: it may run many times and is released with the recording.
  virtual Status Add(StreamEngine& engine, const Work& work, Where where) = 0;
  // A point behind what the engine has added; Join lets another engine's later work wait for it.
  virtual int Point(StreamEngine& engine) = 0;
  virtual Status Join(StreamEngine& engine, int point) = 0;
  // Ends the recording, `keep` false to throw it away.
  virtual Status End(StreamEngine& origin, bool keep) = 0;

  // One replay in stream order; the recording must stay until work *sequence is done.
  virtual Status Replay(StreamEngine& engine, const char* label, uint64_t* sequence) = 0;
};

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

#endif  // ANYACL_RUNTIME_ENGINE_H_
