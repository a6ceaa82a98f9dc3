// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Handles that the program made and never destroyed.
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/handle_table.h"
#include "core/locks.h"
#include "core/mending.h"
#include "core/once.h"
#include "watch/report.h"
#include "watch/site.h"
#include "watch/tools.h"

namespace anyacl::watch {
namespace {

constexpr size_t kKinds = 16;

// By kind and slot, as their own tables have them: every call makes one of an executor.
struct Handles {
  struct Place {
    const void* alive = nullptr;  // the handle
    Site made;
  };
  std::vector<Place> places[kKinds];  // guarded by kWatch

  Place* Find(const void* handle) {
    auto& of_kind = places[static_cast<size_t>(KindOf(handle))];
    const size_t slot = SlotOf(handle);
    return slot < of_kind.size() && of_kind[slot].alive == handle ? &of_kind[slot] : nullptr;
  }
};
Handles& All() { return TheOne<Handles>(); }

void Made(HandleKind kind, const void* handle) noexcept try {
  const Site site = Site::Here();
  const std::lock_guard lock(LockOf(Lock::kWatch));
  auto& of_kind = All().places[static_cast<size_t>(kind)];
  const size_t slot = SlotOf(handle);
  if (slot >= of_kind.size()) of_kind.resize(slot + 1);
  of_kind[slot] = {handle, site};
} catch (...) {
}

void Destroyed(HandleKind, const void* handle) noexcept try {
  std::unique_lock lock(LockOf(Lock::kWatch), std::defer_lock);
  if (!IsMending()) lock.lock();  // a forked child drops captures of its parent
  if (Handles::Place* const place = All().Find(handle)) place->alive = nullptr;
} catch (...) {
}

constexpr HandleObserver kObserver{Made, Destroyed};

}  // namespace

void Disown(const void* handle) noexcept {
  if (handle_observer.load(std::memory_order_relaxed)) Destroyed(HandleKind::kStream, handle);
}

namespace {

// What programs are asked to destroy; contexts go with their device. Null for the others.
const char* NameOf(HandleKind kind) {
  switch (kind) {
    case HandleKind::kTensor:
      return "aclTensor";
    case HandleKind::kScalar:
      return "aclScalar";
    case HandleKind::kIntArray:
      return "aclIntArray";
    case HandleKind::kFloatArray:
      return "aclFloatArray";
    case HandleKind::kBoolArray:
      return "aclBoolArray";
    case HandleKind::kTensorList:
      return "aclTensorList";
    case HandleKind::kScalarList:
      return "aclScalarList";
    case HandleKind::kExecutor:
      return "aclOpExecutor";
    case HandleKind::kStream:
      return "aclrtStream";
    case HandleKind::kEvent:
      return "aclrtEvent";
    case HandleKind::kGraph:
      return "aclmdlRI";
    case HandleKind::kDataBuffer:
      return "aclDataBuffer";
    case HandleKind::kTensorDesc:
      return "aclTensorDesc";
    case HandleKind::kPhysicalMemory:
      return "aclrtDrvMemHandle";
    case HandleKind::kContext:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

void ObserveHandles() { handle_observer.store(&kObserver, std::memory_order_release); }

bool IsAlive(const void* handle) { return handle && All().Find(handle); }

void ReportLeakedHandles() {
  std::map<std::pair<HandleKind, Site>, int> sites;
  {
    const std::lock_guard lock(LockOf(Lock::kWatch));
    for (const auto& of_kind : All().places) {
      for (const Handles::Place& place : of_kind) {
        if (place.alive) ++sites[{KindOf(place.alive), place.made}];
      }
    }
  }
  for (const auto& [made, count] : sites) {
    const auto& [kind, site] = made;
    const std::string where = site.Lines();
    if (!NameOf(kind)) continue;
    Report(
        "leaks",
        fmt::format("{} {} {} never destroyed", count, NameOf(kind), count == 1 ? "was" : "were"),
        "  made by\n" + where);
  }
}

}  // namespace anyacl::watch
