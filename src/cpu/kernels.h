// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What <op>.cpu.cc gives to the backend: its kernels, best first, "reference" last.
#ifndef ANYACL_CPU_KERNELS_H_
#define ANYACL_CPU_KERNELS_H_

#include <span>

#include "runtime/backend.h"

namespace anyacl::cpu {

#define ANYACL_OPERATOR(name, stem, family) std::span<const Kernel> name##Kernels();
#include "ops/op_list.inc"
#undef ANYACL_OPERATOR

// A Kernel from two typed functions, so that kernels see their own Params and not void*.
template <class Params, bool (*fits)(const Params&), void (*run)(const Params&)>
constexpr Kernel MakeKernel(const char* name) {
  return {name, [](const void* params) { return fits(*static_cast<const Params*>(params)); },
          [](const void* params, const Launch&) { run(*static_cast<const Params*>(params)); }};
}

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_KERNELS_H_
