// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Words of memory that streams write and wait for.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/submit.h"

namespace anyacl::runtime {
namespace {

struct Value {
  uint64_t* word;
  uint64_t value;
  uint32_t condition;
  Stream* stream;
  DeviceMemory* memory;
};

bool Holds(uint64_t word, uint64_t value, uint32_t condition) {
  switch (condition) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
      return static_cast<int64_t>(word - value) >= 0;  // cyclic, so that a counter may wrap
    case ACL_STREAM_WAIT_VALUE_EQ:
      return word == value;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (word & value) != 0;
    default:
      return ~(word | value) != 0;
  }
}

int32_t Write(Work& work, const Launch& launch) {
  const Value& v = PayloadOf<Value>(work);
  if (v.memory->WriteValue(v.word, v.value, launch)) return 0;
  std::atomic_ref<uint64_t>(*v.word).store(v.value, std::memory_order_release);
  return 0;
}

// Anybody may write the word, also plain host code: there is nothing to sleep on, so look again and again.
int32_t WaitForValue(Work& work, const Launch& launch) {
  const Value& v = PayloadOf<Value>(work);
  if (v.memory->WaitValue(v.word, v.value, v.condition, launch)) return 0;
  constexpr int kImpatient = 64;
  const Stream& runner = Stream::RunnerOf(*v.stream);
  for (int round = 0; !runner.Aborting(); ++round) {
    if (Holds(std::atomic_ref<uint64_t>(*v.word).load(std::memory_order_acquire), v.value,
              v.condition)) {
      break;
    }
    if (round < kImpatient) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return 0;
}

Status CheckWord(const char* function, const void* address) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "devAddr", address));
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0) {
    return Fail(code::kRtParamInvalid, function, "devAddr must be a multiple of 8, got {}",
                address);
  }
  const Place place = MemoryMap::Get().Locate(address);
  if (place.pageable() || place.extent < sizeof(uint64_t)) {
    return Fail(code::kRtParamInvalid, function,
                "devAddr must have 8 bytes of memory from aclrtMalloc, got {}", address);
  }
  return Status();
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using anyacl::Work;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  constexpr const char* kName = "aclrtValueWrite";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckWord(kName, devAddr));
    if (flag != 0) return Fail(code::kAclInvalidParam, kName, "flag must be 0, got {}", flag);
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    const Value work{static_cast<uint64_t*>(devAddr), value, 0, target, &CurrentBackend().memory()};
    target->TellBlurred();
    return target->Submit(MakeWork(kName, sizeof(value), work, Write), Where::kAnywhere, nullptr);
  });
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  constexpr const char* kName = "aclrtValueWait";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckWord(kName, devAddr));
    if (flag > ACL_STREAM_WAIT_VALUE_NOR) {
      return Fail(code::kAclInvalidParam, kName, "flag must be in [0, 3], got {}", flag);
    }
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    const Value work{static_cast<uint64_t*>(devAddr), value, flag, target,
                     &CurrentBackend().memory()};
    const Where where = CurrentBackend().launches() ? Where::kAnywhere : Where::kOnStreamThread;
    target->TellBlurred();
    return target->Submit(MakeWork(kName, 0, work, WaitForValue), where, nullptr);
  });
}
