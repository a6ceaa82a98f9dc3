// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/env.h"
#include "core/once.h"

namespace anyacl::log {
namespace {

struct Sink {
  Level level = Level::kNone;
  std::FILE* file = nullptr;
};

Level AscendLevel() {
  return static_cast<Level>(env::GetInt(env::Var::ASCEND_GLOBAL_LOG_LEVEL, 3));
}

bool AscendStdout() {
  const auto newer = env::Var::ASCEND_LOG_PRINT_TO_STDOUT;
  const auto older = env::Var::ASCEND_SLOG_PRINT_TO_STDOUT;
  return std::string_view(env::Get(env::IsSet(newer) ? newer : older)) == "1";
}

// Not where a link leads that somebody put into the folder, and not for the programs that this one starts.
std::FILE* OpenFile(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP);
  if (file < 0) return nullptr;
  std::FILE* const opened = fdopen(file, "a");
  if (!opened) close(file);
  return opened;
}

Sink OpenSink() {
  if (env::IsSet(env::Var::ANYACL_LOG)) {
    const std::string_view name = env::Get(env::Var::ANYACL_LOG);
    if (name == "debug") return {Level::kDebug, stderr};
    if (name == "info") return {Level::kInfo, stderr};
    if (name == "warn") return {Level::kWarn, stderr};
    if (name == "error") return {Level::kError, stderr};
    return {Level::kWarn, stderr};  // somebody wants to know something, and hears that this is no level
  }
  if (AscendStdout()) return {AscendLevel(), stdout};
  if (env::IsSet(env::Var::ASCEND_PROCESS_LOG_PATH)) {
    const std::string path = std::string(env::Get(env::Var::ASCEND_PROCESS_LOG_PATH)) + "/anyacl-" +
                             std::to_string(getpid()) + ".log";
    if (std::FILE* const file = OpenFile(path.c_str())) return {AscendLevel(), file};
  }
  return {};
}

constexpr const char* kNames[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void Print(const Sink& sink, Level level, std::string_view text) noexcept {
  if (!sink.file || level < sink.level || level > Level::kError) return;
  std::fprintf(sink.file, "[ANYACL] %s %.*s\n", kNames[static_cast<int>(level)], static_cast<int>(text.size()), text.data());
  std::fflush(sink.file);
}

// As far as memory goes.
void TellProblems(const Sink& sink) noexcept try {
  for (const env::Description& variable : env::All()) {
    if (const std::string problem = env::Problem(variable); !problem.empty()) Print(sink, Level::kWarn, problem);
  }
} catch (...) {
}

struct Opened {
  Opened() { TellProblems(sink); }
  Sink sink = OpenSink();
};

// Nobody's for a call that finds no memory for it; the next one tries again.
Sink TheSink() noexcept {
  try {
    return TheOne<Opened>().sink;
  } catch (...) {
    return {};
  }
}

}  // namespace

constinit std::atomic<int> lowest{kUnread};

bool EnabledAtFirst(Level level) noexcept {
  try {
    lowest.store(static_cast<int>(TheOne<Opened>().sink.level), std::memory_order_relaxed);
  } catch (...) {
    return false;
  }
  return Enabled(level);
}

void Write(Level level, std::string_view text) noexcept { Print(TheSink(), level, text); }

}  // namespace anyacl::log
