// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/capture.h"

#include <algorithm>
#include <atomic>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/handle_table.h"
#include "runtime/internal.h"
#include "runtime/submit.h"

namespace anyacl::runtime {
namespace {

using Model = GraphCapture::Model;
using Models = HandleTable<Model, HandleKind::kGraph>;
Models& AllModels() {
  static Models* const models = new Models;
  return *models;
}

// The captures under way, and the lock around beginning and ending them.
struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<GraphCapture>> list;
  std::atomic<int> count{0};
};
Captures& Active() {
  static auto* const captures = new Captures;
  return *captures;
}

std::atomic<uint32_t> next_model_id{0};
constinit thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

template <class Matches>
bool AnyActive(Matches&& matches) {
  Captures& captures = Active();
  if (captures.count.load(std::memory_order_acquire) == 0) [[likely]]
    return false;
  const std::lock_guard lock(captures.mutex);
  return std::any_of(captures.list.begin(), captures.list.end(),
                     [&](const auto& capture) { return matches(*capture); });
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

Status FindModel(const char* function, void* handle, Model** model) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "modelRI", handle));
  *model = AllModels().Get(handle);
  if (!*model) {
    return Fail(code::kRtInvalidHandle, function, "modelRI must be a live model, got {}", handle);
  }
  if (!(*model)->capture) return Status();
  return Fail(code::kRtStreamCaptured, function, "modelRI is still being captured");
}

bool IsRunning(Model* model) {
  const std::lock_guard lock(model->mutex);
  std::erase_if(model->replays, [](const auto& r) { return r.first->Reached(r.second); });
  return !model->replays.empty();
}

Status Replay(const char* function, Model* model, Stream* stream) {
  ANYACL_RETURN_IF_ERROR(RequireNotCaptured(function, *stream));
  if (model->device != stream->device()) {
    return Fail(code::kRtStreamContext, function,
                "modelRI was captured on device {}, but the stream is of device {}", model->device,
                stream->device());
  }
  if (const int32_t code = stream->stopped(); code != 0) {
    return Fail(code, function, "the stream was stopped by an earlier failure");
  }
  uint64_t sequence = 0;
  ANYACL_RETURN_IF_ERROR(model->recording->Replay(stream->engine(), function, &sequence));
  const std::lock_guard lock(model->mutex);
  std::erase_if(model->replays, [&](const auto& r) { return r.first == stream; });
  model->replays.emplace_back(stream, sequence);
  return Status();
}

}  // namespace

bool BlocksSynchronousCalls(const GraphCapture& capture) {
  if (capture.mode_ == CaptureMode::kRelaxed || thread_mode == CaptureMode::kRelaxed) return false;
  if (capture.thread_ == std::this_thread::get_id()) return true;
  return capture.mode_ == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
}

Status RequireNotCaptured(const char* function, const Stream& stream) {
  if (!stream.capture()) [[likely]]
    return Status();
  return Fail(code::kRtStreamCaptured, function, "stream {} is being captured", stream.id());
}

Status RequireNoCaptureOn(const char* function, int device) {
  if (!AnyActive([&](const GraphCapture& c) { return c.device() == device; })) return Status();
  return Fail(code::kRtStreamCaptured, function, "a stream of device {} is being captured", device);
}

Status RequireMayUseDefault(const char* function, const Context* context) {
  if (!AnyActive([&](const GraphCapture& c) { return c.context() == context; })) return Status();
  return Fail(code::kRtCaptureImplicit, function,
              "the default stream must not be used while a stream of its context is captured");
}

Status RequireMaySynchronize(const char* function) {
  if (!AnyActive(BlocksSynchronousCalls)) return Status();
  return Fail(code::kRtCaptureMode, function,
              "a synchronous call is not allowed while a stream is captured in this mode");
}

Status GraphCapture::Begin(const char* function, Stream* stream, CaptureMode mode) {
  if (stream->settings().is_default) {
    return Fail(code::kRtCaptureImplicit, function, "the default stream cannot be captured");
  }
  ANYACL_RETURN_IF_ERROR(RequireNotCaptured(function, *stream));
  auto capture = std::make_shared<GraphCapture>();
  Model* model = nullptr;
  capture->model_ = AllModels().Create(&model);
  if (!capture->model_) return Fail(code::kRtOutOfMemory, function, "too many models are alive");
  model->recording = CurrentBackend().NewRecording();
  model->capture = capture;
  model->device = stream->device();
  model->id = next_model_id.fetch_add(1, std::memory_order_relaxed);
  capture->origin_ = stream;
  capture->mode_ = mode;
  capture->thread_ = std::this_thread::get_id();
  capture->recording_ = model->recording.get();
  capture->members_[stream] = {};
  if (Status status = capture->recording_->Begin(stream->engine()); !status.ok()) {
    AllModels().Destroy(capture->model_);
    return Fail(status.code(), function, "{}", status.message());
  }
  const std::lock_guard lock(Active().mutex);
  Active().list.push_back(capture);
  Active().count.fetch_add(1, std::memory_order_release);
  stream->set_capture(capture.get());
  return Status();
}

Status GraphCapture::Add(Stream* stream, const Work& work, Where where) {
  const std::lock_guard lock(mutex_);
  if (!active()) return Fail(code::kRtCaptureInvalidated, work.label, "the capture has ended");
  Status status = recording_->Add(stream->engine(), work, where);
  if (status.ok()) {
    ++members_[stream].added;
  } else {
    invalid_.store(true, std::memory_order_release);
  }
  return status;
}

std::shared_ptr<GraphCapture::Point> GraphCapture::PointOf(Stream* stream) {
  GraphCapture* const capture = stream->capture();
  if (!capture) [[likely]]
    return nullptr;
  auto point = std::make_shared<Point>();
  {
    const std::lock_guard lock(Active().mutex);
    for (const auto& other : Active().list) {
      if (other.get() == capture) point->capture = other;
    }
  }
  if (!point->capture) return nullptr;
  const std::lock_guard lock(capture->mutex_);
  const Member& member = capture->members_[stream];
  point->number = capture->recording_->Point(stream->engine());
  point->seen = member.seen;
  point->seen[stream] = member.added;
  return point;
}

Status GraphCapture::Join(const char* function, Stream* stream, const Point& point) {
  if (stream->capture() && stream->capture() != this) {
    return Fail(code::kRtCaptureConflict, function,
                "stream {} and the event belong to two captures", stream->id());
  }
  if (stream->settings().is_default) {
    return Fail(code::kRtCaptureImplicit, function, "the default stream cannot join a capture");
  }
  const std::lock_guard lock(mutex_);
  if (!active())
    return Fail(code::kRtEventCaptured, function, "the capture of the event has ended");
  ANYACL_RETURN_IF_ERROR(recording_->Join(stream->engine(), point.number));
  Merge(point.seen, &members_[stream].seen);
  stream->set_capture(this);
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

void GraphCapture::Finish() {
  const std::lock_guard all(Active().mutex);
  for (auto& [stream, member] : members_) stream->set_capture(nullptr);
  active_.store(false, std::memory_order_release);
  std::erase_if(Active().list, [this](const auto& capture) { return capture.get() == this; });
  Active().count.fetch_sub(1, std::memory_order_release);
}

Status GraphCapture::End(const char* function, Stream* stream, void** result) {
  GraphCapture* const raw = stream->capture();
  if (!raw) {
    return Fail(code::kRtStreamNotCaptured, function, "stream {} is not being captured",
                stream->id());
  }
  if (raw->origin_ != stream) {
    return Fail(code::kRtCaptureUnmatched, function,
                "the capture must be ended on stream {}, where it began, got stream {}",
                raw->origin_->id(), stream->id());
  }
  if (raw->mode_ != CaptureMode::kRelaxed && raw->thread_ != std::this_thread::get_id()) {
    return Fail(code::kRtCaptureWrongThread, function,
                "the capture must be ended by the thread that began it");
  }
  Model* const model = AllModels().Get(raw->model_);
  const std::shared_ptr<GraphCapture> capture = std::move(model->capture);
  void* const handle = capture->model_;
  Status status;
  {
    const std::lock_guard lock(capture->mutex_);
    status = capture->CheckJoined(function);
    if (capture->invalid()) {
      status = Fail(code::kRtCaptureInvalidated, function,
                    "the capture was made invalid by a call that failed in it");
    }
    Status ended = capture->recording_->End(stream->engine(), status.ok());
    if (status.ok() && !ended.ok()) status = Fail(ended.code(), function, "{}", ended.message());
    capture->Finish();
  }
  if (status.ok()) {
    *result = handle;
  } else {
    AllModels().Destroy(handle);
  }
  return status;
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
    const GraphCapture* const capture = target->capture();
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
    *mode = static_cast<aclmdlRICaptureMode>(std::exchange(thread_mode, wanted));
    return Status();
  });
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  constexpr const char* kName = "aclmdlRIExecuteAsync";
  return AclBorder(kName, [&]() -> Status {
    Model* model = nullptr;
    ANYACL_RETURN_IF_ERROR(FindModel(kName, modelRI, &model));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    return Replay(kName, model, target);
  });
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  constexpr const char* kName = "aclmdlRIDestroy";
  return AclBorder(kName, [&]() -> Status {
    Model* model = nullptr;
    ANYACL_RETURN_IF_ERROR(FindModel(kName, modelRI, &model));
    if (IsRunning(model)) {
      return Fail(code::kRtModelRunning, kName, "modelRI {} is still running", model->id);
    }
    if (AllModels().Destroy(modelRI)) return Status();
    return Fail(code::kRtInvalidHandle, kName, "modelRI was destroyed by another thread meanwhile");
  });
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  constexpr const char* kName = "aclmdlRIGetId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "modelRIId", modelRIId));
    Model* model = nullptr;
    ANYACL_RETURN_IF_ERROR(FindModel(kName, modelRI, &model));
    *modelRIId = model->id;
    return Status();
  });
}
