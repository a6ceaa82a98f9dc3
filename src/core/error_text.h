// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_ERROR_TEXT_H_
#define ANYACL_CORE_ERROR_TEXT_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace anyacl::error_text {

// Remembers a failure for aclGetRecentErrMsg, newest first, with the class prefix of its code
// ("AclNN_Parameter_Error(EZ1001): ..."). Never throws; drops the oldest text beyond 16 KiB.
void Remember(const Status& status) noexcept;

// The same for a lack of memory, which it needs none for. `function`: a literal, null when it is not known.
void RememberShortage(int32_t code, const char* function) noexcept;

// Hands out and clears what was remembered, or null. Valid until the next call in the same scope.
const char* Take() noexcept;

// For whoever watches calls: how many texts this thread (or scope) has remembered, and the newest of them, without its
// date, when there is one since that count; else "".
uint64_t Count() noexcept;
std::string NewestSince(uint64_t count);

// false (default): one text per thread; true: one for the process (err_msg_mode "1").
void SetProcessScope(bool process) noexcept;

// The last runtime code of this thread, for aclrtGetLastError.
int32_t LastRuntimeCode() noexcept;
void SetLastRuntimeCode(int32_t code) noexcept;

}  // namespace anyacl::error_text

#endif  // ANYACL_CORE_ERROR_TEXT_H_
