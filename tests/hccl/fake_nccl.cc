// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Stands for NCCL where there is one GPU: ranks are threads of one process and hand each other their numbers in host memory.
// Like NCCL with two ranks on one GPU, it refuses ranks of other processes. Only what src/cuda/nccl.cc calls, as it calls it.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/scalar.h"

namespace {

using Bytes = std::vector<unsigned char>;

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int came = 0;
  std::map<std::pair<int, int>, std::deque<Bytes>> mail;  // from, to
};
std::mutex worlds_mutex;
std::map<uint64_t, std::shared_ptr<World>>& Worlds() {
  static auto* const worlds = new std::map<uint64_t, std::shared_ptr<World>>;
  return *worlds;
}

struct Transfer {
  void* bytes;
  size_t count;
  int peer;
  bool sends;
  cudaStream_t stream;
};

}  // namespace

struct OpaqueComm {
  std::shared_ptr<World> world;
  int rank, ranks;
  std::vector<Transfer> group;
};

namespace {

using Comm = OpaqueComm*;
thread_local Comm grouped = nullptr;

struct UniqueId {
  uint64_t number;
  int64_t process;
  char rest[112];
};
static_assert(sizeof(UniqueId) == 128);

constexpr int kSuccess = 0, kUnhandledCuda = 1, kInvalidUsage = 5, kInProgress = 7;
constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

void Post(Comm comm, int to, Bytes bytes) {
  const std::lock_guard lock(comm->world->mutex);
  comm->world->mail[{comm->rank, to}].push_back(std::move(bytes));
  comm->world->changed.notify_all();
}

Bytes Await(Comm comm, int from) {
  std::unique_lock lock(comm->world->mutex);
  auto& box = comm->world->mail[{from, comm->rank}];
  comm->world->changed.wait(lock, [&] { return !box.empty(); });
  Bytes bytes = std::move(box.front());
  box.pop_front();
  return bytes;
}

// On the stream: copies that belong to none are not ordered with those of streams that do not block.
Bytes Fetch(const void* from, size_t bytes, cudaStream_t stream) {
  Bytes copy(bytes);
  cudaMemcpyAsync(copy.data(), from, bytes, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return copy;
}
int Put(void* to, const Bytes& bytes, cudaStream_t stream) {
  cudaMemcpyAsync(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream);
  return cudaStreamSynchronize(stream) == cudaSuccess ? kSuccess : kUnhandledCuda;
}

template <class T>
T Combined(T a, T b, int op) {
  if (op == 0) return a + b;
  if (op == 1) return a * b;
  if (a != a || b != b) return a != a ? a : b;
  return op == 2 ? std::max(a, b) : std::min(a, b);
}

// In the order of the ranks, in Wide, rounded at the end.
template <class T, class Wide>
Bytes Reduce(const std::vector<Bytes>& all, int op) {
  Bytes result(all[0].size());
  for (size_t i = 0; i < result.size() / sizeof(T); ++i) {
    Wide sum{};
    for (size_t r = 0; r < all.size(); ++r) {
      T one;
      std::memcpy(&one, all[r].data() + i * sizeof(T), sizeof(T));
      sum = r == 0 ? static_cast<Wide>(one) : Combined(sum, static_cast<Wide>(one), op);
    }
    const T rounded = static_cast<T>(sum);
    std::memcpy(result.data() + i * sizeof(T), &rounded, sizeof(T));
  }
  return result;
}

Bytes ReduceAs(int type, const std::vector<Bytes>& all, int op) {
  switch (type) {
    case 0: return Reduce<int8_t, int8_t>(all, op);
    case 1: return Reduce<uint8_t, uint8_t>(all, op);
    case 2: return Reduce<int32_t, int32_t>(all, op);
    case 3: return Reduce<uint32_t, uint32_t>(all, op);
    case 4: return Reduce<int64_t, int64_t>(all, op);
    case 5: return Reduce<uint64_t, uint64_t>(all, op);
    case 6: return Reduce<anyacl::Half, float>(all, op);
    case 7: return Reduce<float, float>(all, op);
    case 8: return Reduce<double, double>(all, op);
    default: return Reduce<anyacl::BFloat16, float>(all, op);
  }
}

// Everybody's bytes, by rank.
std::vector<Bytes> Gather(Comm comm, const Bytes& mine) {
  for (int r = 0; r < comm->ranks; ++r) Post(comm, r, mine);
  std::vector<Bytes> all;
  for (int r = 0; r < comm->ranks; ++r) all.push_back(Await(comm, r));
  return all;
}

}  // namespace

extern "C" {

std::atomic<int> fake_nccl_calls{0};

int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<uint64_t> last{0};
  *id = UniqueId{++last, getpid(), {}};
  return kSuccess;
}

int ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, void*) {
  if (id.process != getpid()) return kInvalidUsage;
  const std::lock_guard lock(worlds_mutex);
  std::shared_ptr<World>& world = Worlds()[id.number];
  if (!world) world = std::make_shared<World>();
  *comm = new OpaqueComm{world, rank, ranks, {}};
  const std::lock_guard inside(world->mutex);
  ++world->came;
  return kInProgress;
}

int ncclCommGetAsyncError(Comm comm, int* state) {
  const std::lock_guard lock(comm->world->mutex);
  *state = comm->world->came < comm->ranks ? kInProgress : kSuccess;
  return kSuccess;
}

int ncclCommAbort(Comm comm) {
  delete comm;
  return kSuccess;
}

const char* ncclGetErrorString(int) { return "no such luck"; }

int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, Comm comm, cudaStream_t stream) {
  ++fake_nccl_calls;
  return Put(to, ReduceAs(type, Gather(comm, Fetch(from, count * kSizes[type], stream)), op), stream);
}

int ncclReduce(const void* from, void* to, size_t count, int type, int op, int root, Comm comm, cudaStream_t stream) {
  ++fake_nccl_calls;
  const Bytes sum = ReduceAs(type, Gather(comm, Fetch(from, count * kSizes[type], stream)), op);
  return comm->rank == root ? Put(to, sum, stream) : kSuccess;
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, Comm comm, cudaStream_t stream) {
  ++fake_nccl_calls;
  const size_t bytes = count * kSizes[type];
  const Bytes sum = ReduceAs(type, Gather(comm, Fetch(from, bytes * comm->ranks, stream)), op);
  return Put(to, Bytes(sum.begin() + comm->rank * bytes, sum.begin() + (comm->rank + 1) * bytes), stream);
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Comm comm, cudaStream_t stream) {
  ++fake_nccl_calls;
  const size_t bytes = count * kSizes[type];
  return Put(to, Gather(comm, comm->rank == root ? Fetch(from, bytes, stream) : Bytes())[root], stream);
}

int ncclAllGather(const void* from, void* to, size_t count, int type, Comm comm, cudaStream_t stream) {
  ++fake_nccl_calls;
  Bytes whole;
  for (const Bytes& one : Gather(comm, Fetch(from, count * kSizes[type], stream))) whole.insert(whole.end(), one.begin(), one.end());
  return Put(to, whole, stream);
}

int ncclGroupStart() { return kSuccess; }

int ncclSend(const void* bytes, size_t count, int, int peer, Comm comm, cudaStream_t stream) {
  grouped = comm;
  comm->group.push_back({const_cast<void*>(bytes), count, peer, true, stream});
  return kSuccess;
}

int ncclRecv(void* bytes, size_t count, int, int peer, Comm comm, cudaStream_t stream) {
  grouped = comm;
  comm->group.push_back({bytes, count, peer, false, stream});
  return kSuccess;
}

int ncclGroupEnd() {
  if (!grouped) return kSuccess;
  ++fake_nccl_calls;
  const Comm comm = grouped;
  grouped = nullptr;
  const std::vector<Transfer> group = std::move(comm->group);
  comm->group.clear();
  for (const Transfer& t : group) {
    if (t.sends) Post(comm, t.peer, Fetch(t.bytes, t.count, t.stream));
  }
  int result = kSuccess;
  for (const Transfer& t : group) {
    if (!t.sends) result = std::max(result, Put(t.bytes, Await(comm, t.peer), t.stream));
  }
  return result;
}

}  // extern "C"
