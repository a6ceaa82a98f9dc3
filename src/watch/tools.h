// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The tools of this room, each made when the environment asks for it. docs/debugging.md says what they find.
#ifndef ANYACL_WATCH_TOOLS_H_
#define ANYACL_WATCH_TOOLS_H_

#include "runtime/backend.h"
#include "watch/watch.h"

namespace anyacl::watch {

Watcher& TheGuard();
Watcher& TheRaces();

// The memory to allocate from: `memory` itself, or with the guard on, one with red zones around every block.
DeviceMemory& Guarded(DeviceMemory& memory);

// Notes where handles are made, and lists at the end those that were never destroyed.
void ObserveHandles();
void ReportLeakedHandles();
// One that the library made for itself.
void Disown(const void* handle) noexcept;
// With the lock kWatch held.
bool IsAlive(const void* handle);

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_TOOLS_H_
