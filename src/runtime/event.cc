// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Events. A record is a (stream, number) pair and a stamp, taken by value, so nothing waits for the event object
// itself and it may be destroyed at any time.
#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/handle_table.h"
#include "core/locks.h"
#include "core/once.h"
#include "runtime/capture.h"
#include "runtime/internal.h"
#include "runtime/submit.h"
#include "watch/watch.h"

namespace anyacl::runtime {
namespace {

struct Record {
  Stream* stream = nullptr;
  int32_t stream_id = 0;
  uint64_t sequence = 0;
  std::shared_ptr<Stamp> stamp;
  // Of an event recorded in a capture: only the streams of that can wait for it.
  std::shared_ptr<GraphCapture::Point> captured;

  bool Done() const { return stream->Reached(sequence); }
};

// Of streams, by the number of their work. A list, because a wait that is under way must find its place.
using Waits = std::list<std::pair<Stream*, uint64_t>>;

struct Event {
  int device = 0;
  uint32_t id = 0;
  bool repeatable = false;  // an Ex event

  // The rest is guarded.
  std::mutex& mutex() { return LockOf(Lock::kEvents, this); }
  std::optional<Record> record;
  uint64_t generation = 0;  // counts records
  Waits waits;
};

using Table = HandleTable<Event, HandleKind::kEvent>;
using PinnedEvent = Table::Pinned;  // another thread may destroy the event in the middle of a call
Table& Events() { return TheOne<Table>(); }

std::atomic<uint32_t> next_event_id{0};
std::atomic<uint32_t> wait_seconds{0};  // aclrtSetOpWaitTimeout

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

Status Find(const char* function, void* handle, PinnedEvent* event) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "event", handle));
  *event = PinnedEvent(Events(), handle);
  if (*event) [[likely]]
    return Status();
  return Fail(code::kRtInvalidHandle, function, "event must be a live event, got {}", handle);
}

// Event and the stream to put work on; both must be of one device.
Status FindBoth(const char* function, void* event_handle, void* stream_handle, PinnedEvent* event,
                Stream** stream) {
  ANYACL_RETURN_IF_ERROR(Find(function, event_handle, event));
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(function, stream_handle, stream));
  if ((*event)->device == (*stream)->device()) [[likely]]
    return Status();
  return Fail(code::kRtStreamContext, function,
              "event is of device {}, but the stream of device {}", (*event)->device,
              (*stream)->device());
}

void TellReached(const void* event) {
  if (watch::On()) [[unlikely]]
    watch::Tell(&watch::Watcher::HostReached, watch::Reached{.event = event});
}

std::optional<Record> RecordOf(const PinnedEvent& event) {
  const std::lock_guard lock(event->mutex());
  return event->record;
}

Status Captured(const char* function, const PinnedEvent& event, const Record& record) {
  record.captured->capture->Invalidate(function);
  return Fail(code::kRtEventCaptured, function,
              "event {} was recorded in a capture: the host can neither ask nor wait for it",
              event->id);
}

Status IsComplete(const char* function, const PinnedEvent& event, bool* complete) {
  const std::optional<Record> record = RecordOf(event);
  if (record && record->captured) return Captured(function, event, *record);
  *complete = record ? record->Done() : event->repeatable;
  return Status();
}

Status AllWaitsAreOver(const char* function, const PinnedEvent& event, bool* over) {
  const std::lock_guard lock(event->mutex());
  if (event->record && event->record->captured) return Captured(function, event, *event->record);
  *over = std::all_of(event->waits.begin(), event->waits.end(),
                      [](const auto& wait) { return wait.first->Reached(wait.second); });
  return Status();
}

// Asks the question about an event and gives one of two answers.
template <class Answer>
aclError Query(const char* function, aclrtEvent handle,
               Status (*question)(const char*, const PinnedEvent&, bool*), Answer yes, Answer no,
               Answer* status) {
  return AclBorder(function, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "status", status));
    PinnedEvent event;
    ANYACL_RETURN_IF_ERROR(Find(function, handle, &event));
    bool answer = false;
    ANYACL_RETURN_IF_ERROR(question(function, event, &answer));
    if (answer) TellReached(handle);
    *status = answer ? yes : no;
    return Status();
  });
}

// --- record ---

Status RecordOn(const char* function, void* event_handle, void* stream_handle) {
  PinnedEvent event;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(FindBoth(function, event_handle, stream_handle, &event, &stream));
  Record record{stream, stream->id(), 0, nullptr, nullptr};
  ANYACL_RETURN_IF_ERROR(GraphCapture::PointOf(function, stream, &record.captured));
  if (!record.captured) {
    if (const int32_t code = stream->stopped(); code != 0) {
      return Fail(code, function, "the stream was stopped by an earlier failure");
    }
    if (watch::On()) [[unlikely]]
      watch::Tell(&watch::Watcher::Records, event_handle, stream->id());
    ANYACL_RETURN_IF_ERROR(stream->engine().Record(function, &record.stamp, &record.sequence));
  }
  const std::lock_guard lock(event->mutex());
  ++event->generation;
  event->record = std::move(record);
  return Status();
}

// --- reset, in the order of a stream ---

struct Marker {
  Event* event;
  uint64_t generation;
};

int32_t Unrecord(Work& work, const Launch&) {
  const Marker& marker = PayloadOf<Marker>(work);
  const std::lock_guard lock(marker.event->mutex());
  if (marker.event->generation == marker.generation) marker.event->record.reset();
  return 0;
}

void DropMarked(Work& work) { Events().Release(PayloadOf<Marker>(work).event); }

// On the CPU a stream that is idle may do it at once; a GPU's has to send it through the host.
Status ResetOn(const char* function, PinnedEvent event, Stream* stream) {
  uint64_t generation = 0;
  {
    const std::lock_guard lock(event->mutex());
    generation = event->generation;
  }
  const Work work = MakeWork(function, 0, Marker{event.get(), generation}, Unrecord, DropMarked);
  const Where where = CurrentBackend().launches() ? Where::kOnStreamThread : Where::kAnywhere;
  Status status = stream->Submit(work, where, nullptr);
  if (status.ok()) event.Detach();  // the pin is the work's
  return status;
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
  uint32_t seconds;  // 0: no limit
};

int32_t WaitForRecord(Work& work, const Launch&) {
  const Wait& wait = PayloadOf<Wait>(work);
  const Deadline deadline =
      wait.seconds == 0 ? kForever
                        : std::chrono::steady_clock::now() + std::chrono::seconds(wait.seconds);
  const WaitResult result = wait.target->WaitFor(wait.sequence, deadline, wait.waiter);
  if (result == WaitResult::kCircular) return code::kRtParamInvalid;
  return result == WaitResult::kTimedOut ? code::kRtWaitTimeout : 0;
}

// Only a thread of the host can give up after some time.
Status PutWait(const char* function, Stream* stream, const Record& record, uint32_t seconds,
               uint64_t* number) {
  StreamEngine& target = record.stream->engine();
  if (seconds == 0 && stream->engine().Follow(target, record.sequence, number)) return Status();
  const Work work =
      MakeWork(function, 0, Wait{stream, record.stream, record.sequence, seconds}, WaitForRecord);
  return stream->Submit(work, Where::kOnStreamThread, number);
}

Status WaitOn(const char* function, void* stream_handle, void* event_handle, uint32_t seconds) {
  PinnedEvent event;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(FindBoth(function, event_handle, stream_handle, &event, &stream));
  const std::optional<Record> record = RecordOf(event);
  if (!record) return Status();
  if (record->captured) return record->captured->capture->Join(function, stream, *record->captured);
  if (stream->capture()) {
    GraphCapture::Invalidate(function, *stream);
    return Fail(code::kRtCaptureDependency, function,
                "stream {} is being captured, but event {} was recorded outside of the capture",
                stream->id(), event->id);
  }
  if (const int32_t code = stream->stopped(); code != 0) {
    return Fail(code, function, "the stream was stopped by an earlier failure");
  }
  if (watch::On()) [[unlikely]]
    watch::Tell(&watch::Watcher::Waits, stream->id(), event_handle);
  // A record of the same stream is before us in its queue anyway.
  if (record->stream == stream || record->Done()) return Status();
  Waits wait{{stream, 0}};
  ANYACL_RETURN_IF_ERROR(PutWait(function, stream, *record, seconds, &wait.front().second));
  const std::lock_guard lock(event->mutex());
  std::erase_if(event->waits, [](const auto& old) { return old.first->Reached(old.second); });
  event->waits.splice(event->waits.end(), wait);
  return Status();
}

// --- wait on the host, times ---

Status SynchronizeEvent(const char* function, void* handle, Deadline deadline) {
  PinnedEvent event;
  ANYACL_RETURN_IF_ERROR(Find(function, handle, &event));
  const std::optional<Record> record = RecordOf(event);
  if (!record) return Status();
  if (record->captured) return Captured(function, event, *record);
  if (!record->Done() && record->stream->OnOwnThread()) {
    return Fail(code::kRtParamInvalid, function,
                "a host function must not wait for work behind it on its own stream {}",
                record->stream_id);
  }
  const WaitResult result = record->stream->WaitFor(record->sequence, deadline);
  if (result == WaitResult::kCircular) return CircularWait(function);
  if (result == WaitResult::kTimedOut) {
    return Fail(code::kRtEventSyncTimeout, function,
                "event {} was not reached when the time was up", event->id);
  }
  TellReached(handle);
  if (record->stream->id() != record->stream_id) return Status();  // destroyed meanwhile
  return record->stream->TakeFailure(function, record->sequence);
}

Status StampOf(const char* function, const char* argument, void* handle,
               std::shared_ptr<Stamp>* stamp) {
  PinnedEvent event;
  ANYACL_RETURN_IF_ERROR(Find(function, handle, &event));
  const std::optional<Record> record = RecordOf(event);
  if (!record) return Fail(code::kRtTimestampInvalid, function, "{} was never recorded", argument);
  if (record->captured) return Captured(function, event, *record);
  if (!record->Done()) {
    return Fail(code::kRtTimestampInvalid, function, "{} has not been reached yet", argument);
  }
  *stamp = record->stamp;
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
    PinnedEvent found;
    ANYACL_RETURN_IF_ERROR(Find(kName, event, &found));
    if (!Events().Retire(event)) return Status();  // another thread was quicker
    ReturnResource(Resource::kEvent, found->device);
    Events().Release(found.get());
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
    PinnedEvent found;
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(FindBoth(kName, event, stream, &found, &target));
    return ResetOn(kName, std::move(found), target);
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return Query("aclrtQueryEvent", event, IsComplete, ACL_EVENT_STATUS_COMPLETE,
               ACL_EVENT_STATUS_NOT_READY, status);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return Query("aclrtQueryEventStatus", event, IsComplete, ACL_EVENT_RECORDED_STATUS_COMPLETE,
               ACL_EVENT_RECORDED_STATUS_NOT_READY, status);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return Query("aclrtQueryEventWaitStatus", event, AllWaitsAreOver, ACL_EVENT_WAIT_STATUS_COMPLETE,
               ACL_EVENT_WAIT_STATUS_NOT_READY, status);
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
    std::shared_ptr<Stamp> start;
    std::shared_ptr<Stamp> end;
    ANYACL_RETURN_IF_ERROR(StampOf(kName, "startEvent", startEvent, &start));
    ANYACL_RETURN_IF_ERROR(StampOf(kName, "endEvent", endEvent, &end));
    const double elapsed = end->MillisecondsSince(*start);
    if (elapsed < 0) {
      return Fail(code::kRtTimestampReversal, kName,
                  "endEvent must be reached after startEvent, was {} ms before", -elapsed);
    }
    *ms = static_cast<float>(elapsed);
    return Status();
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  constexpr const char* kName = "aclrtEventGetTimestamp";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "timestamp", timestamp));
    std::shared_ptr<Stamp> stamp;
    ANYACL_RETURN_IF_ERROR(StampOf(kName, "event", event, &stamp));
    *timestamp = static_cast<uint64_t>(stamp->Nanoseconds() / 1000);
    return Status();
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  constexpr const char* kName = "aclrtGetEventId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "eventId", eventId));
    PinnedEvent found;
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
