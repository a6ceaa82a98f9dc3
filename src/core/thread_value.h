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

namespace anyacl {

// A small value of the calling thread, at first all zeros; one for every Tag. It can be read and set to the very end of
// a thread, in the destructors of the program's own keys, too.
template <class T, class Tag>
class ThreadWord {
  static_assert(sizeof(T) <= sizeof(void*) && std::is_trivially_copyable_v<T>);

 public:
  static T Get() {
    void* const word = TheSlot().exists ? pthread_getspecific(TheSlot().key) : nullptr;
    T value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
  // False: there is no room for it.
  static bool Set(T value) {
    void* word = nullptr;
    std::memcpy(&word, &value, sizeof(value));
    return TheSlot().exists && pthread_setspecific(TheSlot().key, word) == 0;
  }

 private:
  struct Slot {
    Slot() { exists = pthread_key_create(&key, &Slot::Keep) == 0; }
    // The end of a thread clears every key before it calls this, a few times.
    static void Keep(void* word) { pthread_setspecific(TheSlot().key, word); }
    pthread_key_t key{};
    bool exists;
  };
  static Slot& TheSlot() {
    static Slot slot;
    return slot;
  }
};

// The calling thread's own T, made at first use; null when there is no memory, and from its destruction on, because
// functions that run at the end of a thread may still make calls.
template <class T>
T* ThreadValue() {
  struct Slot {
    Slot() { exists = pthread_key_create(&key, &Slot::End) == 0; }
    // Called again and again as long as the value is not null, but only a few times.
    static void End(void* value) {
      pthread_setspecific(TheSlot().key, Gone());
      if (value != Gone()) delete static_cast<T*>(value);
    }
    static void* Gone() { return &TheSlot(); }
    static Slot& TheSlot() {
      static Slot slot;
      return slot;
    }
    pthread_key_t key{};
    bool exists;
  };
  Slot& slot = Slot::TheSlot();
  if (!slot.exists) return nullptr;
  void* const value = pthread_getspecific(slot.key);
  if (value == Slot::Gone()) [[unlikely]]
    return nullptr;
  if (value) [[likely]]
    return static_cast<T*>(value);
  T* const made = new (std::nothrow) T;
  if (!made || pthread_setspecific(slot.key, made) == 0) return made;
  delete made;
  return nullptr;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_THREAD_VALUE_H_
