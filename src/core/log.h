// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_LOG_H_
#define ANYACL_CORE_LOG_H_

#include <string_view>

namespace anyacl::log {

enum class Level { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kNone = 4 };

// True when somebody asked for lines of this level; false by default for all. Ask before building a text.
bool Enabled(Level level) noexcept;

// One line "[ANYACL] LEVEL text", to standard error for ANYACL_LOG, to standard output or a file when
// the ASCEND_* variables ask for that.
void Write(Level level, std::string_view text) noexcept;

}  // namespace anyacl::log

#endif  // ANYACL_CORE_LOG_H_
