// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "watch/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "core/env.h"
#include "core/locks.h"
#include "core/once.h"

namespace anyacl::watch {
namespace {

constexpr size_t kMostReports =
    200;  // a program that is wrong in one place is often wrong a million times

class Output {
 public:
  Output() {
    if (!env::IsSet(env::Var::ANYACL_REPORT)) return;
    const int file =
        open(env::Get(env::Var::ANYACL_REPORT),
             O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP);
    if (file >= 0) file_ = file;
  }

  // In one piece, so that processes that write to the same file do not mix.
  void Write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(file_, text.data(), text.size());
      if (written <= 0) return;
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  // Whether this is to be written at all; the last one says that there will be no more.
  bool Admit(const std::string& key) {
    const std::lock_guard lock(LockOf(Lock::kReported));
    if (seen_.size() >= kMostReports || !seen_.insert(key).second) return false;
    if (seen_.size() == kMostReports)
      Write("[ANYACL] there are more reports than these; they are not written\n");
    return seen_.size() < kMostReports;
  }

 private:
  int file_ = STDERR_FILENO;
  std::set<std::string> seen_;
};

}  // namespace

void Report(std::string_view tool, const std::string& sentence, const std::string& details) noexcept
    try {
  Output& output = TheOne<Output>();
  const std::string headline = fmt::format("[ANYACL] {}: {}\n", tool, sentence);
  // What was left by two places are two leaks, though as many.
  if (output.Admit(tool == "leaks" ? headline + details : headline))
    output.Write(headline + details);
} catch (...) {
}

}  // namespace anyacl::watch
