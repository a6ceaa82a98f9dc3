// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "abi/verify.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/beside.h"
#include "core/env.h"
#include "core/once.h"
#include "verify/plugin.h"

namespace anyacl::abi {
namespace {

bool IsAsked() {
  const std::string_view value = env::Get(env::Var::ANYACL_VERIFY);
  return value == "1" || value == "abort";
}

// So that the first call is watched already.
[[maybe_unused]] const bool switched_on = [] {
  if (IsAsked()) watch::is_on.store(true, std::memory_order_release);
  return true;
}();

watch::Watcher* Open(std::string* problem) {
  void* const library = OpenBeside(kVerifyPluginFile, problem);
  if (!library) return nullptr;
  problem->clear();
  static constexpr VerifyHost kHost = {ANYACL_VERSION, Entries};
  if (const auto entry = reinterpret_cast<VerifyEntry>(dlsym(library, kVerifyPluginEntry)))
    return entry(kHost, problem);
  *problem = fmt::format("{} is of another version", kVerifyPluginFile);
  return nullptr;
}

struct Started {
  Started() {
    if (!IsAsked()) return;
    std::string problem;
    watch::Watcher* const verifier = Open(&problem);
    if (verifier)
      watch::Add(*verifier);
    else
      fmt::print(stderr, "[ANYACL] verify: nothing is verified: {}\n", problem);  // the user asked
  }
};

}  // namespace

void StartVerify() { TheOne<Started>(); }

}  // namespace anyacl::abi
