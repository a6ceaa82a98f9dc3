// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/locks.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "core/mending.h"

namespace anyacl {
namespace {

constexpr int kShares = 16;  // locks of one kind of object

constinit std::mutex locks[kLocks];
constinit std::mutex shared_locks[kLocks][kShares];
std::recursive_mutex once;
constinit std::atomic<void (*)()> mends[kLocks];
bool is_mending = false;  // set while the child has one thread alone

constexpr Lock kShared[] = {Lock::kModels, Lock::kStreams, Lock::kEvents, Lock::kExecutors};

bool IsShared(int i) {
  for (const Lock shared : kShared) {
    if (i == static_cast<int>(shared)) return true;
  }
  return false;
}

void TakeAll() {
  for (int i = 0; i < kLocks; ++i) {
    if (i == static_cast<int>(Lock::kOnce)) {
      once.lock();
    } else if (IsShared(i)) {
      for (std::mutex& lock : shared_locks[i]) lock.lock();
    } else {
      locks[i].lock();
    }
  }
}

void GiveAllBack() {
  for (int i = kLocks - 1; i >= 0; --i) {
    if (i == static_cast<int>(Lock::kOnce)) {
      once.unlock();
    } else if (IsShared(i)) {
      for (std::mutex& lock : shared_locks[i]) lock.unlock();
    } else {
      locks[i].unlock();
    }
  }
}

// The recursive lock knows whose it is, and the thread has another number here.
void BeginInChild() {
  new (&once) std::recursive_mutex;
  once.lock();
  is_mending = true;
  for (const auto& mend : mends) {
    if (void (*const call)() = mend.load(std::memory_order_acquire)) call();
  }
  is_mending = false;
  GiveAllBack();
}

[[maybe_unused]] const int installed = pthread_atfork(TakeAll, GiveAllBack, BeginInChild);

}  // namespace

std::mutex& LockOf(Lock lock) { return locks[static_cast<int>(lock)]; }

std::mutex& LockOf(Lock lock, const void* object) {
  const auto address = reinterpret_cast<uintptr_t>(object);
  return shared_locks[static_cast<int>(lock)][(address >> 6 ^ address >> 12) % kShares];
}

std::recursive_mutex& OnceLock() { return once; }

bool IsMending() { return is_mending; }

void InForkedChild(Lock lock, void (*mend)()) {
  mends[static_cast<int>(lock)].store(mend, std::memory_order_release);
}

}  // namespace anyacl
