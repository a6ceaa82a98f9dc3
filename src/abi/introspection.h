// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The one private name that libanyacl.so exports. Our own tool comes from the same build and asks
// through it what the shipped library really is; C++ types may cross. Programs of users have no
// business here.
#ifndef ANYACL_ABI_INTROSPECTION_H_
#define ANYACL_ABI_INTROSPECTION_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/product.h"
#include "plan/operator.h"
#include "runtime/backend.h"

namespace anyacl {

struct Introspection {
  const char* version;       // of AnyACL
  const char* cann_version;  // of the toolkit whose interface it offers

  std::span<const Operator* const> (*operators)();
  std::span<const Backend* const> (*backends)();
  std::span<const char* const> (*cuda_stems)();    // kernels that the CUDA plug-in has, whether it was built or not
  const Backend& (*backend)();                     // of all devices of this process
  std::string (*cuda_problem)();                   // why there is no CUDA backend; else empty
  Status (*submit)(void* stream, const Work& work);
  void (*force_kernel)(std::string name);          // as ANYACL_KERNEL; "" lifts it
  const char* (*kernel_of)(const void* executor);  // "none" when there is nothing to compute

  const char* (*soc_name)();
  Product (*product)();

  // The CPU's part: SIMD targets this machine can run, best first, and the pool.
  std::vector<std::string> (*targets)();
  const char* (*active_target)();
  bool (*force_target)(std::string_view name);
  int (*threads)();
  void (*set_threads)(int count);
  void (*run_tasks)(int64_t tasks, void (*call)(void* context, int64_t index), void* context);
};

}  // namespace anyacl

extern "C" __attribute__((visibility("default"))) const anyacl::Introspection*
anyacl_introspection_v1();

#endif  // ANYACL_ABI_INTROSPECTION_H_
