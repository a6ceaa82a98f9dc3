// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What is made at first use and never destroyed, because programs make calls until their last destructor. Not as a static
// variable of a function: a child forked while another thread makes one would wait for that thread for ever.
#ifndef ANYACL_CORE_ONCE_H_
#define ANYACL_CORE_ONCE_H_

#include <atomic>
#include <mutex>
#include <new>

#include "core/locks.h"

namespace anyacl {

// Apart, so that every later call is a load and a test.
template <class T, class Make>
[[gnu::noinline, gnu::cold]] T& MakeOnce(std::atomic<T*>& place, Make&& make) {
  const std::lock_guard lock(OnceLock());
  T* made = place.load(std::memory_order_relaxed);
  if (!made) {
    made = make();
    place.store(made, std::memory_order_release);
  }
  return *made;
}

// *place, which make() fills when it is empty; when that throws, the next call tries again.
template <class T, class Make>
[[gnu::always_inline]] inline T& MadeOnce(std::atomic<T*>& place, Make&& make) {
  if (T* const made = place.load(std::memory_order_acquire)) [[likely]]
    return *made;
  return MakeOnce(place, static_cast<Make&&>(make));
}

// The one T of the process (of that Tag). Its place needs no memory, so it fails only when its constructor does.
template <class T, class Tag = T>
T& TheOne() {
  alignas(T) static constinit unsigned char storage[sizeof(T)] = {};
  static constinit std::atomic<T*> place{nullptr};
  return MadeOnce(place, [] { return new (static_cast<void*>(storage)) T; });
}

}  // namespace anyacl

#endif  // ANYACL_CORE_ONCE_H_
