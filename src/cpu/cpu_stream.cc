// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream on the CPU: a ring of work and one thread that serves it, started when something is queued and ended when nothing
// came for some time. Where no thread can be had, whoever queues work serves the ring until it is empty.
//
// Work n waits in slot n % kSlots while completed < n <= submitted. Small work on an idle stream runs in
// the caller with the lock held: one lock and unlock is all it costs, and nobody can overtake it.
#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "core/codes.h"
#include "core/float_mode.h"
#include "core/undo.h"
#include "cpu/backend.h"
#include "cpu/threads.h"
#include "runtime/engine.h"

namespace anyacl::cpu {
namespace {

using runtime::Deadline;
using runtime::WaitResult;
using runtime::Where;

// Below this a hand-over to another thread costs more than the work. 460 KB take 12 us; to wake a thread for them
// takes the caller 15, and 100 pass until it knows that they are done.
constexpr uint64_t kInlineBytes = 512 * 1024;
constexpr uint64_t kSlots = 512;
constexpr uint64_t kNothing = std::numeric_limits<uint64_t>::max();

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class CpuStamp final : public runtime::Stamp {
 public:
  int64_t Nanoseconds() const override { return nanoseconds_.load(std::memory_order_relaxed); }
  double MillisecondsSince(const runtime::Stamp& start) const override {
    return static_cast<double>(Nanoseconds() - start.Nanoseconds()) * 1e-6;
  }
  void Set() { nanoseconds_.store(Now(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> nanoseconds_{0};
};

class CpuStream final : public runtime::StreamEngine {
 public:
  explicit CpuStream(runtime::StreamHooks& stream) : stream_(stream) {}

  Status Open(int device, uint32_t) override {
    device_.store(device, std::memory_order_relaxed);
    return Status();
  }
  Status Submit(const Work& work, Where where, uint64_t* sequence) override;
  Status Record(const char* label, std::shared_ptr<runtime::Stamp>* stamp,
                uint64_t* sequence) override;
  bool Follow(StreamEngine&, uint64_t, uint64_t*) override { return false; }
  uint64_t Submitted() const override { return submitted_.load(std::memory_order_acquire); }
  bool Reached(uint64_t sequence) override { return IsDone(sequence); }
  void Mark() override {}
  WaitResult WaitFor(uint64_t sequence, Deadline deadline, StreamEngine* waiter) override;
  bool OnOwnThread() const override { return server_.load(std::memory_order_relaxed) == pthread_self(); }
  void WakeWaiters() override;
  uint64_t DropQueued() override;
  bool Aborting() override { return !IsDone(aborted_.load(std::memory_order_acquire)); }
  void Close() override;
  void ForgetQueue() override;

 private:
  bool IsDone(uint64_t sequence) const {
    return completed_.load(std::memory_order_acquire) >= sequence;
  }
  bool Idle() const { return completed_.load(std::memory_order_relaxed) == Last(); }
  uint64_t Last() const { return submitted_.load(std::memory_order_relaxed); }
  uint64_t RunInline(const Work& work, std::unique_lock<std::mutex> lock);
  Status Enqueue(const Work& work, std::unique_lock<std::mutex> lock, uint64_t* sequence);
  int32_t Run(Work& work) const;
  bool HaveRing() noexcept;
  bool IsDoneOrAwaited(uint64_t sequence);
  static void* WorkerMain(void* stream);
  bool StartWorker();
  void ServeQueue(std::unique_lock<std::mutex> lock, std::chrono::seconds patience);
  void ServeOne(std::unique_lock<std::mutex>* lock);
  void Completed(Work& work, uint64_t number, std::unique_lock<std::mutex>* lock) noexcept;

  runtime::StreamHooks& stream_;
  std::atomic<int> device_{0};
  std::atomic<uint64_t> aborted_{0};
  std::mutex mutex_;
  std::condition_variable queued_;    // for the worker: work, or the end
  std::condition_variable progress_;  // for waiters: completion, and room in the ring
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> completed_{0};
  uint64_t awaited_ = kNothing;  // the first work that a sleeping waiter needs
  std::unique_ptr<Work[]> ring_;
  bool is_served_ = false;  // or will be, by a thread that was just started
  bool must_end_ = false;   // the service, and with it this life of the stream
  std::atomic<pthread_t> server_{};
};

Status CpuStream::Submit(const Work& work, Where where, uint64_t* sequence) {
  std::unique_lock lock(mutex_);
  if (where == Where::kAnywhere && work.cost_bytes <= kInlineBytes && Idle()) [[likely]] {
    const uint64_t number = RunInline(work, std::move(lock));
    if (sequence) *sequence = number;
    return Status();
  }
  return Enqueue(work, std::move(lock), sequence);
}

uint64_t CpuStream::RunInline(const Work& work, std::unique_lock<std::mutex> lock) {
  Work copy = work;  // run may change it
  const int32_t code = Run(copy);
  if (copy.release) copy.release(copy);
  const uint64_t number = Last() + 1;
  // In this order: whoever sees the work submitted must see it completed too, as nobody wakes waiters here.
  completed_.store(number, std::memory_order_release);
  submitted_.store(number, std::memory_order_release);
  lock.unlock();
  if (code != 0) [[unlikely]]
    stream_.WorkFailed(copy.label, code, number, {});
  return number;
}

// The work holds a reference of its own to the stamp.
Status CpuStream::Record(const char* label, std::shared_ptr<runtime::Stamp>* stamp,
                         uint64_t* sequence) {
  using Reference = std::shared_ptr<CpuStamp>;
  auto reference = std::make_unique<Reference>(std::make_shared<CpuStamp>());
  std::shared_ptr<runtime::Stamp> made = *reference;
  const Work work = runtime::MakeWork(
      label, 0, reference.get(),
      [](Work& w, const Launch&) -> int32_t {
        (*runtime::PayloadOf<Reference*>(w))->Set();
        return 0;
      },
      [](Work& w) { delete runtime::PayloadOf<Reference*>(w); });
  ANYACL_RETURN_IF_ERROR(Submit(work, Where::kAnywhere, sequence));
  reference.release();
  *stamp = std::move(made);
  return Status();
}

Status CpuStream::Enqueue(const Work& work, std::unique_lock<std::mutex> lock, uint64_t* sequence) {
  if (!HaveRing()) {
    return Status(code::kAclBadAlloc, std::string(work.label) + ": out of host memory");
  }
  const auto has_room = [this] { return Last() < kSlots || IsDoneOrAwaited(Last() + 1 - kSlots); };
  if (OnOwnThread() && !has_room()) {
    return Status(
        code::kRtNoStreamResource,
        std::string(work.label) + ": the stream is full and its host function adds to it");
  }
  progress_.wait(lock, has_room);
  const uint64_t number = Last() + 1;
  ring_[number % kSlots] = work;
  submitted_.store(number, std::memory_order_release);
  if (sequence) *sequence = number;
  if (is_served_) {
    lock.unlock();
    queued_.notify_one();
  } else if (!StartWorker()) {  // late is better than never
    ServeQueue(std::move(lock), std::chrono::seconds(0));
  }
  return Status();
}

// With the lock held, as the condition of a wait: who is about to sleep says for what. It is not woken for the work before
// that, because where cores are few it would take one of them from the kernels each time.
bool CpuStream::IsDoneOrAwaited(uint64_t sequence) {
  if (IsDone(sequence)) return true;
  awaited_ = std::min(awaited_, sequence);
  return false;
}

// A function of the program may end the thread, which unwinds it and is no exception to catch.
int32_t CpuStream::Run(Work& work) const {
  const Launch launch{nullptr, device_.load(std::memory_order_relaxed)};
  try {
    return work.run(work, launch);
  } catch (const __cxxabiv1::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return code::kAclBadAlloc;
  } catch (...) {
    return code::kAclInternal;
  }
}

bool CpuStream::HaveRing() noexcept {
  if (!ring_) ring_.reset(new (std::nothrow) Work[kSlots]);
  return ring_ != nullptr;
}

// With the lock held.
bool CpuStream::StartWorker() {
  is_served_ = StartThread(&CpuStream::WorkerMain, this);
  return is_served_;
}

void* CpuStream::WorkerMain(void* stream) {
  pthread_setname_np(pthread_self(), "anyacl-stream");
  auto* const self = static_cast<CpuStream*>(stream);
  self->ServeQueue(std::unique_lock(self->mutex_), std::chrono::seconds(kIdleSeconds));
  return nullptr;
}

// With the lock. Until nothing has come for so long, or the end.
void CpuStream::ServeQueue(std::unique_lock<std::mutex> lock, std::chrono::seconds patience) {
  is_served_ = true;
  server_.store(pthread_self(), std::memory_order_relaxed);
  const Undo served([&] {  // also when a host function ends the thread: the lock is held then, too
    server_.store(pthread_t(), std::memory_order_relaxed);
    is_served_ = false;
    if (!Idle() && StartWorker()) return;
    const bool ends = std::exchange(must_end_, false);
    lock.unlock();
    if (ends) stream_.Ended();  // the stream may be in use again from here on
  });
  while (true) {
    if (Idle() && !must_end_ && patience.count() > 0) {
      queued_.wait_for(lock, patience, [this] { return must_end_ || !Idle(); });
    }
    if (Idle()) return;
    ServeOne(&lock);
  }
}

void CpuStream::ServeOne(std::unique_lock<std::mutex>* lock) {
  const uint64_t number = completed_.load(std::memory_order_relaxed) + 1;
  Work& work = ring_[number % kSlots];
  const bool dropped = number <= aborted_.load(std::memory_order_acquire);
  lock->unlock();
  const DefaultFloatMode mode;  // a host function may have left another one
  const Undo completed([&] { Completed(work, number, lock); });
  const int32_t code = dropped ? 0 : Run(work);
  // Before it counts as completed, so that whoever waits for it finds the failure. An aborted work ended
  // early on purpose; the abort is what the next synchronise reports.
  if (code != 0 && number > aborted_.load(std::memory_order_acquire)) {
    stream_.WorkFailed(work.label, code, number, {});
  }
}

void CpuStream::Completed(Work& work, uint64_t number, std::unique_lock<std::mutex>* lock) noexcept {
  if (work.release) work.release(work);
  lock->lock();
  completed_.store(number, std::memory_order_release);
  if (number < awaited_) return;
  awaited_ = kNothing;  // whoever needs more says so again
  progress_.notify_all();
}

WaitResult CpuStream::WaitFor(uint64_t sequence, Deadline deadline, StreamEngine* waiter) {
  if (Reached(sequence)) return WaitResult::kReached;
  std::unique_lock lock(mutex_);
  const auto over = [&] { return IsDoneOrAwaited(sequence) || (waiter && waiter->Aborting()); };
  if (deadline == runtime::kForever) {
    progress_.wait(lock, over);
  } else if (!progress_.wait_until(lock, deadline, over)) {
    return WaitResult::kTimedOut;
  }
  return Reached(sequence) ? WaitResult::kReached : WaitResult::kAborted;
}

void CpuStream::WakeWaiters() {
  { const std::lock_guard lock(mutex_); }  // a waiter is now either asleep or has not looked yet
  progress_.notify_all();
}

uint64_t CpuStream::DropQueued() {
  const std::lock_guard lock(mutex_);
  aborted_.store(Last(), std::memory_order_release);
  return Idle() ? Last() : completed_.load(std::memory_order_relaxed) + 1;
}

void CpuStream::Close() {
  {
    const std::lock_guard lock(mutex_);
    must_end_ = is_served_;
    if (is_served_) {
      queued_.notify_one();
      return;
    }
  }
  stream_.Ended();
}

// Only the thread that called fork exists now. The locks may be held by threads that are gone, so they
// are made anew; what was queued will never run.
void CpuStream::ForgetQueue() {
  new (&mutex_) std::mutex;
  new (&queued_) std::condition_variable;
  new (&progress_) std::condition_variable;
  is_served_ = false;
  must_end_ = false;
  server_.store(pthread_t(), std::memory_order_relaxed);
  awaited_ = kNothing;
  completed_.store(Last(), std::memory_order_release);
}

}  // namespace

runtime::StreamEngine* CpuBackend::NewEngine(runtime::StreamHooks& stream) const {
  return new CpuStream(stream);
}

}  // namespace anyacl::cpu
