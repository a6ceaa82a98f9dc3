// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/error_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>

#include "core/locks.h"
#include "core/log.h"
#include "core/once.h"
#include "core/thread_value.h"

namespace anyacl::error_text {
namespace {

constexpr size_t kMaxText = 16 * 1024;

struct Text {
  std::string pending;
  std::string taken;
  std::string newest;  // without its head
  uint64_t count = 0;
  char shortage[160];  // handed out instead when there is no memory
};

std::atomic<bool> process_scope{false};

// The thread's own text, else, with the lock, the one of all.
class Scope {
 public:
  Scope() : text_(process_scope.load(std::memory_order_relaxed) ? nullptr : ThreadValue<Text>()) {
    if (text_) return;
    text_ = &TheOne<Text>();
    lock_ = std::unique_lock(LockOf(Lock::kErrorText));
  }
  Text& operator*() const { return *text_; }
  Text* operator->() const { return text_; }

 private:
  Text* text_;
  std::unique_lock<std::mutex> lock_;
};

// The last lack of memory in this thread that nobody was told of.
using ShortageCode = ThreadWord<int32_t, struct ShortageCodeTag>;
using ShortageFunction = ThreadWord<const char*, struct ShortageFunctionTag>;
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
    case 0:
      return "Hccl_Error(EI0001)";
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
    const std::string head = fmt::format("[PID:{}] {} {}\n", getpid(), Now(), line);
    const Scope text;
    text->pending.insert(0, head);
    text->newest = status.message();
    ++text->count;
    if (text->pending.size() > kMaxText) text->pending.resize(kMaxText);
  } catch (...) {
    RememberShortage(status.code(), nullptr);
  }
}

void RememberShortage(int32_t code, const char* function) noexcept {
  ShortageFunction::Set(function);
  ShortageCode::Set(code);
}

namespace {

// The shortage in front of the rest, or alone when there still is no memory for both.
const char* TakeShortage(int32_t code, Text& text) noexcept {
  const char* const function = ShortageFunction::Get();
  ShortageCode::Set(0);
  std::snprintf(text.shortage, sizeof(text.shortage), "[PID:%d] %s: %s%sout of host memory\n", getpid(), ClassOf(code),
                function ? function : "", function ? ": " : "");
  try {
    text.taken = text.shortage + text.pending;
    text.pending.clear();
    return text.taken.c_str();
  } catch (...) {
    return text.shortage;
  }
}

}  // namespace

const char* Take() noexcept {
  const int32_t shortage = ShortageCode::Get();
  const Scope text;
  if (shortage != 0) return TakeShortage(shortage, *text);
  if (text->pending.empty()) return nullptr;
  text->taken.swap(text->pending);
  text->pending.clear();
  return text->taken.c_str();
}

uint64_t Count() noexcept { return Scope()->count; }

std::string NewestSince(uint64_t count) {
  const Scope text;
  return text->count == count ? "" : text->newest;
}

void SetProcessScope(bool process) noexcept {
  process_scope.store(process, std::memory_order_relaxed);
}

int32_t LastRuntimeCode() noexcept { return RuntimeCode::Get(); }
void SetLastRuntimeCode(int32_t code) noexcept { RuntimeCode::Set(code); }

}  // namespace anyacl::error_text
