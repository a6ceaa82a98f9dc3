// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "watch/watch.h"


namespace anyacl::watch {
namespace {

constinit std::atomic<Watcher*> watchers[kMostWatchers];  // filled from the front
constinit std::atomic<uint64_t> runs{0};

template <class Visit>
void ForEach(Visit&& visit) noexcept {
  for (int i = 0; i < kMostWatchers; ++i) {
    Watcher* const watcher = watchers[i].load(std::memory_order_acquire);
    if (!watcher) return;
    try {
      visit(i, *watcher);
    } catch (...) {
    }
  }
}

}  // namespace

void Add(Watcher& watcher) {
  for (auto& place : watchers) {
    Watcher* nobody = nullptr;
    if (!place.compare_exchange_strong(nobody, &watcher, std::memory_order_acq_rel)) continue;
    is_on.store(true, std::memory_order_release);
    return;
  }
}

void Call(OperatorRun& run) noexcept {
  run.number = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  ForEach([&](int, Watcher& watcher) { watcher.Called(run); });
}

Around::Around(const OperatorRun& run, const Launch& launch) noexcept : run_(run), launch_(launch) {
  ForEach([&](int i, Watcher& watcher) {
    kept_[i] = watcher.Before(run_, launch_);
    saw_begin_[i] = true;
  });
}

void Around::Done() noexcept {
  ForEach([&](int i, Watcher& watcher) {
    if (saw_begin_[i]) watcher.After(run_, launch_, kept_[i].get());
  });
}

}  // namespace anyacl::watch
