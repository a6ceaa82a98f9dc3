// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

namespace anyacl::cpu {

bool StartThread(void* (*main)(void*), void* argument) noexcept {
  // Kernels need some 100 KiB at most; host functions of the program may expect more.
  constexpr size_t kStack = size_t{1} << 20;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  size_t stack = 0;
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_setstacksize(&attributes, std::max(stack, kStack));
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, main, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace anyacl::cpu
