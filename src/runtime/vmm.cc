// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Physical memory that the caller maps into ranges of addresses it reserved.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/handle_table.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/undo.h"
#include "runtime/context.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/submit.h"

namespace anyacl::runtime {
namespace {

uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Lives as long as its handle or a mapping of it.
struct Physical {
  DeviceMemory* memory = nullptr;
  uint64_t id = 0;
  size_t bytes = 0;
  int device = 0;

  Physical() = default;
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical() {
    if (!memory) return;
    memory->FreePhysical(id, bytes, device);
    MemoryMap::Get().Count(device, -static_cast<int64_t>(bytes));
  }
};

struct Reservation {
  size_t bytes = 0;
  DeviceMemory* memory = nullptr;
};

// One lock, kMappings, over all of it: these calls are rare and slow anyway.
struct State {
  static State& Get() { return TheOne<State>(); }
  static std::mutex& Mutex() { return LockOf(Lock::kMappings); }

  std::map<uintptr_t, Reservation> reservations;
  std::map<uintptr_t, std::shared_ptr<Physical>> mappings;
  HandleTable<std::shared_ptr<Physical>, HandleKind::kPhysicalMemory> handles;

  // The reservation that holds the whole range.
  const Reservation* FindReservation(uintptr_t begin, size_t bytes) const {
    const auto next = reservations.upper_bound(begin);
    if (next == reservations.begin()) return nullptr;
    const auto& [start, reservation] = *std::prev(next);
    const size_t offset = begin - start;
    const bool inside = offset < reservation.bytes && bytes <= reservation.bytes - offset;
    return inside ? &reservation : nullptr;
  }

  bool HasMappings(uintptr_t begin, size_t bytes) const {
    const auto next = mappings.lower_bound(begin);
    return next != mappings.end() && next->first - begin < bytes;
  }
};

Status RequireZero(const char* function, const char* argument, uint64_t value) {
  if (value == 0) return Status();
  return Fail(code::kAclInvalidParam, function, "{} must be 0, got {}", argument, value);
}

Status RequireGranular(const char* function, const char* argument, uint64_t value,
                       size_t granularity) {
  if (value % granularity == 0) return Status();
  return Fail(code::kRtParamInvalid, function, "{} must be a multiple of {}, got {}", argument,
              granularity, value);
}

Status RequireSize(const char* function, size_t size) {
  if (size > 0) return Status();
  return Fail(code::kAclInvalidParam, function, "size must be greater than 0, got 0");
}

bool IsGigabytePage(int attr) {
  return attr == ACL_HBM_MEM_HUGE1G || attr == ACL_HBM_MEM_P2P_HUGE1G || attr == ACL_MEM_HUGE1G ||
         attr == ACL_MEM_P2P_HUGE1G;
}

Status CheckProp(const char* function, const aclrtPhysicalMemProp* prop) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "prop", prop));
  const int attr = Number(prop->memAttr);
  if (Number(prop->handleType) != ACL_MEM_HANDLE_TYPE_NONE) {
    return Fail(code::kAclInvalidParam, function, "prop->handleType must be 0, got {}",
                Number(prop->handleType));
  }
  if (Number(prop->allocationType) != ACL_MEM_ALLOCATION_TYPE_PINNED) {
    return Fail(code::kAclInvalidParam, function, "prop->allocationType must be 0, got {}",
                Number(prop->allocationType));
  }
  if (attr < ACL_DDR_MEM || attr > ACL_MEM_P2P_HUGE1G) {
    return Fail(code::kAclInvalidParam, function, "prop->memAttr must be 0 to 17, got {}", attr);
  }
  if (IsGigabytePage(attr)) {
    return Fail(code::kAclNotSupported, function,
                "prop->memAttr {} asks for 1 GiB pages, which are "
                "not supported",
                attr);
  }
  if (Number(prop->location.type) != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(code::kAclNotSupported, function, "prop->location.type must be 1 (device), got {}",
                Number(prop->location.type));
  }
  return RequireDevice(function, prop->location.id);
}

Status Reserve(const char* function, void** out, size_t size, size_t alignment, void* hint,
               uint64_t flags) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "virPtr", out));
  ANYACL_RETURN_IF_ERROR(RequireSize(function, size));
  ANYACL_RETURN_IF_ERROR(RequireZero(function, "alignment", alignment));
  if (flags > 1) {
    return Fail(code::kAclInvalidParam, function, "flags must be 0 or 1, got {}", flags);
  }
  DeviceMemory& memory = CurrentBackend().memory();
  void* range = memory.ReserveRange(size, hint);
  if (!range) {
    return Fail(code::kRtOutOfMemory, function, "no range of {} addresses is free", size);
  }
  Undo unknown([&] { memory.ReleaseRange(range, size); });
  State& state = State::Get();
  const std::lock_guard lock(State::Mutex());
  state.reservations[AddressOf(range)] = {size, &memory};
  unknown.Keep();
  *out = range;
  return Status();
}

Status Release(const char* function, void* range) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "virPtr", range));
  State& state = State::Get();
  const std::lock_guard lock(State::Mutex());
  const auto found = state.reservations.find(AddressOf(range));
  if (found == state.reservations.end()) {
    return Fail(code::kRtParamInvalid, function,
                "virPtr must be the start of a reserved range, got {}", range);
  }
  const Reservation reservation = found->second;
  if (state.HasMappings(found->first, reservation.bytes)) {
    return Fail(code::kRtParamInvalid, function,
                "virPtr must have no memory mapped into its range any more, got {}", range);
  }
  state.reservations.erase(found);
  reservation.memory->ReleaseRange(range, reservation.bytes);
  return Status();
}

Status MallocPhysical(const char* function, aclrtDrvMemHandle* handle, size_t size,
                      const aclrtPhysicalMemProp* prop, uint64_t flags) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "handle", handle));
  ANYACL_RETURN_IF_ERROR(RequireSize(function, size));
  ANYACL_RETURN_IF_ERROR(CheckProp(function, prop));
  ANYACL_RETURN_IF_ERROR(RequireZero(function, "flags", flags));
  DeviceMemory& memory = CurrentBackend().memory();
  ANYACL_RETURN_IF_ERROR(RequireGranular(function, "size", size, memory.Granularity()));

  const auto physical = std::make_shared<Physical>();
  physical->bytes = size;
  physical->device = static_cast<int>(prop->location.id);
  void* allocated = AllocateOrReclaim([&]() -> void* {
    return memory.AllocatePhysical(size, physical->device, &physical->id) ? &memory : nullptr;
  });
  if (!allocated) {
    return Fail(code::kRtOutOfMemory, function,
                "out of memory: size {} asked for, {} bytes are free", size,
                memory.Info(physical->device).free);
  }
  physical->memory = &memory;
  MemoryMap::Get().Count(physical->device, static_cast<int64_t>(size));

  State& state = State::Get();
  const std::lock_guard lock(State::Mutex());
  std::shared_ptr<Physical>* slot = nullptr;
  void* const made = state.handles.Create(&slot);
  if (!made) return Fail(code::kRtOutOfMemory, function, "too many handles are alive");
  *slot = physical;
  *handle = made;
  return Status();
}

Status MapMem(const char* function, void* address, size_t size, size_t offset,
              aclrtDrvMemHandle handle, uint64_t flags) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "virPtr", address));
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "handle", handle));
  ANYACL_RETURN_IF_ERROR(RequireSize(function, size));
  ANYACL_RETURN_IF_ERROR(RequireZero(function, "flags", flags));
  State& state = State::Get();
  const std::lock_guard lock(State::Mutex());
  const std::shared_ptr<Physical>* slot = state.handles.Get(handle);
  if (!slot) {
    return Fail(code::kRtInvalidHandle, function, "handle must be live physical memory, got {}",
                handle);
  }
  const std::shared_ptr<Physical> physical = *slot;
  const size_t granularity = physical->memory->Granularity();
  const uintptr_t begin = AddressOf(address);
  ANYACL_RETURN_IF_ERROR(RequireGranular(function, "virPtr", begin, granularity));
  ANYACL_RETURN_IF_ERROR(RequireGranular(function, "size", size, granularity));
  ANYACL_RETURN_IF_ERROR(RequireGranular(function, "offset", offset, granularity));
  if (offset > physical->bytes || size > physical->bytes - offset) {
    return Fail(code::kRtParamInvalid, function,
                "offset + size must be at most the handle's {} bytes, got {} + {}", physical->bytes,
                offset, size);
  }
  if (!state.FindReservation(begin, size)) {
    return Fail(code::kRtParamInvalid, function,
                "virPtr must have size {} inside one reserved range, got {}", size, address);
  }
  if (!MemoryMap::Get().IsFree(begin, size)) {
    return Fail(code::kRtParamInvalid, function, "virPtr must not be mapped already, got {}",
                address);
  }
  state.mappings[begin] = physical;
  Undo listed([&] { state.mappings.erase(begin); });
  MemoryMap::Get().Insert(
      {MemoryKind::kMapped, begin, size, size, physical->device, physical->memory});
  Undo inserted([&] { MemoryMap::Get().Remove(address, MemoryKind::kMapped); });
  if (!physical->memory->Map(address, size, physical->id, offset)) {
    return Fail(code::kRtOutOfMemory, function, "the system refused to map {} bytes", size);
  }
  listed.Keep();
  inserted.Keep();
  return Status();
}

Status UnmapMem(const char* function, void* address) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "virPtr", address));
  // Unlike freed memory the range cannot stay for a while: the caller may map something else there.
  if (MemoryMap::Get().Locate(address).is_device()) WaitAllStreams(kAllDevices);
  State& state = State::Get();
  const std::lock_guard lock(State::Mutex());
  const std::optional<Block> block = MemoryMap::Get().Remove(address, MemoryKind::kMapped);
  if (!block) {
    return Fail(code::kRtParamInvalid, function,
                "virPtr must be the start of mapped memory, got {}", address);
  }
  block->memory->Unmap(address, block->bytes);
  state.mappings.erase(block->begin);
  return Status();
}

}  // namespace
}  // namespace anyacl::runtime

using namespace anyacl;           // NOLINT: the C functions below are the border of this file
using namespace anyacl::runtime;  // NOLINT

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags) {
  return AclBorder("aclrtReserveMemAddress", [&]() -> Status {
    return Reserve("aclrtReserveMemAddress", virPtr, size, alignment, expectPtr, flags);
  }, kMemoryBorder);
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  return AclBorder("aclrtReleaseMemAddress",
                   [&]() -> Status { return Release("aclrtReleaseMemAddress", virPtr); });
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  return AclBorder("aclrtMallocPhysical", [&]() -> Status {
    return MallocPhysical("aclrtMallocPhysical", handle, size, prop, flags);
  }, kMemoryBorder);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  constexpr const char* kName = "aclrtFreePhysical";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "handle", handle));
    State& state = State::Get();
    const std::lock_guard lock(State::Mutex());
    if (state.handles.Destroy(handle)) return Status();
    return Fail(code::kRtInvalidHandle, kName, "handle must be live physical memory, got {}",
                handle);
  });
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  return AclBorder("aclrtMapMem", [&]() -> Status {
    return MapMem("aclrtMapMem", virPtr, size, offset, handle, flags);
  }, kMemoryBorder);
}

aclError aclrtUnmapMem(void* virPtr) {
  return AclBorder("aclrtUnmapMem", [&]() -> Status { return UnmapMem("aclrtUnmapMem", virPtr); });
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity) {
  constexpr const char* kName = "aclrtMemGetAllocationGranularity";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "granularity", granularity));
    ANYACL_RETURN_IF_ERROR(CheckProp(kName, prop));
    const int number = Number(option);
    if (number != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
        number != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
      return Fail(code::kAclInvalidParam, kName, "option must be 0 or 1, got {}", number);
    }
    *granularity = CurrentBackend().memory().Granularity();
    return Status();
  });
}
