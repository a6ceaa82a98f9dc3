// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_THREAD_END_H_
#define ANYACL_TESTS_THREAD_END_H_

#include <pthread.h>

#include <functional>
#include <stdexcept>

namespace anyacl {

// Calls `body` at the end of the calling thread, behind the destructors of keys that exist already: ours, if a call was
// made before.
inline void AtThreadEnd(std::function<void()> body) {
  using Body = std::function<void()>;
  pthread_key_t key;
  const auto call = [](void* value) {
    auto* const stored = static_cast<Body*>(value);
    (*stored)();
    delete stored;
  };
  if (pthread_key_create(&key, call) != 0) throw std::runtime_error("no key is left");
  pthread_setspecific(key, new Body(std::move(body)));
}

}  // namespace anyacl

#endif  // ANYACL_TESTS_THREAD_END_H_
