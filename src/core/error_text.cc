// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/error_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <string>

#include "core/log.h"
#include "core/thread_value.h"

namespace anyacl::error_text {
namespace {

constexpr size_t kMaxText = 16 * 1024;

struct Text {
  std::mutex mutex;
  std::string pending;
  std::string taken;
};

std::atomic<bool> process_scope{false};

Text& Scope() {
  static Text* const process_text = new Text;
  Text* const thread_text =
      process_scope.load(std::memory_order_relaxed) ? nullptr : ThreadValue<Text>();
  return thread_text ? *thread_text : *process_text;
}

using RuntimeCode = ThreadWord<int32_t, struct RuntimeCodeTag>;

std::string Now() {
  std::tm now{};
  const std::time_t seconds = std::time(nullptr);
  localtime_r(&seconds, &now);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d-%H:%M:%S", &now));
}

const char* ClassOf(int32_t code) {
  switch (code / 1000) {
    case 161:
      return "AclNN_Parameter_Error(EZ1001)";
    case 361:
      return "AclNN_Runtime_Error(EZ9903)";
    case 561:
      return "AclNN_Inner_Error(EZ9999)";
    case 107:
    case 207:
    case 507:
      return "Runtime_Error(EE1001)";
    default:
      return "Acl_Error(EH0001)";
  }
}

}  // namespace

void Remember(const Status& status) noexcept {
  try {
    const std::string line = fmt::format("{}: {}", ClassOf(status.code()), status.message());
    if (log::Enabled(log::Level::kError)) {
      log::Write(log::Level::kError, fmt::format("{} (code {})", line, status.code()));
    }
    Text& text = Scope();
    const std::lock_guard lock(text.mutex);
    text.pending = fmt::format("[PID:{}] {} {}\n{}", getpid(), Now(), line, text.pending);
    if (text.pending.size() > kMaxText) text.pending.resize(kMaxText);
  } catch (...) {  // out of memory: the code still reaches the caller
  }
}

const char* Take() noexcept {
  Text& text = Scope();
  const std::lock_guard lock(text.mutex);
  if (text.pending.empty()) return nullptr;
  text.taken.swap(text.pending);
  text.pending.clear();
  return text.taken.c_str();
}

void SetProcessScope(bool process) noexcept {
  process_scope.store(process, std::memory_order_relaxed);
}

int32_t LastRuntimeCode() noexcept { return RuntimeCode::Get(); }
void SetLastRuntimeCode(int32_t code) noexcept { RuntimeCode::Set(code); }

}  // namespace anyacl::error_text
