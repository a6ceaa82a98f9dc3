// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// ANYACL_VERIFY: every run of an operator is computed again by its oracle.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/env.h"
#include "core/float_mode.h"
#include "core/once.h"
#include "verify/check.h"
#include "verify/log.h"
#include "verify/plugin.h"

namespace anyacl::verify {
namespace {

class Verifier : public watch::Watcher {
 public:
  std::shared_ptr<void> Before(const watch::OperatorRun& run, const Launch& launch) override {
    const DefaultFloatMode mode;
    return std::make_shared<Check>(run, launch, most_);
  }

  void After(const watch::OperatorRun&, const Launch& launch, void* kept) override {
    if (!kept) return;
    const DefaultFloatMode mode;
    const LogLine line = static_cast<Check*>(kept)->Finish(launch);
    Write(line);
    if (line.outcome == Outcome::kWrong && aborts_) std::abort();  // the user asked for it
  }

 private:
  const int64_t most_ = env::GetInt(env::Var::ANYACL_VERIFY_MOST, 1 << 26);
  const bool aborts_ = std::string_view(env::Get(env::Var::ANYACL_VERIFY)) == "abort";
};

}  // namespace
}  // namespace anyacl::verify

namespace anyacl {

namespace {
std::span<const Entry> entries;
}

// Oracles ask which operators there are.
std::span<const Entry> Entries() { return entries; }

}  // namespace anyacl

extern "C" __attribute__((visibility("default"))) anyacl::watch::Watcher* anyacl_verify_plugin_v1(
    const anyacl::VerifyHost& host, std::string* problem) {
  using namespace anyacl;  // NOLINT
  if (std::strcmp(host.version, ANYACL_VERSION) != 0) {
    *problem = fmt::format("{} is of version {}", kVerifyPluginFile, ANYACL_VERSION);
    return nullptr;
  }
  entries = host.entries();
  std::atexit(verify::WriteSummary);
  return &TheOne<verify::Verifier>();
}
