// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CUDA_BACKEND_H_
#define ANYACL_CUDA_BACKEND_H_

#include <memory>
#include <span>

#include "runtime/backend.h"

namespace anyacl::cuda {

class CudaBackend final : public Backend {
 public:
  const char* name() const override { return "cuda"; }
  int DeviceCount() const override;
  DeviceFacts Facts(int device) const override;
  bool CanAccessPeer(int device, int peer) const override;
  bool SetPeerAccess(int device, int peer, bool on) const override;
  bool launches() const override { return true; }

  std::span<const Kernel> Kernels(const char* stem) const override;
  void Copy(const StridedCopy& copy, const Launch& launch) const override;
  bool Move(const MovePass& pass, const Launch& launch) const override;

  DeviceMemory& memory() const override;                                          // cuda_memory.cc
  runtime::StreamEngine* NewEngine(runtime::StreamHooks& stream) const override;  // cuda_stream.cc
  std::unique_ptr<runtime::Recording> NewRecording() const override;  // cuda_recording.cc
  DeviceGroups* groups() const override;                              // nccl.cc
};

// Lets a GPU use the memory that another one's pool gave out; in cuda_memory.cc.
bool OpenPool(int owner, int reader, bool on);

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_BACKEND_H_
