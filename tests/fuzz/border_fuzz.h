// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_FUZZ_BORDER_FUZZ_H_
#define ANYACL_TESTS_FUZZ_BORDER_FUZZ_H_

#include <cstddef>
#include <cstdint>

namespace anyacl::fuzz {

// Reads the bytes as a sequence of calls over the C border and makes them. Whatever they are, every
// call that may touch memory gets memory that is large enough: a fault, a report of a sanitizer or
// an abort is a bug of the library. Returns how many runs of operators were accepted.
int FuzzBorder(const uint8_t* data, size_t size);

}  // namespace anyacl::fuzz

#endif  // ANYACL_TESTS_FUZZ_BORDER_FUZZ_H_
