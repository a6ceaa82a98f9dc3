// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The C functions about devices: selection, synchronise, facts, peers, core limits.
#include "runtime/device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/product.h"
#include "core/thread_value.h"
#include "runtime/capture.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/submit.h"

namespace anyacl::runtime {

// Asked again and again by programs; a device does not change.
const DeviceFacts& FactsOf(int device) {
  struct Facts {
    Facts() {
      for (int d = 0; d < DeviceCount(); ++d) of_device.push_back(CurrentBackend().Facts(d));
    }
    std::vector<DeviceFacts> of_device;
  };
  return TheOne<Facts>().of_device[static_cast<size_t>(device)];
}

namespace {

constexpr size_t kOverflowStatusBytes = 64;
constexpr int kCoreKinds = 2;  // aclrtDevResLimitType

// --- facts ---

int64_t NpuArchitecture() {
  switch (CurrentProduct()) {
    case Product::kAscend950:
      return 3510;
    case Product::kA3:
    case Product::kA2:
      return 2201;
    case Product::kTraining:
      return 1001;
    case Product::kInference:
      return 2002;
    case Product::k200I:
      return 3002;
  }
  return 0;
}

Status DeviceAttribute(const char* function, uint32_t device, int attribute, int64_t* value) {
  constexpr int64_t kGridLimit = 65535;
  constexpr int64_t kBlockLimit = 1024;
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = FactsOf(static_cast<int>(device)).cores;
      return Status();
    case ACL_DEV_ATTR_WARP_SIZE:
      *value = 32;
      return Status();
    case ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE:
      *value = 2048;
      return Status();
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      *value = 256 * 1024;
      return Status();
    case ACL_DEV_ATTR_MAX_GRID_DIM_X:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Y:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Z:
    case ACL_DEV_ATTR_MAX_BLOCK_PER_GRID:
      *value = kGridLimit;
      return Status();
    case ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_X:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_Y:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_Z:
      *value = kBlockLimit;
      return Status();
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = FactsOf(static_cast<int>(device)).memory_bytes;
      return Status();
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = FactsOf(static_cast<int>(device)).cache_bytes;
      return Status();
    case ACL_DEV_ATTR_PHY_CHIP_ID:
      *value = LogicalIdOf(static_cast<int>(device));
      return Status();
    case ACL_DEV_ATTR_SMP_ID:
    case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID:
    case ACL_DEV_ATTR_SUPER_POD_SERVER_ID:
    case ACL_DEV_ATTR_SUPER_POD_ID:
    case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
    case ACL_DEV_ATTR_MAINBOARD_ID:
    case ACL_DEV_ATTR_IS_VIRTUAL:
      *value = 0;
      return Status();
    case ACL_DEV_ATTR_HD_CONNECT_TYPE:
      *value = ACL_HOST_DEVICE_CONNECT_TYPE_PCIE;
      return Status();
    case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
      *value = ACL_DEVICE_FORM_FACTOR_PCIE_CARD;
      return Status();
    case ACL_DEV_ATTR_NPU_ARCH:
      *value = NpuArchitecture();
      return Status();
    default:
      return Fail(code::kAclInvalidParam, function, "attr must be an aclrtDevAttr, got {}",
                  attribute);
  }
}

// --- core limits: remembered and reported, but the pool decides how many threads run ---

struct CoreLimits {
  std::atomic<uint32_t> cores[kCoreKinds] = {0, 0};  // 0: none
};
constinit CoreLimits limits_of[kMaxDevices];
CoreLimits& LimitsOf(int device) { return limits_of[device]; }
// Of this thread; 0: none.
using Limits = std::array<uint32_t, kCoreKinds>;
using ThreadLimits = ThreadWord<Limits, struct LimitsTag>;

Status RequireCoreKind(const char* function, int kind) {
  if (kind >= 0 && kind < kCoreKinds) return Status();
  return Fail(code::kAclInvalidParam, function, "type must be 0 (cube) or 1 (vector), got {}",
              kind);
}

Status RequireCores(const char* function, int device, uint32_t cores) {
  const int64_t most = FactsOf(device).cores;
  if (cores > 0 && cores <= most) return Status();
  return Fail(code::kAclInvalidParam, function, "value must be in [1, {}], got {}", most, cores);
}

uint32_t DeviceLimit(int device, int kind) {
  const uint32_t limit = LimitsOf(device).cores[kind].load(std::memory_order_relaxed);
  return limit ? limit : static_cast<uint32_t>(FactsOf(device).cores);
}

// --- peers: who was let in; the backend opens the way where there is one to open ---

using Peers = std::set<std::pair<int, int>>;
Peers& OpenPeers() { return TheOne<Peers>(); }  // guarded by kDevices

Status RequirePeers(const char* function, int device, int peer) {
  ANYACL_RETURN_IF_ERROR(RequireDevice(function, device));
  ANYACL_RETURN_IF_ERROR(RequireDevice(function, peer));
  if (device != peer) return Status();
  return Fail(code::kAclInvalidParam, function,
              "peerDeviceId must differ from the device, got {} for both", device);
}

// --- synchronise and abort ---

Status SynchronizeDevice(const char* function, Deadline deadline) {
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  ANYACL_RETURN_IF_ERROR(RequireNoCaptureOn(function, context->device));
  const WaitResult result = WaitAllStreams(context->device, deadline);
  if (result == WaitResult::kCircular) return CircularWait(function);
  if (result == WaitResult::kTimedOut) {
    return Fail(code::kRtStreamSyncTimeout, function,
                "device {} still had work when the time was up", context->device);
  }
  ReclaimFrees();
  for (Stream* s = Stream::First(); s; s = s->next()) {
    if (s->device() != context->device || !s->context()) continue;
    ANYACL_RETURN_IF_ERROR(s->TakeFailure(function, kEverything));
  }
  return Status();
}

constinit std::atomic<int> saturation_mode{ACL_RT_OVERFLOW_MODE_INFNAN};

int32_t ClearOverflowStatus(Work& work, const Launch& launch) {
  void* const status = PayloadOf<void*>(work);
  return CurrentBackend().memory().Fill(status, 1, 0, kOverflowStatusBytes, launch).code();
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Lock;
using anyacl::LockOf;
using anyacl::Status;
using anyacl::Work;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtSetDevice(int32_t deviceId) {
  return AclBorder("aclrtSetDevice", [&] { return SelectDevice("aclrtSetDevice", deviceId); });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return AclBorder("aclrtResetDevice",
                   [&] { return ReleaseDevice("aclrtResetDevice", deviceId, false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return AclBorder("aclrtResetDeviceForce",
                   [&] { return ReleaseDevice("aclrtResetDeviceForce", deviceId, true); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  constexpr const char* kName = "aclrtGetDevice";
  // Programs ask whether a device is selected at all: "none" is an answer, which must not stay behind as the cause of
  // a later failure.
  bool none = false;
  const aclError result = AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "deviceId", deviceId));
    const Context* const context = CurrentContext();
    none = !context;
    if (context) *deviceId = context->device;
    return Status();
  });
  return none ? code::kRtContextNull : result;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  constexpr const char* kName = "aclrtGetDeviceCount";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "count", count));
    *count = static_cast<uint32_t>(DeviceCount());
    return Status();
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  constexpr const char* kName = "aclrtGetRunMode";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "runMode", runMode));
    *runMode = ACL_HOST;
    return Status();
  });
}

aclError aclrtSynchronizeDevice(void) {
  constexpr const char* kName = "aclrtSynchronizeDevice";
  return AclBorder(kName, [&] { return SynchronizeDevice(kName, kForever); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  constexpr const char* kName = "aclrtSynchronizeDeviceWithTimeout";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireTimeout(kName, timeout));
    return SynchronizeDevice(kName, DeadlineIn(timeout));
  });
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  constexpr const char* kName = "aclrtDeviceTaskAbort";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    for (Stream* s = Stream::First(); s; s = s->next()) {
      if (s->device() == deviceId && s->context()) s->Abort(code::kRtDeviceTaskAbort, kName);
    }
    const auto limit = std::chrono::milliseconds(timeout);
    const Deadline deadline = timeout == 0 ? kForever : std::chrono::steady_clock::now() + limit;
    const WaitResult result = WaitAllStreams(deviceId, deadline);
    if (result == WaitResult::kReached) return Status();
    if (result == WaitResult::kCircular) return CircularWait(kName);
    return Fail(code::kRtStreamSyncTimeout, kName, "device {} still ran a task after {} ms",
                deviceId, timeout);
  });
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  constexpr const char* kName = "aclrtQueryDeviceStatus";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "deviceStatus", deviceStatus));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return Status();
  });
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  constexpr const char* kName = "aclrtGetDeviceUtilizationRate";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "utilizationInfo", utilizationInfo));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    utilizationInfo->cubeUtilization = -1;
    utilizationInfo->vectorUtilization = -1;
    utilizationInfo->aicpuUtilization = -1;
    utilizationInfo->memoryUtilization = -1;
    return Status();
  });
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  constexpr const char* kName = "aclrtGetDeviceInfo";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    return DeviceAttribute(kName, deviceId, Number(attr), value);
  });
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  constexpr const char* kName = "aclrtDeviceGetUuid";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "uuid", uuid));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    constexpr char kPrefix[12] = {'A', 'n', 'y', 'A', 'C', 'L', '-', 'd', 'e', 'v', 0, 0};
    const int32_t id = LogicalIdOf(deviceId);
    static_assert(sizeof(kPrefix) + sizeof(id) == sizeof(uuid->bytes));
    std::memcpy(uuid->bytes, kPrefix, sizeof(kPrefix));
    std::memcpy(uuid->bytes + sizeof(kPrefix), &id, sizeof(id));
    return Status();
  });
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  constexpr const char* kName = "aclrtDeviceGetBareTgid";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "pid", pid));
    *pid = getpid();
    return Status();
  });
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  if (leastPriority) *leastPriority = 7;
  if (greatestPriority) *greatestPriority = 0;
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  constexpr const char* kName = "aclrtSetDeviceSatMode";
  return AclBorder(kName, [&]() -> Status {
    const int number = Number(mode);
    if (number != ACL_RT_OVERFLOW_MODE_SATURATION && number != ACL_RT_OVERFLOW_MODE_INFNAN) {
      return Fail(code::kAclInvalidParam, kName,
                  "mode must be 0 (saturation) or 1 (inf/nan), got {}", number);
    }
    saturation_mode.store(number, std::memory_order_relaxed);
    return Status();
  });
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  constexpr const char* kName = "aclrtGetDeviceSatMode";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "mode", mode));
    *mode = static_cast<aclrtFloatOverflowMode>(saturation_mode.load(std::memory_order_relaxed));
    return Status();
  });
}

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  constexpr const char* kName = "aclrtGetOverflowStatus";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "outputAddr", outputAddr));
    if (outputSize < kOverflowStatusBytes) {
      return Fail(code::kAclInvalidParam, kName, "outputSize must be at least {}, got {}",
                  kOverflowStatusBytes, outputSize);
    }
    if (MemoryMap::Get().Locate(outputAddr).extent < kOverflowStatusBytes) {
      return Fail(code::kRtParamInvalid, kName,
                  "outputAddr must have {} bytes of memory from aclrtMalloc", kOverflowStatusBytes);
    }
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    const Work work = MakeWork(kName, kOverflowStatusBytes, outputAddr, ClearOverflowStatus);
    return target->Submit(work, Where::kAnywhere, nullptr);
  });
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
  constexpr const char* kName = "aclrtResetOverflowStatus";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    return ResolveForSubmit(kName, stream, &target);
  });
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  constexpr const char* kName = "aclrtGetLogicDevIdByUserDevId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "logicDevId", logicDevId));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, userDevid));
    *logicDevId = LogicalIdOf(userDevid);
    return Status();
  });
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  constexpr const char* kName = "aclrtGetUserDevIdByLogicDevId";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "userDevid", userDevid));
    for (int device = 0; device < DeviceCount(); ++device) {
      if (LogicalIdOf(device) != logicDevId) continue;
      *userDevid = device;
      return Status();
    }
    return Fail(code::kRtInvalidDevice, kName, "logicDevId must be a visible device, got {}",
                logicDevId);
  });
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  constexpr const char* kName = "aclrtDeviceCanAccessPeer";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "canAccessPeer", canAccessPeer));
    ANYACL_RETURN_IF_ERROR(RequirePeers(kName, deviceId, peerDeviceId));
    *canAccessPeer = CurrentBackend().CanAccessPeer(deviceId, peerDeviceId) ? 1 : 0;
    return Status();
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  constexpr const char* kName = "aclrtDeviceEnablePeerAccess";
  return AclBorder(kName, [&]() -> Status {
    if (flags != 0) return Fail(code::kAclInvalidParam, kName, "flags must be 0, got {}", flags);
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    ANYACL_RETURN_IF_ERROR(RequirePeers(kName, context->device, peerDeviceId));
    if (!CurrentBackend().SetPeerAccess(context->device, peerDeviceId, true)) {
      return Fail(code::kRtNotSupported, kName, "device {} cannot access the memory of device {}",
                  context->device, peerDeviceId);
    }
    const std::lock_guard lock(LockOf(Lock::kDevices));
    OpenPeers().insert({context->device, peerDeviceId});
    return Status();
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  constexpr const char* kName = "aclrtDeviceDisablePeerAccess";
  return AclBorder(kName, [&]() -> Status {
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    ANYACL_RETURN_IF_ERROR(RequirePeers(kName, context->device, peerDeviceId));
    CurrentBackend().SetPeerAccess(context->device, peerDeviceId, false);
    const std::lock_guard lock(LockOf(Lock::kDevices));
    OpenPeers().erase({context->device, peerDeviceId});
    return Status();
  });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  constexpr const char* kName = "aclrtDevicePeerAccessStatus";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "status", status));
    ANYACL_RETURN_IF_ERROR(RequirePeers(kName, deviceId, peerDeviceId));
    const std::lock_guard lock(LockOf(Lock::kDevices));
    *status = OpenPeers().contains({deviceId, peerDeviceId}) ? 1 : 0;
    return Status();
  });
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kName = "aclrtGetDeviceResLimit";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    ANYACL_RETURN_IF_ERROR(RequireCoreKind(kName, Number(type)));
    *value = DeviceLimit(deviceId, Number(type));
    return Status();
  });
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* kName = "aclrtSetDeviceResLimit";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    ANYACL_RETURN_IF_ERROR(RequireCoreKind(kName, Number(type)));
    ANYACL_RETURN_IF_ERROR(RequireCores(kName, deviceId, value));
    LimitsOf(deviceId).cores[Number(type)].store(value, std::memory_order_relaxed);
    return Status();
  });
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  constexpr const char* kName = "aclrtResetDeviceResLimit";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    for (auto& cores : LimitsOf(deviceId).cores) cores.store(0, std::memory_order_relaxed);
    return Status();
  });
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kName = "aclrtGetStreamResLimit";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    ANYACL_RETURN_IF_ERROR(RequireCoreKind(kName, Number(type)));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    const uint32_t own = target->settings().core_limits[Number(type)];
    *value = own ? own : DeviceLimit(target->device(), Number(type));
    return Status();
  });
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  constexpr const char* kName = "aclrtSetStreamResLimit";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireCoreKind(kName, Number(type)));
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    ANYACL_RETURN_IF_ERROR(RequireCores(kName, target->device(), value));
    target->Update([&](Stream::Settings& s) { s.core_limits[Number(type)] = value; });
    return Status();
  });
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  constexpr const char* kName = "aclrtResetStreamResLimit";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    target->Update([](Stream::Settings& s) { std::fill_n(s.core_limits, kCoreKinds, 0u); });
    return Status();
  });
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  constexpr const char* kName = "aclrtUseStreamResInCurrentThread";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    const Stream::Settings settings = target->settings();
    Limits limits;
    std::copy_n(settings.core_limits, kCoreKinds, limits.begin());
    ThreadLimits::Set(limits);
    return Status();
  });
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  constexpr const char* kName = "aclrtUnuseStreamResInCurrentThread";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    ThreadLimits::Set({});
    return Status();
  });
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  constexpr const char* kName = "aclrtGetResInCurrentThread";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    ANYACL_RETURN_IF_ERROR(RequireCoreKind(kName, Number(type)));
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    const uint32_t own = ThreadLimits::Get()[Number(type)];
    *value = own ? own : DeviceLimit(context->device, Number(type));
    return Status();
  });
}

aclError aclrtSetGroup(int32_t groupId) {
  constexpr const char* kName = "aclrtSetGroup";
  return AclBorder(kName, [&]() -> Status {
    if (groupId == 0) return Status();
    return Fail(code::kRtParamInvalid, kName, "groupId must be 0, the only group, got {}", groupId);
  });
}

aclError aclrtGetGroupCount(uint32_t* count) {
  constexpr const char* kName = "aclrtGetGroupCount";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "count", count));
    *count = 1;
    return Status();
  });
}
