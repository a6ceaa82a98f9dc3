// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The SIMD targets a build contains and the one its kernels run on.
#ifndef ANYACL_CPU_TARGETS_H_
#define ANYACL_CPU_TARGETS_H_

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace anyacl::cpu {

// Names of the targets compiled in that this machine can run, best first ("AVX3", ..., "SCALAR").
std::vector<std::string> UsableTargets();

// The target that kernels run on, as reported by a function that is compiled once per target and
// goes through the same dispatch as the kernels.
const char* ActiveTarget();

// Lets only this target run from now on; empty: back to the choice at the start. False, and nothing
// changed, when the name is not one of UsableTargets(). Not while kernels run.
bool ForceTarget(std::string_view name);

// Obeys ANYACL_SIMD; the backend calls it before the first kernel.
void InitTargets();

// Whether the machine rounds to bfloat16 by itself. That is no target of its own: kernels compiled for
// AVX-512 ask at run time. Tests may turn it off.
extern bool has_bfloat16_rounding;

// Whether lines are prefetched as was best on a Zen 4 (cpu/simd-inl.h); no result depends on it.
extern const bool is_zen;

// Tests only: while alive, kernels note the target they were compiled for.
class TargetRecorder {
 public:
  TargetRecorder();
  ~TargetRecorder();
  TargetRecorder(const TargetRecorder&) = delete;
  TargetRecorder& operator=(const TargetRecorder&) = delete;
  std::string_view last() const;  // empty: no kernel ran since the start or since Clear
  void Clear();
};

namespace targets_internal {
extern std::atomic<bool> recording;
extern std::atomic<const char*> last_kernel;
}  // namespace targets_internal

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_TARGETS_H_
