// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/undo.h"
#include "runtime/context.h"
#include "runtime/internal.h"
#include "runtime/stream.h"
#include "runtime/submit.h"
#include "watch/tools.h"

namespace anyacl::runtime {
namespace {

constexpr size_t kHostPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

Status CheckSize(const char* function, uint64_t size) {
  if (size > 0) return {};
  return Fail(code::kAclInvalidParam, function, "size must be greater than 0, got 0");
}

// Attributes of aclrtMalloc*WithCfg. Only the device changes anything here.
Status ReadConfig(const char* function, const aclrtMallocConfig* config, int* device) {
  if (!config || config->numAttrs == 0) return {};
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "cfg->attrs", config->attrs));
  for (size_t i = 0; i < config->numAttrs; ++i) {
    const aclrtMallocAttribute& attribute = config->attrs[i];
    switch (Number(attribute.attr)) {
      case ACL_RT_MEM_ATTR_RSV:
      case ACL_RT_MEM_ATTR_MODULE_ID:
      case ACL_RT_MEM_ATTR_VA_FLAG:
        break;
      case ACL_RT_MEM_ATTR_DEVICE_ID:
        ANYACL_RETURN_IF_ERROR(RequireDevice(function, attribute.value.deviceId));
        *device = static_cast<int>(attribute.value.deviceId);
        break;
      default:
        return Fail(code::kAclInvalidParam, function, "cfg->attrs[{}].attr must be 0 to 3, got {}",
                    i, Number(attribute.attr));
    }
  }
  return {};
}

Status OutOfMemory(const char* function, size_t size, const DeviceMemory& memory, int device) {
  const MemoryInfo info = memory.Info(device);
  return Fail(code::kRtOutOfMemory, function,
              "out of memory: size {} asked for, {} of {} bytes are free", size, info.free,
              info.total);
}

Status Allocate(const char* function, MemoryKind kind, void** out, size_t size,
                const aclrtMallocConfig* config) {
  const char* argument = kind == MemoryKind::kPinned ? "hostPtr" : "devPtr";
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, argument, out));
  ANYACL_RETURN_IF_ERROR(CheckSize(function, size));
  Context* context = nullptr;
  ANYACL_RETURN_IF_ERROR(RequireContext(function, &context));
  Block block;
  block.kind = kind;
  block.bytes = size;
  block.device = context->device;
  ANYACL_RETURN_IF_ERROR(ReadConfig(function, config, &block.device));

  DeviceMemory& memory = watch::Guarded(CurrentBackend().memory());
  void* address = AllocateOrReclaim([&] {
    return kind == MemoryKind::kPinned ? memory.AllocateHost(size)
                                       : memory.Allocate(size, block.device);
  });
  if (!address) return OutOfMemory(function, size, memory, block.device);
  Undo unknown([&] {
    kind == MemoryKind::kPinned ? memory.FreeHost(address, size) : memory.Free(address, size, block.device);
  });
  block.begin = AddressOf(address);
  block.usable = memory.UsableSize(size);
  block.memory = &memory;
  MemoryMap::Get().Insert(block);
  unknown.Keep();
  *out = address;
  return {};
}

const char* Describe(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "device memory of aclrtMalloc";
    case MemoryKind::kPinned:
      return "host memory of aclrtMallocHost";
    case MemoryKind::kRegistered:
      return "host memory registered with aclrtHostRegister";
    case MemoryKind::kMapped:
      return "physical memory mapped with aclrtMapMem";
  }
  return "unknown memory";
}

// Why an address cannot be freed: names what it is instead.
Status NotFreeable(const char* function, const char* argument, const void* address,
                   MemoryKind wanted) {
  const Place place = MemoryMap::Get().Locate(address);
  std::string found = "an address that is not allocated";
  if (place.block) {
    const size_t offset = AddressOf(address) - place.block->begin;
    found = offset > 0
                ? fmt::format("an address {} bytes inside {}", offset, Describe(place.block->kind))
                : Describe(place.block->kind);
  }
  return Fail(code::kRtParamInvalid, function, "{} must be the start of {}, got {} ({})", argument,
              Describe(wanted), address, found);
}

Status Free(const char* function, const char* argument, void* address, MemoryKind kind, bool sync) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, argument, address));
  ReclaimFrees();
  BlockRelease release;
  const std::optional<Block> block = MemoryMap::Get().Remove(address, kind);
  if (!block) return NotFreeable(function, argument, address, kind);
  if (sync) WaitAllStreams(block->device);
  release(*block);
  return {};
}

Status RegisterHost(const char* function, void* pointer, uint64_t size) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "ptr", pointer));
  ANYACL_RETURN_IF_ERROR(CheckSize(function, size));
  if (MemoryMap::Get().MarkRegistered(pointer, size)) return {};
  const uintptr_t begin = AddressOf(pointer);
  if (begin % kHostPage != 0) {
    return Fail(code::kRtParamInvalid, function, "ptr must be aligned to 4096 bytes, got {}",
                pointer);
  }
  if (size % kHostPage != 0) {
    return Fail(code::kRtParamInvalid, function, "size must be a multiple of 4096, got {}", size);
  }
  if (size > UINTPTR_MAX - begin) {
    return Fail(code::kRtParamInvalid, function, "ptr + size must be an address, got {} + {}",
                pointer, size);
  }
  Block block;
  block.kind = MemoryKind::kRegistered;
  block.begin = begin;
  block.bytes = block.usable = size;
  block.memory = &CurrentBackend().memory();
  if (!MemoryMap::Get().Insert(block)) {
    const Place place = MemoryMap::Get().Locate(pointer);
    return Fail(code::kRtHostRegistered, function,
                "ptr must not be registered already, got {} bytes at {}, which is in {}", size,
                pointer, place.block ? Describe(place.block->kind) : "front of registered memory");
  }
  if (block.memory->RegisterHost(pointer, size)) return {};
  MemoryMap::Get().Remove(pointer, MemoryKind::kRegistered);
  return Fail(code::kRtParamInvalid, function, "the system refused to register {} bytes at {}",
              size, pointer);
}

Status CheckRange(const char* function, const void* pointer, size_t size) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "devPtr", pointer));
  return CheckSize(function, size);
}

bool IsMemAttr(int attr) { return attr >= ACL_DDR_MEM && attr <= ACL_MEM_P2P_HUGE1G; }

// We have no 1 GiB pages; everything else is the one memory of the machine.
bool HasMemAttr(int attr) {
  return attr != ACL_HBM_MEM_HUGE1G && attr != ACL_HBM_MEM_P2P_HUGE1G && attr != ACL_MEM_HUGE1G &&
         attr != ACL_MEM_P2P_HUGE1G;
}

}  // namespace

}  // namespace anyacl::runtime

using namespace anyacl;           // NOLINT: the C functions below are the border of this file
using namespace anyacl::runtime;  // NOLINT

// The policy chooses page sizes. Ours depend on the size alone, and an unknown policy is no error.
aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return AclBorder("aclrtMalloc", [&]() -> Status {
    return Allocate("aclrtMalloc", MemoryKind::kDevice, devPtr, size, nullptr);
  }, kMemoryBorder);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return AclBorder("aclrtMallocAlign32", [&]() -> Status {
    return Allocate("aclrtMallocAlign32", MemoryKind::kDevice, devPtr, size, nullptr);
  }, kMemoryBorder);
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/) {
  return AclBorder("aclrtMallocCached", [&]() -> Status {
    return Allocate("aclrtMallocCached", MemoryKind::kDevice, devPtr, size, nullptr);
  }, kMemoryBorder);
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/,
                            aclrtMallocConfig* cfg) {
  return AclBorder("aclrtMallocWithCfg", [&]() -> Status {
    return Allocate("aclrtMallocWithCfg", MemoryKind::kDevice, devPtr, size, cfg);
  }, kMemoryBorder);
}

aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy /*policy*/,
                                     aclrtMallocConfig* cfg) {
  return AclBorder("aclrtMallocForTaskScheduler", [&]() -> Status {
    return Allocate("aclrtMallocForTaskScheduler", MemoryKind::kDevice, devPtr, size, cfg);
  }, kMemoryBorder);
}

aclError aclrtFree(void* devPtr) {
  return AclBorder("aclrtFree", [&]() -> Status {
    return Free("aclrtFree", "devPtr", devPtr, MemoryKind::kDevice, false);
  });
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  return AclBorder("aclrtFreeWithDevSync", [&]() -> Status {
    return Free("aclrtFreeWithDevSync", "devPtr", devPtr, MemoryKind::kDevice, true);
  });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return AclBorder("aclrtMallocHost", [&]() -> Status {
    return Allocate("aclrtMallocHost", MemoryKind::kPinned, hostPtr, size, nullptr);
  }, kMemoryBorder);
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  return AclBorder("aclrtMallocHostWithCfg", [&]() -> Status {
    return Allocate("aclrtMallocHostWithCfg", MemoryKind::kPinned, ptr, size, cfg);
  }, kMemoryBorder);
}

aclError aclrtFreeHost(void* hostPtr) {
  return AclBorder("aclrtFreeHost", [&]() -> Status {
    return Free("aclrtFreeHost", "hostPtr", hostPtr, MemoryKind::kPinned, false);
  });
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  return AclBorder("aclrtFreeHostWithDevSync", [&]() -> Status {
    return Free("aclrtFreeHostWithDevSync", "hostPtr", hostPtr, MemoryKind::kPinned, true);
  });
}

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  constexpr const char* kName = "aclrtHostRegister";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "devPtr", devPtr));
    const int number = Number(type);
    if (number != ACL_HOST_REGISTER_MAPPED && number != ACL_HOST_REGISTER_IOMEMORY &&
        number != ACL_HOST_REGISTER_READONLY) {
      return Fail(code::kAclInvalidParam, kName, "type must be 0, 4 or 8, got {}", number);
    }
    ANYACL_RETURN_IF_ERROR(RegisterHost(kName, ptr, size));
    *devPtr = ptr;
    return {};
  });
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  constexpr const char* kName = "aclrtHostRegisterV2";
  return AclBorder(kName, [&]() -> Status {
    constexpr uint32_t kKnown =
        ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED;
    if ((flag & ~kKnown) != 0) {
      return Fail(code::kAclInvalidParam, kName, "flag must be made of the bits {:#x}, got {:#x}",
                  kKnown, flag);
    }
    return RegisterHost(kName, ptr, size);
  });
}

aclError aclrtHostUnregister(void* ptr) {
  constexpr const char* kName = "aclrtHostUnregister";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "ptr", ptr));
    if (MemoryMap::Get().UnmarkRegistered(ptr)) return {};
    if (const auto block = MemoryMap::Get().Remove(ptr, MemoryKind::kRegistered)) {
      block->memory->UnregisterHost(ptr);
      return {};
    }
    return Fail(code::kRtHostNotRegistered, kName,
                "ptr must be the start of registered memory, got {}", ptr);
  });
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  constexpr const char* kName = "aclrtHostGetDevicePointer";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "pHost", pHost));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "pDevice", pDevice));
    if (flag != 0) {
      return Fail(code::kAclInvalidParam, kName, "flag must be 0, got {}", flag);
    }
    const Place place = MemoryMap::Get().Locate(pHost);
    if (place.pageable() || place.is_device()) {
      return Fail(code::kRtParamInvalid, kName,
                  "pHost must be registered or pinned host memory, got {}", pHost);
    }
    *pDevice = pHost;
    return {};
  });
}

aclError aclrtMemFlush(void* devPtr, size_t size) {
  return AclBorder("aclrtMemFlush",
                   [&]() -> Status { return CheckRange("aclrtMemFlush", devPtr, size); });
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  return AclBorder("aclrtMemInvalidate",
                   [&]() -> Status { return CheckRange("aclrtMemInvalidate", devPtr, size); });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  constexpr const char* kName = "aclrtGetMemInfo";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "free", free));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "total", total));
    const int number = Number(attr);
    if (!IsMemAttr(number)) {
      return Fail(code::kAclInvalidParam, kName, "attr must be 0 to 17, got {}", number);
    }
    Context* context = nullptr;
    ANYACL_RETURN_IF_ERROR(RequireContext(kName, &context));
    ReclaimFrees();
    const MemoryInfo info =
        HasMemAttr(number) ? CurrentBackend().memory().Info(context->device) : MemoryInfo{};
    *total = info.total;
    *free = std::min(info.total, info.free + (info.total > 0 ? PendingFreeBytes() : 0));
    return {};
  });
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  constexpr const char* kName = "aclrtGetMemUsageInfo";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "memUsageInfo", memUsageInfo));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "outputNum", outputNum));
    if (inputNum == 0) {
      return Fail(code::kAclInvalidParam, kName, "inputNum must be greater than 0, got 0");
    }
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    const MemoryUsage usage = MemoryMap::Get().Usage(deviceId);
    *memUsageInfo = {};
    std::strcpy(memUsageInfo->name, "APP");  // all memory here is what the program asked for
    memUsageInfo->curMemSize = usage.current;
    memUsageInfo->memPeakSize = usage.peak;
    *outputNum = 1;
    return {};
  });
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  constexpr const char* kName = "aclrtPointerGetAttributes";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "attributes", attributes));
    const Place place = MemoryMap::Get().Locate(ptr);
    *attributes = {};
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    if (place.pageable()) return {};
    const bool huge = place.is_device() && place.block->bytes >= kHugePage;
    attributes->location.id = static_cast<uint32_t>(place.block->device);
    attributes->location.type =
        place.is_device() ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
    attributes->pageSize = static_cast<uint32_t>(huge ? kHugePage : kHostPage);
    return {};
  });
}

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  constexpr const char* kName = "aclrtMemGetAddressRange";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "ptr", ptr));
    const Place place = MemoryMap::Get().Locate(ptr);
    if (!place.is_device()) {
      return Fail(code::kRtParamInvalid, kName, "ptr must point into device memory, got {}", ptr);
    }
    if (pbase) *pbase = reinterpret_cast<void*>(place.block->begin);
    if (psize) *psize = place.block->bytes;
    return {};
  });
}
