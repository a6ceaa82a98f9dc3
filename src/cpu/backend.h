// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_BACKEND_H_
#define ANYACL_CPU_BACKEND_H_

#include <memory>
#include <span>

#include "runtime/backend.h"

namespace anyacl::cpu {

class CpuBackend final : public Backend {
 public:
  CpuBackend();
  const char* name() const override { return "cpu"; }
  std::span<const Kernel> Kernels(const char* stem) const override;
  void Copy(const StridedCopy& copy, const Launch& launch) const override;
  bool Move(const MovePass&, const Launch&) const override { return false; }

  int DeviceCount() const override { return 1; }
  DeviceFacts Facts(int device) const override;
  // All devices share one memory.
  bool CanAccessPeer(int, int) const override { return true; }
  bool SetPeerAccess(int, int, bool) const override { return true; }
  bool launches() const override { return false; }

  DeviceMemory& memory() const override;  // cpu_memory.cc
  runtime::StreamEngine* NewEngine(runtime::StreamHooks& stream) const override;  // cpu_stream.cc
  std::unique_ptr<runtime::Recording> NewRecording() const override;              // recording.cc
};

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_BACKEND_H_
