// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Engines of families are compiled for fewer SIMD targets than the kernels that were tuned one by one: a baseline, AVX2
// and AVX-512 (or NEON). Included before hwy/foreach_target.h. Where the target in force is one that was left out,
// the next worse one runs.
#ifndef ANYACL_CPU_FAMILY_TARGETS_H_
#define ANYACL_CPU_FAMILY_TARGETS_H_

#include "hwy/detect_targets.h"

#ifdef HWY_DISABLED_TARGETS
inline constexpr long long kAnyaclDisabledBefore = HWY_DISABLED_TARGETS;
#endif
#if HWY_ARCH_X86
#undef HWY_TARGETS
#define HWY_TARGETS (HWY_ATTAINABLE_TARGETS & (HWY_STATIC_TARGET | (HWY_STATIC_TARGET - 1)) & ~(HWY_SSSE3 | HWY_SSE4))
#endif

#include "hwy/targets.h"

// The table of an exported function has an entry for each target, null for those that were left out here: the best of the
// others runs. In a build for one target (sanitizers, ARM) there is one entry and nothing to choose; whatever index the
// machine has would lie behind it.

namespace anyacl::cpu {

template <class Function, size_t kSize>
Function BestOf(Function const (&table)[kSize]) {
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (chosen.GetIndex() == 0) chosen.Update(hwy::SupportedTargets());
  size_t index = chosen.GetIndex();
  while (index + 1 < kSize && !table[index]) ++index;
  return table[index];
}

}  // namespace anyacl::cpu

// As HWY_DYNAMIC_DISPATCH.
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define ANYACL_FAMILY_DISPATCH(function) HWY_DISPATCH_TABLE(function)[0]
#else
#define ANYACL_FAMILY_DISPATCH(function) ::anyacl::cpu::BestOf(HWY_DISPATCH_TABLE(function))
#endif

#endif  // ANYACL_CPU_FAMILY_TARGETS_H_
