// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GPUs, errors and the driver: what the files of the plug-in share.
#ifndef ANYACL_CUDA_DEVICE_H_
#define ANYACL_CUDA_DEVICE_H_

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl::cuda {

// The library that opened us; set once, before anything else runs.
void SetHost(const PluginHost& host);

int GpuCount();
// The GPU of a device of the runtime: there may be more devices than GPUs.
int OrdinalOf(int device);
// How many devices of the runtime share one GPU.
int DevicesPerGpu();

// In a child of fork nothing of CUDA works any more.
bool Forked();

// Words in pinned memory that the GPU waits for and the host writes, each on its own; never freed. When the process
// ends, `at_exit` is written into all of them: the driver would wait for ever for a stream that waits for us.
class HostWord {
 public:
  static HostWord* Make(uint32_t value);  // null: none to be had
  static HostWord& Exiting();             // 0 until the process ends, then 1

  uint32_t* device_address() const { return device_; }
  // After the end has begun, words keep what they were given for it.
  void Set(uint32_t value);
  void SetAtExit(uint32_t value) { at_exit_.store(value, std::memory_order_relaxed); }

 private:
  friend void ReleaseAllWords();
  uint32_t* host_ = nullptr;
  uint32_t* device_ = nullptr;
  std::atomic<uint32_t> at_exit_{0};
  HostWord* next_ = nullptr;
};

// Makes a GPU current in this thread, and puts back what the program had selected.
class DeviceGuard {
 public:
  explicit DeviceGuard(int ordinal);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int ordinal_;
  int before_ = -1;
};

// "cudaErrorIllegalAddress (an illegal memory access was encountered)", and the code we report it with.
std::string TextOf(cudaError_t error);
int32_t CodeOf(cudaError_t error);
Status ToStatus(const char* call, cudaError_t error);
// The context is lost: every later call fails in the same way.
bool IsSticky(cudaError_t error);

// An event that goes back to a list of spares. Waiting for a timed one costs a little more.
class NativeEvent {
 public:
  static std::shared_ptr<NativeEvent> Make(int ordinal, bool timed);  // null: none to be had
  ~NativeEvent();
  cudaEvent_t get() const { return event_; }
  int ordinal() const { return ordinal_; }

 private:
  NativeEvent(cudaEvent_t event, int ordinal, bool timed)
      : event_(event), ordinal_(ordinal), timed_(timed) {}
  cudaEvent_t event_;
  int ordinal_;
  bool timed_;
};

// A stream of our own for transfers that belong to no stream of the runtime; the legacy stream would order
// itself with what others do in the process.
class UtilityStream {
 public:
  explicit UtilityStream(int ordinal);
  ~UtilityStream();
  cudaStream_t get() const { return stream_; }

 private:
  int ordinal_;
  cudaStream_t stream_ = nullptr;
};

// Zeros on a GPU for Launch::counters, kLaunchCounters of them; null when there is no memory. Put them back when no
// work uses them any more.
unsigned* TakeCounters(int ordinal);
void PutCounters(int ordinal, unsigned* counters);

// Functions of the driver that the runtime library has no form of. Members are null where the driver is
// too old.
struct Driver {
  decltype(&cuStreamWaitValue32) wait_value32;
  decltype(&cuMemsetD32Async) memset_d32;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) release;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) destroy;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuLaunchKernelEx) launch;
};
const Driver& TheDriver();

// By the driver, which costs the host less; what it does not take goes to the runtime, which remembers errors.
// `function` is a cache of the kernel and the current GPU.
void LaunchByDriver(const cudaLaunchConfig_t& config, const void* kernel,
                    std::atomic<CUfunction>& function, void** args);

inline cudaStream_t StreamOf(const Launch& launch) {
  return static_cast<cudaStream_t>(launch.native_stream);
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_DEVICE_H_
