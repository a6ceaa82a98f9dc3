// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Copies, fills and reductions, at once or on a stream.
#include <cstdint>
#include <optional>
#include <vector>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "runtime/backends.h"
#include "runtime/capture.h"
#include "runtime/context.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/submit.h"
#include "watch/watch.h"

namespace anyacl::runtime {
namespace {

// Limits of the original's asynchronous pitched copy.
constexpr size_t kMaxWidth2d = 5000000;
constexpr size_t kMaxHeight2d = 5242880;

Status CheckKind(const char* function, int kind) {
  if (kind >= ACL_MEMCPY_HOST_TO_HOST && kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return {};
  return Fail(code::kAclInvalidParam, function, "kind must be 0 to 5, got {}", kind);
}

Status CheckCopy(const char* function, const void* dst, size_t dest_max, const void* src,
                 size_t count) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dst", dst));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "src", src));
  if (dest_max >= count) return {};
  return Fail(code::kRtParamInvalid, function, "count must be at most destMax {}, got {}", dest_max,
              count);
}

Status WrongAddress(const char* function, const char* argument, const void* address, size_t bytes) {
  return Fail(code::kRtParamInvalid, function, "{} + size must be an address, got {} + {}",
              argument, address, bytes);
}

// Our own blocks have known ends; behind them is somebody else's memory. Registered memory may go
// on.
Status CheckExtent(const char* function, const char* argument, const void* address,
                   const Place& place, size_t bytes) {
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(address)) {
    return WrongAddress(function, argument, address, bytes);
  }
  const bool end_unknown = place.pageable() || place.block->kind == MemoryKind::kRegistered;
  if (end_unknown || bytes <= place.extent) return {};
  return Fail(code::kRtParamInvalid, function,
              "{} must have {} bytes, got {} with {} bytes left in its allocation", argument, bytes,
              address, place.extent);
}

// What fills memory of the host: no GPU can write to pages it does not know.
DeviceMemory& HostMemory() { return CpuBackend().memory(); }

// One transfer with both ends looked up.
struct Transfer {
  RowCopy rows;
  Place to;
  Place from;

  size_t to_bytes() const { return (rows.height - 1) * rows.to_pitch + rows.width; }
  size_t from_bytes() const { return (rows.height - 1) * rows.from_pitch + rows.width; }

  // Memory the caller may reuse when the call returns: anything we do not know from end to end.
  bool must_finish() const { return to.extent < to_bytes() || from.extent < from_bytes(); }

  // Registered memory does not count: on the CPU its device view is the same address.
  bool host_to_host() const {
    const auto host = [](const Place& place) {
      return place.pageable() || place.block->kind == MemoryKind::kPinned;
    };
    return host(to) && host(from);
  }

  DeviceMemory& memory() const {
    return to.pageable() && from.pageable() ? HostMemory() : CurrentBackend().memory();
  }
};

Status Prepare(const char* function, const RowCopy& rows, Transfer* transfer) {
  transfer->rows = rows;
  transfer->to = MemoryMap::Get().Locate(rows.to);
  transfer->from = MemoryMap::Get().Locate(rows.from);
  ANYACL_RETURN_IF_ERROR(CheckExtent(function, "dst", rows.to, transfer->to, transfer->to_bytes()));
  return CheckExtent(function, "src", rows.from, transfer->from, transfer->from_bytes());
}

RowCopy OneRow(void* to, const void* from, size_t bytes) {
  return {
      .to = to, .to_pitch = bytes, .from = from, .from_pitch = bytes, .width = bytes, .height = 1};
}

// "<function>: ..." around what a backend says.
Status Named(const char* function, const Status& status) {
  if (status.ok()) [[likely]]
    return {};
  return Fail(status.code(), function, "{}", status.message());
}

Tensor BytesAt(const void* begin, size_t rows, size_t pitch, size_t width) {
  Tensor t;
  t.dtype = DType::kU8;
  t.dims = {static_cast<int64_t>(rows), static_cast<int64_t>(width)};
  t.strides = {static_cast<int64_t>(pitch), 1};
  t.data = const_cast<void*>(begin);
  return t;
}

watch::Transfer Shown(const RowCopy& rows) {
  return {.function = "",
          .from = BytesAt(rows.from, rows.height, rows.from_pitch, rows.width),
          .to = BytesAt(rows.to, rows.height, rows.to_pitch, rows.width)};
}

// Before it is done. What is captured has no place in the order, but writes all the same.
template <class Rows>
void Show(const char* function, const Rows& rows, const Stream* stream) {
  if (!watch::On()) [[likely]]
    return;
  watch::Transfer transfer = Shown(rows);
  if (stream && stream->capture()) {
    const Tensor& to = transfer.to;
    watch::Tell(&watch::Watcher::MayWrite, to.data, static_cast<size_t>((to.dims[0] - 1) * to.strides[0] + to.dims[1]));
    return;
  }
  transfer.function = function;
  if (stream) transfer.stream = stream->id();
  watch::Tell(&watch::Watcher::Transfers, transfer);
}

Status RunNow(const char* function, const Transfer& transfer) {
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  ANYACL_RETURN_IF_ERROR(RequireMaySynchronize(function));
  if (transfer.rows.to == transfer.rows.from) return {};
  Show(function, transfer.rows, nullptr);
  return Named(function, transfer.memory().Copy(transfer.rows, Launch{nullptr, context->device}));
}

// Waits until the stream is through with work `sequence` and reports what failed on it so far.
Status Finish(const char* function, Stream* stream, uint64_t sequence) {
  const WaitResult result = stream->WaitFor(sequence, kForever);
  if (result == WaitResult::kCircular) return CircularWait(function);
  if (result == WaitResult::kAborted) {
    return Fail(code::kRtStreamAbort, function, "the stream was aborted");
  }
  stream->TellReached();
  return stream->TakeFailure(function, sequence);
}

// Puts work on a stream; with `finish`, returns when it is done. `rows`: what it copies, fills or reduces.
template <class Rows>
Status Enqueue(const char* function, aclrtStream handle, Work work, bool finish, const Rows& rows,
               Where where = Where::kAnywhere) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(function, handle, &stream));
  if (finish && stream->capture()) {
    GraphCapture::Invalidate(function, *stream);
    return Fail(code::kRtCaptureBlocksAsync, function,
                "stream {} is being captured, and a transfer of pageable memory would have to wait",
                stream->id());
  }
  Show(function, rows, stream);
  if (finish && stream->OnOwnThread()) {
    // Inside a host function of this stream all earlier work is done, and waiting would never end.
    const int32_t result = work.run(work, Launch{nullptr, stream->device()});
    return result == 0 ? Status() : Fail(result, function, "failed with code {}", result);
  }
  uint64_t sequence = 0;
  ANYACL_RETURN_IF_ERROR(stream->Submit(work, where, &sequence));
  return finish ? Finish(function, stream, sequence) : Status();
}

struct CopyPayload {
  DeviceMemory* memory;
  RowCopy rows;
};

Status EnqueueCopy(const char* function, aclrtStream stream, const Transfer& transfer,
                   bool finish) {
  const auto run = [](Work& work, const Launch& launch) -> int32_t {
    const CopyPayload& payload = PayloadOf<CopyPayload>(work);
    if (payload.rows.to == payload.rows.from) return 0;
    return payload.memory->Copy(payload.rows, launch).code();
  };
  const uint64_t cost = 2 * static_cast<uint64_t>(transfer.rows.width) * transfer.rows.height;
  const CopyPayload payload{&transfer.memory(), transfer.rows};
  return Enqueue(function, stream, MakeWork(function, cost, payload, run), finish, transfer.rows);
}

Status HostToHost(const char* function) {
  return Fail(code::kRtNotSupported, function,
              "the kind must name device memory on one side at least, got host to host");
}

Status MemcpyAsync(const char* function, void* dst, size_t dest_max, const void* src, size_t count,
                   int kind, aclrtStream stream) {
  if (count == 0) return {};
  ANYACL_RETURN_IF_ERROR(CheckCopy(function, dst, dest_max, src, count));
  ANYACL_RETURN_IF_ERROR(CheckKind(function, kind));
  Transfer transfer;
  ANYACL_RETURN_IF_ERROR(Prepare(function, OneRow(dst, src, count), &transfer));
  if (kind == ACL_MEMCPY_HOST_TO_HOST || transfer.host_to_host()) return HostToHost(function);
  // The source of a buffered copy may go away when the call returns, pinned or not.
  const bool finish = transfer.must_finish() || kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
  return EnqueueCopy(function, stream, transfer, finish);
}

struct Pitched {
  void* dst;
  size_t dpitch;
  const void* src;
  size_t spitch;
  size_t width;
  size_t height;
  int kind;
};

bool ExtentOverflows(size_t pitch, const Pitched& args) {
  size_t bytes = 0;
  return __builtin_mul_overflow(args.height - 1, pitch, &bytes) ||
         __builtin_add_overflow(bytes, args.width, &bytes);
}

Status CheckPitched(const char* function, const Pitched& args, bool async) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dst", args.dst));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "src", args.src));
  if (args.width > args.dpitch || args.width > args.spitch) {
    return Fail(code::kAclInvalidParam, function,
                "width must be at most dpitch and spitch, got width {} dpitch {} spitch {}",
                args.width, args.dpitch, args.spitch);
  }
  const int kind = args.kind;
  const bool known = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_HOST ||
                     kind == ACL_MEMCPY_DEFAULT || (async && kind == ACL_MEMCPY_DEVICE_TO_DEVICE);
  if (!known)
    return Fail(code::kAclInvalidParam, function, "kind must be {}, got {}",
                async ? "1 to 4" : "1, 2 or 4", kind);
  if (async && (args.width > kMaxWidth2d || args.height > kMaxHeight2d)) {
    return Fail(code::kAclInvalidParam, function,
                "width must be at most {} and height at most {}, got {} and {}", kMaxWidth2d,
                kMaxHeight2d, args.width, args.height);
  }
  if (ExtentOverflows(args.dpitch, args) || ExtentOverflows(args.spitch, args)) {
    return Fail(code::kAclInvalidParam, function,
                "height * pitch must fit in 64 bits, got height {} dpitch {} spitch {}",
                args.height, args.dpitch, args.spitch);
  }
  return {};
}

Status PreparePitched(const char* function, const Pitched& args, bool async, Transfer* transfer) {
  ANYACL_RETURN_IF_ERROR(CheckPitched(function, args, async));
  return Prepare(function, {args.dst, args.dpitch, args.src, args.spitch, args.width, args.height},
                 transfer);
}

struct Batch {
  void** dsts;
  size_t* dest_maxs;
  void** srcs;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attrs;
  size_t* attr_indexes;
  size_t attr_count;
};

Status CheckBatchArrays(const char* function, const Batch& batch) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dsts", batch.dsts));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "destMaxs", batch.dest_maxs));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "srcs", batch.srcs));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "sizes", batch.sizes));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "attrs", batch.attrs));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "attrsIndexes", batch.attr_indexes));
  if (batch.count == 0) {
    return Fail(code::kAclInvalidParam, function, "numBatches must be greater than 0, got 0");
  }
  if (batch.attr_count >= 1 && batch.attr_count <= batch.count) return {};
  return Fail(code::kAclInvalidParam, function, "numAttrs must be 1 to numBatches {}, got {}",
              batch.count, batch.attr_count);
}

// attrs[i] speaks for the copies from attrsIndexes[i] on; all have to go the same way.
Status CheckBatchAttrs(const char* function, const Batch& batch) {
  const auto to_device = [&](size_t i) {
    return Number(batch.attrs[i].dstLoc.type) == ACL_MEM_LOCATION_TYPE_DEVICE;
  };
  for (size_t i = 0; i < batch.attr_count; ++i) {
    const size_t index = batch.attr_indexes[i];
    const bool in_order = i == 0 ? index == 0 : index > batch.attr_indexes[i - 1];
    if (!in_order || index >= batch.count) {
      return Fail(code::kAclInvalidParam, function,
                  "attrsIndexes must start with 0 and ascend below numBatches {}, got "
                  "attrsIndexes[{}] = {}",
                  batch.count, i, index);
    }
    const int dst = Number(batch.attrs[i].dstLoc.type);
    const int src = Number(batch.attrs[i].srcLoc.type);
    const bool one_way =
        (dst == ACL_MEM_LOCATION_TYPE_DEVICE && src == ACL_MEM_LOCATION_TYPE_HOST) ||
        (dst == ACL_MEM_LOCATION_TYPE_HOST && src == ACL_MEM_LOCATION_TYPE_DEVICE);
    if (!one_way || to_device(i) != to_device(0)) {
      return Fail(code::kAclInvalidParam, function,
                  "attrs must be all host to device or all device to host, got attrs[{}] "
                  "with srcLoc.type {} and dstLoc.type {}",
                  i, src, dst);
    }
  }
  return {};
}

// Looks at every copy before the first one is made. Sets *fail_index to the one to blame.
Status PrepareBatch(const char* function, const Batch& batch, std::vector<Transfer>* transfers,
                    size_t* fail_index) {
  *fail_index = SIZE_MAX;
  ANYACL_RETURN_IF_ERROR(CheckBatchArrays(function, batch));
  ANYACL_RETURN_IF_ERROR(CheckBatchAttrs(function, batch));
  for (size_t i = 0; i < batch.count; ++i) {
    if (batch.sizes[i] == 0) continue;
    *fail_index = i;
    ANYACL_RETURN_IF_ERROR(
        CheckCopy(function, batch.dsts[i], batch.dest_maxs[i], batch.srcs[i], batch.sizes[i]));
    ANYACL_RETURN_IF_ERROR(Prepare(function, OneRow(batch.dsts[i], batch.srcs[i], batch.sizes[i]),
                                   &transfers->emplace_back()));
  }
  *fail_index = SIZE_MAX;
  return {};
}

Status MemcpyBatch(const char* function, const Batch& batch, size_t* fail_index) {
  std::vector<Transfer> transfers;
  ANYACL_RETURN_IF_ERROR(PrepareBatch(function, batch, &transfers, fail_index));
  for (const Transfer& transfer : transfers) ANYACL_RETURN_IF_ERROR(RunNow(function, transfer));
  return {};
}

Status MemcpyBatchAsync(const char* function, const Batch& batch, size_t* fail_index,
                        aclrtStream stream) {
  std::vector<Transfer> transfers;
  ANYACL_RETURN_IF_ERROR(PrepareBatch(function, batch, &transfers, fail_index));
  for (const Transfer& transfer : transfers) {
    ANYACL_RETURN_IF_ERROR(EnqueueCopy(function, stream, transfer, transfer.must_finish()));
  }
  return {};
}

struct FillPayload {
  DeviceMemory* memory;
  void* to;
  size_t count;
  uint32_t pattern;
  int unit;

  Status Run(const Launch& launch) const { return memory->Fill(to, unit, pattern, count, launch); }
};

watch::Transfer Shown(const FillPayload& fill) {
  const size_t bytes = fill.count * static_cast<size_t>(fill.unit);
  return {.function = "", .from = {}, .to = BytesAt(fill.to, 1, bytes, bytes)};
}

// What a function has checked, still to be looked up.
struct FillRequest {
  const char* argument;  // the name of `to`
  void* to;
  int unit;
  uint32_t pattern;
  size_t count;
};

// How a fill runs: before the function returns, or on a stream.
Status FillNow(const char* function, const Place&, const FillPayload& fill) {
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  ANYACL_RETURN_IF_ERROR(RequireMaySynchronize(function));
  Show(function, fill, nullptr);
  return Named(function, fill.Run(Launch{nullptr, context->device}));
}

struct FillOn {
  aclrtStream stream;

  Status operator()(const char* function, const Place& place, const FillPayload& fill) const {
    const auto run = [](Work& work, const Launch& launch) -> int32_t {
      return PayloadOf<FillPayload>(work).Run(launch).code();
    };
    const uint64_t bytes = static_cast<uint64_t>(fill.count) * static_cast<uint64_t>(fill.unit);
    const Where where = place.is_device() ? Where::kAnywhere : Where::kOnStreamThread;
    return Enqueue(function, stream, MakeWork(function, bytes, fill, run), place.extent < bytes,
                   fill, where);
  }
};

template <class Way>
Status Fill(const char* function, const FillRequest& request, const Way& way) {
  const Place place = MemoryMap::Get().Locate(request.to);
  const size_t bytes = request.count * static_cast<size_t>(request.unit);
  ANYACL_RETURN_IF_ERROR(CheckExtent(function, request.argument, request.to, place, bytes));
  DeviceMemory& memory = place.is_device() ? *place.block->memory : HostMemory();
  return way(function, place, {&memory, request.to, request.count, request.pattern, request.unit});
}

Status CheckMemset(const char* function, const void* dev_ptr, size_t max_count, size_t count) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "devPtr", dev_ptr));
  if (count <= max_count) return {};
  return Fail(code::kRtParamInvalid, function, "count must be at most maxCount {}, got {}",
              max_count, count);
}

Status CheckMemsetD32(const char* function, const void* ptr, size_t mem_size, size_t n) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "ptr", ptr));
  if (reinterpret_cast<uintptr_t>(ptr) % sizeof(uint32_t) != 0) {
    return Fail(code::kAclInvalidParam, function, "ptr must be aligned to 4 bytes, got {}", ptr);
  }
  if (n <= mem_size / sizeof(uint32_t)) return {};
  return Fail(code::kAclInvalidParam, function,
              "memSize must be at least 4 * N, got memSize {} N {}", mem_size, n);
}

template <class Way>
aclError MemsetBytes(const char* function, void* dev_ptr, size_t max_count, int32_t value,
                     size_t count, const Way& way) {
  return AclBorder(function, [&]() -> Status {
    if (count == 0) return {};
    ANYACL_RETURN_IF_ERROR(CheckMemset(function, dev_ptr, max_count, count));
    return Fill(function, {"devPtr", dev_ptr, 1, static_cast<uint32_t>(value), count}, way);
  });
}

template <class Way>
aclError MemsetWords(const char* function, void* ptr, size_t mem_size, uint32_t value, size_t n,
                     const Way& way) {
  return AclBorder(function, [&]() -> Status {
    if (n == 0) return {};
    ANYACL_RETURN_IF_ERROR(CheckMemsetD32(function, ptr, mem_size, n));
    return Fill(function, {"ptr", ptr, 4, value, n}, way);
  });
}

struct ReducePayload {
  DeviceMemory* memory;
  void* to;
  const void* from;
  size_t elements;
  DType dtype;
  ReduceOp op;
};

watch::Transfer Shown(const ReducePayload& reduce) {
  const size_t bytes = reduce.elements * SizeOf(reduce.dtype);
  return {.function = "", .from = BytesAt(reduce.from, 1, bytes, bytes), .to = BytesAt(reduce.to, 1, bytes, bytes)};
}

std::optional<ReduceOp> ReduceOpOf(int kind) {
  switch (kind) {
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM:
      return ReduceOp::kSum;
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
      return ReduceOp::kMax;
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
      return ReduceOp::kMin;
    default:
      return std::nullopt;
  }
}

Status CheckReduce(const char* function, uint64_t count, int kind, DType dtype,
                   const DeviceMemory& memory) {
  if (kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
    return Fail(code::kRtNotSupported, function, "kind 13 (equal) is not supported");
  }
  if (!ReduceOpOf(kind)) {
    return Fail(code::kAclInvalidParam, function, "kind must be 10 to 13, got {}", kind);
  }
  if (!memory.CanReduce(dtype)) {
    return Fail(code::kRtNotSupported, function,
                "type must be a real number type of 8 to 64 bits, got {}", Name(dtype));
  }
  if (count % SizeOf(dtype) == 0) return {};
  return Fail(code::kAclInvalidParam, function, "count must be a multiple of {} bytes ({}), got {}",
              SizeOf(dtype), Name(dtype), count);
}

Status ReduceAsync(const char* function, void* dst, const void* src, uint64_t count, int kind,
                   DType dtype, aclrtStream stream) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dst", dst));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "src", src));
  Transfer transfer;
  ANYACL_RETURN_IF_ERROR(Prepare(function, OneRow(dst, src, count), &transfer));
  DeviceMemory& memory = transfer.memory();
  ANYACL_RETURN_IF_ERROR(CheckReduce(function, count, kind, dtype, memory));
  if (!memory.HostCanAccess() && (transfer.to.pageable() || transfer.from.pageable())) {
    return Fail(code::kRtNotSupported, function,
                "dst and src must be device, pinned or registered memory on this backend");
  }
  const ReducePayload payload{&memory, dst, src, count / SizeOf(dtype), dtype, *ReduceOpOf(kind)};
  const auto run = [](Work& work, const Launch& launch) -> int32_t {
    const ReducePayload& p = PayloadOf<ReducePayload>(work);
    return p.memory->Reduce(p.to, p.from, p.elements, p.dtype, p.op, launch).code();
  };
  return Enqueue(function, stream, MakeWork(function, 3 * count, payload, run),
                 transfer.must_finish(), payload);
}

}  // namespace
}  // namespace anyacl::runtime

using namespace anyacl;           // NOLINT: the C functions below are the border of this file
using namespace anyacl::runtime;  // NOLINT

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  constexpr const char* kName = "aclrtMemcpy";
  return AclBorder(kName, [&]() -> Status {
    if (count == 0) return {};
    ANYACL_RETURN_IF_ERROR(CheckCopy(kName, dst, destMax, src, count));
    ANYACL_RETURN_IF_ERROR(CheckKind(kName, Number(kind)));
    Transfer transfer;
    ANYACL_RETURN_IF_ERROR(Prepare(kName, OneRow(dst, src, count), &transfer));
    return RunNow(kName, transfer);
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  return AclBorder("aclrtMemcpyAsync", [&]() -> Status {
    return MemcpyAsync("aclrtMemcpyAsync", dst, destMax, src, count, Number(kind), stream);
  });
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return AclBorder("aclrtMemcpyAsyncWithCondition", [&]() -> Status {
    return MemcpyAsync("aclrtMemcpyAsyncWithCondition", dst, destMax, src, count, Number(kind),
                       stream);
  });
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  constexpr const char* kName = "aclrtMemcpy2d";
  return AclBorder(kName, [&]() -> Status {
    if (width == 0 || height == 0) return {};
    Transfer transfer;
    const Pitched args{dst, dpitch, src, spitch, width, height, Number(kind)};
    ANYACL_RETURN_IF_ERROR(PreparePitched(kName, args, false, &transfer));
    return RunNow(kName, transfer);
  });
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  constexpr const char* kName = "aclrtMemcpy2dAsync";
  return AclBorder(kName, [&]() -> Status {
    if (width == 0 || height == 0) return {};
    Transfer transfer;
    const Pitched args{dst, dpitch, src, spitch, width, height, Number(kind)};
    ANYACL_RETURN_IF_ERROR(PreparePitched(kName, args, true, &transfer));
    if (transfer.host_to_host()) return HostToHost(kName);
    return EnqueueCopy(kName, stream, transfer, transfer.must_finish());
  });
}

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  size_t unused = 0;
  return AclBorder("aclrtMemcpyBatch", [&]() -> Status {
    return MemcpyBatch("aclrtMemcpyBatch",
                       {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                       failIndex ? failIndex : &unused);
  });
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  size_t unused = 0;
  return AclBorder("aclrtMemcpyBatchAsync", [&]() -> Status {
    return MemcpyBatchAsync(
        "aclrtMemcpyBatchAsync",
        {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
        failIndex ? failIndex : &unused, stream);
  });
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) {
  size_t unused = 0;
  return AclBorder("aclrtMemcpyBatchV2", [&]() -> Status {
    return MemcpyBatch("aclrtMemcpyBatchV2",
                       {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                       &unused);
  });
}

aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) {
  size_t unused = 0;
  return AclBorder("aclrtMemcpyBatchAsyncV2", [&]() -> Status {
    return MemcpyBatchAsync(
        "aclrtMemcpyBatchAsyncV2",
        {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs}, &unused, stream);
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return MemsetBytes("aclrtMemset", devPtr, maxCount, value, count, FillNow);
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  return MemsetBytes("aclrtMemsetAsync", devPtr, maxCount, value, count, FillOn{stream});
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  return MemsetWords("aclrtMemsetD32", ptr, memSize, value, N, FillNow);
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  return MemsetWords("aclrtMemsetD32Async", ptr, memSize, value, N, FillOn{stream});
}

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* /*reserve*/) {
  constexpr const char* kName = "aclrtReduceAsync";
  return AclBorder(kName, [&]() -> Status {
    if (count == 0) return {};
    return ReduceAsync(kName, dst, src, count, Number(kind), static_cast<DType>(Number(type)),
                       stream);
  });
}

// The caches of a CPU need no orders; only the arguments are checked.
aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  constexpr const char* kName = "aclrtCmoAsync";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "src", src));
    if (size == 0) {
      return Fail(code::kAclInvalidParam, kName, "size must be greater than 0, got 0");
    }
    const int number = Number(cmoType);
    if (number < ACL_RT_CMO_TYPE_PREFETCH || number > ACL_RT_CMO_TYPE_FLUSH) {
      return Fail(code::kAclInvalidParam, kName, "cmoType must be 0 to 3, got {}", number);
    }
    Stream* unused = nullptr;
    return ResolveForSubmit(kName, stream, &unused);
  });
}
