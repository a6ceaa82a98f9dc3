// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "commands.h"
#include "core/env.h"
#include "library.h"

namespace anyacl::tool {
namespace {

// "2 (cuda)" and a line for each.
std::string DeviceText() {
  uint32_t count = 0;
  const aclError status = aclrtGetDeviceCount(&count);
  if (status != 0 || count == 0) {
    aclrtSetDevice(0);  // says why there is none
    const char* const text = aclGetRecentErrMsg();
    return fmt::format("none: {}", text ? text : "");
  }
  const Backend& backend = Library().backend();
  std::string result = fmt::format("{} ({})", count, backend.name());
  for (uint32_t i = 0; i < count; ++i) {
    const DeviceFacts facts = backend.Facts(static_cast<int>(i));
    result += fmt::format("\n          {}: {}, {} cores, {:.1f} GiB, {:.1f} MiB shared cache", i,
                          facts.name, facts.cores, static_cast<double>(facts.memory_bytes) / (1 << 30),
                          static_cast<double>(facts.cache_bytes) / (1 << 20));
  }
  return result;
}

std::string CudaText() {
  const std::string problem = Library().cuda_problem();
  return problem.empty() ? "usable" : fmt::format("not usable: {}", problem);
}

std::string ProductText() {
  const char* const soc = Library().soc_name();
  if (ProductOf(soc)) return fmt::format("{} ({})", Name(Library().product()), soc);
  return fmt::format("{} is unknown; known: {}", soc, KnownSocNames());
}

std::string SimdText() {
  return fmt::format("{} (this machine can run {})", Library().active_target(),
                     fmt::join(Library().targets(), ", "));
}

// Why values have no effect.
std::vector<std::string> Problems() {
  std::vector<std::string> problems;
  for (const env::Description& variable : env::All()) {
    if (std::string problem = env::Problem(variable); !problem.empty()) problems.push_back(std::move(problem));
  }
  const std::string simd = env::Get(env::Var::ANYACL_SIMD);
  const auto& targets = Library().targets();
  if (!simd.empty() && std::find(targets.begin(), targets.end(), simd) == targets.end()) {
    problems.push_back(fmt::format("ANYACL_SIMD must be one of {}, got {}", fmt::join(targets, ", "), simd));
  }
  return problems;
}

std::string ValueText(const env::Description& variable) {
  const char* const value = std::getenv(variable.name);
  if (value && *value) return value;
  return *variable.fallback ? fmt::format("not set, {}", variable.fallback) : "not set";
}

}  // namespace

void Info() {
  fmt::print("AnyACL    {}, with the interface of CANN {}\n", Library().version,
             Library().cann_version);
  fmt::print("devices   {}\n", DeviceText());
  fmt::print("CUDA      {}\n", CudaText());
  fmt::print("product   {}\n", ProductText());
  fmt::print("SIMD      {}\n", SimdText());
  fmt::print("threads   {}\n", Library().threads());
  fmt::print("operators {}\n", Library().operators().size());
  fmt::print("\nEnvironment\n");
  for (const env::Description& variable : env::All()) {
    fmt::print("  {:<28} {:<20} {}\n", variable.name, ValueText(variable), variable.meaning);
  }
  const std::vector<std::string> problems = Problems();
  if (!problems.empty()) fmt::print("\nWithout effect\n");
  for (const std::string& problem : problems) fmt::print("  {}\n", problem);
}

}  // namespace anyacl::tool
