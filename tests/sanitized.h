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

}  // namespace anyacl

#endif  // ANYACL_TESTS_SANITIZED_H_
