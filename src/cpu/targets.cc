// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/targets.h"

#include "core/env.h"
#include "core/log.h"
#include "core/once.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/targets.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {

const char* TargetHere() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {

#if HWY_ARCH_X86
bool has_bfloat16_rounding = __builtin_cpu_supports("avx512bf16");
const bool is_zen = __builtin_cpu_is("amd");
#else
bool has_bfloat16_rounding = false;
const bool is_zen = false;
#endif

namespace targets_internal {
std::atomic<bool> recording{false};
std::atomic<const char*> last_kernel{""};
}  // namespace targets_internal

namespace {

HWY_EXPORT(TargetHere);

// What the machine offers, asked before anything is forced.
const std::vector<int64_t>& Usable() {
  struct Targets {
    std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets();
  };
  return TheOne<Targets>().all;
}

}  // namespace

std::vector<std::string> UsableTargets() {
  std::vector<std::string> names;
  for (const int64_t target : Usable()) names.emplace_back(hwy::TargetName(target));
  return names;
}

const char* ActiveTarget() { return HWY_DYNAMIC_DISPATCH(TargetHere)(); }

bool ForceTarget(std::string_view name) {
  if (name.empty()) {
    Usable();
    hwy::SetSupportedTargetsForTest(0);
    InitTargets();
    return true;
  }
  for (const int64_t target : Usable()) {
    if (hwy::TargetName(target) != name) continue;
    hwy::SetSupportedTargetsForTest(target);
    return true;
  }
  return false;
}

void InitTargets() {
  const std::string name = env::Get(env::Var::ANYACL_SIMD);
  if (name.empty() || ForceTarget(name) || !log::Enabled(log::Level::kWarn)) return;
  std::string text = "ANYACL_SIMD=" + name + " is none of";
  for (const std::string& usable : UsableTargets()) text += " " + usable;
  log::Write(log::Level::kWarn, text);
}

TargetRecorder::TargetRecorder() {
  Clear();
  targets_internal::recording = true;
}
TargetRecorder::~TargetRecorder() { targets_internal::recording = false; }
std::string_view TargetRecorder::last() const { return targets_internal::last_kernel.load(); }
void TargetRecorder::Clear() { targets_internal::last_kernel = ""; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
