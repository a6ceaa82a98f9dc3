// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every allocation of the process, on every thread: counted, and refused on demand. A program that links allocator.cc has
// it instead of malloc; with a sanitizer, whose own malloc must stay, instead of operator new.
#ifndef ANYACL_TESTS_ALLOCATOR_H_
#define ANYACL_TESTS_ALLOCATOR_H_

#include <cstdint>

namespace anyacl::allocator {

// What is counted begins anew, and allocation number `first` will fail (0: none), with `once` that one alone, else all
// from it on.
void Refuse(int64_t first, bool once);

// Counts and refuses as long as it lives.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

int64_t Made();     // while watched, those that failed too
int64_t Refused();
int64_t Live();     // allocated and not freed, watched or not

}  // namespace anyacl::allocator

#endif  // ANYACL_TESTS_ALLOCATOR_H_
