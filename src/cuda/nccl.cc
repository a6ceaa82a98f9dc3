// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Groups of GPUs over NCCL, which is opened at run time and never linked: its functions are those of this table. Communicators
// do not block, so that whoever waits can look for ranks that are gone, and give up.
#include <dlfcn.h>

#include <climits>
#include <cstring>
#include <string>

#include "cuda/backend.h"
#include "cuda/device.h"
#include "core/codes.h"

namespace anyacl::cuda {
namespace {

// --- what NCCL calls things ---

using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;
using Comm = struct OpaqueComm*;
struct UniqueId {
  char bytes[128];
};
// As of version 2.14; later versions take it, and have their defaults for what it lacks.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

struct Nccl {
  Result (*GetUniqueId)(UniqueId*);
  Result (*CommInitRankConfig)(Comm*, int ranks, UniqueId, int rank, Config*);
  Result (*CommGetAsyncError)(Comm, Result*);
  Result (*CommAbort)(Comm);
  const char* (*GetErrorString)(Result);
  Result (*GroupStart)();
  Result (*GroupEnd)();
  Result (*AllReduce)(const void*, void*, size_t, int type, int op, Comm, cudaStream_t);
  Result (*Reduce)(const void*, void*, size_t, int type, int op, int root, Comm, cudaStream_t);
  Result (*ReduceScatter)(const void*, void*, size_t, int type, int op, Comm, cudaStream_t);
  Result (*Broadcast)(const void*, void*, size_t, int type, int root, Comm, cudaStream_t);
  Result (*AllGather)(const void*, void*, size_t, int type, Comm, cudaStream_t);
  Result (*Send)(const void*, size_t, int type, int peer, Comm, cudaStream_t);
  Result (*Recv)(void*, size_t, int type, int peer, Comm, cudaStream_t);
};

// Null: not there, or too old.
const Nccl* Open() {
  static Nccl nccl;
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  bool complete = true;
  const auto find = [&]<class Function>(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    complete = complete && *function;
  };
#define ANYACL_NCCL(name) find("nccl" #name, &nccl.name)
  ANYACL_NCCL(GetUniqueId);
  ANYACL_NCCL(CommInitRankConfig);
  ANYACL_NCCL(CommGetAsyncError);
  ANYACL_NCCL(CommAbort);
  ANYACL_NCCL(GetErrorString);
  ANYACL_NCCL(GroupStart);
  ANYACL_NCCL(GroupEnd);
  ANYACL_NCCL(AllReduce);
  ANYACL_NCCL(Reduce);
  ANYACL_NCCL(ReduceScatter);
  ANYACL_NCCL(Broadcast);
  ANYACL_NCCL(AllGather);
  ANYACL_NCCL(Send);
  ANYACL_NCCL(Recv);
#undef ANYACL_NCCL
  return complete ? &nccl : nullptr;
}

// Its number of a dtype, or -1.
int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kI8: return 0;
    case DType::kU8: return 1;
    case DType::kI32: return 2;
    case DType::kU32: return 3;
    case DType::kI64: return 4;
    case DType::kU64: return 5;
    case DType::kF16: return 6;
    case DType::kF32: return 7;
    case DType::kF64: return 8;
    case DType::kBF16: return 9;
    default: return -1;
  }
}

// --- a rank ---

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const Nccl& nccl, int ordinal) : nccl_(nccl), ordinal_(ordinal), stream_(ordinal) {}
  ~NcclGroup() override {
    const DeviceGuard guard(ordinal_);
    if (comm_) nccl_.CommAbort(comm_);
  }

  Status Meet(std::span<const unsigned char> key, uint32_t rank, uint32_t ranks) override;
  Status Start(const GroupCall& call) override;
  Status Poll(bool* done) override;

 private:
  Result Call(const GroupCall& call);
  Result Exchange(std::span<const GroupCall::Transfer> transfers);
  Status ToStatus(const char* what, Result result) const {
    if (result == kSuccess || result == kInProgress) return Status();
    return Status(code::kRtDriver, std::string("NCCL: ") + what + ": " + nccl_.GetErrorString(result));
  }

  const Nccl& nccl_;
  const int ordinal_;
  const UtilityStream stream_;
  Comm comm_ = nullptr;
};

Status NcclGroup::Meet(std::span<const unsigned char> key, uint32_t rank, uint32_t ranks) {
  const DeviceGuard guard(ordinal_);
  UniqueId id;
  std::memcpy(id.bytes, key.data(), sizeof(id.bytes));
  Config config;
  return ToStatus("meeting", nccl_.CommInitRankConfig(&comm_, static_cast<int>(ranks), id, static_cast<int>(rank), &config));
}

Result NcclGroup::Exchange(std::span<const GroupCall::Transfer> transfers) {
  constexpr int kBytes = 0;
  Result result = nccl_.GroupStart();
  for (const GroupCall::Transfer& t : transfers) {
    if (result != kSuccess && result != kInProgress) break;
    const int peer = static_cast<int>(t.peer);
    result = t.sends ? nccl_.Send(t.bytes, t.count, kBytes, peer, comm_, stream_.get())
                     : nccl_.Recv(t.bytes, t.count, kBytes, peer, comm_, stream_.get());
  }
  const Result end = nccl_.GroupEnd();  // what was begun must end, whatever happened
  return result != kSuccess && result != kInProgress ? result : end;
}

Result NcclGroup::Call(const GroupCall& call) {
  const int type = TypeOf(call.dtype), op = static_cast<int>(call.op), root = static_cast<int>(call.root);
  switch (call.kind) {
    case GroupCall::Kind::kAllReduce:
      return nccl_.AllReduce(call.from, call.to, call.count, type, op, comm_, stream_.get());
    case GroupCall::Kind::kReduce:
      return nccl_.Reduce(call.from, call.to, call.count, type, op, root, comm_, stream_.get());
    case GroupCall::Kind::kReduceScatter:
      return nccl_.ReduceScatter(call.from, call.to, call.count, type, op, comm_, stream_.get());
    case GroupCall::Kind::kBroadcast:
      return nccl_.Broadcast(call.from, call.to, call.count, type, root, comm_, stream_.get());
    case GroupCall::Kind::kAllGather:
      return nccl_.AllGather(call.from, call.to, call.count, type, comm_, stream_.get());
    case GroupCall::Kind::kExchange:
      return Exchange(call.transfers);
  }
  return kSuccess;
}

Status NcclGroup::Start(const GroupCall& call) {
  const DeviceGuard guard(ordinal_);
  return ToStatus("starting", Call(call));
}

// First all has to be put on the stream, which a communicator that does not block does by itself, then the stream is to end.
Status NcclGroup::Poll(bool* done) {
  const DeviceGuard guard(ordinal_);
  *done = false;
  Result state = kSuccess;
  const Result asked = nccl_.CommGetAsyncError(comm_, &state);
  if (Status status = ToStatus("running", asked != kSuccess ? asked : state); !status.ok() || state == kInProgress) return status;
  const cudaError_t error = cudaStreamQuery(stream_.get());
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return Status();
  }
  *done = error == cudaSuccess;
  return anyacl::cuda::ToStatus("cudaStreamQuery", error);
}

class NcclGroups final : public DeviceGroups {
 public:
  explicit NcclGroups(const Nccl& nccl) : nccl_(nccl) {}

  size_t key_bytes() const override { return sizeof(UniqueId); }
  Status MakeKey(std::span<unsigned char> key) override {
    UniqueId id;
    const Result result = nccl_.GetUniqueId(&id);
    if (result != kSuccess) return Status(code::kRtDriver, std::string("NCCL: ") + nccl_.GetErrorString(result));
    std::memcpy(key.data(), id.bytes, sizeof(id.bytes));
    return Status();
  }
  bool CanReduce(DType dtype) const override { return TypeOf(dtype) >= 0; }
  std::unique_ptr<DeviceGroup> NewGroup(int device) override { return std::make_unique<NcclGroup>(nccl_, OrdinalOf(device)); }

 private:
  const Nccl& nccl_;
};

}  // namespace

DeviceGroups* CudaBackend::groups() const {
  static NcclGroups* const groups = [] {
    const Nccl* const nccl = Open();
    return nccl ? new NcclGroups(*nccl) : nullptr;
  }();
  return groups;
}

}  // namespace anyacl::cuda
