// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_BESIDE_H_
#define ANYACL_CORE_BESIDE_H_

#include <string>

namespace anyacl {

// Opens a library of ours, for good: from beside the one this code is in; from ../lib64 when that is a program in bin/, like
// our tests. Null, and why in *problem, when there is none.
void* OpenBeside(const char* file, std::string* problem);

}  // namespace anyacl

#endif  // ANYACL_CORE_BESIDE_H_
