// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/log.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/env.h"

namespace anyacl::log {
namespace {

struct Sink {
  Level level = Level::kNone;
  std::FILE* file = nullptr;
};

Level AscendLevel() {
  return static_cast<Level>(env::GetInt(env::Var::ASCEND_GLOBAL_LOG_LEVEL, 0, 4, 3));
}

bool AscendStdout() {
  const auto newer = env::Var::ASCEND_LOG_PRINT_TO_STDOUT;
  const auto older = env::Var::ASCEND_SLOG_PRINT_TO_STDOUT;
  return env::Get(env::IsSet(newer) ? newer : older) == "1";
}

Sink OpenSink() {
  if (env::IsSet(env::Var::ANYACL_LOG)) {
    const std::string name = env::Get(env::Var::ANYACL_LOG);
    if (name == "debug") return {Level::kDebug, stderr};
    if (name == "info") return {Level::kInfo, stderr};
    if (name == "warn") return {Level::kWarn, stderr};
    if (name == "error") return {Level::kError, stderr};
    return {};
  }
  if (AscendStdout()) return {AscendLevel(), stdout};
  if (env::IsSet(env::Var::ASCEND_PROCESS_LOG_PATH)) {
    const std::string path = env::Get(env::Var::ASCEND_PROCESS_LOG_PATH) + "/anyacl-" +
                             std::to_string(getpid()) + ".log";
    if (std::FILE* file = std::fopen(path.c_str(), "a")) return {AscendLevel(), file};
  }
  return {};
}

const Sink& TheSink() {
  static const Sink* const sink = new Sink(OpenSink());
  return *sink;
}

constexpr const char* kNames[] = {"DEBUG", "INFO", "WARN", "ERROR"};

}  // namespace

bool Enabled(Level level) { return level >= TheSink().level && TheSink().level != Level::kNone; }

void Write(Level level, std::string_view text) {
  if (!Enabled(level)) return;
  std::fprintf(TheSink().file, "[ANYACL] %s %.*s\n", kNames[static_cast<int>(level)],
               static_cast<int>(text.size()), text.data());
  std::fflush(TheSink().file);
}

}  // namespace anyacl::log
