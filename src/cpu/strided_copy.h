// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_STRIDED_COPY_H_
#define ANYACL_CPU_STRIDED_COPY_H_

#include "runtime/backend.h"

namespace anyacl::cpu {

// The copy that StridedCopy describes; `from` and `to` do not overlap each other.
void CopyStrided(const StridedCopy& copy);

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_STRIDED_COPY_H_
