// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The C functions about streams.
#include <algorithm>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "runtime/capture.h"
#include "runtime/internal.h"
#include "runtime/memory.h"

namespace anyacl::runtime {
namespace {

constexpr uint32_t kLowestPriority = 7;

// Streams of these kinds are not for the host to wait on.
constexpr uint32_t kNotForHost =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

Status CreateInCurrentContext(const char* function, void** handle, uint32_t priority,
                              uint32_t flags) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "stream", handle));
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  Stream::Settings settings;
  settings.context = context;
  settings.device = context->device;
  settings.priority = std::min(priority, kLowestPriority);
  settings.flags = flags;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(CreateStream(function, settings, &stream));
  *handle = stream->handle();
  return Status();
}

Status RefuseOnOwnThread(const char* function, const Stream& stream) {
  if (!stream.OnOwnThread()) [[likely]]
    return Status();
  return Fail(code::kRtParamInvalid, function,
              "a host function must not wait for its own stream {}: it would never end",
              stream.id());
}

Status Destroy(const char* function, void* handle, PendingWork pending) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "stream", handle));
  ANYACL_RETURN_IF_ERROR(ResolveStream(function, handle, &stream));
  ANYACL_RETURN_IF_ERROR(RefuseOnOwnThread(function, *stream));
  ANYACL_RETURN_IF_ERROR(RequireNotCaptured(function, *stream));
  if (stream->settings().is_default) {
    return Fail(code::kRtParamInvalid, function,
                "stream must not be the default stream of a context");
  }
  if (EndStream(handle, pending)) return Status();
  return Fail(code::kRtInvalidHandle, function, "stream was destroyed by another thread meanwhile");
}

// What a capture forbids to ask or wait for.
Status RequireMayAsk(const char* function, const Stream& stream) {
  ANYACL_RETURN_IF_ERROR(ForbidWhenCaptured(function, stream));
  const Context* const context = stream.context();
  if (!context || context->default_stream.load(std::memory_order_relaxed) != &stream)
    return Status();
  return RequireMayUseDefault(function, context);
}

Status Synchronize(const char* function, void* handle, Deadline deadline) {
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(ResolveStream(function, handle, &stream));
  ANYACL_RETURN_IF_ERROR(RefuseOnOwnThread(function, *stream));
  ANYACL_RETURN_IF_ERROR(RequireMayAsk(function, *stream));
  if (stream->settings().flags & kNotForHost) return Status();
  const uint64_t last = stream->Submitted();
  const WaitResult result = stream->WaitFor(last, deadline);
  if (result == WaitResult::kCircular) return CircularWait(function);
  if (result == WaitResult::kTimedOut) {
    return Fail(code::kRtStreamSyncTimeout, function,
                "stream {} still had work when the time was up", stream->id());
  }
  stream->TellReached();
  ReclaimFrees();
  return stream->TakeFailure(function, last);
}

Status SetFailureMode(const char* function, Stream* stream, uint64_t mode) {
  if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE) {
    return Fail(code::kAclInvalidParam, function, "mode must be 0 (continue) or 1 (stop), got {}",
                mode);
  }
  return stream->Update([&](Stream::Settings& s) -> Status {
    if (s.failure_mode_set) {
      return Fail(code::kRtParamInvalid, function,
                  "the failure mode of a stream can be set only once");
    }
    s.failure_mode = static_cast<uint32_t>(mode);
    s.failure_mode_set = true;
    return Status();
  });
}

Status SetSwitch(const char* function, Stream* stream, uint32_t Stream::Settings::*field,
                 uint32_t flag) {
  if (flag > 1) return Fail(code::kAclInvalidParam, function, "flag must be 0 or 1, got {}", flag);
  stream->Update([&](Stream::Settings& s) { s.*field = flag; });
  return Status();
}

Status UnknownAttribute(const char* function, int attribute) {
  return Fail(code::kAclInvalidParam, function, "stmAttrType must be an aclrtStreamAttr, got {}",
              attribute);
}

Status SetAttribute(const char* function, Stream* stream, int attribute,
                    const aclrtStreamAttrValue& value) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return SetFailureMode(function, stream, value.failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return SetSwitch(function, stream, &Stream::Settings::overflow_switch, value.overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      stream->Update([&](Stream::Settings& s) { s.tag = value.userCustomTag; });
      return Status();
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      return SetSwitch(function, stream, &Stream::Settings::cache_op_info, value.cacheOpInfoSwitch);
    case ACL_STREAM_ATTR_PRIORITY:
      stream->Update([&](Stream::Settings& s) {
        s.priority = std::min(value.streamPriority, kLowestPriority);
      });
      return Status();
    default:
      return UnknownAttribute(function, attribute);
  }
}

Status GetAttribute(const char* function, const Stream& stream, int attribute,
                    aclrtStreamAttrValue* value) {
  const Stream::Settings settings = stream.settings();
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value->failureMode = settings.failure_mode;
      return Status();
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = settings.overflow_switch;
      return Status();
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value->userCustomTag = settings.tag;
      return Status();
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value->cacheOpInfoSwitch = settings.cache_op_info;
      return Status();
    case ACL_STREAM_ATTR_PRIORITY:
      value->streamPriority = settings.priority;
      return Status();
    default:
      return UnknownAttribute(function, attribute);
  }
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtCreateStream(aclrtStream* stream) {
  constexpr const char* kName = "aclrtCreateStream";
  return AclBorder(kName, [&] { return CreateInCurrentContext(kName, stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  constexpr const char* kName = "aclrtCreateStreamWithConfig";
  return AclBorder(kName, [&] { return CreateInCurrentContext(kName, stream, priority, flag); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  constexpr const char* kName = "aclrtDestroyStream";
  return AclBorder(kName, [&] { return Destroy(kName, stream, PendingWork::kWait); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  constexpr const char* kName = "aclrtDestroyStreamForce";
  return AclBorder(kName, [&] { return Destroy(kName, stream, PendingWork::kDrop); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  constexpr const char* kName = "aclrtSynchronizeStream";
  return AclBorder(kName, [&] { return Synchronize(kName, stream, kForever); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  constexpr const char* kName = "aclrtSynchronizeStreamWithTimeout";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireTimeout(kName, timeout));
    return Synchronize(kName, stream, DeadlineIn(timeout));
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  constexpr const char* kName = "aclrtStreamQuery";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "status", status));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    ANYACL_RETURN_IF_ERROR(RequireMayAsk(kName, *target));
    const bool idle = target->idle();
    if (idle) target->TellReached();
    *status = idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return Status();
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  constexpr const char* kName = "aclrtStreamAbort";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    ANYACL_RETURN_IF_ERROR(ForbidWhenCaptured(kName, *target));
    target->Abort(code::kRtStreamAbort, kName);
    return Status();
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  constexpr const char* kName = "aclrtStreamGetId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "streamId", streamId));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    *streamId = target->id();
    return Status();
  });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  constexpr const char* kName = "aclrtStreamGetPriority";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "priority", priority));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    *priority = target->settings().priority;
    return Status();
  });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  constexpr const char* kName = "aclrtStreamGetFlags";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "flags", flags));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    *flags = target->settings().flags;
    return Status();
  });
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  constexpr const char* kName = "aclrtGetStreamAvailableNum";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "streamCount", streamCount));
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    *streamCount = static_cast<uint32_t>(AvailableResources(Resource::kStream, context->device));
    return Status();
  });
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* kName = "aclrtSetStreamAttribute";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return SetAttribute(kName, target, Number(stmAttrType), *value);
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  constexpr const char* kName = "aclrtGetStreamAttribute";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return GetAttribute(kName, *target, Number(stmAttrType), value);
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  constexpr const char* kName = "aclrtSetStreamFailureMode";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return SetFailureMode(kName, target, mode);
  });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  constexpr const char* kName = "aclrtSetStreamOverflowSwitch";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return SetSwitch(kName, target, &Stream::Settings::overflow_switch, flag);
  });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  constexpr const char* kName = "aclrtGetStreamOverflowSwitch";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "flag", flag));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    *flag = target->settings().overflow_switch;
    return Status();
  });
}

// Kernels here always end: a limit on their time is accepted and never reached.
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return ACL_SUCCESS; }

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  constexpr const char* kName = "aclrtSetOpExecuteTimeOutV2";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "actualTimeout", actualTimeout));
    *actualTimeout = timeout;
    return Status();
  });
}
