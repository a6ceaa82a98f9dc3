// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_THREADS_H_
#define ANYACL_CPU_THREADS_H_

namespace anyacl::cpu {

// A thread of ours that has had nothing to do for so long ends. Starting another costs some 20 us, and a program whose
// last thread has ended must not live on for the sake of ours.
inline constexpr int kIdleSeconds = 2;

// Starts a detached thread; false when the system has none, or no memory, for it. It takes no signals, which are the host
// program's business, and has the stack it needs whatever the program's default is.
bool StartThread(void* (*main)(void*), void* argument) noexcept;

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_THREADS_H_
