// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The helpers of acl_base_rt.h.
#include <cmath>
#include <limits>

#include "core/product.h"
#include "core/scalar.h"
#include "memory_fixture.h"

namespace anyacl {
namespace {

TEST(Float16, ExponentThirtyOneIsAnOrdinaryExponent) {
  EXPECT_EQ(aclFloat16ToFloat(0x7c00), 65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0xfc00), -65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x7e00), 98304.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x7fff), 131008.0f);
}

TEST(Float16, FiniteValuesAreExact) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    if (((bits >> 10) & 0x1f) == 0x1f) continue;
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = aclFloat16ToFloat(half.bits);
    EXPECT_EQ(value, static_cast<float>(half));
    EXPECT_EQ(std::signbit(value), bits >= 0x8000);
    EXPECT_EQ(aclFloatToFloat16(value), bits);
  }
}

TEST(Float16, ToHalfSaturates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(aclFloatToFloat16(kInfinity), 0x7bff);
  EXPECT_EQ(aclFloatToFloat16(-kInfinity), 0xfbff);
  EXPECT_EQ(aclFloatToFloat16(std::nanf("")), 0x7bff);
  EXPECT_EQ(aclFloatToFloat16(-std::nanf("")), 0x7bff);
  EXPECT_EQ(aclFloatToFloat16(65504.0f), 0x7bff);
  EXPECT_EQ(aclFloatToFloat16(65536.0f), 0x7bff);
  EXPECT_EQ(aclFloatToFloat16(-1e30f), 0xfbff);
}

TEST(Float16, ToHalfRoundsToEven) {
  EXPECT_EQ(aclFloatToFloat16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(aclFloatToFloat16(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(aclFloatToFloat16(0x1p-24f), 0x0001);
  EXPECT_EQ(aclFloatToFloat16(0x1p-25f), 0x0000);
  EXPECT_EQ(aclFloatToFloat16(-0.0f), 0x8000);
}

TEST(DataTypeSize, Table) {
  const auto size = [](int type) { return aclDataTypeSize(static_cast<aclDataType>(type)); };
  for (const int type : {ACL_DT_UNDEFINED, ACL_STRING}) EXPECT_EQ(size(type), 0u);
  for (const int type : {ACL_BOOL, ACL_INT8, ACL_UINT8, ACL_HIFLOAT8, ACL_FLOAT8_E5M2,
                         ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E8M0, ACL_INT4, ACL_UINT1}) {
    EXPECT_EQ(size(type), 1u) << type;
  }
  for (const int type : {ACL_FLOAT16, ACL_BF16, ACL_INT16, ACL_UINT16}) EXPECT_EQ(size(type), 2u);
  for (const int type : {ACL_FLOAT, ACL_INT32, ACL_UINT32, ACL_COMPLEX32})
    EXPECT_EQ(size(type), 4u);
  for (const int type : {ACL_INT64, ACL_UINT64, ACL_DOUBLE, ACL_COMPLEX64, ACL_FLOAT6_E3M2,
                         ACL_FLOAT6_E2M3, ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2}) {
    EXPECT_EQ(size(type), 8u) << type;
  }
  EXPECT_EQ(size(ACL_COMPLEX128), 16u);
  EXPECT_EQ(size(1000), 0u);
}

TEST(DataBuffer, LifeOfABuffer) {
  int data[4] = {};
  aclDataBuffer* buffer = aclCreateDataBuffer(data, sizeof(data));
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), data);
  EXPECT_EQ(aclGetDataBufferSize(buffer), 16u);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 16u);
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, size_t{1} << 33), ACL_SUCCESS);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), size_t{1} << 33);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclDestroyDataBuffer(buffer), "live buffer");
  EXPECT_EQ(aclUpdateDataBuffer(buffer, data, 1), 100000);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 0u);
}

TEST(DataBuffer, EmptyNullAndForeign) {
  aclDataBuffer* empty = aclCreateDataBuffer(nullptr, 0);
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(aclDestroyDataBuffer(empty), ACL_SUCCESS);
  int local = 0;
  auto* foreign = reinterpret_cast<aclDataBuffer*>(&local);
  EXPECT_EQ(aclDestroyDataBuffer(foreign), 100000);
  EXPECT_EQ(aclGetDataBufferAddr(foreign), nullptr);
  EXPECT_ACL_FAILURE(100000, aclDestroyDataBuffer(nullptr), "dataBuffer must not be null");
  EXPECT_ACL_FAILURE(100000, aclUpdateDataBuffer(nullptr, nullptr, 0),
                     "dataBuffer must not be null");
  EXPECT_EQ(aclGetDataBufferAddr(nullptr), nullptr);
  EXPECT_EQ(aclGetDataBufferSize(nullptr), 0u);
}

TEST(CannAttributes, ListAndQuestions) {
  const aclCannAttr* list = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&list, &count), ACL_SUCCESS);
  ASSERT_GT(count, 0u);
  for (size_t i = 0; i < count; ++i) {
    int32_t value = -1;
    EXPECT_EQ(aclGetCannAttribute(list[i], &value), ACL_SUCCESS);
    EXPECT_EQ(value, 1);
  }
  int32_t value = -1;
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_ACL_FAILURE(100000, aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), "cannAttr");
  EXPECT_ACL_FAILURE(100000, aclGetCannAttribute(static_cast<aclCannAttr>(3), &value), "cannAttr");
  EXPECT_ACL_FAILURE(100000, aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr), "value");
  EXPECT_ACL_FAILURE(100000, aclGetCannAttributeList(nullptr, &count), "cannAttrList");
  EXPECT_ACL_FAILURE(100000, aclGetCannAttributeList(&list, nullptr), "num");
}

TEST(CannAttributes, Bfloat16DependsOnTheProduct) {
  const Product before = CurrentProduct();
  for (const Product product : kProducts) {
    SetCurrentProduct(product);
    const bool old = product == Product::kTraining || product == Product::kInference ||
                     product == Product::k200I;
    const aclCannAttr* list = nullptr;
    size_t count = 0;
    int32_t value = -1;
    EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value), ACL_SUCCESS);
    EXPECT_EQ(value, old ? 0 : 1) << Name(product);
    EXPECT_EQ(aclGetCannAttributeList(&list, &count), ACL_SUCCESS);
    EXPECT_EQ(count, old ? 1u : 2u) << Name(product);
  }
  SetCurrentProduct(before);
}

TEST(DeviceCapability, Questions) {
  int64_t value = 0;
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &value), ACL_SUCCESS);
  EXPECT_GT(value, 0);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value), ACL_SUCCESS);
  EXPECT_GT(value, 0);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, &value), ACL_SUCCESS);
  EXPECT_GT(value, 0);
  EXPECT_EQ(aclGetDeviceCapability(5000, ACL_DEVICE_INFO_L2_SIZE, &value), 107001);
  EXPECT_EQ(aclGetDeviceCapability(UINT32_MAX, ACL_DEVICE_INFO_L2_SIZE, &value), 107001);
  EXPECT_ACL_FAILURE(100000, aclGetDeviceCapability(0, static_cast<aclDeviceInfo>(3), &value),
                     "deviceInfo");
  EXPECT_ACL_FAILURE(100000, aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value),
                     "deviceInfo");
  EXPECT_ACL_FAILURE(100000, aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr), "value");
}

TEST(AppLog, SilentUnlessAsked) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  ACL_APP_LOG(ACL_ERROR, "number %d", 5);
  aclAppLog(ACL_ERROR, nullptr, nullptr, 0, nullptr);
  aclAppLog(static_cast<aclLogLevel>(9), "f", "g", 1, "text");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A process of its own, because the log looks at its variables once.
TEST(AppLogDeathTest, WritesALineWhenAsked) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ANYACL_LOG", "info", 1);
        aclAppLog(ACL_INFO, "Func", "file.cc", 7, "number %d %s", 5, "five");
        aclAppLog(ACL_DEBUG, "Func", "file.cc", 8, "not this");
        aclAppLog(ACL_ERROR, nullptr, nullptr, 9, "%s", std::string(5000, 'x').c_str());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "INFO Func file.cc:7 number 5 five");
}

}  // namespace
}  // namespace anyacl
