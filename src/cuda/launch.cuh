// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Launches of kernels, and what a kernel begins with.
//
// A failed launch is remembered by the CUDA runtime; whoever called Kernel::run asks for it.
#ifndef ANYACL_CUDA_LAUNCH_CUH_
#define ANYACL_CUDA_LAUNCH_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "cuda/device.h"
#include "runtime/backend.h"

namespace anyacl::cuda {

template <class Int>
__host__ __device__ constexpr Int CeilDiv(Int a, Int b) {
  return (a + b - 1) / b;
}

// Calls f.operator()<flag>().
template <class F>
void WithFlag(bool flag, F&& f) {
  flag ? f.template operator()<true>() : f.template operator()<false>();
}

struct LaunchShape {
  int64_t blocks = 1;
  int threads = 256;
  int64_t shared_bytes = 0;
  int cluster = 1;           // blocks that share their memories
  bool cooperative = false;  // all blocks are resident at once
  // Not more blocks than this on one multiprocessor; 0: as many as fit. A grid that is to spread over all of them would
  // else crowd onto those that the kernel in front leaves first.
  int most_together = 0;

  // What keeps a further block away is the shared memory that it does not get.
  int64_t SharedBytes() const {
    constexpr int64_t kOfMultiprocessor = 228 * 1024;
    const int64_t least = most_together ? kOfMultiprocessor / (most_together + 1) : 0;
    return std::max(shared_bytes, least);
  }
};

inline constexpr int kMaxDevices = 64;

// A number about a device that is asked for once; 0 is "not asked yet".
template <class Ask>
int Cached(std::atomic<int>& cache, const Ask& ask) {
  int value = cache.load(std::memory_order_relaxed);
  if (value == 0) {
    value = ask() + 1;
    cache.store(value, std::memory_order_relaxed);
  }
  return value - 1;
}

inline int DeviceAttribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

inline int Multiprocessors(int device) {
  static std::atomic<int> cache[kMaxDevices];
  return Cached(cache[device],
                [&] { return DeviceAttribute(cudaDevAttrMultiProcessorCount, device); });
}

inline bool HasClusters(int device) {
  static std::atomic<int> cache[kMaxDevices];
  return Cached(cache[device], [&] { return DeviceAttribute(cudaDevAttrClusterLaunch, device); }) !=
         0;
}

// Lets `kernel` use as much shared memory as the device has.
template <auto kernel>
void AllowSharedMemory(int device) {
  static std::atomic<int> cache[kMaxDevices];
  Cached(cache[device], [&] {
    const int most = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaFuncAttributes attributes{};
    cudaFuncGetAttributes(&attributes, kernel);
    return static_cast<int>(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most - static_cast<int>(attributes.sharedSizeBytes)));
  });
}

// Lets `kernel` run in clusters of more than eight blocks; ResidentClusters says whether the device has them.
template <auto kernel>
void AllowLargeClusters(int device) {
  static std::atomic<int> cache[kMaxDevices];
  Cached(cache[device], [] {
    return static_cast<int>(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  });
}

struct LaunchConfig : cudaLaunchConfig_t {
  LaunchConfig(const Launch& launch, const LaunchShape& shape) : cudaLaunchConfig_t{} {
    gridDim = dim3(static_cast<unsigned>(shape.blocks));
    blockDim = dim3(static_cast<unsigned>(shape.threads));
    dynamicSmemBytes = static_cast<size_t>(shape.SharedBytes());
    stream = static_cast<cudaStream_t>(launch.native_stream);
    attrs = attributes;
    if (shape.cluster > 1) {
      attributes[numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[numAttrs].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
      attributes[numAttrs].val.clusterDim.y = attributes[numAttrs].val.clusterDim.z = 1;
      ++numAttrs;
    }
    if (shape.cooperative) {
      attributes[numAttrs].id = cudaLaunchAttributeCooperative;
      attributes[numAttrs++].val.cooperative = 1;
    }
    // The kernel may start before the one in front has ended; see BeginKernel.
    if (HasClusters(launch.device)) {
      attributes[numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  cudaLaunchAttribute attributes[3];
};

template <class... Types>
void LaunchPointer(void (*kernel)(Types...), const cudaLaunchConfig_t& config,
                   std::atomic<CUfunction>& function, const std::type_identity_t<Types>&... args) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  LaunchByDriver(config, reinterpret_cast<const void*>(kernel), function, pointers);
}

template <auto kernel, class... Args>
void LaunchKernel(const Launch& launch, const LaunchShape& shape, const Args&... args) {
  static std::atomic<CUfunction> functions[kMaxDevices];
  if (shape.SharedBytes() > 48 * 1024) AllowSharedMemory<kernel>(launch.device);
  LaunchPointer(kernel, LaunchConfig(launch, shape), functions[launch.device], args...);
}

// How many clusters of this shape the device runs at once. `cache` belongs to the kernel, device and shape.
template <auto kernel>
int ResidentClusters(std::atomic<int>& cache, const Launch& launch, const LaunchShape& shape) {
  return Cached(cache, [&] {
    AllowSharedMemory<kernel>(launch.device);
    const LaunchConfig config(launch, shape);
    int count = 0;
    if (shape.cluster > 1) {
      // A cluster that no device of this kind can have is an answer, not a failure.
      if (cudaOccupancyMaxActiveClusters(&count, kernel, &config) != cudaSuccess)
        cudaGetLastError();
      return count;
    }
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, shape.threads,
                                                  shape.SharedBytes());
    return count * Multiprocessors(launch.device);
  });
}

// In every kernel before it touches device memory, because kernels may be launched before the one in front has ended:
// everything that one wrote is visible behind this, and the next one may take the places that become free.
__device__ inline void BeginKernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_LAUNCH_CUH_
