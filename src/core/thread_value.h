// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What belongs to the calling thread. Behind keys and not in thread-local storage, because ld.so cannot list (ldd) a
// filter library if the library behind it has any: it puts that one in front of its list and then misses it.
#ifndef ANYACL_CORE_THREAD_VALUE_H_
#define ANYACL_CORE_THREAD_VALUE_H_

#include <pthread.h>

#include <cstring>
#include <new>
#include <type_traits>

#include "core/once.h"

namespace anyacl {

// A place for a pointer in every thread. The end of a thread clears it and calls at_end(pointer), again and again as long
// as it is set anew, but only a few times.
class ThreadKey {
 public:
  explicit ThreadKey(void (*at_end)(void*)) : exists_(pthread_key_create(&key_, at_end) == 0) {}
  ThreadKey(const ThreadKey&) = delete;
  ThreadKey& operator=(const ThreadKey&) = delete;

  void* Get() const { return exists_ ? pthread_getspecific(key_) : nullptr; }
  // False: there is no room for it.
  bool Set(const void* value) const { return exists_ && pthread_setspecific(key_, value) == 0; }

 private:
  pthread_key_t key_{};
  const bool exists_;
};

// A small value of the calling thread, at first all zeros; one for every Tag. It can be read and set to the very end of
// a thread, in the destructors of the program's own keys, too.
template <class T, class Tag>
class ThreadWord {
  static_assert(sizeof(T) <= sizeof(void*) && std::is_trivially_copyable_v<T>);

 public:
  static T Get() {
    void* const word = Key().Get();
    T value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
  static bool Set(T value) {
    void* word = nullptr;
    std::memcpy(&word, &value, sizeof(value));
    return Key().Set(word);
  }

 private:
  struct Own : ThreadKey {
    Own() : ThreadKey([](void* word) { Key().Set(word); }) {}
  };
  static const ThreadKey& Key() { return TheOne<Own>(); }
};

// The calling thread's own T, made at first use; null when there is no memory, and from its destruction on, because
// functions that run at the end of a thread may still make calls.
template <class T>
T* ThreadValue() {
  struct Holder : ThreadKey {
    Holder() : ThreadKey(AtEnd) {}
    static void AtEnd(void* value) {
      Key().Set(Gone());
      if (value != Gone()) delete static_cast<T*>(value);
    }
    static const ThreadKey& Key() { return TheOne<Holder>(); }
    static const void* Gone() { return &Key(); }
  };
  void* const value = Holder::Key().Get();
  if (value == Holder::Gone()) [[unlikely]]
    return nullptr;
  if (value) [[likely]]
    return static_cast<T*>(value);
  static_assert(std::is_nothrow_default_constructible_v<T>);
  T* const made = new (std::nothrow) T;
  if (!made || Holder::Key().Set(made)) return made;
  delete made;
  return nullptr;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_THREAD_VALUE_H_
