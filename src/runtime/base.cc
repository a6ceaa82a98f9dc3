// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The helpers of acl_base_rt.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "acl/acl_base_rt.h"
#include "core/border.h"
#include "core/dtype.h"
#include "core/handle_table.h"
#include "core/log.h"
#include "core/once.h"
#include "core/product.h"
#include "core/scalar.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

constexpr uint16_t kLargestHalf = 0x7bff;

struct DataBuffer {
  void* data = nullptr;
  size_t size = 0;
};
using DataBuffers = HandleTable<DataBuffer, HandleKind::kDataBuffer>;

DataBuffers& Buffers() { return TheOne<DataBuffers>(); }

Status FindBuffer(const char* function, const aclDataBuffer* handle, DataBuffer** buffer) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dataBuffer", handle));
  *buffer = Buffers().Get(handle);
  if (*buffer) return Status();
  return Fail(code::kAclInvalidParam, function, "dataBuffer must be a live buffer, got {}",
              static_cast<const void*>(handle));
}

// Infinities and NaN are always as IEEE has them, bfloat16 is a matter of the product; no compiler
// runs at run time. Those that a product may lack come last.
constexpr aclCannAttr kSupported[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};

size_t SupportedCount() {
  const Product product = CurrentProduct();
  const bool has_bf16 =
      product == Product::kAscend950 || product == Product::kA3 || product == Product::kA2;
  return has_bf16 ? 2 : 1;
}

}  // namespace
}  // namespace anyacl::runtime

using namespace anyacl;           // NOLINT: the C functions below are the border of this file
using namespace anyacl::runtime;  // NOLINT

// Exponent 31 is an ordinary exponent here: the interface promises that no infinity comes out.
float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t exponent = (value >> 10) & 0x1fu;
  if (exponent == 0x1f) {
    const uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
    const uint32_t mantissa = static_cast<uint32_t>(value & 0x3ffu) << 13;
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | mantissa);
  }
  Half half;
  half.bits = value;
  return static_cast<float>(half);
}

aclFloat16 aclFloatToFloat16(float value) {
  if (std::isnan(value)) return kLargestHalf;
  const uint16_t bits = Half(value).bits;
  const bool overflowed = (bits & 0x7fffu) > kLargestHalf;
  return overflowed ? static_cast<aclFloat16>((bits & 0x8000u) | kLargestHalf) : bits;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  void* handle = nullptr;
  AclBorder("aclCreateDataBuffer", [&]() -> Status {
    DataBuffer* buffer = nullptr;
    handle = Buffers().Create(&buffer);
    if (!handle) return Fail(code::kAclBadAlloc, "aclCreateDataBuffer", "too many are alive");
    *buffer = {data, size};
    return Status();
  });
  return static_cast<aclDataBuffer*>(handle);
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  constexpr const char* kName = "aclDestroyDataBuffer";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "dataBuffer", dataBuffer));
    if (Buffers().Destroy(dataBuffer)) return Status();
    return Fail(code::kAclInvalidParam, kName, "dataBuffer must be a live buffer, got {}",
                static_cast<const void*>(dataBuffer));
  });
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  return AclBorder("aclUpdateDataBuffer", [&]() -> Status {
    DataBuffer* buffer = nullptr;
    ANYACL_RETURN_IF_ERROR(FindBuffer("aclUpdateDataBuffer", dataBuffer, &buffer));
    *buffer = {data, size};
    return Status();
  });
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  const DataBuffer* buffer = Buffers().Get(dataBuffer);
  return buffer ? buffer->data : nullptr;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  const DataBuffer* buffer = Buffers().Get(dataBuffer);
  return buffer ? buffer->size : 0;
}

size_t aclDataTypeSize(aclDataType dataType) {
  return SizeOf(static_cast<DType>(Number(dataType)));
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  constexpr const char* kName = "aclGetCannAttributeList";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "cannAttrList", cannAttrList));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "num", num));
    *cannAttrList = kSupported;
    *num = SupportedCount();
    return Status();
  });
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  constexpr const char* kName = "aclGetCannAttribute";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    const int number = Number(cannAttr);
    if (number < ACL_CANN_ATTR_INF_NAN || number > ACL_CANN_ATTR_JIT_COMPILE) {
      return Fail(code::kAclInvalidParam, kName, "cannAttr must be 0 to 2, got {}", number);
    }
    const auto end = kSupported + SupportedCount();
    *value = std::find(kSupported, end, number) != end ? 1 : 0;
    return Status();
  });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  constexpr const char* kName = "aclGetDeviceCapability";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    switch (Number(deviceInfo)) {
      case ACL_DEVICE_INFO_AI_CORE_NUM:
      case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
        *value = FactsOf(static_cast<int>(deviceId)).cores;
        return Status();
      case ACL_DEVICE_INFO_L2_SIZE:
        *value = FactsOf(static_cast<int>(deviceId)).cache_bytes;
        return Status();
      default:
        return Fail(code::kAclInvalidParam, kName, "deviceInfo must be 0 to 2, got {}",
                    Number(deviceInfo));
    }
  });
}

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  const int number = Number(logLevel);
  if (!fmt || number < ACL_DEBUG || number > ACL_ERROR) return;
  const auto level = static_cast<log::Level>(number);
  if (!log::Enabled(level)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, fmt);
  const int length = std::vsnprintf(text, sizeof(text), fmt, arguments);
  va_end(arguments);
  if (length < 0) return;
  AclBorder("aclAppLog", [&]() -> Status {
    log::Write(level, ::fmt::format("{} {}:{} {}", func ? func : "", file ? file : "", line,
                                    static_cast<const char*>(text)));
    return Status();
  });
}
