// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What <op>.cpu.cc gives to the backend: its kernels, best first, "reference" last.
#ifndef ANYACL_CPU_KERNELS_H_
#define ANYACL_CPU_KERNELS_H_

#include <cstdint>
#include <span>

#include "runtime/backend.h"

namespace anyacl::cpu {

#define ANYACL_OPERATOR(name, stem, family) std::span<const Kernel> name##Kernels();
#include "ops/op_list.inc"
#undef ANYACL_OPERATOR

// A Kernel from typed functions, so that kernels see their own Params and not void*.
template <class Params, bool (*fits)(const Params&), void (*run)(const Params&)>
constexpr Kernel MakeKernel(const char* name) {
  return {name, [](const void* params) { return fits(*static_cast<const Params*>(params)); },
          [](const void* params, const Launch&) { run(*static_cast<const Params*>(params)); }};
}
template <class Params, bool (*fits)(const Params&), void (*run)(const Params&),
          int64_t (*scratch_bytes)(const Params&)>
constexpr Kernel MakeKernel(const char* name) {
  Kernel kernel = MakeKernel<Params, fits, run>(name);
  kernel.scratch_bytes = [](const void* params) {
    return scratch_bytes(*static_cast<const Params*>(params));
  };
  return kernel;
}

template <class Params>
bool FitsAlways(const Params&) {
  return true;
}

// ---- Sizes on which the kernels agree ----

inline constexpr int64_t kTask = 32 * 1024;  // elements; below it a second thread costs more than it saves

// From here on the arrays of a call do not stay in the caches between two operators anyway, and a
// store that does not read its line first saves a quarter of the traffic. Loads and stores alone, 25 MB
// in all, two cores of an Intel Xeon with 260 MiB of last cache: 337 us streamed, 626 us not.
inline constexpr int64_t kStreamBytes = 16 << 20;

// A call may ask for the larger of this and 2 % of its inputs.
inline constexpr int64_t kScratchBytes = 4 << 20;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_KERNELS_H_
