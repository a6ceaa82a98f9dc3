// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

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
}

}  // namespace anyacl::tool
