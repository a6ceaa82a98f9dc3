// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Events. A record is a (stream, number) pair taken by value, so nothing waits for the event object
// itself and it may be destroyed at any time. Only the time stamp needs it: the marker that a record puts
// on the stream holds a reference until it has run.
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/handle_table.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

struct Record {
  Stream* stream = nullptr;
  int32_t stream_id = 0;
  uint64_t sequence = 0;

  bool Done() const { return stream->Reached(sequence); }
};

struct Event {
  std::atomic<int> references{1};
  std::atomic<int> pending_waits{0};
  int device = 0;
  uint32_t id = 0;
  bool repeatable = false;  // an Ex event

  std::mutex mutex;  // guards the rest
  std::optional<Record> record;
  uint64_t generation = 0;  // counts records
  uint64_t stamped = 0;     // the generation that `nanoseconds` belongs to
  int64_t nanoseconds = 0;
};

using Table = HandleTable<Event, HandleKind::kEvent>;
Table& Events() {
  static Table* const table = new Table;
  return *table;
}

std::atomic<uint32_t> next_event_id{0};
std::atomic<uint32_t> wait_seconds{0};  // aclrtSetOpWaitTimeout

void Keep(Event* event) { event->references.fetch_add(1, std::memory_order_relaxed); }
void Drop(Event* event) {
  if (event->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Events().Release(event);
}

Status Create(const char* function, void** handle, uint32_t flags, bool repeatable) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "event", handle));
  for (const uint32_t alone : {ACL_EVENT_IPC, ACL_EVENT_EXTERNAL}) {
    if ((flags & alone) && flags != alone) {
      return Fail(code::kAclInvalidParam, function,
                  "flag {:#x} must not be combined with others, got {:#x}", alone, flags);
    }
  }
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  Event* event = nullptr;
  const bool room = TakeResource(Resource::kEvent, context->device);
  void* const made = room ? Events().Create(&event) : nullptr;
  if (!made) {
    if (room) ReturnResource(Resource::kEvent, context->device);
    return Fail(code::kRtNoEventResource, function, "too many events are alive on device {}",
                context->device);
  }
  event->device = context->device;
  event->id = next_event_id.fetch_add(1, std::memory_order_relaxed);
  event->repeatable = repeatable;
  *handle = made;
  return Status();
}

Status Find(const char* function, void* handle, Event** event) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "event", handle));
  *event = Events().Get(handle);
  if (*event) [[likely]]
    return Status();
  return Fail(code::kRtInvalidHandle, function, "event must be a live event, got {}", handle);
}

// Event and the stream to put work on; both must be of one device.
Status FindBoth(const char* function, void* event_handle, void* stream_handle, Event** event,
                Stream** stream) {
  ANYACL_RETURN_IF_ERROR(Find(function, event_handle, event));
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(function, stream_handle, stream));
  if ((*event)->device == (*stream)->device()) [[likely]]
    return Status();
  return Fail(code::kRtStreamContext, function,
              "event is of device {}, but the stream of device {}", (*event)->device,
              (*stream)->device());
}

std::optional<Record> RecordOf(Event* event) {
  const std::lock_guard lock(event->mutex);
  return event->record;
}

bool IsComplete(Event* event) {
  const std::optional<Record> record = RecordOf(event);
  return record ? record->Done() : event->repeatable;
}

// --- record ---

struct Marker {
  Event* event;
  uint64_t generation;
};

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int32_t Stamp(Work& work, const Launch&) {
  const Marker& marker = PayloadOf<Marker>(work);
  const int64_t now = Now();
  const std::lock_guard lock(marker.event->mutex);
  if (marker.event->generation == marker.generation) {  // else a later record has replaced this one
    marker.event->nanoseconds = now;
    marker.event->stamped = marker.generation;
  }
  return 0;
}

int32_t Unrecord(Work& work, const Launch&) {
  const Marker& marker = PayloadOf<Marker>(work);
  const std::lock_guard lock(marker.event->mutex);
  if (marker.event->generation == marker.generation) marker.event->record.reset();
  return 0;
}

void DropMarked(Work& work) { Drop(PayloadOf<Marker>(work).event); }

uint64_t NextGeneration(Event* event) {
  const std::lock_guard lock(event->mutex);
  return ++event->generation;
}

uint64_t Generation(Event* event) {
  const std::lock_guard lock(event->mutex);
  return event->generation;
}

Status SubmitMarker(const char* function, Event* event, uint64_t generation, Stream* stream,
                    int32_t (*run)(Work&, const Launch&), uint64_t* sequence) {
  Keep(event);
  const Work work = MakeWork(function, 0, Marker{event, generation}, run, DropMarked);
  Status status = stream->Submit(work, Where::kAnywhere, sequence);
  if (!status.ok()) Drop(event);
  return status;
}

Status RecordOn(const char* function, void* event_handle, void* stream_handle) {
  Event* event = nullptr;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(FindBoth(function, event_handle, stream_handle, &event, &stream));
  Record record{stream, stream->id(), 0};
  const uint64_t generation = NextGeneration(event);
  ANYACL_RETURN_IF_ERROR(
      SubmitMarker(function, event, generation, stream, Stamp, &record.sequence));
  const std::lock_guard lock(event->mutex);
  if (event->generation == generation) event->record = record;
  return Status();
}

Status CheckFlag(const char* function, uint32_t flag) {
  if (flag <= 1) return Status();
  return Fail(code::kAclInvalidParam, function, "flag must be 0 (default) or 1 (external), got {}",
              flag);
}

// --- wait on a stream ---

struct Wait {
  Stream* waiter;
  Stream* target;
  uint64_t sequence;
  Event* event;
  uint32_t seconds;  // 0: no limit
};

int32_t WaitForRecord(Work& work, const Launch&) {
  const Wait& wait = PayloadOf<Wait>(work);
  const Deadline deadline =
      wait.seconds == 0 ? kForever
                        : std::chrono::steady_clock::now() + std::chrono::seconds(wait.seconds);
  const WaitResult result = wait.target->WaitFor(wait.sequence, deadline, wait.waiter);
  return result == WaitResult::kTimedOut ? code::kRtWaitTimeout : 0;
}

void DropWait(Work& work) {
  Event* const event = PayloadOf<Wait>(work).event;
  event->pending_waits.fetch_sub(1, std::memory_order_release);
  Drop(event);
}

Status WaitOn(const char* function, void* stream_handle, void* event_handle, uint32_t seconds) {
  Event* event = nullptr;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(FindBoth(function, event_handle, stream_handle, &event, &stream));
  const std::optional<Record> record = RecordOf(event);
  // A record of the same stream is before us in its queue anyway.
  if (!record || record->stream == stream || record->Done()) return Status();
  Keep(event);
  event->pending_waits.fetch_add(1, std::memory_order_relaxed);
  const Work work =
      MakeWork(function, 0, Wait{stream, record->stream, record->sequence, event, seconds},
               WaitForRecord, DropWait);
  Status status = stream->Submit(work, Where::kOnStreamThread, nullptr);
  if (!status.ok()) {
    event->pending_waits.fetch_sub(1, std::memory_order_relaxed);
    Drop(event);
  }
  return status;
}

// --- wait on the host, times ---

Status SynchronizeEvent(const char* function, void* handle, Deadline deadline) {
  Event* event = nullptr;
  ANYACL_RETURN_IF_ERROR(Find(function, handle, &event));
  const std::optional<Record> record = RecordOf(event);
  if (!record) return Status();
  if (!record->Done() && record->stream->OnOwnThread()) {
    return Fail(code::kRtParamInvalid, function,
                "a host function must not wait for work behind it on its own stream {}",
                record->stream_id);
  }
  if (record->stream->WaitFor(record->sequence, deadline) == WaitResult::kTimedOut) {
    return Fail(code::kRtEventSyncTimeout, function,
                "event {} was not reached when the time was up", event->id);
  }
  if (record->stream->id() != record->stream_id) return Status();  // destroyed meanwhile
  return record->stream->TakeFailure(function, record->sequence);
}

Status TimeOf(const char* function, const char* argument, void* handle, int64_t* nanoseconds) {
  Event* event = nullptr;
  ANYACL_RETURN_IF_ERROR(Find(function, handle, &event));
  const std::lock_guard lock(event->mutex);
  if (!event->record) {
    return Fail(code::kRtTimestampInvalid, function, "{} was never recorded", argument);
  }
  if (!event->record->Done() || event->stamped != event->generation) {
    return Fail(code::kRtTimestampInvalid, function, "{} has not been reached yet", argument);
  }
  *nanoseconds = event->nanoseconds;
  return Status();
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtCreateEvent(aclrtEvent* event) {
  constexpr const char* kName = "aclrtCreateEvent";
  return AclBorder(kName, [&] { return Create(kName, event, 0, false); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  constexpr const char* kName = "aclrtCreateEventWithFlag";
  return AclBorder(kName, [&] { return Create(kName, event, flag, false); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  constexpr const char* kName = "aclrtCreateEventExWithFlag";
  return AclBorder(kName, [&] { return Create(kName, event, flag, true); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  constexpr const char* kName = "aclrtDestroyEvent";
  return AclBorder(kName, [&]() -> Status {
    Event* found = nullptr;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    if (!Events().Retire(event)) return Status();  // another thread was quicker
    ReturnResource(Resource::kEvent, found->device);
    Drop(found);
    return Status();
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  constexpr const char* kName = "aclrtRecordEvent";
  return AclBorder(kName, [&] { return RecordOn(kName, event, stream); });
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  constexpr const char* kName = "aclrtRecordEventWithFlag";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckFlag(kName, flag));
    return RecordOn(kName, event, stream);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  constexpr const char* kName = "aclrtResetEvent";
  return AclBorder(kName, [&]() -> Status {
    Event* found = nullptr;
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(FindBoth(kName, event, stream, &found, &target));
    return SubmitMarker(kName, found, Generation(found), target, Unrecord, nullptr);
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  constexpr const char* kName = "aclrtQueryEvent";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "status", status));
    Event* found = nullptr;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    *status = IsComplete(found) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return Status();
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  constexpr const char* kName = "aclrtQueryEventStatus";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "status", status));
    Event* found = nullptr;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    *status = IsComplete(found) ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return Status();
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  constexpr const char* kName = "aclrtQueryEventWaitStatus";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "status", status));
    Event* found = nullptr;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    const bool done = found->pending_waits.load(std::memory_order_acquire) == 0;
    *status = done ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return Status();
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  constexpr const char* kName = "aclrtSynchronizeEvent";
  return AclBorder(kName, [&] { return SynchronizeEvent(kName, event, kForever); });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  constexpr const char* kName = "aclrtSynchronizeEventWithTimeout";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireTimeout(kName, timeout));
    return SynchronizeEvent(kName, event, DeadlineIn(timeout));
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  constexpr const char* kName = "aclrtStreamWaitEvent";
  return AclBorder(kName, [&] {
    return WaitOn(kName, stream, event, wait_seconds.load(std::memory_order_relaxed));
  });
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  constexpr const char* kName = "aclrtStreamWaitEventWithFlag";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckFlag(kName, flag));
    return WaitOn(kName, stream, event, timeout);
  });
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  constexpr const char* kName = "aclrtStreamWaitEventWithTimeout";
  return AclBorder(kName, [&]() -> Status {
    if (timeout < 0) {
      return Fail(code::kRtParamInvalid, kName,
                  "timeout must be 0 (no limit) or a positive number of seconds, got {}", timeout);
    }
    return WaitOn(kName, stream, event, static_cast<uint32_t>(timeout));
  });
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  wait_seconds.store(timeout, std::memory_order_relaxed);
  return ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  constexpr const char* kName = "aclrtEventElapsedTime";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "ms", ms));
    int64_t start = 0;
    int64_t end = 0;
    ANYACL_RETURN_IF_ERROR(TimeOf(kName, "startEvent", startEvent, &start));
    ANYACL_RETURN_IF_ERROR(TimeOf(kName, "endEvent", endEvent, &end));
    if (end < start) {
      return Fail(code::kRtTimestampReversal, kName,
                  "endEvent must be reached after startEvent, was {} ns before", start - end);
    }
    *ms = static_cast<float>(static_cast<double>(end - start) * 1e-6);
    return Status();
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  constexpr const char* kName = "aclrtEventGetTimestamp";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "timestamp", timestamp));
    int64_t nanoseconds = 0;
    ANYACL_RETURN_IF_ERROR(TimeOf(kName, "event", event, &nanoseconds));
    *timestamp = static_cast<uint64_t>(nanoseconds / 1000);
    return Status();
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  constexpr const char* kName = "aclrtGetEventId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "eventId", eventId));
    Event* found = nullptr;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    *eventId = found->id;
    return Status();
  });
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  constexpr const char* kName = "aclrtGetEventAvailNum";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "eventCount", eventCount));
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    *eventCount = static_cast<uint32_t>(AvailableResources(Resource::kEvent, context->device));
    return Status();
  });
}
