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

// Elements; below it a second thread costs more than it saves.
inline constexpr int64_t kTask = 32 * 1024;

// Bytes of all arrays of a call from which its outputs are stored past the caches. A store that does
// not read its line first saves a quarter of the traffic, which pays where the arrays do not stay in the
// caches between two operators anyway. An Intel server pays more for a store to a line of its last cache
// than for one to memory: EluBackward on 12 MB takes it 0.32 ms so and 0.16 ms past the caches, a Zen 4
// 0.07 and 0.15.
extern int64_t stream_bytes;  // tests may lower it

// A call may ask for the larger of this and 2 % of its inputs.
inline constexpr int64_t kScratchBytes = 4 << 20;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_KERNELS_H_
