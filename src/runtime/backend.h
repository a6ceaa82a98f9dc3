// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the runtime and the plans need from a kind of device: pure interfaces and plain structs, because one
// of the backends is in a library of its own.
#ifndef ANYACL_RUNTIME_BACKEND_H_
#define ANYACL_RUNTIME_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/status.h"
#include "core/tensor.h"

namespace anyacl {

namespace runtime {
class Recording;
class StreamEngine;
class StreamHooks;
}  // namespace runtime

// Where and how a kernel runs. The CPU ignores native_stream; CUDA launches on it, and `device` is the
// ordinal of the GPU it belongs to. Without a native stream `device` is the runtime's number.
struct Launch {
  void* native_stream = nullptr;
  int device = 0;
  // Zeros for kernels whose blocks count themselves, and leave zeros behind. Nobody else uses them while work of this
  // stream runs; null in a capture, whose replays may run beside it.
  unsigned* counters = nullptr;
};

// One implementation of an operator on one backend. `params` points to the operator's Params struct.
struct Kernel {
  const char* name;
  bool (*fits)(const void* params);
  void (*run)(const void* params, const Launch& launch);
  int64_t (*scratch_bytes)(const void* params) = nullptr;  // null: needs none
};

// One piece of work for a stream: a plain function and the few bytes it needs, copied into the queue.
struct Work {
  static constexpr size_t kPayload = 224;

  // Does (CPU) or launches (CUDA) the work; the code it returns surfaces at the next synchronise.
  int32_t (*run)(Work& work, const Launch& launch) = nullptr;
  // Called exactly once after run, or instead of it when the work is dropped; may be null.
  void (*release)(Work& work) = nullptr;
  const char* label = "";    // operator or function name, for error texts; static storage
  uint64_t cost_bytes = 0;   // memory it moves: small work runs inline when its stream is idle
  alignas(16) unsigned char payload[kPayload];
};

// Moves a strided view into a dense buffer (pack) or back (unpack). Both sides have the dims of the
// view; strides count elements, pointers are at element 0. With `serial`, in row-major order by one thread,
// so that a destination that overlaps itself still has one defined result.
struct StridedCopy {
  Dims dims;
  Dims from_strides;
  Dims to_strides;
  const void* from = nullptr;
  void* to = nullptr;
  int element_size = 0;
  bool serial = false;
};

// Bytes a device has, and those an allocation could still get.
struct MemoryInfo {
  size_t total = 0;
  size_t free = 0;
};

// A copy of `height` rows of `width` bytes; one row when the bytes are contiguous.
struct RowCopy {
  void* to = nullptr;
  size_t to_pitch = 0;
  const void* from = nullptr;
  size_t from_pitch = 0;
  size_t width = 0;
  size_t height = 1;
};

enum class ReduceOp { kSum, kMax, kMin };

// Memory of one kind of device. Thread safe. Transfers are done (CPU) or launched (CUDA) on the native
// stream of `launch`; without one they are done when the call returns.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Contents undefined, aligned to 512 bytes, 32 readable bytes behind. Null when out of memory.
  virtual void* Allocate(size_t bytes, int device) = 0;
  // `bytes` as in Allocate.
  virtual void Free(void* address, size_t bytes, int device) = 0;
  // How many bytes from the start of such an allocation may be touched.
  virtual size_t UsableSize(size_t bytes) const = 0;

  // Host memory that asynchronous copies may use directly.
  virtual void* AllocateHost(size_t bytes) = 0;
  virtual void FreeHost(void* address, size_t bytes) = 0;
  // The same for memory of the caller. False when the system refuses.
  virtual bool RegisterHost(void* address, size_t bytes) = 0;
  virtual void UnregisterHost(void* address) = 0;
  // Whether host code may read and write device memory.
  virtual bool HostCanAccess() const = 0;

  virtual MemoryInfo Info(int device) const = 0;

  virtual Status Copy(const RowCopy& copy, const Launch& launch) = 0;
  // Writes `count` units of `unit` bytes (1 or 4), each the low bytes of `pattern`.
  virtual Status Fill(void* to, int unit, uint32_t pattern, size_t count, const Launch& launch) = 0;
  // to = to op from, element by element. Types: CanReduce.
  virtual Status Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
                        const Launch& launch) = 0;
  virtual bool CanReduce(DType dtype) const = 0;

  // Words that streams write and wait for (conditions as aclrtValueWait numbers them). False when the
  // host has to do it.
  virtual bool WriteValue(uint64_t* word, uint64_t value, const Launch& launch) = 0;
  virtual bool WaitValue(uint64_t* word, uint64_t value, uint32_t condition,
                         const Launch& launch) = 0;

  // Physical memory that can be mapped into a reserved range of addresses (all sizes and addresses are
  // multiples of the granularity). Functions that return bool: false when the system refuses.
  virtual size_t Granularity() const = 0;
  virtual void* ReserveRange(size_t bytes, void* hint) = 0;
  virtual void ReleaseRange(void* range, size_t bytes) = 0;
  virtual bool AllocatePhysical(size_t bytes, int device, uint64_t* id) = 0;
  virtual void FreePhysical(uint64_t id, size_t bytes, int device) = 0;
  virtual bool Map(void* address, size_t bytes, uint64_t id, size_t offset) = 0;
  virtual void Unmap(void* address, size_t bytes) = 0;
};

// What a device says about itself.
struct DeviceFacts {
  std::string name;
  int64_t cores = 0;
  int64_t cache_bytes = 0;   // shared by all cores
  int64_t memory_bytes = 0;
};

// Arrays of one length: the floor of a benchmark reads some and writes others.
struct MovePass {
  static constexpr int kMaxArrays = 4;
  const void* reads[kMaxArrays];
  void* writes[kMaxArrays];
  int read_count = 0;
  int write_count = 0;
  size_t bytes = 0;  // of each; a multiple of 64
};

// One call of the ranks of a DeviceGroup. Buffers are memory of the rank's device.
struct GroupCall {
  enum class Kind : uint8_t { kAllReduce, kReduce, kReduceScatter, kBroadcast, kAllGather, kExchange };
  enum class Op : uint8_t { kSum, kProduct, kMax, kMin };  // of what reduces
  struct Transfer {
    void* bytes;
    size_t count;
    uint32_t peer;
    bool sends;
  };

  Kind kind;
  Op op = Op::kSum;
  DType dtype = DType::kI8;
  uint32_t root = 0;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;  // elements that a rank gives; of kReduceScatter those that it gets
  std::span<const Transfer> transfers = {};  // of kExchange
};

// A rank of several that talk over an engine of the devices' own (NCCL). All make the same calls in the same order.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;  // ends what is under way, here and, sooner or later, on the others
  // Begins to meet the others or to run a call; Poll says when that is done or why it never will be.
  virtual Status Meet(std::span<const unsigned char> key, uint32_t rank, uint32_t ranks) = 0;
  virtual Status Start(const GroupCall& call) = 0;
  virtual Status Poll(bool* done) = 0;
};

class DeviceGroups {
 public:
  virtual ~DeviceGroups() = default;
  virtual size_t key_bytes() const = 0;
  virtual Status MakeKey(std::span<unsigned char> key) = 0;  // of one rank, for all
  virtual bool CanReduce(DType dtype) const = 0;
  virtual std::unique_ptr<DeviceGroup> NewGroup(int device) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;

  // Devices the machine has, at least 1. The runtime may show more than these, or fewer.
  virtual int DeviceCount() const = 0;
  virtual DeviceFacts Facts(int device) const = 0;
  virtual bool CanAccessPeer(int device, int peer) const = 0;
  virtual bool SetPeerAccess(int device, int peer, bool on) const = 0;

  // Work is launched and runs by itself; else a thread of the host does it.
  virtual bool launches() const = 0;

  // Kernels of an operator or a family's engine by their stem ("elu_backward"), best first, the plainest last.
  virtual std::span<const Kernel> Kernels(const char* stem) const = 0;
  virtual void Copy(const StridedCopy& copy, const Launch& launch) const = 0;
  // Launches one pass; false where the host moves the bytes itself.
  virtual bool Move(const MovePass& pass, const Launch& launch) const = 0;

  // Lives as long as the process: memory is freed after devices were reset and acl was finalised.
  virtual DeviceMemory& memory() const = 0;

  // The engine of a stream; never freed.
  virtual runtime::StreamEngine* NewEngine(runtime::StreamHooks& stream) const = 0;
  virtual std::unique_ptr<runtime::Recording> NewRecording() const = 0;

  // Null where the devices have no engine of their own to talk over.
  virtual DeviceGroups* groups() const { return nullptr; }
};

// What the CUDA plug-in asks of the library that opened it.
struct PluginHost {
  const char* version;            // both must be of the same build
  int (*device_count)();          // that the runtime shows
  int (*logical_id)(int device);  // the number a device has outside this process
};

// The plug-in's one exported function. Null, and why in *problem, when it cannot be used.
using PluginEntry = const Backend* (*)(const PluginHost& host, std::string* problem);
inline constexpr char kCudaPluginFile[] = "libanyacl_cuda.so";
inline constexpr char kCudaPluginEntry[] = "anyacl_cuda_plugin_v1";

}  // namespace anyacl

#endif  // ANYACL_RUNTIME_BACKEND_H_
