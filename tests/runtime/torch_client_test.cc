// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What PyTorch's Ascend backend does with the runtime, without PyTorch: its order of calls from the import to the exit,
// and its way with error codes, in which a careless answer turns into wrong numbers without an exception.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "device_floats.h"
#include "runtime/support.h"

namespace anyacl {
namespace {

// --- the client's way with codes ---

struct Outcome {
  int32_t code = 0;      // what it raises; 0: it goes on
  std::string sentence;  // what the exception carries
};

// After a code that is not 0: the last runtime code takes its place, 207000 is a warning, everything else is raised
// with the recent text. On the way it asks for details of the fault.
Outcome Check(int32_t code) {
  if (code == 0) return {};
  const aclError last = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
  if (last != 0) code = last;
  if (code == 207000) return {};
  aclrtErrorInfo info;
  EXPECT_EQ(aclrtGetErrorVerbose(0, &info), 0);
  EXPECT_EQ(info.errorType, ACL_RT_NO_ERROR);
  return {code, RecentText()};
}

// --- an operator ---

constexpr int64_t kCount = 6;

aclTensor* Tensor(const DeviceFloats& data, aclDataType dtype = ACL_FLOAT) {
  const int64_t dims[] = {kCount};
  const int64_t strides[] = {1};
  return aclCreateTensor(dims, 1, dtype, strides, 0, ACL_FORMAT_ND, dims, 1, data.data());
}

// elu_backward on a stream: phase 1 here, phase 2 in the consumer thread, everything destroyed right behind it.
class Elu {
 public:
  Elu()
      : dy_(std::vector<float>{1, 2, 3, 4, 5, 6}),
        x_(std::vector<float>(kCount, 1.0f)),
        dx_(std::vector<float>(kCount, -1.0f)) {}

  Outcome Run(aclrtStream stream, aclDataType dtype_of_output) {
    aclTensor* const tensors[] = {Tensor(dy_), Tensor(x_), Tensor(dx_, dtype_of_output)};
    double one = 1, two = 2;
    aclScalar* const alpha = aclCreateScalar(&one, ACL_DOUBLE);
    aclScalar* const scale = aclCreateScalar(&two, ACL_DOUBLE);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const Outcome outcome = Check(aclnnEluBackwardGetWorkspaceSize(
        tensors[0], alpha, scale, alpha, false, tensors[1], tensors[2], &size, &executor));
    if (outcome.code == 0) {
      InNewThread([&] {
        ASSERT_EQ(aclrtSetDevice(0), 0);
        EXPECT_EQ(aclnnEluBackward(nullptr, 0, executor, stream), 0);
        for (const aclTensor* tensor : tensors) EXPECT_EQ(aclDestroyTensor(tensor), 0);
        EXPECT_EQ(aclrtResetDevice(0), 0);
      });
    } else {
      for (const aclTensor* tensor : tensors) EXPECT_EQ(aclDestroyTensor(tensor), 0);
    }
    EXPECT_EQ(aclDestroyScalar(alpha), 0);
    EXPECT_EQ(aclDestroyScalar(scale), 0);
    return outcome;
  }

  void ExpectRight(aclrtStream stream) const {
    ASSERT_EQ(aclrtSynchronizeStreamWithTimeout(stream, -1), 0);
    EXPECT_EQ(dx_.Read(), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  }

 private:
  DeviceFloats dy_;
  DeviceFloats x_;
  DeviceFloats dx_;
};

class TorchClientTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    aclGetRecentErrMsg();
  }
  // A refused call and a good one behind it: a code and a sentence, and right numbers.
  void ExpectOneSentence(const char* sentence) {
    Elu elu;
    const Outcome bad = elu.Run(stream_, ACL_INT32);
    EXPECT_EQ(bad.code, 161002);
    EXPECT_NE(bad.sentence.find(sentence), std::string::npos) << bad.sentence;
    EXPECT_EQ(std::count(bad.sentence.begin(), bad.sentence.end(), '\n'), 1) << bad.sentence;
    EXPECT_EQ(elu.Run(stream_, ACL_FLOAT).code, 0);
    elu.ExpectRight(stream_);
  }
};

TEST_F(TorchClientTest, EveryOperatorErrorHasItsOwnCodeAndSentence) {
  for (int i = 0; i < 3; ++i) ExpectOneSentence("aclnnEluBackward: gradInput");
}

TEST_F(TorchClientTest, OptionalQueriesAreNotTakenForTheCause) {
  int32_t device = 0;
  InNewThread([&] {
    EXPECT_EQ(aclrtGetDevice(&device), 107002);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  });
  aclrtMemUceInfo ranges[1];
  aclrtMemUsageInfo usage[4];
  aclrtUuid uuid;
  size_t count = 0;
  EXPECT_EQ(aclrtGetMemUceInfo(0, ranges, 1, &count), 0);
  EXPECT_EQ(aclrtGetMemUsageInfo(0, usage, 4, &count), 0);
  EXPECT_EQ(aclrtDeviceGetUuid(0, &uuid), 0);
  EXPECT_EQ(aclmdlFinalizeDump(), 207000);
  ExpectOneSentence("aclnnEluBackward: gradInput");
}

// The caching allocator catches it, frees what it keeps and goes on.
TEST_F(TorchClientTest, AnOutOfMemoryThatWasDealtWithIsNotTakenForTheCause) {
  void* address = &address;
  const Outcome outcome =
      Check(aclrtMallocAlign32(&address, size_t{16} << 40, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(outcome.code, 207001);
  EXPECT_NE(outcome.sentence.find("out of memory"), std::string::npos) << outcome.sentence;
  ExpectOneSentence("aclnnEluBackward: gradInput");
}

// 207000 would be a warning to it, and the output would be used.
TEST_F(TorchClientTest, WhatPromisesAnOutputNeverAnswers207000) {
  DeviceFloats data(std::vector<float>(16, 1.0f));
  char key[65] = {};
  void* pointer = nullptr;
  uint64_t handle = 0;
  int32_t pid = 1;
  aclrtDrvMemHandle memory = nullptr;
  aclrtEvent event = nullptr;
  aclrtIpcEventHandle event_handle;
  uint8_t bytes[16];
  const struct {
    const char* name;
    std::function<aclError()> call;
  } calls[] = {
      {"aclrtIpcMemGetExportKey",
       [&] { return aclrtIpcMemGetExportKey(data.data(), 64, key, sizeof(key), 0); }},
      {"aclrtIpcMemSetImportPid", [&] { return aclrtIpcMemSetImportPid(key, &pid, 1); }},
      {"aclrtIpcMemImportByKey", [&] { return aclrtIpcMemImportByKey(&pointer, key, 0); }},
      {"aclrtIpcMemClose", [&] { return aclrtIpcMemClose(key); }},
      {"aclrtMemExportToShareableHandle",
       [&] {
         return aclrtMemExportToShareableHandle(nullptr, ACL_MEM_HANDLE_TYPE_NONE, 0, &handle);
       }},
      {"aclrtMemImportFromShareableHandle",
       [&] { return aclrtMemImportFromShareableHandle(1, 0, &memory); }},
      {"aclrtIpcGetEventHandle", [&] { return aclrtIpcGetEventHandle(event, &event_handle); }},
      {"aclrtIpcOpenEventHandle", [&] { return aclrtIpcOpenEventHandle(event_handle, &event); }},
      {"aclmdlRICaptureTaskGrpBegin", [&] { return aclmdlRICaptureTaskGrpBegin(stream_); }},
      {"aclrtBinaryLoadFromData",
       [&] { return aclrtBinaryLoadFromData(bytes, sizeof(bytes), nullptr, &pointer); }},
      {"aclopCompileAndExecute",
       [&] {
         return aclopCompileAndExecute("Relu", 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                                       ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream_);
       }},
  };
  for (const auto& [name, call] : calls) {
    aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    const Outcome outcome = Check(call());
    EXPECT_EQ(outcome.code, 200001) << name;
    EXPECT_NE(outcome.sentence.find(std::string(name) + ": "), std::string::npos)
        << name << " says " << outcome.sentence;
  }
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(key[0], '\0');
}

// --- memory ---

TEST_F(TorchClientTest, IsPinnedIsAskedOfAnyPointer) {
  void* pinned = nullptr;
  aclrtMallocAttribute attribute{};
  attribute.attr = ACL_RT_MEM_ATTR_VA_FLAG;
  attribute.value.vaFlag = 1;
  aclrtMallocConfig config{&attribute, 1};
  ASSERT_EQ(aclrtMallocHostWithCfg(&pinned, 4096, &config), 0);
  std::vector<char> pageable(4096);
  const DeviceFloats device(std::vector<float>(16, 1.0f));
  const struct {
    const void* pointer;
    int type;
  } rows[] = {{pinned, ACL_MEM_LOCATION_TYPE_HOST},
              {static_cast<char*>(pinned) + 4095, ACL_MEM_LOCATION_TYPE_HOST},
              {pageable.data(), ACL_MEM_LOCATION_TYPE_UNREGISTERED},
              {&pageable, ACL_MEM_LOCATION_TYPE_UNREGISTERED},
              {nullptr, ACL_MEM_LOCATION_TYPE_UNREGISTERED},
              {reinterpret_cast<void*>(uintptr_t{1}), ACL_MEM_LOCATION_TYPE_UNREGISTERED},
              {device.data(), ACL_MEM_LOCATION_TYPE_DEVICE}};
  for (const auto& [pointer, type] : rows) {
    aclrtPtrAttributes attributes{};
    EXPECT_EQ(aclrtPointerGetAttributes(pointer, &attributes), 0);
    EXPECT_EQ(attributes.location.type, type) << pointer;
  }
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
}

TEST_F(TorchClientTest, ExpandableSegments) {
  size_t free = 0, total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), 0);
  constexpr size_t kSegment = size_t{20} << 20;
  void* range = nullptr;
  ASSERT_EQ(
      aclrtReserveMemAddress(&range, (total + total / 8) / kSegment * kSegment, 0, nullptr, 1), 0);
  size_t free_after = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total), 0);
  EXPECT_LT(free - std::min(free, free_after), size_t{1} << 30);  // other programs take memory, too
  aclrtPhysicalMemProp prop{};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtDrvMemHandle handle = nullptr;
  ASSERT_EQ(aclrtMallocPhysical(&handle, kSegment, &prop, 0), 0);
  char* const second = static_cast<char*>(range) + kSegment;
  EXPECT_EQ(aclrtMapMem(second, kSegment, 0, handle, 0), 0);
  EXPECT_EQ(aclrtMemset(second, kSegment, 1, kSegment), 0);
  EXPECT_EQ(aclrtUnmapMem(second), 0);
  EXPECT_EQ(aclrtFreePhysical(handle), 0);
  EXPECT_EQ(aclrtReleaseMemAddress(range), 0);
  prop.memAttr = ACL_HBM_MEM_HUGE1G;  // page_size:1g
  EXPECT_EQ(Check(aclrtMallocPhysical(&handle, size_t{1} << 30, &prop, 0)).code, 200001);
}

// --- from the import to the exit ---

TEST(TorchClient, FromTheImportToTheExit) {
  EXPECT_IN_FRESH_PROCESS({
    // While the library is loaded; before aclInit and without a device.
    aclCANNPackageVersion version;
    for (int name = ACL_PKG_NAME_CANN; name <= ACL_PKG_NAME_DRIVER; ++name) {
      CHILD_OK(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(name), &version));
      CHILD_EQ(std::strcmp(version.version, "9.0.0"), 0);
    }
    uint32_t devices = 0;
    CHILD_OK(aclrtGetDeviceCount(&devices));
    CHILD_EQ(devices > 0, true);

    CHILD_OK(aclInit(nullptr));
    int32_t device = 7;
    CHILD_EQ(aclrtGetDevice(&device), 107002);
    CHILD_OK(aclrtSetDevice(0));
    aclrtContext context = nullptr;
    CHILD_OK(aclrtGetCurrentContext(&context));

    char word[16] = {};
    CHILD_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE) > 1, true);
    CHILD_OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, word, aclGetCompileoptSize(ACL_OP_JIT_COMPILE)));
    CHILD_EQ(std::strcmp(word, "disable"), 0);
    CHILD_OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "enable"));
    CHILD_OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    uint64_t actual = 0;
    CHILD_OK(aclrtSetOpExecuteTimeOutV2(547000000, &actual));

    aclrtStream streams[34] = {};
    for (aclrtStream& stream : streams) {
      CHILD_OK(
          aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
      CHILD_OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
      for (const aclrtStream& other : streams) CHILD_EQ(&other != &stream && other == stream, 0);
    }
    // The determinism switches before every operator, also from the consumer thread, which only selected its device.
    InNewThread([] {
      CHILD_OK(aclrtSetDevice(0));
      int64_t value = -1;
      CHILD_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
      CHILD_EQ(value, 0);
      CHILD_OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
      CHILD_OK(aclrtCtxSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 1));
      CHILD_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
      CHILD_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
      CHILD_EQ(value, 1);
    });
    int64_t number = 0;
    CHILD_EQ(std::strlen(aclrtGetSocName()) > 0, true);
    CHILD_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &number));
    CHILD_EQ(number > 0, true);
    for (int info = ACL_DEVICE_INFO_AI_CORE_NUM; info <= ACL_DEVICE_INFO_L2_SIZE; ++info) {
      CHILD_OK(aclGetDeviceCapability(0, static_cast<aclDeviceInfo>(info), &number));
      CHILD_EQ(number > 0, true);
    }

    // A block, copies both ways, an event of each kind that it makes, the status that its allocator polls for.
    void* block = nullptr;
    CHILD_OK(aclrtMallocAlign32(&block, 2 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    CHILD_EQ(reinterpret_cast<uintptr_t>(block) % 512, 0);
    float host[2] = {1, 2};
    CHILD_OK(aclrtMemcpyAsync(block, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, streams[0]));
    CHILD_OK(aclrtSynchronizeStreamWithTimeout(streams[0], -1));
    for (const uint32_t flag : {ACL_EVENT_SYNC, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE}) {
      aclrtEvent event = nullptr;
      CHILD_OK(aclrtCreateEventExWithFlag(&event, flag));
      CHILD_OK(aclrtRecordEvent(event, streams[0]));
      CHILD_OK(aclrtStreamWaitEvent(streams[1], event));
      CHILD_OK(aclrtSynchronizeEvent(event));
      aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
      CHILD_OK(aclrtQueryEventStatus(event, &status));
      CHILD_EQ(status, 1);
      CHILD_OK(aclrtDestroyEvent(event));
    }
    aclrtStreamStatus idle = ACL_STREAM_STATUS_NOT_READY;
    CHILD_OK(aclrtStreamQuery(streams[0], &idle));
    CHILD_EQ(idle, 0);

    // Blocks are freed on any thread, which borrows the context.
    InNewThread([context, block] {
      CHILD_OK(aclrtSetCurrentContext(context));
      CHILD_OK(aclrtFree(block));
    });
    CHILD_OK(aclrtSynchronizeDeviceWithTimeout(-1));
    for (const aclrtStream stream : streams) CHILD_OK(aclrtDestroyStreamForce(stream));
    CHILD_OK(aclrtResetDevice(0));
    CHILD_OK(aclFinalize());
  });
}

TEST(TorchClient, TheConfigurationOfTheWheelSelectsADevice) {
  EXPECT_IN_FRESH_PROCESS({
    std::string path = testing::TempDir() + "anyacl_torch_XXXXXX";
    const int file = mkstemp(path.data());
    const std::string text =
        R"({"dump": {"dump_scene": "lite_exception"}, "defaultDevice": {"default_device": "0"}, "x": [1]})";
    CHILD_EQ(write(file, text.data(), text.size()), text.size());
    close(file);
    CHILD_OK(aclInit(path.c_str()));
    unlink(path.c_str());
    int32_t device = 7;
    CHILD_OK(aclrtGetDevice(&device));
    CHILD_EQ(device, 0);
  });
}

}  // namespace
}  // namespace anyacl
