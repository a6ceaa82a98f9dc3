// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_LOG_H_
#define ANYACL_CORE_LOG_H_

#include <atomic>
#include <string_view>

namespace anyacl::log {

enum class Level { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kNone = 4 };

// The lowest level that somebody asked for; kUnread until the first question.
inline constexpr int kUnread = -1;
extern constinit std::atomic<int> lowest;
bool EnabledAtFirst(Level level) noexcept;

// True when somebody asked for lines of this level; false by default for all. Ask before building a text.
inline bool Enabled(Level level) noexcept {
  const int known = lowest.load(std::memory_order_relaxed);
  return known == kUnread ? EnabledAtFirst(level) : static_cast<int>(level) >= known;
}

// One line "[ANYACL] LEVEL text", to standard error for ANYACL_LOG, to standard output or a file when
// the ASCEND_* variables ask for that.
void Write(Level level, std::string_view text) noexcept;

}  // namespace anyacl::log

#endif  // ANYACL_CORE_LOG_H_
