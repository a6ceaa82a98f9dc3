// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The two calls of an operator when something of trace/switches.h is on.
#ifndef ANYACL_ABI_WATCHED_CALLS_H_
#define ANYACL_ABI_WATCHED_CALLS_H_

#include "abi/calls.h"

namespace anyacl::abi {

using Phase1 = aclnnStatus (*)(size_t entry, std::span<const CallArg> args, uint64_t* workspace_size,
                               aclOpExecutor** executor);
using Phase2 = aclnnStatus (*)(size_t entry, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                               void* stream);

aclnnStatus Watch(Phase1 call, size_t entry, std::span<const CallArg> args, uint64_t* workspace_size,
                  aclOpExecutor** executor) noexcept;
aclnnStatus Watch(Phase2 call, size_t entry, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                  void* stream) noexcept;

}  // namespace anyacl::abi

#endif  // ANYACL_ABI_WATCHED_CALLS_H_
