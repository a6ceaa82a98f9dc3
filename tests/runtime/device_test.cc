// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 2, 5 and the device part of 9.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_link_only.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_tdt.h"
#include "runtime/context.h"
#include "runtime/support.h"
#include "thread_end.h"

namespace anyacl {
namespace {

uint32_t VisibleWith(const char* visible) {
  setenv("ASCEND_RT_VISIBLE_DEVICES", visible, 1);
  uint32_t count = 77;
  aclrtGetDeviceCount(&count);
  return count;
}

// --- environment ---

TEST(Devices, CountComesFromTheEnvironment) {
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(aclrtGetDeviceCount(nullptr), 100000);
}

TEST(Devices, OneByDefault) {
  ANYACL_CPU_ONLY("by default there are as many as GPUs");
  EXPECT_IN_FRESH_PROCESS({
    unsetenv("ANYACL_DEVICES");
    uint32_t count = 0;
    CHILD_OK(aclrtGetDeviceCount(&count));
    CHILD_EQ(count, 1);
  });
}

TEST(VisibleDevices, IndexIsThePositionInTheList) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_EQ(VisibleWith("1,3"), 2);
    int32_t id = -1;
    CHILD_OK(aclrtGetLogicDevIdByUserDevId(1, &id));
    CHILD_EQ(id, 3);
    CHILD_OK(aclrtGetUserDevIdByLogicDevId(1, &id));
    CHILD_EQ(id, 0);
    CHILD_EQ(aclrtGetUserDevIdByLogicDevId(2, &id), 107001);
    CHILD_EQ(aclrtSetDevice(2), 107001);
    CHILD_OK(aclrtSetDevice(1));
  });
}

TEST(VisibleDevices, StopsAtBadCharacter) {
  EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("0,1,x,3"), 2));
}
TEST(VisibleDevices, SpaceIsBad) { EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("0, 1"), 1)); }
TEST(VisibleDevices, StopsAtInvalidId) {
  EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("0,1,9,2"), 2));
}
TEST(VisibleDevices, MustAscend) { EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("2,1,3"), 1)); }
TEST(VisibleDevices, NegativeHidesAll) { EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("-1"), 0)); }
TEST(VisibleDevices, TrailingGarbageOfAnId) {
  EXPECT_IN_FRESH_PROCESS(CHILD_EQ(VisibleWith("0,1a"), 1));
}

// --- selection ---

TEST(Selection, NothingSelectedGives107002) {
  InNewThread([] {
    int32_t device = 0;
    void* pointer = nullptr;
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    aclrtContext context = nullptr;
    EXPECT_EQ(aclrtGetDevice(&device), 107002);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);  // an answer, not a failure
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(aclrtGetDevice(&device), 107002);  // asking did not select anything
    EXPECT_ACL_FAILURE(107002, aclrtGetCurrentContext(&context),
                       "aclrtGetCurrentContext: this thread has no current context");
    EXPECT_EQ(aclrtMalloc(&pointer, 16, ACL_MEM_MALLOC_HUGE_FIRST), 107002);
    EXPECT_EQ(aclrtMallocHost(&pointer, 16), 107002);
    EXPECT_EQ(aclrtCreateStream(&stream), 107002);
    EXPECT_EQ(aclrtCreateEvent(&event), 107002);
    EXPECT_EQ(aclrtSynchronizeDevice(), 107002);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), 107002);
    EXPECT_EQ(aclrtGetCurrentContext(&context), 107002);
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), 107002);
  });
}

TEST(Selection, InvalidDevice) {
  EXPECT_ACL_FAILURE(107001, aclrtSetDevice(4), "aclrtSetDevice: device must be in [0, 4), got 4");
  EXPECT_EQ(aclrtSetDevice(-1), 107001);
  EXPECT_EQ(aclrtResetDevice(4), 107001);
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtCreateContext(&context, 4), 107001);
}

TEST_F(DeviceTest, BelongsToTheThread) {
  InNewThread([] {
    int32_t device = -1;
    EXPECT_EQ(aclrtGetDevice(&device), 107002);
    EXPECT_EQ(aclrtSetDevice(3), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQ(device, 3);
    EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
  });
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
}

TEST_F(DeviceTest, ThreadsShareTheImplicitContext) {
  aclrtContext mine = nullptr, theirs = nullptr;
  aclrtStream my_stream = nullptr, their_stream = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&my_stream), ACL_SUCCESS);
  InNewThread([&] {
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetCurrentContext(&theirs), ACL_SUCCESS);
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&their_stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  EXPECT_EQ(mine, theirs);
  EXPECT_EQ(my_stream, their_stream);
  EXPECT_NE(my_stream, nullptr);
}

// --- reset ---

TEST(Reset, CountsPerDevice) {
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);  // still there
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107017);  // released with the implicit context
  EXPECT_ACL_FAILURE(507007, aclrtResetDevice(1),
                     "aclrtResetDevice: device 1 must have been selected");
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), 107002);
}

TEST(Reset, WaitsForWork) {
  std::vector<int> order;
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(SubmitWork(stream, AppendWork(&order, i, kLarge)).code(), 0);
  }
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(order.size(), 2000u);
}

TEST(Reset, ForceReleasesWhateverTheCount) {
  EXPECT_EQ(aclrtSetDevice(2), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(2), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(2), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(2), 507007);
  EXPECT_EQ(aclrtResetDevice(2), 507007);
}

TEST(Reset, ForceDoesNotWait) {
  EXPECT_EQ(aclrtSetDevice(2), ACL_SUCCESS);
  std::vector<int> order;
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  Blocker blocker(stream);
  EXPECT_EQ(SubmitWork(stream, AppendWork(&order, 1, kLarge)).code(), 0);
  const runtime::Fence fence = runtime::Fence::Capture();
  EXPECT_EQ(aclrtResetDeviceForce(2), ACL_SUCCESS);
  EXPECT_FALSE(fence.Done());
  blocker.Open();
  while (!fence.Done()) std::this_thread::yield();
  EXPECT_TRUE(order.empty());  // what had not started was dropped
}

TEST(Reset, NeverTouchesMemory) {
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
}

TEST(Reset, OtherThreadFollowsTheNewImplicitContext) {
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  InNewThread([] { EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS); });
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), 107002);
}

TEST(Selection, LastsToTheEndOfTheThread) {
  int32_t device = -1;
  aclError code = -1;
  InNewThread([&] {
    EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    AtThreadEnd([&] { code = aclrtGetDevice(&device); });
  });
  EXPECT_EQ(code, ACL_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
}

// --- explicit contexts ---

TEST(Context, CreateMakesItCurrent) {
  InNewThread([] {
    aclrtContext context = nullptr, current = nullptr;
    EXPECT_EQ(aclrtCreateContext(&context, 2), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
    EXPECT_EQ(current, context);
    int32_t device = -1;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQ(device, 2);
    EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyContext(context), 107017);
    EXPECT_EQ(aclrtGetDevice(&device), 107002);
  });
}

TEST_F(DeviceTest, ContextsHaveTheirOwnDefaultStream) {
  aclrtStream implicit = nullptr, own = nullptr;
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&implicit), ACL_SUCCESS);
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&own), ACL_SUCCESS);
  EXPECT_NE(implicit, own);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(own), 107017);
}

TEST_F(DeviceTest, SetCurrentContextSwitchesTheDevice) {
  aclrtContext zero = nullptr, one = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&zero), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateContext(&one, 1), ACL_SUCCESS);
  int32_t device = -1;
  EXPECT_EQ(aclrtSetCurrentContext(zero), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(aclrtSetCurrentContext(one), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 1);
  InNewThread([one] {
    EXPECT_EQ(aclrtSetCurrentContext(one), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  });
  EXPECT_EQ(aclrtDestroyContext(one), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);  // back to what aclrtSetDevice selected
  EXPECT_EQ(device, 0);
}

TEST_F(DeviceTest, ContextErrors) {
  int local = 0;
  aclrtContext implicit = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&implicit), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateContext(nullptr, 0), 100000);
  EXPECT_ACL_FAILURE(100000, aclrtSetCurrentContext(nullptr), "context must not be null");
  EXPECT_ACL_FAILURE(107017, aclrtSetCurrentContext(&local), "context must be a live context");
  EXPECT_EQ(aclrtDestroyContext(nullptr), 100000);
  EXPECT_EQ(aclrtDestroyContext(&local), 107017);
  EXPECT_ACL_FAILURE(107000, aclrtDestroyContext(implicit), "must come from aclrtCreateContext");
}

TEST(Context, OfAResetDeviceCannotBeSet) {
  EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtCreateContext(&context, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107017, aclrtSetCurrentContext(context), "reset");
  EXPECT_EQ(aclrtSynchronizeDevice(), 107002);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
}

TEST(Context, PrimaryState) {
  int32_t active = -1;
  uint32_t flags = 0;
  EXPECT_EQ(aclrtGetPrimaryCtxState(3, nullptr, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(aclrtSetDevice(3), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(3, nullptr, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(3, &flags, &active), 100000);
  EXPECT_EQ(aclrtGetPrimaryCtxState(9, nullptr, &active), 107001);
}

// --- options ---

TEST_F(DeviceTest, ProcessOptions) {
  int64_t value = 7;
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  for (const int64_t level : {1, 2, 3, 0}) {
    EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, level), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
    EXPECT_EQ(value, level);
  }
  EXPECT_ACL_FAILURE(100000, aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 4),
                     "must be in [0, 3], got 4");
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 2), 100000);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, 2), 100000);
  EXPECT_EQ(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(99), 0), 100000);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), 100000);
}

TEST_F(DeviceTest, ContextOptions) {
  int64_t value = 7;
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107021, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value),
                     "was never set");
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(runtime::EffectiveOption(ACL_OPT_DETERMINISTIC), 1);
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, -1), 100000);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(runtime::EffectiveOption(ACL_OPT_DETERMINISTIC), 0);
  InNewThread([] { EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), 107002); });
}

// --- facts, peers, limits ---

TEST_F(DeviceTest, Facts) {
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  EXPECT_EQ(aclrtGetRunMode(nullptr), 100000);
  for (const aclrtDevAttr attribute :
       {ACL_DEV_ATTR_AICORE_CORE_NUM, ACL_DEV_ATTR_VECTOR_CORE_NUM,
        ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, ACL_DEV_ATTR_L2_CACHE_SIZE, ACL_DEV_ATTR_NPU_ARCH}) {
    int64_t value = 0;
    EXPECT_EQ(aclrtGetDeviceInfo(0, attribute, &value), ACL_SUCCESS);
    EXPECT_GT(value, 0) << attribute;
  }
  int64_t value = 0;
  EXPECT_EQ(aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(5), &value), 100000);
  EXPECT_EQ(aclrtGetDeviceInfo(9, ACL_DEV_ATTR_NPU_ARCH, &value), 107001);
  aclrtUuid a, b;
  EXPECT_EQ(aclrtDeviceGetUuid(0, &a), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceGetUuid(1, &b), ACL_SUCCESS);
  EXPECT_NE(std::memcmp(&a, &b, sizeof(a)), 0);
  int32_t pid = 0;
  EXPECT_EQ(aclrtDeviceGetBareTgid(&pid), ACL_SUCCESS);
  EXPECT_EQ(pid, getpid());
  int32_t least = -1, greatest = -1;
  EXPECT_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), ACL_SUCCESS);
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
  aclrtUtilizationInfo use = {};
  EXPECT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_SUCCESS);
  EXPECT_EQ(use.cubeUtilization, -1);
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_EQ(aclrtQueryDeviceStatus(0, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
}

TEST_F(DeviceTest, Peers) {
  int32_t can = -1;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), ACL_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_ACL_FAILURE(100000, aclrtDeviceCanAccessPeer(&can, 1, 1), "must differ");
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 7), 107001);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 1), 100000);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
  int32_t open = -1;
  EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &open), ACL_SUCCESS);
  EXPECT_EQ(open, 1);
  EXPECT_EQ(aclrtDevicePeerAccessStatus(1, 0, &open), ACL_SUCCESS);  // one direction
  EXPECT_EQ(open, 0);
  EXPECT_EQ(aclrtDeviceDisablePeerAccess(1), ACL_SUCCESS);
}

TEST_F(DeviceTest, CoreLimits) {
  uint32_t cores = 0, value = 0;
  EXPECT_EQ(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores), ACL_SUCCESS);
  EXPECT_GE(cores, 1u);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, cores + 1), 100000);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(aclrtUseStreamResInCurrentThread(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(aclrtUnuseStreamResInCurrentThread(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetStreamResLimit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(nullptr, ACL_RT_DEV_RES_CUBE_CORE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, cores);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, static_cast<aclrtDevResLimitType>(2), &value), 100000);
}

TEST_F(DeviceTest, GroupsAndOverflow) {
  uint32_t groups = 0;
  EXPECT_EQ(aclrtGetGroupCount(&groups), ACL_SUCCESS);
  EXPECT_EQ(groups, 1u);
  EXPECT_EQ(aclrtSetGroup(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetGroup(1), 107000);
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), 100000);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
  void* status = nullptr;
  ASSERT_EQ(aclrtMalloc(&status, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(status, 64, 1, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOverflowStatus(status, 64, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  char last = 1;
  EXPECT_EQ(aclrtMemcpy(&last, 1, static_cast<char*>(status) + 63, 1, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(last, 0);
  EXPECT_EQ(aclrtGetOverflowStatus(status, 63, nullptr), 100000);
  char mine[64];
  EXPECT_EQ(aclrtGetOverflowStatus(mine, 64, nullptr), 107000);
  EXPECT_EQ(aclrtResetOverflowStatus(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(status), ACL_SUCCESS);
}

TEST_F(DeviceTest, UnsupportedFunctionsSayTheirName) {
  EXPECT_ACL_FAILURE(200001, aclmdlRICaptureTaskGrpBegin(nullptr),
                     "aclmdlRICaptureTaskGrpBegin: is not supported");
  EXPECT_ACL_FAILURE(200001, aclmdlInitDump(), "aclmdlInitDump");
  EXPECT_ACL_FAILURE(200001, aclprofInit("", 0), "aclprofInit");
  EXPECT_ACL_FAILURE(200001, aclopSetModelDir(""), "aclopSetModelDir");
  EXPECT_ACL_FAILURE(
      200001,
      aclopCompileAndExecute("DynamicRNN", 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                             ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, nullptr),
      "DynamicRNN");
  EXPECT_ACL_FAILURE(
      200001, aclopExecuteV2(nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      "got operator null");
  aclGetRecentErrMsg();
  EXPECT_EQ(acltdtCreateDataset(), nullptr);
  EXPECT_NE(RecentText().find("acltdtCreateDataset"), std::string::npos);
}

TEST_F(DeviceTest, FeaturesThatAreOffLeaveNothingBehind) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  aclGetRecentErrMsg();
  aclrtErrorInfo info{};
  EXPECT_EQ(aclmdlFinalizeDump(), 207000);
  EXPECT_EQ(aclprofStop(nullptr), 207000);
  EXPECT_EQ(aclmdlRIDebugPrint(nullptr), 207000);
  EXPECT_EQ(aclrtRepairError(0, &info), 207000);
  EXPECT_EQ(aclrtMemUceRepair(0, nullptr, 0), 207000);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST_F(DeviceTest, NoFaultsOfTheDevice) {
  aclrtErrorInfo info;
  std::memset(&info, 0x55, sizeof(info));
  ASSERT_EQ(aclrtGetErrorVerbose(0, &info), 0);
  EXPECT_EQ(info.errorType, ACL_RT_NO_ERROR);
  EXPECT_EQ(info.tryRepair, 0);
  EXPECT_EQ(info.hasDetail, 0);
  EXPECT_ACL_FAILURE(107001, aclrtGetErrorVerbose(kDevices, &info), "aclrtGetErrorVerbose");
  EXPECT_ACL_FAILURE(100000, aclrtGetErrorVerbose(0, nullptr), "errorInfo");
  size_t count = 7;
  aclrtMemUceInfo ranges[1];
  EXPECT_EQ(aclrtGetMemUceInfo(0, ranges, 1, &count), 0);
  EXPECT_EQ(count, 0u);
  EXPECT_ACL_FAILURE(100000, aclrtGetMemUceInfo(0, nullptr, 1, &count), "memUceInfoArray");
  EXPECT_ACL_FAILURE(100000, aclrtGetMemUceInfo(0, ranges, 1, nullptr), "retSize");
}

TEST(LinkOnly, ReportsAreDroppedAndKernelsRefused) {
  EXPECT_EQ(MsprofGetHashId("name", 4), 0u);
  EXPECT_EQ(MsprofSysCycleTime(), 0u);
  EXPECT_EQ(MsprofRegisterCallback(0, nullptr), 0);
  EXPECT_EQ(MsprofReportApi(0, nullptr), 0);
  EXPECT_EQ(MsprofReportCompactInfo(0, nullptr, 0), 0);
  EXPECT_EQ(MsprofReportAdditionalInfo(0, nullptr, 0), 0);
  void* handle = nullptr;
  uint64_t address = 0;
  uint32_t length = 0;
  EXPECT_EQ(rtDevBinaryRegister(nullptr, &handle), 200001);
  EXPECT_EQ(rtFunctionRegister(nullptr, nullptr, "", nullptr, 0), 200001);
  EXPECT_EQ(rtKernelLaunch(nullptr, 1, nullptr, 0, nullptr, nullptr), 200001);
  EXPECT_EQ(rtGetC2cCtrlAddr(&address, &length), 200001);
  EXPECT_ACL_FAILURE(200001, aclrtBinaryLoadFromData(nullptr, 0, nullptr, &handle),
                     "aclrtBinaryLoadFromData: is not supported");
  EXPECT_EQ(aclrtBinaryGetFunction(nullptr, "", &handle), 200001);
  EXPECT_EQ(aclrtGetFunctionAddr(nullptr, &handle, &handle), 200001);
}

TEST_F(DeviceTest, CaptureOfAnIdleStreamIsNone) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  aclmdlRI model = &status;
  EXPECT_EQ(aclmdlRICaptureGetInfo(nullptr, &status, &model), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(aclmdlRICaptureGetInfo(&status, &status, &model), 107017);
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
}

// --- many ---

// 8 threads, 8 streams, 4 devices: each stream keeps its order, each thread its device, and events carry
// work from one stream of a device to the other.
TEST(Many, EightThreadsEightStreamsFourDevices) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 400;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      const int device = t % kDevices;
      ASSERT_EQ(aclrtSetDevice(device), ACL_SUCCESS);
      aclrtStream stream = nullptr, side = nullptr;
      aclrtEvent event = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      ASSERT_EQ(aclrtCreateStream(&side), ACL_SUCCESS);
      ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
      std::vector<int> order;  // only ever touched in the order that the events give
      for (int i = 0; i < kRounds; ++i) {
        const uint64_t cost = i % 3 == 0 ? kLarge : 0;
        ASSERT_EQ(SubmitWork(stream, AppendWork(&order, 2 * i, cost)).code(), 0);
        ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtStreamWaitEvent(side, event), ACL_SUCCESS);
        ASSERT_EQ(SubmitWork(side, AppendWork(&order, 2 * i + 1, cost)).code(), 0);
        ASSERT_EQ(aclrtRecordEvent(event, side), ACL_SUCCESS);
        ASSERT_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
      }
      int32_t current = -1;
      ASSERT_EQ(aclrtGetDevice(&current), ACL_SUCCESS);
      EXPECT_EQ(current, device);
      ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
      ASSERT_EQ(order.size(), 2u * kRounds);
      for (int i = 0; i < 2 * kRounds; ++i) ASSERT_EQ(order[i], i);
      EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(side), ACL_SUCCESS);
      EXPECT_EQ(aclrtResetDevice(device), ACL_SUCCESS);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace anyacl
