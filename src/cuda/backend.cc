// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cuda/backend.h"

#include <cstring>
#include <string>

#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/transfers.h"

namespace anyacl::cuda {

#define ANYACL_KERNELS(name, stem, folder) std::span<const Kernel> name##Kernels();
#include "ops/kernel_list.inc"
#undef ANYACL_KERNELS

namespace {

struct NamedKernels {
  const char* stem;
  std::span<const Kernel> (*kernels)();
};
constexpr NamedKernels kKernels[] = {
#define ANYACL_KERNELS(name, stem, folder) {#stem, name##Kernels},
#include "ops/kernel_list.inc"
#undef ANYACL_KERNELS
};

}  // namespace

int CudaBackend::DeviceCount() const { return GpuCount(); }

DeviceFacts CudaBackend::Facts(int device) const {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, OrdinalOf(device)) != cudaSuccess) return {};
  return {std::string(properties.name) + ", compute capability " +
              std::to_string(properties.major) + "." + std::to_string(properties.minor),
          properties.multiProcessorCount, properties.l2CacheSize,
          static_cast<int64_t>(properties.totalGlobalMem)};
}

bool CudaBackend::CanAccessPeer(int device, int peer) const {
  if (OrdinalOf(device) == OrdinalOf(peer)) return true;
  int can = 0;
  return cudaDeviceCanAccessPeer(&can, OrdinalOf(device), OrdinalOf(peer)) == cudaSuccess && can;
}

bool CudaBackend::SetPeerAccess(int device, int peer, bool on) const {
  const int reader = OrdinalOf(device);
  const int owner = OrdinalOf(peer);
  if (reader == owner) return true;
  const DeviceGuard guard(reader);
  const cudaError_t error =
      on ? cudaDeviceEnablePeerAccess(owner, 0) : cudaDeviceDisablePeerAccess(owner);
  cudaGetLastError();
  const bool done = error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled ||
                    error == cudaErrorPeerAccessNotEnabled;
  return done && OpenPool(owner, reader, on);
}

std::span<const Kernel> CudaBackend::Kernels(const char* stem) const {
  for (const NamedKernels& row : kKernels) {
    if (std::strcmp(row.stem, stem) == 0) return row.kernels();
  }
  return {};
}

void CudaBackend::Copy(const StridedCopy& copy, const Launch& launch) const {
  CopyStrided(copy, StreamOf(launch));
}

bool CudaBackend::Move(const MovePass& pass, const Launch& launch) const {
  MoveBytes(pass, StreamOf(launch));
  return true;
}

}  // namespace anyacl::cuda

extern "C" __attribute__((visibility("default"))) const anyacl::Backend* anyacl_cuda_plugin_v1(
    const anyacl::PluginHost& host, std::string* problem) {
  if (std::strcmp(host.version, ANYACL_VERSION) != 0) {
    *problem =
        std::string("the plug-in is of AnyACL " ANYACL_VERSION ", the library of ") + host.version;
    return nullptr;
  }
  anyacl::cuda::SetHost(host);
  int gpus = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&gpus); error != cudaSuccess || gpus == 0) {
    *problem = "CUDA sees no GPU: " + anyacl::cuda::TextOf(error);
    return nullptr;
  }
  static const auto* const backend = new anyacl::cuda::CudaBackend;
  return backend;
}
