// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_BACKEND_H_
#define ANYACL_CPU_BACKEND_H_

#include <span>

#include "runtime/backend.h"

namespace anyacl::cpu {

class CpuBackend final : public Backend {
 public:
  CpuBackend();
  const char* name() const override { return "cpu"; }
  std::span<const Kernel> Kernels(const char* operator_stem) const override;
  void Copy(const StridedCopy& copy, const Launch& launch) const override;
  DeviceMemory& memory() const override;        // cpu_memory.cc
  runtime::Stream* NewStream() const override;  // in cpu_stream.cc
};

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_BACKEND_H_
