// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_SANITIZED_H_
#define ANYACL_TESTS_SANITIZED_H_

namespace anyacl {

// A sanitizer makes everything ten times slower and keeps freed memory, an emulated processor is even
// slower: such builds run fewer and shorter cases, and do not measure.
#if defined(ANYACL_SANITIZE_address) || defined(ANYACL_SANITIZE_thread) || defined(ANYACL_EMULATED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Skips what forks while other threads start, allocate or end. ThreadSanitizer does not support threads in the child at all.
// AddressSanitizer (of GCC 12) takes none of its own locks before a fork: of a bare program whose threads start threads, one
// child in ten hangs at its first allocation or thread, and none without it.
#if defined(ANYACL_SANITIZE_address) || defined(ANYACL_SANITIZE_thread)
#define ANYACL_FORKS_BESIDE_THREADS() GTEST_SKIP() << "sanitizers have locks of their own, which a fork leaves taken"
#else
#define ANYACL_FORKS_BESIDE_THREADS() static_cast<void>(0)
#endif

}  // namespace anyacl

#endif  // ANYACL_TESTS_SANITIZED_H_
