// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>

#include "core/env.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/thread_value.h"
#include "cpu/cores.h"
#include "cpu/threads.h"

namespace anyacl::cpu {
namespace {

// Long enough to catch the next kernel of a busy stream also after the wait for the slowest task of
// this one, short enough not to be seen in an idle process. EluBackward on 1 Mi floats, two threads,
// one call behind the other: 288 us with 5 us, 212 us with 50, the rest went into waking up.
constexpr auto kSpin = std::chrono::microseconds(50);
// Where threads share cores, whoever spins keeps another from its work.
constexpr auto kCrowdedSpin = std::chrono::microseconds(2);
constexpr int kMostThreads = 1024;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or until the time is over; the clock is asked rarely because it costs as much as
// a few rounds.
template <class Done>
bool Spin(std::chrono::microseconds time, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// False: the time was up.
bool FutexWait(std::atomic<uint32_t>& word, uint32_t value, const timespec* limit = nullptr) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, limit,
                 nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}
void FutexWake(std::atomic<uint32_t>& word, int waiters) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, waiters, nullptr,
          nullptr, 0);
}

// A worker that woke up on its caller's core would only take turns with it. Kernels of small virtual
// machines leave the two there for seconds: one run in ten took twice as long.
void LeaveCore(int core) {
  cpu_set_t allowed;
  if (core < 0 || sched_getcpu() != core || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

// Number i of the tasks [begin, end) in that order.
int64_t TaskAt(Order order, int64_t begin, int64_t end, int64_t i) {
  return order == Order::kForwards ? begin + i : end - 1 - i;
}

// Neighbouring tasks of a job.
struct alignas(64) Share {
  int64_t begin = 0;
  int64_t end = 0;
  std::atomic<int64_t> taken{0};

  bool HasTasks() const { return taken.load(std::memory_order_relaxed) < end - begin; }
};

// One ParallelFor; lives on the stack of its caller.
//
// The caller and the workers begin with the same share in every job and take over from others when it is
// done: what one kernel leaves in the second cache of a core the next one finds there. EluBackward on 1 Mi
// bfloat16, two threads: 94 us, and 101 where each took the next task of all.
struct alignas(64) Job {
  Job(internal::TaskFunction call, void* context, int64_t tasks, Order order, int threads)
      : call(call),
        context(context),
        order(order),
        most_helpers(threads - 1),
        share_count(std::min(threads, kMostShares)) {
    for (int i = 0; i < share_count; ++i) {
      shares[i].begin = tasks * i / share_count;
      shares[i].end = tasks * (i + 1) / share_count;
    }
  }

  bool HasTasks() const {
    return std::any_of(shares, shares + share_count, [](const Share& s) { return s.HasTasks(); });
  }

  void RunTasks(int first_share) {
    for (int i = 0; i < share_count; ++i) RunShare(shares[(first_share + i) % share_count]);
  }

  void RunShare(Share& share) {
    while (true) {
      const int64_t i = share.taken.fetch_add(1, std::memory_order_relaxed);
      if (i >= share.end - share.begin) return;
      call(context, TaskAt(order, share.begin, share.end, i));
    }
  }

  static constexpr int kMostShares = 16;  // more threads meet in them

  const internal::TaskFunction call;
  void* const context;
  const Order order;
  const int most_helpers;
  const int share_count;            // at least 2
  const int core = sched_getcpu();  // of the caller
  Job* later = nullptr;             // list of the pool
  std::atomic<int> helpers{0};      // workers inside; changed only with the pool's mutex held
  Share shares[kMostShares];
};

using InsideTask = ThreadWord<bool, struct InsideTag>;

class Pool {
 public:
  void Run(Job& job) {
    Publish(job);
    InsideTask::Set(true);
    job.RunTasks(0);
    InsideTask::Set(false);
    Withdraw(job);
  }

 private:
  void Publish(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      StartWorkers(job.most_helpers);
      Job** end = &jobs_;
      while (*end) end = &(*end)->later;
      *end = &job;
      arrivals_.fetch_add(1, std::memory_order_seq_cst);
    }
    if (sleepers_.load(std::memory_order_seq_cst) > 0) FutexWake(arrivals_, job.most_helpers);
  }

  // After this nobody knows the job any more, so that its stack frame may go.
  void Withdraw(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      Job** link = &jobs_;
      while (*link != &job) link = &(*link)->later;
      *link = job.later;
    }
    if (Spin(SpinTime(), [&] { return job.helpers.load(std::memory_order_acquire) == 0; })) return;
    std::unique_lock lock(mutex_);
    while (job.helpers.load(std::memory_order_relaxed) > 0) {
      const uint32_t seen = departures_.load(std::memory_order_relaxed);
      ++sleeping_callers_;
      lock.unlock();
      FutexWait(departures_, seen);
      lock.lock();
      --sleeping_callers_;
    }
  }

  std::chrono::microseconds SpinTime() const {
    return workers_.load(std::memory_order_relaxed) < cores_ ? kSpin : kCrowdedSpin;
  }

  // Called with the mutex held. A process that may not have more threads goes on with those it has.
  void StartWorkers(int wanted) {
    while (workers_ < std::min(wanted, most_workers_)) {
      if (StartThread(&Pool::WorkerMain, this)) {
        ++workers_;
      } else {
        most_workers_ = workers_;
      }
    }
  }

  static void* WorkerMain(void* pool) {
    pthread_setname_np(pthread_self(), "anyacl-worker");
    InsideTask::Set(true);
    static_cast<Pool*>(pool)->Work();
    return nullptr;
  }

  void Work() {
    const int number = TakeNumber();
    while (true) {
      const uint32_t seen = arrivals_.load(std::memory_order_acquire);
      while (Job* job = Join()) {
        LeaveCore(job->core);
        job->RunTasks(1 + number % (job->share_count - 1));  // 0 is the caller's
        Leave(*job);
      }
      if (!Sleep(seen) && MayEnd(number, seen)) return;
    }
  }

  int TakeNumber() {
    const std::lock_guard lock(mutex_);
    int number = 0;
    while (number < kMostThreads - 1 && numbers_[number]) ++number;
    numbers_[number] = true;
    return number;
  }

  // A worker that has had nothing to do for long ends: a process that has nothing but idle workers left would never.
  bool MayEnd(int number, uint32_t seen) {
    const std::lock_guard lock(mutex_);
    if (arrivals_.load(std::memory_order_relaxed) != seen) return false;
    numbers_[number] = false;
    --workers_;
    most_workers_ = kMostThreads - 1;
    return true;
  }

  Job* Join() {
    const std::lock_guard lock(mutex_);
    for (Job* job = jobs_; job; job = job->later) {
      if (job->helpers.load(std::memory_order_relaxed) < job->most_helpers && job->HasTasks()) {
        job->helpers.fetch_add(1, std::memory_order_relaxed);
        return job;
      }
    }
    return nullptr;
  }

  // Taking oneself off the list of helpers is the last touch of the job: its caller may be gone
  // right after.
  void Leave(Job& job) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      wake = job.helpers.fetch_sub(1, std::memory_order_release) == 1 && sleeping_callers_ > 0;
      if (wake) departures_.fetch_add(1, std::memory_order_relaxed);
    }
    if (wake) FutexWake(departures_, kMostThreads);
  }

  // The order "count me, then look again" against Publish's "announce, then count" loses no
  // wake-up.
  // False when nothing came for a long time.
  bool Sleep(uint32_t seen) {
    const auto arrived = [&] { return arrivals_.load(std::memory_order_seq_cst) != seen; };
    if (Spin(SpinTime(), arrived)) return true;
    constexpr timespec kPatience{kIdleSeconds, 0};
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const bool came = arrived() || FutexWait(arrivals_, seen, &kPatience);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return came;
  }

  std::mutex mutex_;
  Job* jobs_ = nullptr;
  const int cores_ = UsableCores();
  std::atomic<int> workers_{0};  // changed only with the mutex held
  std::bitset<kMostThreads> numbers_;  // of the workers
  int most_workers_ = kMostThreads - 1;
  int sleeping_callers_ = 0;
  alignas(64) std::atomic<uint32_t> arrivals_{0};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint32_t> departures_{0};
};

// Leaked: workers outlive static destructors. A forked child has no workers, so it begins with a
// new pool.
constinit std::atomic<Pool*> pool{nullptr};
[[maybe_unused]] const int mends =
    (InForkedChild(Lock::kPool, [] { pool.store(nullptr); }), 0);

// Null when there is no memory for it.
Pool* ThePool() noexcept try {
  return &MadeOnce(pool, [] { return new Pool; });
} catch (...) {
  return nullptr;
}

struct StartThreads {
  int value = std::min(env::GetInt(env::Var::ANYACL_THREADS, UsableCores()), kMostThreads);
};

// One, for now, when there is no memory to find out.
int StartValue() noexcept try {
  return TheOne<StartThreads>().value;
} catch (...) {
  return 1;
}

void RunAlone(int64_t tasks, Order order, internal::TaskFunction call, void* context) {
  for (int64_t i = 0; i < tasks; ++i) call(context, TaskAt(order, 0, tasks, i));
}

std::atomic<int> max_threads{0};

}  // namespace

int MaxThreads() {
  const int n = max_threads.load(std::memory_order_relaxed);
  return n > 0 ? n : StartValue();
}

void SetMaxThreads(int n) {
  max_threads.store(std::clamp(n, 0, kMostThreads), std::memory_order_relaxed);
}

void internal::RunTasks(int64_t tasks, Order order, TaskFunction call, void* context) {
  const int threads = InsideTask::Get() ? 1 : MaxThreads();
  if (threads <= 1) return RunAlone(tasks, order, call, context);
  Pool* const pool = ThePool();
  if (!pool) return RunAlone(tasks, order, call, context);
  Job job(call, context, tasks, order, static_cast<int>(std::min<int64_t>(tasks, threads)));
  pool->Run(job);
}

}  // namespace anyacl::cpu
