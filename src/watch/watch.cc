// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "watch/watch.h"

#include <fmt/format.h>

#include "core/env.h"
#include "core/python_caller.h"
#include "watch/tools.h"

namespace anyacl::watch {
namespace {

constinit std::atomic<Watcher*> watchers[kMostWatchers];  // filled from the front
constinit std::atomic<uint64_t> runs{0};

// Those of this room that the environment asks for. Here, because every program has this file: a static library leaves
// files out that nobody calls.
bool Start() noexcept try {
  if (env::IsOn(env::Var::ANYACL_GUARD)) {
    Add(TheGuard());
    ObserveHandles();
  }
  if (env::IsOn(env::Var::ANYACL_RACES)) Add(TheRaces());
  return On();
} catch (...) {
  return false;
}

struct Process {
  Process() { Start(); }
  ~Process() {
    if (On()) Tell(&Watcher::Ends, true);
  }
} process;

}  // namespace

Watcher* At(int place) {
  return place < kMostWatchers ? watchers[place].load(std::memory_order_acquire) : nullptr;
}

void Add(Watcher& watcher) {
  for (auto& place : watchers) {
    Watcher* nobody = nullptr;
    if (!place.compare_exchange_strong(nobody, &watcher, std::memory_order_acq_rel)) continue;
    is_on.store(true, std::memory_order_release);
    return;
  }
}

std::string CallerNow() {
  std::string file;
  int line = 0;
  return PythonCaller(&file, &line) ? fmt::format("{}:{}", file, line) : "";
}

bool IsKnown(const RunOutline& run) noexcept {
  for (int i = 0; Watcher* const watcher = At(i); ++i) {
    try {
      if (!watcher->Knows(run)) return false;
    } catch (...) {
      return false;
    }
  }
  runs.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Call(OperatorRun& run) noexcept {
  run.number = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  run.site = Site::Here();
  for (int i = 0; Watcher* const watcher = At(i); ++i) {
    try {
      watcher->Called(run);
    } catch (...) {
    }
  }
}

Around::Around(const OperatorRun& run, const Launch& launch) noexcept : run_(run), launch_(launch) {
  for (int i = 0; Watcher* const watcher = At(i); ++i) {
    try {
      kept_[i] = watcher->Before(run_, launch_);
      saw_begin_[i] = true;
    } catch (...) {
    }
  }
}

void Around::Done() noexcept {
  for (int i = 0; Watcher* const watcher = At(i); ++i) {
    try {
      if (saw_begin_[i]) watcher->After(run_, launch_, kept_[i].get());
    } catch (...) {
    }
  }
}

}  // namespace anyacl::watch
