// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl run: a program in the environment of this installation, without a shell that sourced set_env.sh.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "commands.h"
#include "library.h"
#include "ranks.h"

namespace anyacl::tool {
namespace {

namespace fs = std::filesystem;

// The installation that this program belongs to.
fs::path Prefix() {
  std::error_code problem;
  const fs::path self = fs::read_symlink("/proc/self/exe", problem);
  const fs::path prefix = self.parent_path().parent_path();
  if (!problem && fs::exists(prefix / "lib64/libanyacl.so", problem)) return prefix;
  throw UserError(fmt::format("{} is not in the bin folder of an installation", self.string()));
}

// Puts a folder first in a colon list, once.
void Prepend(const char* name, const fs::path& folder) {
  const char* const before = std::getenv(name);
  std::string list = folder.string();
  std::string_view rest = before ? before : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const std::string_view part = rest.substr(0, end);
    if (!part.empty() && part != folder.string()) list.append(":").append(part);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  setenv(name, list.c_str(), 1);
}

// As set_env.sh does.
void SetEnvironment(const fs::path& prefix) {
  Prepend("PATH", prefix / "bin");
  Prepend("LD_LIBRARY_PATH", prefix / "lib64");
  Prepend("PYTHONPATH", prefix / "python/site-packages");
  Prepend("CMAKE_PREFIX_PATH", prefix / "lib64/cmake");
  Prepend("PKG_CONFIG_PATH", prefix / "lib64/pkgconfig");
  setenv("ASCEND_HOME_PATH", prefix.c_str(), 1);
  setenv("ASCEND_TOOLKIT_HOME", prefix.c_str(), 1);
  setenv("ASCEND_OPP_PATH", (prefix / "opp").c_str(), 1);
  setenv("ASCEND_AICPU_PATH", prefix.c_str(), 1);
  setenv("TOOLCHAIN_HOME", (prefix / "toolkit").c_str(), 1);
}

}  // namespace

int RunProgram(const std::vector<std::string>& command, int ranks) {
  if (command.empty()) throw UserError("run needs a program: anyacl run -- program arguments");
  SetEnvironment(Prefix());
  if (ranks > 0) return RunRanks(command, ranks);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  throw UserError(fmt::format("{} cannot be run: {}", command[0], std::strerror(errno)));
}

}  // namespace anyacl::tool
