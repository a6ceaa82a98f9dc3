// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/capture.h"

#include <algorithm>
#include <atomic>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/handle_table.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/thread_value.h"
#include "core/undo.h"
#include "runtime/internal.h"
#include "runtime/submit.h"

namespace anyacl::runtime {
namespace {

using Model = GraphCapture::Model;
using Models = HandleTable<Model, HandleKind::kGraph>;
Models& AllModels() { return TheOne<Models>(); }

// The captures under way.
struct Captures {
  std::list<std::shared_ptr<GraphCapture>> list;  // guarded by kCaptures
  std::atomic<int> count{0};
};
Captures& Active() { return TheOne<Captures>(); }
[[maybe_unused]] const int mends = (InForkedChild(Lock::kCaptures, GraphCapture::ForgetAll), 0);

std::atomic<uint32_t> next_model_id{0};

using ThreadMode = ThreadWord<CaptureMode, struct ModeTag>;

// False when there are none.
template <class Matches>
bool InvalidateAll(const char* function, Matches&& matches) {
  Captures& captures = Active();
  if (captures.count.load(std::memory_order_acquire) == 0) [[likely]]
    return false;
  const std::lock_guard lock(LockOf(Lock::kCaptures));
  bool any = false;
  for (const auto& capture : captures.list) {
    if (!matches(*capture)) continue;
    capture->Invalidate(function);
    any = true;
  }
  return any;
}

void Merge(const Seen& from, Seen* to) {
  for (const auto& [stream, count] : from) (*to)[stream] = std::max((*to)[stream], count);
}

Status CheckMode(const char* function, int mode) {
  if (mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return Status();
  }
  return Fail(code::kAclInvalidParam, function, "mode must be in [0, 2], got {}", mode);
}

using PinnedModel = Models::Pinned;  // another thread may destroy the model in the middle of a call

Status NoModel(const char* function, const void* handle) {
  return Fail(code::kRtInvalidHandle, function, "modelRI must be a live model, got {}", handle);
}

Status FindModel(const char* function, void* handle, PinnedModel* model) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "modelRI", handle));
  *model = PinnedModel(AllModels(), handle);
  if (!*model) return NoModel(function, handle);
  if (!(*model)->captured.load(std::memory_order_acquire)) return Status();
  return Fail(code::kRtStreamCaptured, function, "modelRI is still being captured");
}

Status DestroyModel(const char* function, void* handle) {
  PinnedModel model;
  ANYACL_RETURN_IF_ERROR(FindModel(function, handle, &model));
  const std::lock_guard lock(LockOf(Lock::kModels, model.get()));
  std::erase_if(model->replays, [](const auto& r) { return r.first->Reached(r.second); });
  if (model->starting > 0 || !model->replays.empty()) {
    return Fail(code::kRtModelRunning, function, "modelRI {} is still running", model->id);
  }
  model->destroyed = true;
  return AllModels().Destroy(handle) ? Status() : NoModel(function, handle);
}

Status Replay(const char* function, const PinnedModel& model, Stream* stream) {
  ANYACL_RETURN_IF_ERROR(ForbidWhenCaptured(function, *stream));
  if (model->device != stream->device()) {
    return Fail(code::kRtStreamContext, function,
                "modelRI was captured on device {}, but the stream is of device {}", model->device,
                stream->device());
  }
  if (const int32_t code = stream->stopped(); code != 0) {
    return Fail(code, function, "the stream was stopped by an earlier failure");
  }
  std::list<std::pair<Stream*, uint64_t>> replay{{stream, 0}};
  {
    const std::lock_guard lock(LockOf(Lock::kModels, model.get()));
    if (model->destroyed) {
      return Fail(code::kRtInvalidHandle, function,
                  "modelRI was destroyed by another thread meanwhile");
    }
    ++model->starting;
  }
  const Undo started([&] {
    const std::lock_guard lock(LockOf(Lock::kModels, model.get()));
    --model->starting;
    model->replays.splice(model->replays.end(), replay);
  });
  stream->TellBlurred();
  // Without the lock: this may wait for room in the stream. A replay that could not be put there has number 0, which every
  // stream has reached.
  return model->recording->Replay(stream->engine(), function, &replay.front().second);
}

}  // namespace

bool BlocksSynchronousCalls(const GraphCapture& capture) {
  const CaptureMode thread_mode = ThreadMode::Get();
  if (capture.mode_ == CaptureMode::kRelaxed || thread_mode == CaptureMode::kRelaxed) return false;
  if (capture.thread_ == std::this_thread::get_id()) return true;
  return capture.mode_ == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
}

Status RequireNotCaptured(const char* function, const Stream& stream) {
  if (!stream.capture()) [[likely]]
    return Status();
  return Fail(code::kRtStreamCaptured, function, "stream {} is being captured", stream.id());
}

Status ForbidWhenCaptured(const char* function, const Stream& stream) {
  Status status = RequireNotCaptured(function, stream);
  if (!status.ok()) GraphCapture::Invalidate(function, stream);
  return status;
}

Status RequireNoCaptureOn(const char* function, int device) {
  if (!InvalidateAll(function, [&](const GraphCapture& c) { return c.device() == device; }))
    return Status();
  return Fail(code::kRtStreamCaptured, function, "a stream of device {} is being captured", device);
}

Status RequireMayUseDefault(const char* function, const Context* context) {
  if (!InvalidateAll(function, [&](const GraphCapture& c) { return c.context() == context; }))
    return Status();
  return Fail(code::kRtCaptureImplicit, function,
              "the default stream must not be used while a stream of its context is captured");
}

Status RequireMaySynchronize(const char* function) {
  if (!InvalidateAll(function, BlocksSynchronousCalls)) return Status();
  return Fail(code::kRtCaptureMode, function,
              "a synchronous call is not allowed while a stream is captured in this mode");
}

Status GraphCapture::Begin(const char* function, Stream* stream, CaptureMode mode) {
  if (stream->settings().is_default) {
    return Fail(code::kRtCaptureImplicit, function, "the default stream cannot be captured");
  }
  Captures& active = Active();
  const std::lock_guard lock(LockOf(Lock::kCaptures));
  ANYACL_RETURN_IF_ERROR(RequireNotCaptured(function, *stream));
  std::list<std::shared_ptr<GraphCapture>> made{std::make_shared<GraphCapture>()};
  const std::shared_ptr<GraphCapture>& capture = made.front();
  Models::Created model(AllModels());
  if (!model) return Fail(code::kRtOutOfMemory, function, "too many models are alive");
  capture->model_ = model.handle();
  model->recording = CurrentBackend().NewRecording();
  model->device = stream->device();
  model->id = next_model_id.fetch_add(1, std::memory_order_relaxed);
  capture->origin_ = stream;
  capture->mode_ = mode;
  capture->thread_ = std::this_thread::get_id();
  capture->recording_ = model->recording.get();
  capture->members_[stream] = {};
  if (Status status = capture->recording_->Begin(stream->engine()); !status.ok()) {
    return Fail(status.code(), function, "{}", status.message());
  }
  model.Keep();
  stream->set_capture(capture.get());
  active.list.splice(active.list.end(), made);
  active.count.fetch_add(1, std::memory_order_release);
  return Status();
}

void GraphCapture::Invalidate(const char* function) {
  const char* nobody = nullptr;
  invalidated_by_.compare_exchange_strong(nobody, function, std::memory_order_acq_rel);
}

void GraphCapture::Invalidate(const char* function, const Stream& stream) {
  if (const auto capture = Of(stream)) capture->Invalidate(function);
}

Status GraphCapture::CheckValid(const char* function) const {
  if (!invalid()) [[likely]]
    return Status();
  return Fail(code::kRtCaptureInvalidated, function,
              "the capture was made invalid by {}, which failed in it",
              invalidated_by_.load(std::memory_order_acquire));
}

Status GraphCapture::Add(Stream* stream, const Work& work, Where where) {
  const std::lock_guard lock(LockOf(Lock::kCaptureMembers));
  if (!active()) return Fail(code::kRtCaptureInvalidated, work.label, "the capture has ended");
  ANYACL_RETURN_IF_ERROR(CheckValid(work.label));
  Undo lost([&] { Invalidate(work.label); });
  Member& member = members_[stream];
  Status status = recording_->Add(stream->engine(), work, where);
  if (!status.ok()) return status;
  ++member.added;
  lost.Keep();
  return status;
}

std::shared_ptr<GraphCapture> GraphCapture::Of(const Stream& stream) {
  if (!stream.capture()) [[likely]]
    return nullptr;
  const Captures& active = Active();
  const std::lock_guard lock(LockOf(Lock::kCaptures));
  for (const auto& capture : active.list) {
    if (capture.get() == stream.capture()) return capture;
  }
  return nullptr;
}

Status GraphCapture::PointOf(const char* function, Stream* stream, std::shared_ptr<Point>* point) {
  const std::shared_ptr<GraphCapture> capture = Of(*stream);
  if (!capture) [[likely]]
    return Status();
  const std::lock_guard lock(LockOf(Lock::kCaptureMembers));
  if (!capture->active()) return Status();
  ANYACL_RETURN_IF_ERROR(capture->CheckValid(function));
  const Member& member = capture->members_[stream];
  const auto made = std::make_shared<Point>();
  made->capture = capture;
  made->seen = member.seen;
  made->seen[stream] = member.added;
  made->number = capture->recording_->Point(stream->engine());
  *point = made;
  return Status();
}

Status GraphCapture::Join(const char* function, Stream* stream, const Point& point) {
  if (stream->capture() && stream->capture() != this) {
    Invalidate(function);
    Invalidate(function, *stream);
    return Fail(code::kRtCaptureConflict, function,
                "stream {} and the event belong to two captures", stream->id());
  }
  if (stream->settings().is_default) {
    Invalidate(function);
    return Fail(code::kRtCaptureImplicit, function, "the default stream cannot join a capture");
  }
  const std::lock_guard lock(LockOf(Lock::kCaptureMembers));
  if (!active())
    return Fail(code::kRtEventCaptured, function, "the capture of the event has ended");
  ANYACL_RETURN_IF_ERROR(CheckValid(function));
  Undo lost([&] { Invalidate(function); });
  Merge(point.seen, &members_[stream].seen);
  ANYACL_RETURN_IF_ERROR(recording_->Join(stream->engine(), point.number));
  stream->set_capture(this);
  lost.Keep();
  return Status();
}

// With the lock held.
Status GraphCapture::CheckJoined(const char* function) const {
  const Seen& seen = members_.at(origin_).seen;
  for (const auto& [stream, member] : members_) {
    if (stream == origin_ || member.added == 0) continue;
    const auto found = seen.find(stream);
    if (found == seen.end() || found->second < member.added) {
      return Fail(code::kRtStreamUnjoined, function,
                  "stream {} joined the capture, but was not joined back before its end",
                  stream->id());
    }
  }
  return Status();
}

// With the lock held: no stream is of this capture any more.
void GraphCapture::Leave() {
  Captures& captures = Active();
  const std::lock_guard all(LockOf(Lock::kCaptures));
  for (auto& [stream, member] : members_) stream->set_capture(nullptr);
  active_.store(false, std::memory_order_release);
  std::erase_if(captures.list, [this](const auto& capture) { return capture.get() == this; });
  captures.count.fetch_sub(1, std::memory_order_release);
}

void GraphCapture::ForgetAll() {
  Captures& captures = Active();
  for (const auto& capture : captures.list) {
    capture->active_.store(false, std::memory_order_release);
    AllModels().Destroy(capture->model_);
  }
  captures.list.clear();
  captures.count.store(0, std::memory_order_release);
}

Status GraphCapture::CheckMayEnd(const char* function, const Stream& stream) const {
  if (origin_ != &stream) {
    return Fail(code::kRtCaptureUnmatched, function,
                "the capture must be ended on stream {}, where it began, got stream {}",
                origin_->id(), stream.id());
  }
  if (mode_ != CaptureMode::kRelaxed && thread_ != std::this_thread::get_id()) {
    return Fail(code::kRtCaptureWrongThread, function,
                "the capture must be ended by the thread that began it");
  }
  return Status();
}

// The model of a capture that fails, or is not to be kept, is destroyed.
Status GraphCapture::Close(const char* function, bool keep) {
  Status status;
  Status ended;
  {
    const std::lock_guard lock(LockOf(Lock::kCaptureMembers));
    if (!active()) {
      if (!keep) return Status();
      return Fail(code::kRtStreamNotCaptured, function, "another thread has ended the capture");
    }
    if (keep) status = CheckValid(function);
    if (keep && status.ok()) status = CheckJoined(function);
    keep = keep && status.ok();
    ended = recording_->End(origin_->engine(), keep);
    Leave();
  }
  if (keep && ended.ok()) {
    PinnedModel(AllModels(), model_)->captured.store(false, std::memory_order_release);
    return Status();
  }
  AllModels().Destroy(model_);
  return keep ? Fail(ended.code(), function, "{}", ended.message()) : std::move(status);
}

Status GraphCapture::End(const char* function, Stream* stream, void** result) {
  const std::shared_ptr<GraphCapture> capture = Of(*stream);
  if (!capture) {
    return Fail(code::kRtStreamNotCaptured, function, "stream {} is not being captured",
                stream->id());
  }
  ANYACL_RETURN_IF_ERROR(capture->CheckMayEnd(function, *stream));
  ANYACL_RETURN_IF_ERROR(capture->Close(function, true));
  *result = capture->model_;
  return Status();
}

void GraphCapture::Abandon(const Stream& stream) noexcept {
  if (const auto capture = Of(stream))
    static_cast<void>(capture->Close("the end of a stream", false));
}

}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  constexpr const char* kName = "aclmdlRICaptureBegin";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckMode(kName, Number(mode)));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return GraphCapture::Begin(kName, target, static_cast<CaptureMode>(Number(mode)));
  });
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  constexpr const char* kName = "aclmdlRICaptureEnd";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "modelRI", modelRI));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return GraphCapture::End(kName, target, modelRI);
  });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  constexpr const char* kName = "aclmdlRICaptureGetInfo";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    const std::shared_ptr<GraphCapture> capture = GraphCapture::Of(*target);
    if (status) {
      *status = !capture             ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
                : capture->invalid() ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                     : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
    }
    if (modelRI) *modelRI = capture ? capture->model() : nullptr;
    return Status();
  });
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  constexpr const char* kName = "aclmdlRICaptureThreadExchangeMode";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "mode", mode));
    ANYACL_RETURN_IF_ERROR(CheckMode(kName, Number(*mode)));
    const auto wanted = static_cast<CaptureMode>(Number(*mode));
    *mode = static_cast<aclmdlRICaptureMode>(ThreadMode::Get());
    ThreadMode::Set(wanted);
    return Status();
  });
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  constexpr const char* kName = "aclmdlRIExecuteAsync";
  return AclBorder(kName, [&]() -> Status {
    PinnedModel model;
    ANYACL_RETURN_IF_ERROR(FindModel(kName, modelRI, &model));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    return Replay(kName, model, target);
  });
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  constexpr const char* kName = "aclmdlRIDestroy";
  return AclBorder(kName, [&] { return DestroyModel(kName, modelRI); });
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  constexpr const char* kName = "aclmdlRIGetId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "modelRIId", modelRIId));
    PinnedModel model;
    ANYACL_RETURN_IF_ERROR(FindModel(kName, modelRI, &model));
    *modelRIId = model->id;
    return Status();
  });
}
