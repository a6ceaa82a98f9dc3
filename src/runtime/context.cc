// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/context.h"

#include <charconv>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/env.h"
#include "core/handle_table.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/thread_value.h"
#include "core/undo.h"
#include "runtime/backends.h"
#include "runtime/device.h"
#include "runtime/internal.h"
#include "runtime/submit.h"

namespace anyacl::runtime {
namespace {

constexpr int kMaxStreams = 2048;  // per device, as large as programs expect
constexpr int kMaxEvents = 65536;

using Table = HandleTable<Context, HandleKind::kContext>;

Table& Contexts() { return TheOne<Table>(); }

struct Device {
  int logical_id = 0;
  int set_count = 0;                        // guarded by kDevices
  std::atomic<Context*> implicit{nullptr};  // written under kDevices
  std::atomic<int> streams{0};
  std::atomic<int> events{0};
};


// ASCEND_RT_VISIBLE_DEVICES: ascending ids; reading stops at the first thing that is not one.
std::vector<int> VisibleIds(const std::string& text, int available) {
  std::vector<int> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    const bool valid = error == std::errc() && *at != '-' && id < available &&
                       (ids.empty() || id > ids.back()) && (stop == end || *stop == ',');
    if (!valid) break;
    ids.push_back(id);
    at = stop == end ? end : stop + 1;
  }
  return ids;
}

std::vector<int> DeviceIds() {
  if (!CheckBackend("").ok()) return {};
  const int available = std::min(env::GetInt(env::Var::ANYACL_DEVICES, CurrentBackend().DeviceCount()), kMaxDevices);
  if (env::IsSet(env::Var::ASCEND_RT_VISIBLE_DEVICES)) {
    return VisibleIds(env::Get(env::Var::ASCEND_RT_VISIBLE_DEVICES), available);
  }
  std::vector<int> all(available);
  for (int i = 0; i < available; ++i) all[i] = i;
  return all;
}

// The environment is read at the first call that needs a device.
struct Devices {
  Devices() {
    const std::vector<int> ids = DeviceIds();
    count = static_cast<int>(ids.size());
    device = std::make_unique<Device[]>(ids.size());
    for (int i = 0; i < count; ++i) device[i].logical_id = ids[i];
  }

  std::unique_ptr<Device[]> device;
  int count = 0;
};
Devices& All() { return TheOne<Devices>(); }

// What this thread selected. A context that was set or created wins over a device, as long as it lives.
class Selection {
 public:
  static void* context() { return ContextWord::Get(); }
  static int device() { return DeviceAndOne::Get() - 1; }  // -1: none
  static void SetContext(void* context) {
    if (!ContextWord::Set(context)) throw std::bad_alloc();
  }
  static void SetDevice(int device) {
    SetContext(nullptr);
    if (!DeviceAndOne::Set(device + 1)) throw std::bad_alloc();
  }

 private:
  using ContextWord = ThreadWord<void*, struct ContextTag>;
  using DeviceAndOne = ThreadWord<int, struct DeviceTag>;
};
constinit std::atomic<int> default_device{-1};

Status MakeContext(const char* function, int device, bool implicit, Context** made) {
  Table::Created context(Contexts());
  if (!context) return Fail(code::kRtNoStreamResource, function, "too many contexts are alive");
  context->device = device;
  context->implicit = implicit;
  context->handle = context.handle();
  Stream::Settings settings;
  settings.context = context.get();
  settings.device = device;
  settings.is_default = true;
  Stream* stream = nullptr;
  ANYACL_RETURN_IF_ERROR(CreateStream(function, settings, &stream));
  context->default_stream.store(stream, std::memory_order_release);
  *made = context.get();
  context.Keep();
  return Status();
}

// The context's handle is dead already: nobody can make streams in it or add work to its own.
void ReleaseContext(Context* context, PendingWork pending) {
  for (Stream* s = Stream::First(); s; s = s->next()) {
    if (s->context() == context) EndStream(s->handle(), pending);
  }
  Contexts().Release(context);
}

Context* Live(void* handle) {
  Context* context = handle ? Contexts().Get(handle) : nullptr;
  return context && !context->device_was_reset.load(std::memory_order_relaxed) ? context : nullptr;
}

Context* Selected() {
  if (void* const handle = Selection::context()) {
    if (Context* context = Live(handle)) return context;
  }
  const int device = Selection::device();
  if (device < 0) return nullptr;
  return All().device[device].implicit.load(std::memory_order_acquire);
}

}  // namespace

int DeviceCount() { return All().count; }
int LogicalIdOf(int device) { return All().device[device].logical_id; }

Status RequireDevice(const char* function, int64_t device) {
  if (device >= 0 && device < DeviceCount()) [[likely]]
    return Status();
  ANYACL_RETURN_IF_ERROR(CheckBackend(function));
  if (DeviceCount() == 0 && env::IsSet(env::Var::ASCEND_RT_VISIBLE_DEVICES)) {
    return Fail(code::kRtInvalidDevice, function,
                "no device is visible, ASCEND_RT_VISIBLE_DEVICES is '{}'; got device {}",
                env::Get(env::Var::ASCEND_RT_VISIBLE_DEVICES), device);
  }
  return Fail(code::kRtInvalidDevice, function, "device must be in [0, {}), got {}", DeviceCount(),
              device);
}

void SetDefaultDevice(int device) { default_device.store(device, std::memory_order_relaxed); }

Context* CurrentContext() {
  if (Context* context = Selected()) [[likely]]
    return context;
  const int device = default_device.load(std::memory_order_relaxed);
  if (device < 0 || !SelectDevice("default_device", device).ok()) return nullptr;
  return Selected();
}

Status RequireContext(const char* function, Context** context) {
  *context = CurrentContext();
  if (*context) [[likely]]
    return Status();
  return Fail(
      code::kRtContextNull, function,
      "this thread has no current context; call aclrtSetDevice or aclrtSetCurrentContext first");
}

Status RequireDefaultStream(const char* function, const Context& context, Stream** stream) {
  *stream = context.default_stream.load(std::memory_order_acquire);
  if (*stream) [[likely]]
    return Status();
  return Fail(code::kRtContextNull, function, "another thread ends the current context");
}

Status SelectDevice(const char* function, int device) {
  ANYACL_RETURN_IF_ERROR(RequireDevice(function, device));
  Device& d = All().device[device];
  const std::lock_guard lock(LockOf(Lock::kDevices));
  if (!d.implicit.load(std::memory_order_relaxed)) {
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(MakeContext(function, device, true, &context));
    d.implicit.store(context, std::memory_order_release);
  }
  Selection::SetDevice(device);
  ++d.set_count;
  return Status();
}

Status ReleaseDevice(const char* function, int device, bool force) {
  ANYACL_RETURN_IF_ERROR(RequireDevice(function, device));
  Device& d = All().device[device];
  Context* released = nullptr;
  {
    const std::lock_guard lock(LockOf(Lock::kDevices));
    if (d.set_count == 0) {
      return Fail(code::kRtContextRelease, function,
                  "device {} must have been selected by aclrtSetDevice and not been reset since",
                  device);
    }
    d.set_count = force ? 0 : d.set_count - 1;
    if (d.set_count > 0) return Status();
    released = d.implicit.exchange(nullptr, std::memory_order_acq_rel);
    Contexts().ForEach([device](Context& c) {
      if (c.device == device && !c.implicit)
        c.device_was_reset.store(true, std::memory_order_relaxed);
    });
    Contexts().Retire(released->handle);
  }
  // Outside the lock: this may wait for work, and other threads may select the device again meanwhile.
  ReleaseContext(released, force ? PendingWork::kDrop : PendingWork::kWait);
  return Status();
}

bool IsSelectedByAnyone(int device) {
  return All().device[device].implicit.load(std::memory_order_acquire) != nullptr;
}

namespace {

std::atomic<int>& Counter(Resource resource, int device) {
  Device& d = All().device[device];
  return resource == Resource::kStream ? d.streams : d.events;
}

int Limit(Resource resource) { return resource == Resource::kStream ? kMaxStreams : kMaxEvents; }

}  // namespace

bool TakeResource(Resource resource, int device) {
  std::atomic<int>& alive = Counter(resource, device);
  if (alive.fetch_add(1, std::memory_order_relaxed) < Limit(resource)) return true;
  alive.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void ReturnResource(Resource resource, int device) {
  Counter(resource, device).fetch_sub(1, std::memory_order_relaxed);
}

int AvailableResources(Resource resource, int device) {
  return Limit(resource) - Counter(resource, device).load(std::memory_order_relaxed);
}

namespace {

struct ProcessOptions {
  Context::Option options[Context::kOptions];
};
Context::Option& ProcessOption(int option) { return TheOne<ProcessOptions>().options[option]; }

Status CheckOption(const char* function, int option) {
  if (option >= 0 && option < Context::kOptions) return Status();
  return Fail(code::kAclInvalidParam, function, "opt must be in [0, {}), got {}", Context::kOptions,
              option);
}

Status SetOption(const char* function, int option, int64_t value, Context::Option* target) {
  const int64_t largest = option == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value < 0 || value > largest) {
    return Fail(code::kAclInvalidParam, function, "value of option {} must be in [0, {}], got {}",
                option, largest, value);
  }
  target->value.store(value, std::memory_order_relaxed);
  target->set.store(true, std::memory_order_release);
  return Status();
}

Status FindContext(const char* function, void* handle, Context** context) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "context", handle));
  *context = Contexts().Get(handle);
  if (*context) return Status();
  return Fail(code::kRtInvalidHandle, function, "context must be a live context, got {}", handle);
}

}  // namespace

int64_t Determinism() { return EffectiveOption(ACL_OPT_DETERMINISTIC); }

int64_t EffectiveOption(int option) {
  if (Context* context = Selected()) {
    const Context::Option& own = context->options[option];
    if (own.set.load(std::memory_order_acquire)) return own.value.load(std::memory_order_relaxed);
  }
  return ProcessOption(option).value.load(std::memory_order_relaxed);
}

}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Lock;
using anyacl::LockOf;
using anyacl::Status;
using anyacl::Undo;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  constexpr const char* kName = "aclrtCreateContext";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "context", context));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    Context* made = nullptr;
    {
      const std::lock_guard lock(LockOf(Lock::kDevices));  // a reset looks at all contexts
      ANYACL_RETURN_IF_ERROR(MakeContext(kName, deviceId, false, &made));
    }
    void* const handle = made->handle;
    Undo abandoned([&] {
      if (Contexts().Retire(handle)) ReleaseContext(made, PendingWork::kWait);
    });
    Selection::SetContext(handle);
    abandoned.Keep();
    *context = handle;
    return Status();
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  constexpr const char* kName = "aclrtDestroyContext";
  return AclBorder(kName, [&]() -> Status {
    Context* found = nullptr;
    ANYACL_RETURN_IF_ERROR(FindContext(kName, context, &found));
    if (found->implicit) {
      return Fail(code::kRtParamInvalid, kName,
                  "context must come from aclrtCreateContext, got the implicit one of device {}",
                  found->device);
    }
    Context* mine = nullptr;
    {
      const std::lock_guard lock(LockOf(Lock::kDevices));
      mine = Contexts().Retire(context);
    }
    if (mine) ReleaseContext(mine, PendingWork::kWait);
    return Status();
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  constexpr const char* kName = "aclrtSetCurrentContext";
  return AclBorder(kName, [&]() -> Status {
    Context* found = nullptr;
    ANYACL_RETURN_IF_ERROR(FindContext(kName, context, &found));
    if (!Live(context)) {
      return Fail(code::kRtInvalidHandle, kName,
                  "context must be on a device that was not reset since, got one of device {}",
                  found->device);
    }
    Selection::SetContext(context);
    return Status();
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  constexpr const char* kName = "aclrtGetCurrentContext";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "context", context));
    Context* current = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &current));
    *context = current->handle;
    return Status();
  });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  constexpr const char* kName = "aclrtCtxGetCurrentDefaultStream";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "stream", stream));
    Context* current = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &current));
    Stream* own = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireDefaultStream(kName, *current, &own));
    *stream = own->handle();
    return Status();
  });
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  constexpr const char* kName = "aclrtGetPrimaryCtxState";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "active", active));
    if (flags) return Fail(code::kAclInvalidParam, kName, "flags must be null");
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    *active = IsSelectedByAnyone(deviceId) ? 1 : 0;
    return Status();
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* kName = "aclrtSetSysParamOpt";
  return AclBorder(kName, [&]() -> Status {
    const int option = Number(opt);
    ANYACL_RETURN_IF_ERROR(CheckOption(kName, option));
    return SetOption(kName, option, value, &ProcessOption(option));
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* kName = "aclrtGetSysParamOpt";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    const int option = Number(opt);
    ANYACL_RETURN_IF_ERROR(CheckOption(kName, option));
    *value = ProcessOption(option).value.load(std::memory_order_relaxed);
    return Status();
  });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* kName = "aclrtCtxSetSysParamOpt";
  return AclBorder(kName, [&]() -> Status {
    const int option = Number(opt);
    ANYACL_RETURN_IF_ERROR(CheckOption(kName, option));
    Context* current = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &current));
    return SetOption(kName, option, value, &current->options[option]);
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* kName = "aclrtCtxGetSysParamOpt";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    const int option = Number(opt);
    ANYACL_RETURN_IF_ERROR(CheckOption(kName, option));
    Context* current = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &current));
    if (!current->options[option].set.load(std::memory_order_acquire)) {
      return Fail(code::kRtSysParamNotSet, kName, "option {} was never set on this context",
                  option);
    }
    *value = current->options[option].value.load(std::memory_order_relaxed);
    return Status();
  });
}
