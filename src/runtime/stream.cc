// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/stream.h"

#include <algorithm>

#include "core/codes.h"
#include "core/handle_table.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/undo.h"
#include "runtime/capture.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/submit.h"
#include "trace/faults.h"
#include "trace/recorder.h"
#include "trace/switches.h"
#include "watch/tools.h"
#include "watch/watch.h"

namespace anyacl::runtime {
namespace {

constexpr uint64_t kStopOnFailure = 1;  // ACL_STOP_ON_FAILURE

// The handle's slot points at the stream, because streams outlive their handles.
struct Entry {
  std::atomic<Stream*> stream{nullptr};
};
using Table = HandleTable<Entry, HandleKind::kStream>;

Table& Streams() { return TheOne<Table>(); }

std::atomic<Stream*> first_stream{nullptr};
std::atomic<int32_t> next_id{0};

Stream* first_spare = nullptr;  // guarded by kSpareStreams

// Work whose run is written to the trace, or that is to fail.
struct Watched {
  Work work;
  int32_t stream;
  int32_t fault;
};

int32_t RunWatched(Work& outer, const Launch& launch) {
  Watched& watched = *PayloadOf<Watched*>(outer);
  const int64_t begin = trace::Now();
  const int32_t code = watched.fault ? watched.fault : watched.work.run(watched.work, launch);
  if (trace::IsOn(trace::kTrace)) {
    trace::AppendWork(static_cast<uint32_t>(watched.stream), watched.work.label, watched.work.cost_bytes, begin,
                      trace::Now(), code);
  }
  return code;
}

void ReleaseWatched(Work& outer) {
  const std::unique_ptr<Watched> watched(PayloadOf<Watched*>(outer));
  if (watched->work.release) watched->work.release(watched->work);
}

[[maybe_unused]] const int mends = [] {
  InForkedChild(Lock::kStreams, [] {
    for (Stream* s = Stream::First(); s; s = s->next()) s->AfterFork();
  });
  return 0;
}();

}  // namespace

Stream* Stream::TakeSpare() {
  const std::lock_guard lock(LockOf(Lock::kSpareStreams));
  Stream* const stream = first_spare;
  if (stream) first_spare = stream->next_spare_;
  return stream;
}

void Stream::Ended() noexcept {
  const std::lock_guard lock(LockOf(Lock::kSpareStreams));
  next_spare_ = first_spare;
  first_spare = this;
}

Stream* Stream::First() { return first_stream.load(std::memory_order_acquire); }

const Stream* Stream::OfThisThread() {
  const Stream* stream = First();
  while (stream && !stream->OnOwnThread()) stream = stream->next();
  return stream;
}

void Stream::Register() {
  next_ = first_stream.load(std::memory_order_relaxed);
  while (!first_stream.compare_exchange_weak(next_, this, std::memory_order_acq_rel)) {
  }
}

Status Stream::Submit(const Work& work, Where where, uint64_t* sequence) {
  if (!trace::AllOff()) [[unlikely]]
    return SubmitWatched(work, where, sequence);
  return SubmitPlain(work, where, sequence);
}

Status Stream::SubmitWatched(const Work& work, Where where, uint64_t* sequence) {
  const int32_t fault = trace::IsOn(trace::kFaults) ? trace::FaultOnStream(work.label) : 0;
  if (fault == 0 && !trace::IsOn(trace::kTrace)) return SubmitPlain(work, where, sequence);
  auto watched = std::make_unique<Watched>(Watched{work, id(), fault});
  Work outer = MakeWork(work.label, work.cost_bytes, watched.get(), RunWatched, ReleaseWatched);
  ANYACL_RETURN_IF_ERROR(SubmitPlain(outer, where, sequence));
  watched.release();
  return Status();
}

Status Stream::SubmitPlain(const Work& work, Where where, uint64_t* sequence) {
  if (const int32_t code = stopped(); code != 0) [[unlikely]] {
    return Fail(code, work.label, "the stream was stopped by an earlier failure");
  }
  if (this->capture()) [[unlikely]] {
    if (const auto capture = GraphCapture::Of(*this)) return capture->Add(this, work, where);
  }
  return engine_.Submit(work, where, sequence);
}

// What a stream waited for may have been reached before its thread took the note back: such an edge holds nobody up. One that is
// not reached, of a thread that waits for this one, stays so while this thread is here.
bool Stream::EnterWait(const Stream* target, uint64_t sequence) {
  const std::lock_guard lock(LockOf(Lock::kWaits));
  Wait wait{target, sequence};
  for (; wait.target && !wait.target->Reached(wait.sequence); wait = wait.target->waits_for_) {
    if (wait.target->OnOwnThread()) return false;
  }
  for (Stream* s = First(); s; s = s->next()) {
    if (s->OnOwnThread()) s->waits_for_ = {target, sequence};
  }
  return true;
}

void Stream::LeaveWait() {
  const std::lock_guard lock(LockOf(Lock::kWaits));
  for (Stream* s = First(); s; s = s->next()) {
    if (s->OnOwnThread()) s->waits_for_ = {};
  }
}

WaitResult Stream::WaitFor(uint64_t sequence, Deadline deadline, const Stream* waiter) {
  StreamEngine* const waiting = waiter ? &waiter->engine_ : nullptr;
  if (deadline != kForever || Reached(sequence) || !OfThisThread()) return engine_.WaitFor(sequence, deadline, waiting);
  if (!EnterWait(this, sequence)) return WaitResult::kCircular;
  const Undo entered([] { LeaveWait(); });
  return engine_.WaitFor(sequence, deadline, waiting);
}

Status Stream::Open(const Settings& settings) {
  ANYACL_RETURN_IF_ERROR(engine_.Open(settings.device, settings.priority));
  {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));
    settings_ = settings;
    failure_ = Failure();
  }
  stopped_.store(0, std::memory_order_relaxed);
  device_.store(settings.device, std::memory_order_relaxed);
  id_.store(next_id.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  context_.store(settings.context, std::memory_order_relaxed);
  return Status();
}

Stream::Settings Stream::settings() const {
  const std::lock_guard lock(LockOf(Lock::kStreams, this));
  return settings_;
}

void Stream::Abort(int32_t code, const char* reason) {
  {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));  // first: whoever the drop wakes must find it
    failure_ = {code, reason, 0, {}};
  }
  const uint64_t first = DropQueued();
  {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));
    if (failure_.code == code) failure_.sequence = first;
  }
  WakeBlockedWork();
}

void Stream::TellReached() const {
  if (watch::On()) [[unlikely]]
    watch::Tell(&watch::Watcher::HostReached, watch::Reached{.stream = id()});
}

void Stream::TellBlurred() const {
  if (watch::On()) [[unlikely]]
    watch::Tell(&watch::Watcher::Blurs, id());
}

void Stream::Stop(int32_t code) {
  stopped_.store(code, std::memory_order_relaxed);
  DropQueued();
  WakeBlockedWork();
}

void Stream::WorkFailed(const char* label, int32_t code, uint64_t sequence, std::string detail) {
  bool stop = false;
  {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));
    if (failure_.code == 0) failure_ = {code, label, sequence, std::move(detail)};
    stop = settings_.failure_mode == kStopOnFailure;
  }
  ReportException(device(), id(), sequence, code);
  if (!stop) return;
  for (Stream* s = First(); s; s = s->next()) {
    if (s->context() == context()) s->Stop(code);
  }
}

Status Stream::TakeFailure(const char* function, uint64_t up_to) {
  Failure failure;
  {
    const std::lock_guard lock(LockOf(Lock::kStreams, this));
    if (failure_.code != 0 && failure_.sequence <= up_to) std::swap(failure, failure_);
  }
  if (failure.code != 0) [[unlikely]] {
    return Fail(failure.code, function, "{} failed on stream {} with code {}{}{}", failure.label,
                id(), failure.code, failure.detail.empty() ? "" : ": ", failure.detail);
  }
  if (const int32_t code = stopped(); code != 0) [[unlikely]] {
    return Fail(code, function, "stream {} was stopped by an earlier failure", id());
  }
  return Status();
}

void Stream::AfterFork() {
  waits_for_ = {};
  capture_.store(nullptr, std::memory_order_relaxed);
  engine_.ForgetQueue();
}

Stream* FindStream(const void* handle) {
  const Entry* entry = Streams().Get(handle);
  return entry ? entry->stream.load(std::memory_order_relaxed) : nullptr;
}

Status ResolveStream(const char* function, const void* handle, Stream** stream) {
  if (!handle) {
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
    return RequireDefaultStream(function, *context, stream);
  }
  *stream = FindStream(handle);
  if (*stream) [[likely]]
    return Status();
  return Fail(code::kRtInvalidHandle, function, "stream must be a live stream, got {}", handle);
}

Status ResolveForSubmit(const char* function, const void* handle, Stream** stream) {
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  if (!handle) {
    ANYACL_RETURN_IF_ERROR(RequireDefaultStream(function, *context, stream));
    return RequireMayUseDefault(function, context);
  }
  *stream = FindStream(handle);
  if (!*stream) [[unlikely]] {
    return Fail(code::kRtInvalidHandle, function, "stream must be a live stream, got {}", handle);
  }
  if ((*stream)->context() != context) [[unlikely]] {
    return Fail(code::kRtStreamContext, function,
                "stream must belong to the current context (device {}), got one of {} {}",
                context->device,
                (*stream)->device() == context->device ? "another context of device" : "device",
                (*stream)->device());
  }
  if (*stream == context->default_stream.load(std::memory_order_relaxed))
    return RequireMayUseDefault(function, context);
  return Status();
}

Status CreateStream(const char* function, const Stream::Settings& settings, Stream** result) {
  if (!TakeResource(Resource::kStream, settings.device)) {
    return Fail(code::kRtNoStreamResource, function, "too many streams are alive on device {}",
                settings.device);
  }
  Undo taken([&] { ReturnResource(Resource::kStream, settings.device); });
  Table::Created entry(Streams());
  if (!entry) return Fail(code::kRtNoStreamResource, function, "too many streams are alive");
  Stream* stream = Stream::TakeSpare();
  if (!stream) {
    stream = new Stream(CurrentBackend());
    stream->Register();
  }
  Undo made([&] { stream->Ended(); });
  if (Status status = stream->Open(settings); !status.ok()) {
    return Fail(status.code(), function, "{}", status.message());
  }
  stream->set_handle(entry.handle());
  entry->stream.store(stream, std::memory_order_release);
  if (settings.is_default) watch::Disown(entry.handle());  // it goes with its context
  made.Keep();
  entry.Keep();
  taken.Keep();
  *result = stream;
  return Status();
}

bool EndStream(const void* handle, PendingWork pending) {
  Entry* entry = Streams().Retire(handle);
  if (!entry) return false;
  Stream* const stream = entry->stream.load(std::memory_order_relaxed);
  Streams().Release(entry);
  GraphCapture::Abandon(*stream);
  if (pending == PendingWork::kDrop) {
    stream->DropQueued();
    WakeBlockedWork();
  } else if (!stream->OnOwnThread()) {
    stream->WaitFor(stream->Submitted(), kForever);
  }
  stream->TellReached();
  ReturnResource(Resource::kStream, stream->device());
  ForgetSubscription(stream);
  stream->LeaveContext();
  stream->Close();
  return true;
}

WaitResult WaitAllStreams(int device, Deadline deadline) {
  WaitResult all = WaitResult::kReached;
  for (Stream* s = Stream::First(); s; s = s->next()) {
    if (device != kAllDevices && s->device() != device) continue;
    if (s->OnOwnThread()) continue;
    const WaitResult result = s->WaitFor(s->Submitted(), deadline);
    if (result == WaitResult::kTimedOut) return result;
    if (result == WaitResult::kCircular) all = result;
    if (result == WaitResult::kReached) s->TellReached();
  }
  return all;
}

Status CircularWait(const char* function) {
  return Fail(code::kRtParamInvalid, function, "a host function must not wait for one that waits for it: neither would ever end");
}

Fence Fence::Capture() {
  Fence fence;
  for (Stream* s = Stream::First(); s; s = s->next()) {
    const uint64_t submitted = s->Submitted();
    if (s->Reached(submitted)) continue;
    s->engine().Mark();
    fence.pending_.emplace_back(s, submitted);
  }
  return fence;
}

bool Fence::Done() const {
  return std::all_of(pending_.begin(), pending_.end(),
                     [](const auto& entry) { return entry.first->Reached(entry.second); });
}

void WakeBlockedWork() {
  for (Stream* s = Stream::First(); s; s = s->next()) s->WakeWaiters();
  WakeBlockedCallbacks();
}

Deadline DeadlineIn(int32_t milliseconds) {
  if (milliseconds < 0) return kForever;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

Status RequireTimeout(const char* function, int32_t milliseconds) {
  if (milliseconds > 0 || milliseconds == -1) return Status();
  return Fail(code::kRtParamInvalid, function,
              "timeout must be -1 (forever) or a positive number of milliseconds, got {}",
              milliseconds);
}

StreamFacts FactsOf(void* stream_handle) {
  Stream* stream = nullptr;
  if (!ResolveForSubmit("", stream_handle, &stream).ok() || stream->stopped() != 0) return {};
  return {stream->id(), stream->device(), stream->capture() != nullptr};
}

Status Submit(void* stream_handle, const Work& work) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(work.label, stream_handle, &stream));
  return stream->Submit(work, Where::kAnywhere, nullptr);
}

Status SubmitAndWait(void* stream_handle, const Work& work, bool* submitted) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(work.label, stream_handle, &stream));
  ANYACL_RETURN_IF_ERROR(ForbidWhenCaptured(work.label, *stream));
  if (stream->OnOwnThread()) {
    return Fail(code::kRtStreamContext, work.label, "waits for its result and cannot be called from a callback of its stream");
  }
  uint64_t sequence = 0;
  ANYACL_RETURN_IF_ERROR(stream->Submit(work, Where::kAnywhere, &sequence));
  *submitted = true;
  const WaitResult result = stream->WaitFor(sequence, kForever);
  if (result == WaitResult::kReached) {
    stream->TellReached();
    return Status();
  }
  if (result == WaitResult::kCircular) return CircularWait(work.label);
  return Fail(code::kRtStreamAbort, work.label, "the stream was aborted before the result was there");
}

Status SubmitBlocking(void* stream_handle, const Work& work, bool* submitted) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(ResolveForSubmit(work.label, stream_handle, &stream));
  uint64_t sequence = 0;
  ANYACL_RETURN_IF_ERROR(stream->Submit(work, Where::kAnywhere, &sequence));
  *submitted = true;
  if (sequence == 0 || stream->OnOwnThread() || stream->capture()) return Status();
  if (stream->WaitFor(sequence, kForever) == WaitResult::kReached) stream->TellReached();
  return stream->TakeFailure(work.label, sequence);
}

}  // namespace anyacl::runtime
