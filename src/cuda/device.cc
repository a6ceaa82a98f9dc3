// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cuda/device.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/codes.h"
#include "cuda/kernels.h"

namespace anyacl::cuda {
namespace {

const PluginHost* the_host = nullptr;
std::atomic<bool> forked{false};

// Things of one GPU that are used again.
template <class T>
class Spares {
 public:
  bool Take(T* item) {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return false;
    *item = items_.back();
    items_.pop_back();
    return true;
  }
  void Put(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
  }

 private:
  std::mutex mutex_;
  std::vector<T> items_;
};

struct Gpu {
  Spares<cudaEvent_t> events[2];  // [timed]
  Spares<cudaStream_t> streams;
  Spares<unsigned*> counters;
};
Gpu& GpuAt(int ordinal) {
  static auto* const gpus = new Gpu[static_cast<size_t>(GpuCount())];
  return gpus[ordinal];
}

template <class Function>
void Find(const char* name, Function* function) {
  constexpr unsigned kVersion = 12000;  // the interface we call, not the driver's
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
  const bool usable = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
  *function = usable ? reinterpret_cast<Function>(found) : nullptr;
}

}  // namespace

void SetHost(const PluginHost& host) {
  the_host = &host;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

int GpuCount() {
  static const int count = [] {
    int gpus = 0;
    return cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0;
  }();
  return count;
}

int OrdinalOf(int device) { return the_host->logical_id(device) % GpuCount(); }
int DevicesPerGpu() {
  return std::max(1, (the_host->device_count() + GpuCount() - 1) / GpuCount());
}

bool Forked() { return forked.load(std::memory_order_relaxed); }

namespace {
std::mutex& WordMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
HostWord* all_words = nullptr;  // guarded by the mutex, and so is the next
bool words_released = false;
}  // namespace

void ReleaseAllWords() {
  if (Forked()) return;
  const std::lock_guard lock(WordMutex());
  words_released = true;
  for (HostWord* word = all_words; word; word = word->next_) {
    std::atomic_ref<uint32_t>(*word->host_).store(word->at_exit_.load(), std::memory_order_release);
  }
}

HostWord* HostWord::Make(uint32_t value) {
  // After the driver's own handlers were registered, and so before them at the end.
  static const int registered = std::atexit(ReleaseAllWords);
  (void)registered;
  void* host = nullptr;
  void* device = nullptr;
  const unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
  if (cudaHostAlloc(&host, sizeof(uint32_t), flags) != cudaSuccess ||
      cudaHostGetDevicePointer(&device, host, 0) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  auto* const word = new HostWord;
  word->host_ = new (host) uint32_t(value);
  word->device_ = static_cast<uint32_t*>(device);
  const std::lock_guard lock(WordMutex());
  word->next_ = all_words;
  all_words = word;
  return word;
}

HostWord& HostWord::Exiting() {
  static HostWord* const word = [] {
    HostWord* const made = Make(0);
    if (made) made->SetAtExit(1);
    return made;
  }();
  return *word;
}

void HostWord::Set(uint32_t value) {
  const std::lock_guard lock(WordMutex());
  if (!words_released) std::atomic_ref<uint32_t>(*host_).store(value, std::memory_order_release);
}

DeviceGuard::DeviceGuard(int ordinal) : ordinal_(ordinal) {
  cudaGetDevice(&before_);
  if (before_ != ordinal) cudaSetDevice(ordinal);
}
DeviceGuard::~DeviceGuard() {
  if (before_ != ordinal_ && before_ >= 0) cudaSetDevice(before_);
}

std::string TextOf(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

int32_t CodeOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
    case cudaErrorCudartUnloading:  // the process is ending
      return 0;
    case cudaErrorMemoryAllocation:
      return code::kRtOutOfMemory;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidPitchValue:
      return code::kRtParamInvalid;
    case cudaErrorNotSupported:
      return code::kRtNotSupported;
    case cudaErrorStreamCaptureInvalidated:
      return code::kRtCaptureInvalidated;
    case cudaErrorStreamCaptureUnjoined:
      return code::kRtStreamUnjoined;
    default:
      return IsSticky(error) ? code::kRtCoreException : code::kRtDriver;
  }
}

Status ToStatus(const char* call, cudaError_t error) {
  const int32_t code = CodeOf(error);
  if (code == 0) [[likely]]
    return Status();
  cudaGetLastError();  // it is told here, and must not be told again
  return Status(code, std::string(call) + " failed with " + TextOf(error));
}

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<NativeEvent> NativeEvent::Make(int ordinal, bool timed) {
  cudaEvent_t event = nullptr;
  if (!GpuAt(ordinal).events[timed].Take(&event)) {
    const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
    if (cudaEventCreateWithFlags(&event, flags) != cudaSuccess) return nullptr;
  }
  return std::shared_ptr<NativeEvent>(new NativeEvent(event, ordinal, timed));
}

NativeEvent::~NativeEvent() { GpuAt(ordinal_).events[timed_].Put(event_); }

UtilityStream::UtilityStream(int ordinal) : ordinal_(ordinal) {
  if (GpuAt(ordinal).streams.Take(&stream_)) return;
  cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
}
UtilityStream::~UtilityStream() {
  if (stream_) GpuAt(ordinal_).streams.Put(stream_);
}

// Many at a time: an allocation may wait for the whole GPU. They are never given back to the driver.
unsigned* TakeCounters(int ordinal) {
  constexpr int kSets = 64;
  unsigned* counters = nullptr;
  if (GpuAt(ordinal).counters.Take(&counters)) return counters;
  constexpr size_t kBytes = kSets * kLaunchCounters * sizeof(unsigned);
  const UtilityStream stream(ordinal);
  if (cudaMalloc(&counters, kBytes) != cudaSuccess ||
      cudaMemsetAsync(counters, 0, kBytes, stream.get()) != cudaSuccess ||
      cudaStreamSynchronize(stream.get()) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  for (int i = 1; i < kSets; ++i) PutCounters(ordinal, counters + i * kLaunchCounters);
  return counters;
}

void PutCounters(int ordinal, unsigned* counters) { GpuAt(ordinal).counters.Put(counters); }

const Driver& TheDriver() {
  static const Driver* const driver = [] {
    auto* const found = new Driver;
    Find("cuStreamWaitValue32", &found->wait_value32);
    Find("cuMemsetD32Async", &found->memset_d32);
    Find("cuMemGetAllocationGranularity", &found->granularity);
    Find("cuMemAddressReserve", &found->reserve);
    Find("cuMemAddressFree", &found->release);
    Find("cuMemCreate", &found->create);
    Find("cuMemRelease", &found->destroy);
    Find("cuMemMap", &found->map);
    Find("cuMemUnmap", &found->unmap);
    Find("cuMemSetAccess", &found->set_access);
    Find("cuLaunchKernelEx", &found->launch);
    return found;
  }();
  return *driver;
}

namespace {

// The attributes of both libraries are the same numbers.
static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
static_assert(static_cast<int>(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) ==
              static_cast<int>(cudaLaunchAttributeClusterDimension));
static_assert(static_cast<int>(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) ==
              static_cast<int>(cudaLaunchAttributeCooperative));
static_assert(static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) ==
              static_cast<int>(cudaLaunchAttributeProgrammaticStreamSerialization));

// Null: the runtime does not know it.
CUfunction FunctionOf(const void* kernel, std::atomic<CUfunction>& cache) {
  CUfunction function = cache.load(std::memory_order_relaxed);
  if (function) return function;
  if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  cache.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace

void LaunchByDriver(const cudaLaunchConfig_t& config, const void* kernel,
                    std::atomic<CUfunction>& function, void** args) {
  static const auto launch = TheDriver().launch;
  if (const CUfunction known = launch ? FunctionOf(kernel, function) : nullptr) {
    CUlaunchConfig native{};
    native.gridDimX = config.gridDim.x;
    native.gridDimY = native.gridDimZ = 1;
    native.blockDimX = config.blockDim.x;
    native.blockDimY = native.blockDimZ = 1;
    native.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    native.hStream = config.stream;
    native.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
    native.numAttrs = config.numAttrs;
    if (launch(&native, known, args, nullptr) == CUDA_SUCCESS) return;
  }
  cudaLaunchKernelExC(&config, kernel, args);
}

}  // namespace anyacl::cuda
