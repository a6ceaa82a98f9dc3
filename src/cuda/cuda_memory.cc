// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Device memory of a GPU: a stream-ordered pool per GPU, because cudaFree waits for the whole device and fresh memory
// is slow to come by. The runtime frees a block only after all work that was queued before, so the pool's own stream
// is enough to order reuse.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/codes.h"
#include "cuda/backend.h"
#include "cuda/device.h"
#include "cuda/transfers.h"

namespace anyacl::cuda {
namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kReadableTail = 32;
constexpr size_t kAbsurd = size_t{1} << 46;
constexpr size_t kMaxPitch = (size_t{1} << 31) - 1;
constexpr size_t kKeptFraction = 8;  // of the memory of a GPU may stay in the pool when it is free

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Pool {
 public:
  explicit Pool(int ordinal) : ordinal_(ordinal) {
    const DeviceGuard guard(ordinal);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, ordinal};
    if (cudaMemPoolCreate(&pool_, &props) != cudaSuccess) return;
    size_t free = 0;
    size_t total = 0;
    cudaMemGetInfo(&free, &total);
    uint64_t kept = total / kKeptFraction;
    cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept);
  }

  void* Allocate(size_t bytes) {
    const DeviceGuard guard(ordinal_);
    void* address = Try(bytes);
    if (address) return address;
    cudaMemPoolTrimTo(pool_, 0);  // pieces that are free but do not fit
    return Try(bytes);
  }

  void Free(void* address) {
    const DeviceGuard guard(ordinal_);
    cudaFreeAsync(address, stream_);
    cudaGetLastError();  // a process that ends, a context that is lost: nothing to be done
  }

  MemoryInfo Info() const {
    const DeviceGuard guard(ordinal_);
    MemoryInfo info;
    uint64_t reserved = 0;
    uint64_t used = 0;
    cudaMemGetInfo(&info.free, &info.total);
    cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved);
    cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used);
    info.free = std::min<size_t>(info.total, info.free + (reserved > used ? reserved - used : 0));
    return info;
  }

  bool Open(int reader, bool on) {
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, reader};
    access.flags = on ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaMemPoolSetAccess(pool_, &access, 1) == cudaSuccess;
  }

 private:
  // The wait makes the block usable on every stream; it is short, nothing else runs on this one.
  void* Try(size_t bytes) {
    void* address = nullptr;
    if (cudaMallocFromPoolAsync(&address, bytes, pool_, stream_) == cudaSuccess &&
        cudaStreamSynchronize(stream_) == cudaSuccess) {
      return address;
    }
    cudaGetLastError();
    return nullptr;
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

Pool& PoolOf(int ordinal) {
  struct Pools {
    std::mutex mutex;
    std::map<int, Pool> of;
  };
  static auto* const pools = new Pools;
  const std::lock_guard lock(pools->mutex);
  return pools->of.try_emplace(ordinal, ordinal).first->second;
}

// Pinned memory that was freed, for the next allocation of its size: pinning is slow, and unpinning waits for all work of
// all GPUs.
class PinnedBlocks {
 public:
  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(bytes);
    if (found == blocks_.end()) return nullptr;
    void* const address = found->second;
    blocks_.erase(found);
    total_ -= bytes;
    return address;
  }
  bool Keep(void* address, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > kMost - total_) return false;
    blocks_.emplace(bytes, address);
    total_ += bytes;
    return true;
  }

 private:
  static constexpr size_t kMost = size_t{256} << 20;
  std::mutex mutex_;
  std::multimap<size_t, void*> blocks_;
  size_t total_ = 0;
};

size_t MachineBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Runs `launch_on(stream)` on the launch's stream, or on one of ours and waits.
template <class LaunchOn>
Status OnStream(const char* call, const Launch& launch, LaunchOn&& launch_on) {
  if (Forked()) return Status(code::kRtDriver, "CUDA does not work in a child of fork");
  if (launch.native_stream) return ToStatus(call, launch_on(StreamOf(launch)));
  const int ordinal = OrdinalOf(launch.device);
  const DeviceGuard guard(ordinal);
  const UtilityStream stream(ordinal);
  const cudaError_t launched = launch_on(stream.get());
  const cudaError_t done = cudaStreamSynchronize(stream.get());
  return ToStatus(call, launched != cudaSuccess ? launched : done);
}

cudaError_t CopyRows(const RowCopy& copy, cudaStream_t stream) {
  const bool contiguous =
      copy.height == 1 || (copy.to_pitch == copy.width && copy.from_pitch == copy.width);
  if (contiguous) {
    return cudaMemcpyAsync(copy.to, copy.from, copy.width * copy.height, cudaMemcpyDefault, stream);
  }
  if (copy.to_pitch <= kMaxPitch && copy.from_pitch <= kMaxPitch) {
    return cudaMemcpy2DAsync(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.width,
                             copy.height, cudaMemcpyDefault, stream);
  }
  for (size_t row = 0; row < copy.height; ++row) {
    const cudaError_t error =
        cudaMemcpyAsync(static_cast<char*>(copy.to) + row * copy.to_pitch,
                        static_cast<const char*>(copy.from) + row * copy.from_pitch, copy.width,
                        cudaMemcpyDefault, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t FillWords(void* to, uint32_t pattern, size_t count, cudaStream_t stream) {
  if (!TheDriver().memset_d32) return cudaErrorNotSupported;
  const auto result =
      TheDriver().memset_d32(reinterpret_cast<CUdeviceptr>(to), pattern, count, stream);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

CUmemAllocationProp PhysicalProp(int ordinal) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = ordinal;
  return prop;
}

class CudaMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, int device) override {
    if (bytes > kAbsurd || Forked()) return nullptr;
    return PoolOf(OrdinalOf(device)).Allocate(UsableSize(bytes));
  }
  void Free(void* address, size_t, int device) override {
    if (!Forked()) PoolOf(OrdinalOf(device)).Free(address);
  }
  size_t UsableSize(size_t bytes) const override {
    return RoundUp(bytes + kReadableTail, kAlignment);
  }

  void* AllocateHost(size_t bytes) override {
    if (bytes > MachineBytes() || Forked()) return nullptr;
    if (void* const spare = pinned_.Take(UsableSize(bytes))) return spare;
    const DeviceGuard guard(OrdinalOf(0));
    void* address = nullptr;
    const unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
    if (cudaHostAlloc(&address, UsableSize(bytes), flags) == cudaSuccess) return address;
    cudaGetLastError();
    return nullptr;
  }
  void FreeHost(void* address, size_t bytes) override {
    if (Forked() || pinned_.Keep(address, UsableSize(bytes))) return;
    cudaFreeHost(address);
    cudaGetLastError();
  }
  bool RegisterHost(void* address, size_t bytes) override {
    const DeviceGuard guard(OrdinalOf(0));
    const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    const cudaError_t error = cudaHostRegister(address, bytes, flags);
    cudaGetLastError();
    // Already known to CUDA, through another library of the process: as good as registered by us.
    return error == cudaSuccess || error == cudaErrorHostMemoryAlreadyRegistered;
  }
  void UnregisterHost(void* address) override {
    cudaHostUnregister(address);
    cudaGetLastError();
  }
  bool HostCanAccess() const override { return false; }

  MemoryInfo Info(int device) const override {
    const MemoryInfo info = PoolOf(OrdinalOf(device)).Info();
    const auto share = static_cast<size_t>(DevicesPerGpu());
    return {info.total / share, info.free / share};
  }

  Status Copy(const RowCopy& copy, const Launch& launch) override {
    return OnStream("the copy", launch, [&](cudaStream_t s) { return CopyRows(copy, s); });
  }

  Status Fill(void* to, int unit, uint32_t pattern, size_t count, const Launch& launch) override {
    return OnStream("the fill", launch, [&](cudaStream_t s) {
      if (unit != 1) return FillWords(to, pattern, count, s);
      return cudaMemsetAsync(to, static_cast<int>(pattern & 0xff), count, s);
    });
  }

  Status Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
                const Launch& launch) override {
    return OnStream("the reduction", launch, [&](cudaStream_t s) {
      cuda::Reduce(to, from, elements, dtype, op, s);
      return cudaPeekAtLastError();
    });
  }
  bool CanReduce(DType dtype) const override {
    return cuda::Reduce(nullptr, nullptr, 0, dtype, ReduceOp::kSum, nullptr);
  }

  bool WriteValue(uint64_t* word, uint64_t value, const Launch& launch) override {
    WriteWord(word, value, StreamOf(launch));
    return true;
  }
  bool WaitValue(uint64_t* word, uint64_t value, uint32_t condition,
                 const Launch& launch) override {
    WaitForWord(word, value, condition, HostWord::Exiting().device_address(), StreamOf(launch));
    return true;
  }

  size_t Granularity() const override {
    static const size_t granularity = [] {
      size_t bytes = 0;
      const CUmemAllocationProp prop = PhysicalProp(OrdinalOf(0));
      const bool known = TheDriver().granularity &&
                         TheDriver().granularity(
                             &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS;
      return known ? bytes : size_t{2} << 20;
    }();
    return granularity;
  }
  void* ReserveRange(size_t bytes, void* hint) override {
    if (bytes > kAbsurd || !TheDriver().reserve) return nullptr;
    const size_t rounded = RoundUp(bytes, Granularity());
    for (const auto wish : {reinterpret_cast<CUdeviceptr>(hint), CUdeviceptr{0}}) {
      CUdeviceptr range = 0;
      if (TheDriver().reserve(&range, rounded, 0, wish, 0) == CUDA_SUCCESS) {
        return reinterpret_cast<void*>(range);
      }
    }
    return nullptr;
  }
  void ReleaseRange(void* range, size_t bytes) override {
    TheDriver().release(reinterpret_cast<CUdeviceptr>(range), RoundUp(bytes, Granularity()));
  }
  bool AllocatePhysical(size_t bytes, int device, uint64_t* id) override {
    const CUmemAllocationProp prop = PhysicalProp(OrdinalOf(device));
    CUmemGenericAllocationHandle handle = 0;
    if (bytes > kAbsurd || !TheDriver().create) return false;
    if (TheDriver().create(&handle, bytes, &prop, 0) != CUDA_SUCCESS) return false;
    const std::lock_guard lock(mutex_);
    ordinal_of_[handle] = prop.location.id;
    *id = handle;
    return true;
  }
  void FreePhysical(uint64_t id, size_t, int) override {
    const std::lock_guard lock(mutex_);
    ordinal_of_.erase(id);
    TheDriver().destroy(id);
  }
  bool Map(void* address, size_t bytes, uint64_t id, size_t offset) override {
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    if (TheDriver().map(at, bytes, offset, id, 0) != CUDA_SUCCESS) return false;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    {
      const std::lock_guard lock(mutex_);
      access.location.id = ordinal_of_[id];
    }
    if (TheDriver().set_access(at, bytes, &access, 1) == CUDA_SUCCESS) return true;
    TheDriver().unmap(at, bytes);
    return false;
  }
  void Unmap(void* address, size_t bytes) override {
    TheDriver().unmap(reinterpret_cast<CUdeviceptr>(address), bytes);
  }

 private:
  PinnedBlocks pinned_;
  std::mutex mutex_;
  std::map<uint64_t, int> ordinal_of_;  // of physical memory
};

}  // namespace

bool OpenPool(int owner, int reader, bool on) { return PoolOf(owner).Open(reader, on); }

// Never destroyed: programs free memory while the process exits.
DeviceMemory& CudaBackend::memory() const {
  static DeviceMemory* const memory = new CudaMemory;
  return *memory;
}

}  // namespace anyacl::cuda
