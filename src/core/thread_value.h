// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_THREAD_VALUE_H_
#define ANYACL_CORE_THREAD_VALUE_H_

namespace anyacl {

// The calling thread's own T, made at first use; null from its destruction on, because functions that run at the
// end of a thread, or of the process, may still make calls.
template <class T>
T* ThreadValue() {
  static constinit thread_local bool gone = false;  // no destructor: can be read to the very end
  struct Holder {
    ~Holder() { gone = true; }
    T value;
  };
  if (gone) [[unlikely]]
    return nullptr;
  static thread_local Holder holder;
  return &holder.value;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_THREAD_VALUE_H_
