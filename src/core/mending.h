// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_MENDING_H_
#define ANYACL_CORE_MENDING_H_

namespace anyacl {

// Whether this is a forked child in which the functions of InForkedChild are called: all of core/locks.h are held by its only
// thread, and who would take one has it already.
bool IsMending();

}  // namespace anyacl

#endif  // ANYACL_CORE_MENDING_H_
