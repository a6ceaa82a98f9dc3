// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/thread_value.h"
#include "core/undo.h"
#include "hccl/border.h"
#include "hccl/elements.h"
#include "runtime/stream.h"
#include "runtime/submit.h"
#include "watch/watch.h"

namespace anyacl::hccl {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 48;
// What a stream reports when a collective failed on it.
constexpr int32_t kTimedOut = 507915;
constexpr int32_t kFailed = 507916;

// --- on the stream ---

struct Queued {
  const char* what;
  SharedCommunicator communicator;
  Call call;
  runtime::Stream* stream;
  uint64_t ticket = 0;  // 0: it is recorded, and takes one each time it runs
};

int32_t RunQueued(Work& work, const Launch&) {
  const Queued& queued = *runtime::PayloadOf<Queued*>(work);
  Communicator& communicator = *queued.communicator;
  const uint64_t ticket = queued.ticket ? queued.ticket : communicator.TakeTicket();
  const runtime::Stream& runner = runtime::Stream::RunnerOf(*queued.stream);
  const Status status = communicator.Run(queued.what, ticket, queued.call, [&] { return runner.Aborting(); });
  if (!status.ok() && !runner.Aborting()) {
    // By itself, because a code that the work returns has no text.
    const_cast<runtime::Stream&>(runner).WorkFailed(
        queued.what, status.code() == HCCL_E_TIMEOUT ? kTimedOut : kFailed, 0, status.message());
  }
  return 0;
}

void ReleaseQueued(Work& work) {
  const std::unique_ptr<Queued> queued(runtime::PayloadOf<Queued*>(work));
  if (queued->ticket) queued->communicator->DropTicket(queued->ticket);
}

void ShowWrites(const Call& call) {
  const auto show = [](const void* begin, uint64_t bytes) {
    if (begin) watch::Tell(&watch::Watcher::MayWrite, begin, bytes);
  };
  for (const Part& part : call.recv_parts) show(call.recv ? static_cast<std::byte*>(call.recv) + part.at : nullptr, part.bytes);
  for (const Call::Item& item : call.items) {
    if (!item.sends) show(item.buffer, item.bytes);
  }
}

Status Submit(const char* what, const SharedCommunicator& communicator, Call call, runtime::Stream* stream) {
  const Backend& backend = runtime::CurrentBackend();
  DeviceMemory& memory = backend.memory();
  call.groups = backend.groups();
  call.memory = memory.HostCanAccess() ? nullptr : &memory;
  call.device = communicator->device();
  if (Status broken = communicator->Failure(); !broken.ok()) {
    return Problem(static_cast<HcclResult>(broken.code()), "the communicator is broken: {}", broken.message());
  }
  if (watch::On()) [[unlikely]]
    ShowWrites(call);
  stream->TellBlurred();
  auto queued = std::make_unique<Queued>(Queued{what, communicator, std::move(call), stream});
  if (!stream->capture()) queued->ticket = communicator->TakeTicket();
  Undo dropped([&] {
    if (queued->ticket) communicator->DropTicket(queued->ticket);
  });
  const Work work = runtime::MakeWork(what, 0, queued.get(), RunQueued, ReleaseQueued);
  if (Status status = stream->Submit(work, runtime::Where::kOnStreamThread, nullptr); !status.ok()) {
    return Problem(HCCL_E_RUNTIME, "{}", status.message());
  }
  dropped.Keep();
  queued.release();
  return Status();
}

// --- groups ---

struct Group {
  struct Batch {
    SharedCommunicator communicator;
    runtime::Stream* stream;
    Call call;
  };
  int depth = 0;
  std::vector<Batch> batches;
};

Status AddToGroup(Group& group, const SharedCommunicator& communicator, Call call, runtime::Stream* stream) {
  for (Group::Batch& batch : group.batches) {
    if (batch.communicator != communicator || batch.stream != stream) continue;
    batch.call.items.insert(batch.call.items.end(), call.items.begin(), call.items.end());
    return Status();
  }
  group.batches.push_back({communicator, stream, std::move(call)});
  return Status();
}

}  // namespace

Status Enqueue(const char* what, HcclComm comm, Call call, aclrtStream handle) {
  SharedCommunicator communicator;
  ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
  runtime::Stream* stream = nullptr;
  if (Status status = runtime::ResolveForSubmit(what, handle, &stream); !status.ok()) {
    return Problem(HCCL_E_RUNTIME, "{}", status.message());
  }
  Group* const group = call.kind == Kind::kSend ? ThreadValue<Group>() : nullptr;
  if (group && group->depth > 0) return AddToGroup(*group, communicator, std::move(call), stream);
  return Submit(what, communicator, std::move(call), stream);
}

Status BeginGroup() {
  Group* const group = ThreadValue<Group>();
  if (!group) return Problem(HCCL_E_MEMORY, "out of host memory");
  ++group->depth;
  return Status();
}

Status EndGroup() {
  Group* const group = ThreadValue<Group>();
  if (!group || group->depth == 0) return Problem(HCCL_E_PARA, "there was no HcclGroupStart");
  if (--group->depth > 0) return Status();
  Status first;
  for (Group::Batch& batch : std::exchange(group->batches, {})) {
    Status status = Submit("HcclGroupEnd", batch.communicator, std::move(batch.call), batch.stream);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

namespace {

// --- what calls have in common ---

// Collects the checks of one call; after the first that fails the others do nothing.
class Checks {
 public:
  Checks(HcclComm comm, HcclDataType dtype) : dtype_(Number(dtype)) {
    status_ = Resolve(comm, &communicator_);
    if (status_.ok() && ElementSize(dtype_) == 0) {
      status_ = Problem(HCCL_E_PARA, "dataType must be an HcclDataType, got {}", dtype_);
    }
  }

  Status& status() { return status_; }
  int dtype() const { return dtype_; }
  uint32_t rank() const { return communicator_ ? communicator_->rank() : 0; }
  uint32_t ranks() const { return communicator_ ? communicator_->ranks() : 1; }
  uint64_t element() const { return ElementSize(dtype_); }

  Checks& Reduction(HcclReduceOp op) {
    const int number = Number(op);
    if (status_.ok() && !ReduceName(number)) {
      status_ = Problem(HCCL_E_PARA, "op must be SUM (0), PROD (1), MAX (2) or MIN (3), got {}", number);
    }
    if (status_.ok() && !CanReduce(dtype_)) {
      status_ = Problem(HCCL_E_NOT_SUPPORT, "dataType {} cannot be reduced", TypeName(dtype_));
    }
    return *this;
  }
  Checks& Rank(const char* argument, uint32_t rank) {
    if (status_.ok() && rank >= ranks()) {
      status_ = Problem(HCCL_E_PARA, "{} must be a rank of the communicator's {}, got {}", argument, ranks(), rank);
    }
    return *this;
  }
  Checks& Count(const char* argument, uint64_t count) {
    if (status_.ok() && count > kMostBytes / element() / ranks()) {
      status_ = Problem(HCCL_E_PARA, "{} is too large, got {}", argument, count);
    }
    return *this;
  }
  Checks& Buffer(const char* argument, const void* buffer, uint64_t bytes) {
    if (status_.ok() && !buffer && bytes > 0) {
      status_ = Problem(HCCL_E_PTR, "{} must not be null, it has {} bytes", argument, bytes);
    }
    if (status_.ok() && element() <= 8 && reinterpret_cast<uintptr_t>(buffer) % element() != 0) {
      status_ = Problem(HCCL_E_PARA, "{} must be aligned to the {} bytes of {}, got {}", argument, element(), TypeName(dtype_), buffer);
    }
    return *this;
  }
  // They may overlap only so that the same bytes mean the same.
  Checks& Apart(const void* send, uint64_t send_bytes, const void* recv, uint64_t recv_bytes, const void* allowed_recv) {
    const auto s = reinterpret_cast<uintptr_t>(send), r = reinterpret_cast<uintptr_t>(recv);
    const bool overlap = send_bytes > 0 && recv_bytes > 0 && s < r + recv_bytes && r < s + send_bytes;
    if (status_.ok() && overlap && recv != allowed_recv) {
      status_ = Problem(HCCL_E_PARA, "sendBuf ({}) and recvBuf ({}) overlap in another way than in place", send, recv);
    }
    return *this;
  }
  Checks& Lists(const char* argument, const void* list) {
    if (status_.ok() && !list) status_ = Problem(HCCL_E_PTR, "{} must not be null", argument);
    return *this;
  }

 private:
  SharedCommunicator communicator_;
  const int dtype_;
  Status status_;
};

#define ANYACL_CHECK(checks)                                                \
  do {                                                                      \
    if (!(checks).status().ok()) return std::move((checks).status());       \
  } while (false)

Call NewCall(Kind kind, const Checks& checks, uint64_t count) {
  Call call;
  call.kind = kind;
  call.dtype = checks.dtype();
  call.count = count;
  return call;
}

const char* At(const void* buffer, uint64_t bytes) { return static_cast<const char*>(buffer) + bytes; }

// One behind the other, all of one size.
std::vector<Part> EvenParts(uint32_t ranks, uint64_t bytes) {
  std::vector<Part> parts(ranks);
  for (uint32_t r = 0; r < ranks; ++r) parts[r] = {r * bytes, bytes};
  return parts;
}

uint64_t EndOf(const std::vector<Part>& parts) {
  uint64_t end = 0;
  for (const Part& part : parts) end = std::max(end, part.at + part.bytes);
  return end;
}

// From the caller's lists.
std::vector<Part> ListedParts(Checks* checks, const char* name, const void* counts, const void* places) {
  const auto* const count = static_cast<const uint64_t*>(counts);
  const auto* const place = static_cast<const uint64_t*>(places);
  std::vector<Part> parts(checks->ranks());
  checks->Lists(name, counts).Lists(name, places);
  for (uint32_t r = 0; checks->status().ok() && r < checks->ranks(); ++r) {
    checks->Count(name, count[r]).Count(name, place[r]);
    parts[r] = {place[r] * checks->element(), count[r] * checks->element()};
  }
  return parts;
}

Status AllReduceOrReduce(Kind kind, const char* what, void* send, void* recv, uint64_t count, HcclDataType dtype,
                         HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream) {
  Checks checks(comm, dtype);
  checks.Reduction(op).Rank("root", root).Count("count", count);
  ANYACL_CHECK(checks);
  const uint64_t bytes = count * checks.element();
  const bool has_result = kind == Kind::kAllReduce || root == checks.rank();
  checks.Buffer("sendBuf", send, bytes);
  if (has_result) checks.Buffer("recvBuf", recv, bytes).Apart(send, bytes, recv, bytes, send);
  ANYACL_CHECK(checks);
  Call call = NewCall(kind, checks, count);
  call.reduce = Number(op);
  call.root = root;
  call.send = send;
  call.recv = has_result ? recv : nullptr;
  call.send_parts = call.recv_parts = {{0, bytes}};
  return Enqueue(what, comm, std::move(call), stream);
}

Status SendOrRecv(bool sends, const char* what, void* buffer, uint64_t count, HcclDataType dtype, uint32_t peer,
                  HcclComm comm, aclrtStream stream) {
  Checks checks(comm, dtype);
  checks.Rank(sends ? "destRank" : "srcRank", peer).Count("count", count);
  ANYACL_CHECK(checks);
  const uint64_t bytes = count * checks.element();
  checks.Buffer(sends ? "sendBuf" : "recvBuf", buffer, bytes);
  ANYACL_CHECK(checks);
  Call call;
  call.kind = Kind::kSend;
  call.items = {{sends, buffer, bytes, checks.dtype(), peer}};
  return Enqueue(what, comm, std::move(call), stream);
}

Status Exchange(Kind kind, const char* what, const void* send, std::vector<Part> send_parts, const void* recv,
                std::vector<Part> recv_parts, Checks& checks, uint64_t count, HcclComm comm, aclrtStream stream,
                const void* allowed_recv) {
  const uint64_t send_bytes = EndOf(send_parts), recv_bytes = EndOf(recv_parts);
  checks.Buffer("sendBuf", send, send_bytes).Buffer("recvBuf", recv, recv_bytes);
  checks.Apart(send, send_bytes, recv, recv_bytes, allowed_recv);
  ANYACL_CHECK(checks);
  Call call = NewCall(kind, checks, count);
  call.send = send;
  call.recv = const_cast<void*>(recv);
  call.send_parts = std::move(send_parts);
  call.recv_parts = std::move(recv_parts);
  return Enqueue(what, comm, std::move(call), stream);
}

Status RequireSameType(const Checks& checks, HcclDataType other) {
  if (Number(other) == checks.dtype()) return Status();
  return Problem(HCCL_E_PARA, "sendType and recvType must be the same, got {} and {}", TypeName(checks.dtype()), TypeName(Number(other)));
}

}  // namespace
}  // namespace anyacl::hccl

using namespace anyacl::hccl;  // NOLINT: the C functions of this room
using anyacl::Status;

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclAllReduce", [&] {
    return AllReduceOrReduce(Kind::kAllReduce, "HcclAllReduce", sendBuf, recvBuf, count, dataType, op, 0, comm, stream);
  });
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclReduce", [&] {
    return AllReduceOrReduce(Kind::kReduce, "HcclReduce", sendBuf, recvBuf, count, dataType, op, root, comm, stream);
  });
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
  return HcclBorder("HcclBroadcast", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Rank("root", root).Count("count", count);
    ANYACL_CHECK(checks);
    const uint64_t bytes = count * checks.element();
    checks.Buffer("buf", buf, bytes);
    ANYACL_CHECK(checks);
    Call call = NewCall(Kind::kBroadcast, checks, count);
    call.root = root;
    call.recv = buf;
    call.send_parts = call.recv_parts = {{0, bytes}};
    return Enqueue("HcclBroadcast", comm, std::move(call), stream);
  });
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
  return HcclBorder("HcclAllGather", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Count("sendCount", sendCount);
    ANYACL_CHECK(checks);
    const uint64_t bytes = sendCount * checks.element();
    std::vector<Part> recv_parts = EvenParts(checks.ranks(), bytes);
    const uint64_t own = recv_parts[checks.rank()].at;
    const bool in_place = sendBuf && sendBuf == At(recvBuf, own);
    return Exchange(Kind::kAllGather, "HcclAllGather", sendBuf, std::vector<Part>(checks.ranks(), Part{0, bytes}), recvBuf,
                    std::move(recv_parts), checks, sendCount, comm, stream, in_place ? recvBuf : nullptr);
  });
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclAllGatherV", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Count("sendCount", sendCount);
    std::vector<Part> recv_parts = ListedParts(&checks, "recvCounts, recvDispls", recvCounts, recvDispls);
    ANYACL_CHECK(checks);
    const uint64_t bytes = sendCount * checks.element();
    const Part own = recv_parts[checks.rank()];
    if (own.bytes != bytes) {
      return Problem(HCCL_E_PARA, "recvCounts must have sendCount {} for rank {}, got {}", sendCount, checks.rank(),
                     own.bytes / checks.element());
    }
    const bool in_place = sendBuf && sendBuf == At(recvBuf, own.at);
    return Exchange(Kind::kAllGatherV, "HcclAllGatherV", sendBuf, std::vector<Part>(checks.ranks(), Part{0, bytes}), recvBuf,
                    std::move(recv_parts), checks, 0, comm, stream, in_place ? recvBuf : nullptr);
  });
}

namespace {

Status ReduceScatter(Kind kind, const char* what, const void* send, std::vector<Part> parts, void* recv,
                     uint64_t recv_count, Checks& checks, HcclReduceOp op, uint64_t count, HcclComm comm, aclrtStream stream) {
  const uint64_t send_bytes = EndOf(parts), recv_bytes = recv_count * checks.element();
  const Part own = parts[checks.rank()];
  checks.Reduction(op).Buffer("sendBuf", send, send_bytes).Buffer("recvBuf", recv, recv_bytes);
  checks.Apart(send, send_bytes, recv, recv_bytes, At(send, own.at));
  ANYACL_CHECK(checks);
  if (own.bytes != recv_bytes) {
    return Problem(HCCL_E_PARA, "sendCounts must have recvCount {} for rank {}, got {}", recv_count, checks.rank(),
                   own.bytes / checks.element());
  }
  Call call = NewCall(kind, checks, count);
  call.reduce = Number(op);
  call.send = send;
  call.recv = recv;
  call.send_parts = std::move(parts);
  call.recv_parts = {{0, recv_bytes}};
  return Enqueue(what, comm, std::move(call), stream);
}

}  // namespace

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclReduceScatter", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Count("recvCount", recvCount);
    ANYACL_CHECK(checks);
    return ReduceScatter(Kind::kReduceScatter, "HcclReduceScatter", sendBuf,
                         EvenParts(checks.ranks(), recvCount * checks.element()), recvBuf, recvCount, checks, op, recvCount,
                         comm, stream);
  });
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
  return HcclBorder("HcclReduceScatterV", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Count("recvCount", recvCount);
    std::vector<Part> parts = ListedParts(&checks, "sendCounts, sendDispls", sendCounts, sendDispls);
    ANYACL_CHECK(checks);
    return ReduceScatter(Kind::kReduceScatterV, "HcclReduceScatterV", sendBuf, std::move(parts), recvBuf, recvCount,
                         checks, op, 0, comm, stream);
  });
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclScatter", [&]() -> Status {
    Checks checks(comm, dataType);
    checks.Rank("root", root).Count("recvCount", recvCount);
    ANYACL_CHECK(checks);
    const uint64_t bytes = recvCount * checks.element();
    const bool is_root = root == checks.rank();
    Call call = NewCall(Kind::kScatter, checks, recvCount);
    if (is_root) {
      call.send = sendBuf;
      call.send_parts = EvenParts(checks.ranks(), bytes);
      const uint64_t all = EndOf(call.send_parts);
      checks.Buffer("sendBuf", sendBuf, all).Apart(sendBuf, all, recvBuf, bytes, At(sendBuf, root * bytes));
    }
    checks.Buffer("recvBuf", recvBuf, bytes);
    ANYACL_CHECK(checks);
    call.root = root;
    call.recv = recvBuf;
    call.recv_parts.resize(checks.ranks());
    call.recv_parts[root] = {0, bytes};
    return Enqueue("HcclScatter", comm, std::move(call), stream);
  });
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclAlltoAll", [&]() -> Status {
    Checks checks(comm, sendType);
    checks.Count("sendCount", sendCount);
    ANYACL_CHECK(checks);
    ANYACL_RETURN_IF_ERROR(RequireSameType(checks, recvType));
    if (sendCount != recvCount) {
      return Problem(HCCL_E_PARA, "sendCount and recvCount must be the same, got {} and {}", sendCount, recvCount);
    }
    const std::vector<Part> parts = EvenParts(checks.ranks(), sendCount * checks.element());
    return Exchange(Kind::kAlltoAll, "HcclAlltoAll", sendBuf, parts, recvBuf, parts, checks, sendCount, comm, stream, nullptr);
  });
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls, HcclDataType sendType,
                         const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclAlltoAllV", [&]() -> Status {
    Checks checks(comm, sendType);
    std::vector<Part> send_parts = ListedParts(&checks, "sendCounts, sdispls", sendCounts, sdispls);
    std::vector<Part> recv_parts = ListedParts(&checks, "recvCounts, rdispls", recvCounts, rdispls);
    ANYACL_CHECK(checks);
    ANYACL_RETURN_IF_ERROR(RequireSameType(checks, recvType));
    const uint64_t to_self = send_parts[checks.rank()].bytes, from_self = recv_parts[checks.rank()].bytes;
    if (to_self != from_self) {
      return Problem(HCCL_E_PARA, "sendCounts and recvCounts must agree for rank {} itself, got {} and {}", checks.rank(),
                     to_self / checks.element(), from_self / checks.element());
    }
    return Exchange(Kind::kAlltoAllV, "HcclAlltoAllV", sendBuf, std::move(send_parts), recvBuf, std::move(recv_parts),
                    checks, 0, comm, stream, nullptr);
  });
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType, const void* recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclAlltoAllVC", [&]() -> Status {
    Checks checks(comm, sendType);
    checks.Lists("sendCountMatrix", sendCountMatrix);
    ANYACL_CHECK(checks);
    ANYACL_RETURN_IF_ERROR(RequireSameType(checks, recvType));
    const auto* const matrix = static_cast<const uint64_t*>(sendCountMatrix);
    const uint32_t ranks = checks.ranks();
    std::vector<Part> send_parts(ranks), recv_parts(ranks);
    uint64_t sent = 0, received = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint64_t out = matrix[checks.rank() * ranks + r], in = matrix[r * ranks + checks.rank()];
      checks.Count("sendCountMatrix", out).Count("sendCountMatrix", in);
      ANYACL_CHECK(checks);
      send_parts[r] = {sent, out * checks.element()};
      recv_parts[r] = {received, in * checks.element()};
      sent += send_parts[r].bytes;
      received += recv_parts[r].bytes;
    }
    return Exchange(Kind::kAlltoAllVC, "HcclAlltoAllVC", sendBuf, std::move(send_parts), recvBuf, std::move(recv_parts),
                    checks, 0, comm, stream, nullptr);
  });
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclBarrier", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    Call call;
    call.kind = Kind::kBarrier;
    call.send_parts.resize(communicator->ranks());
    call.recv_parts.resize(communicator->ranks());
    return Enqueue("HcclBarrier", comm, std::move(call), stream);
  });
}

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
  return HcclBorder("HcclSend", [&] { return SendOrRecv(true, "HcclSend", sendBuf, count, dataType, destRank, comm, stream); });
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
  return HcclBorder("HcclRecv", [&] { return SendOrRecv(false, "HcclRecv", recvBuf, count, dataType, srcRank, comm, stream); });
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
  return HcclBorder("HcclBatchSendRecv", [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull("sendRecvInfo", sendRecvInfo));
    if (itemNum == 0) return Problem(HCCL_E_PARA, "itemNum must be at least 1, got 0");
    Call call;
    call.kind = Kind::kSend;
    std::vector<uint64_t> to_self, from_self;
    for (uint32_t i = 0; i < itemNum; ++i) {
      const HcclSendRecvItem& item = sendRecvInfo[i];
      const int type = Number(item.sendRecvType);
      if (type != HCCL_SEND && type != HCCL_RECV) {
        return Problem(HCCL_E_PARA, "sendRecvType of item {} must be 0 or 1, got {}", i, type);
      }
      Checks checks(comm, item.dataType);
      checks.Rank("remoteRank", item.remoteRank).Count("count", item.count);
      ANYACL_CHECK(checks);
      const uint64_t bytes = item.count * checks.element();
      checks.Buffer("buf", item.buf, bytes);
      ANYACL_CHECK(checks);
      call.items.push_back({type == HCCL_SEND, item.buf, bytes, checks.dtype(), item.remoteRank});
      if (item.remoteRank == checks.rank()) (type == HCCL_SEND ? to_self : from_self).push_back(bytes);
    }
    if (to_self != from_self) return Problem(HCCL_E_PARA, "sends of a rank to itself and their receives must agree");
    return Enqueue("HcclBatchSendRecv", comm, std::move(call), stream);
  });
}
