// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What an operator's two C functions are made of. The functions themselves are written at build time from the public
// headers (cmake/entry_points.py).
#ifndef ANYACL_ABI_CALLS_H_
#define ANYACL_ABI_CALLS_H_

#include <concepts>
#include <cstdint>
#include <span>

#include "aclnn/aclnn_base.h"
#include "plan/operator.h"

namespace anyacl::abi {

// One argument as it crosses the border; converts from every C parameter type.
struct CallArg : RawArg {
  template <class T>
  CallArg(T* h) {  // NOLINT: implicit on purpose, so that entry points list their arguments plainly
    handle = h;
  }
  CallArg(std::floating_point auto v) { real = v; }  // NOLINT
  CallArg(bool v) { flag = v; }                      // NOLINT
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  CallArg(T v) {  // NOLINT
    integer = static_cast<int64_t>(v);
  }
};

// `entry` counts in Entries().
aclnnStatus GetWorkspaceSize(size_t entry, std::span<const CallArg> args, uint64_t* workspace_size,
                             aclOpExecutor** executor) noexcept;
aclnnStatus Run(size_t entry, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                void* stream) noexcept;

}  // namespace anyacl::abi

#endif  // ANYACL_ABI_CALLS_H_
