// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "verify/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/env.h"
#include "core/locks.h"
#include "core/once.h"

namespace anyacl::verify {
namespace {

struct Sum {
  int64_t calls = 0, ok = 0, wrong = 0, appears = 0;
  std::map<std::string, int64_t> unchecked = {};  // by reason
  double ulps = 0, of_bound = 0;

  void Add(const Sum& other) {
    calls += other.calls;
    ok += other.ok;
    wrong += other.wrong;
    appears += other.appears;
    for (const auto& [reason, count] : other.unchecked) unchecked[reason] += count;
  }
};

// All of it is guarded by Lock::kVerify. A forked child counts its own calls.
struct Sums {
  Sums() {
    InForkedChild(Lock::kVerify, [] { TheOne<Sums>().by_op.clear(); });
  }
  std::map<std::string, Sum> by_op;
};

struct File {
  File() {
    const char* const name = env::Get(env::Var::ANYACL_REPORT);
    const int opened = *name ? open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (opened >= 0) number = opened;
  }
  int number = STDERR_FILENO;
};

// At once, so that lines of several processes do not mix.
void WriteOut(std::string text) {
  text += '\n';
  [[maybe_unused]] const ssize_t written = write(TheOne<File>().number, text.data(), text.size());
}

std::string ToText(const std::string& name, const Sum& sum) {
  std::string text = fmt::format("{}summary {}: {} calls, {} ok, {} wrong", kLogPrefix, name,
                                 sum.calls, sum.ok, sum.wrong);
  for (const auto& [reason, count] : sum.unchecked)
    text += fmt::format(", {} unchecked ({})", count, reason);
  if (sum.appears > 0) text += fmt::format(", {} with new NaN or infinities", sum.appears);
  if (sum.ok + sum.wrong > 0 && name != "all") {
    text += fmt::format("; error {:.3g} ulp, {:.3g} of the bound", sum.ulps, sum.of_bound);
  }
  return text;
}

}  // namespace

void Write(const LogLine& line) {
  const std::lock_guard lock(LockOf(Lock::kVerify));
  Sum& sum = TheOne<Sums>().by_op[line.op];
  ++sum.calls;
  if (line.outcome == Outcome::kOk) ++sum.ok;
  if (line.outcome == Outcome::kWrong) ++sum.wrong;
  if (line.outcome == Outcome::kUnchecked)
    ++sum.unchecked[line.reason.substr(0, line.reason.find(':'))];
  if (!line.appears.empty()) ++sum.appears;
  sum.ulps = std::max(sum.ulps, line.ulps);
  sum.of_bound = std::max(sum.of_bound, line.of_bound);
  WriteOut(ToText(line));
}

void WriteSummary() {
  const std::lock_guard lock(LockOf(Lock::kVerify));
  const auto& by_op = TheOne<Sums>().by_op;
  if (by_op.empty()) return;
  std::vector<std::pair<std::string, Sum>> rows(by_op.begin(), by_op.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.wrong > b.second.wrong; });
  Sum all;
  for (const auto& [op, sum] : rows) {
    WriteOut(ToText(op, sum));
    all.Add(sum);
  }
  WriteOut(ToText("all", all));
}

}  // namespace anyacl::verify
