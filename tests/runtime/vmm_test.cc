// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Physical memory mapped into reserved ranges, the way the pool of ggml uses it.
#include <cstring>
#include <vector>

#include "memory_fixture.h"

namespace anyacl {
namespace {

class VmmTest : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    prop_.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    prop_.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    prop_.memAttr = ACL_HBM_MEM_HUGE;
    prop_.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    prop_.location.id = 0;
    ASSERT_EQ(aclrtMemGetAllocationGranularity(&prop_, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                                               &granule_),
              ACL_SUCCESS);
  }
  aclrtDrvMemHandle Physical(size_t granules) {
    aclrtDrvMemHandle handle = nullptr;
    EXPECT_EQ(aclrtMallocPhysical(&handle, granules * granule_, &prop_, 0), ACL_SUCCESS);
    return handle;
  }
  char* Reserve(size_t bytes) {
    void* range = nullptr;
    EXPECT_EQ(aclrtReserveMemAddress(&range, bytes, 0, nullptr, 1), ACL_SUCCESS);
    return static_cast<char*>(range);
  }
  aclError Map(void* address, size_t granules, aclrtDrvMemHandle handle) {
    return aclrtMapMem(address, granules * granule_, 0, handle, 0);
  }

  aclrtPhysicalMemProp prop_{};
  size_t granule_ = 0;
};

TEST_F(VmmTest, GranularityIsAPowerOfTwo) {
  EXPECT_GT(granule_, 0u);
  EXPECT_EQ(granule_ & (granule_ - 1), 0u);
  size_t least = 0;
  ASSERT_EQ(aclrtMemGetAllocationGranularity(&prop_, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &least),
            ACL_SUCCESS);
  EXPECT_LE(least, granule_);
}

// A pool that grows: one large range, memory mapped piece by piece behind each other, used as one.
TEST_F(VmmTest, GrowingPool) {
  char* pool = Reserve(MachineMemory().total);
  std::vector<aclrtDrvMemHandle> handles;
  std::vector<char*> mapped;
  size_t used = 0;
  for (const size_t granules : {1, 3, 2}) {
    handles.push_back(Physical(granules));
    mapped.push_back(pool + used);
    ASSERT_EQ(Map(pool + used, granules, handles.back()), ACL_SUCCESS);
    used += granules * granule_;
  }
  ASSERT_EQ(aclrtMemsetAsync(pool, used, 5, used, stream_), ACL_SUCCESS);
  std::vector<char> back(used);
  ASSERT_EQ(aclrtMemcpyAsync(back.data(), used, pool, used, ACL_MEMCPY_DEVICE_TO_HOST, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(back, std::vector<char>(used, 5));
  EXPECT_EQ(aclrtMemset(pool, used + 1, 0, used + 1), 107000) << "nothing is mapped behind";

  aclrtPtrAttributes attributes;
  ASSERT_EQ(aclrtPointerGetAttributes(pool + granule_ + 7, &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  ASSERT_EQ(aclrtPointerGetAttributes(pool + used, &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);

  EXPECT_ACL_FAILURE(107000, aclrtReleaseMemAddress(pool), "no memory mapped");
  for (char* address : mapped) EXPECT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  for (aclrtDrvMemHandle handle : handles) EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(pool), ACL_SUCCESS);
}

TEST_F(VmmTest, ContentsBelongToThePhysicalMemory) {
  ANYACL_CPU_ONLY("CUDA maps a handle from its start");
  char* range = Reserve(4 * granule_);
  const aclrtDrvMemHandle handle = Physical(2);
  ASSERT_EQ(Map(range, 2, handle), ACL_SUCCESS);
  std::memset(range, 1, granule_);
  std::memset(range + granule_, 2, granule_);
  ASSERT_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
  ASSERT_EQ(aclrtMapMem(range + 3 * granule_, granule_, granule_, handle, 0), ACL_SUCCESS);
  EXPECT_EQ(range[3 * granule_], 2);
  // The memory stays while it is mapped, whatever becomes of the handle.
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(range[4 * granule_ - 1], 2);
  EXPECT_EQ(aclrtUnmapMem(range + 3 * granule_), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
}

TEST_F(VmmTest, UnmapWaitsForQueuedWork) {
  char* range = Reserve(granule_);
  const aclrtDrvMemHandle handle = Physical(1);
  ASSERT_EQ(Map(range, 1, handle), ACL_SUCCESS);
  {
    Gate gate(stream_);
    ASSERT_EQ(aclrtMemsetAsync(range, granule_, 1, granule_, stream_), ACL_SUCCESS);
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      gate.Open();
    });
    EXPECT_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
    opener.join();
  }
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
}

TEST_F(VmmTest, PhysicalMemoryCounts) {
  const size_t before = MachineMemory().free;
  const size_t granules = before / 2 / granule_;
  const aclrtDrvMemHandle handle = Physical(granules);
  EXPECT_LT(MachineMemory().free, before - granules * granule_ / 2);
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  aclrtDrvMemHandle none = nullptr;
  EXPECT_ACL_FAILURE(207001, aclrtMallocPhysical(&none, size_t{1} << 40, &prop_, 0),
                     "out of memory");
  EXPECT_EQ(aclrtMallocPhysical(&none, SIZE_MAX / granule_ * granule_, &prop_, 0), 207001);
}

// More handles than a process may have files open.
TEST_F(VmmTest, ManyHandles) {
  std::vector<aclrtDrvMemHandle> handles;
  for (int i = 0; i < 1100; ++i) handles.push_back(Physical(1));
  for (aclrtDrvMemHandle handle : handles) EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
}

TEST_F(VmmTest, FreeDoesNotTakeMappedMemory) {
  char* range = Reserve(granule_);
  const aclrtDrvMemHandle handle = Physical(1);
  ASSERT_EQ(Map(range, 1, handle), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, aclrtFree(range), "aclrtMapMem");
  EXPECT_EQ(aclrtFree(handle), 107000);
  EXPECT_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
}

TEST_F(VmmTest, ArgumentsOfReserve) {
  void* range = nullptr;
  EXPECT_ACL_FAILURE(100000, aclrtReserveMemAddress(nullptr, 4096, 0, nullptr, 0), "virPtr");
  EXPECT_ACL_FAILURE(100000, aclrtReserveMemAddress(&range, 0, 0, nullptr, 0), "size");
  EXPECT_ACL_FAILURE(100000, aclrtReserveMemAddress(&range, 4096, 64, nullptr, 0), "alignment");
  EXPECT_ACL_FAILURE(100000, aclrtReserveMemAddress(&range, 4096, 0, nullptr, 2), "flags");
  EXPECT_EQ(aclrtReserveMemAddress(&range, SIZE_MAX, 0, nullptr, 0), 207001);
  EXPECT_ACL_FAILURE(100000, aclrtReleaseMemAddress(nullptr), "virPtr");
  EXPECT_ACL_FAILURE(107000, aclrtReleaseMemAddress(&range), "reserved range");
  ASSERT_EQ(aclrtReserveMemAddress(&range, 4096, 0, &range, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), 107000);
}

TEST_F(VmmTest, ArgumentsOfPhysical) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_ACL_FAILURE(100000, aclrtMallocPhysical(nullptr, granule_, &prop_, 0), "handle");
  EXPECT_ACL_FAILURE(100000, aclrtMallocPhysical(&handle, granule_, nullptr, 0), "prop");
  EXPECT_ACL_FAILURE(100000, aclrtMallocPhysical(&handle, 0, &prop_, 0), "size");
  EXPECT_ACL_FAILURE(100000, aclrtMallocPhysical(&handle, granule_, &prop_, 1), "flags");
  EXPECT_ACL_FAILURE(107000, aclrtMallocPhysical(&handle, granule_ + 1, &prop_, 0), "multiple of");
  EXPECT_ACL_FAILURE(100000, aclrtFreePhysical(nullptr), "handle");
  EXPECT_ACL_FAILURE(107017, aclrtFreePhysical(&handle), "live physical memory");
  handle = Physical(1);
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(handle), 107017);
}

TEST_F(VmmTest, Properties) {
  size_t granularity = 0;
  const auto ask = [&] {
    return aclrtMemGetAllocationGranularity(&prop_, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                            &granularity);
  };
  const aclrtPhysicalMemProp good = prop_;
  EXPECT_EQ(ask(), ACL_SUCCESS);
  prop_.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
  EXPECT_ACL_FAILURE(100000, ask(), "handleType");
  prop_ = good;
  prop_.allocationType = static_cast<aclrtMemAllocationType>(1);
  EXPECT_ACL_FAILURE(100000, ask(), "allocationType");
  prop_ = good;
  prop_.memAttr = static_cast<aclrtMemAttr>(18);
  EXPECT_ACL_FAILURE(100000, ask(), "memAttr");
  prop_.memAttr = ACL_HBM_MEM_HUGE1G;
  EXPECT_ACL_FAILURE(200001, ask(), "1 GiB");
  prop_ = good;
  prop_.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  EXPECT_ACL_FAILURE(200001, ask(), "location.type");
  prop_ = good;
  prop_.location.id = 5000;
  EXPECT_EQ(ask(), 107001);
  prop_ = good;
  EXPECT_ACL_FAILURE(100000,
                     aclrtMemGetAllocationGranularity(
                         &prop_, static_cast<aclrtMemGranularityOptions>(2), &granularity),
                     "option");
  EXPECT_ACL_FAILURE(
      100000,
      aclrtMemGetAllocationGranularity(nullptr, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity),
      "prop");
  EXPECT_ACL_FAILURE(
      100000,
      aclrtMemGetAllocationGranularity(&prop_, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, nullptr),
      "granularity");
}

TEST_F(VmmTest, ArgumentsOfMap) {
  char* range = Reserve(2 * granule_);
  const aclrtDrvMemHandle handle = Physical(1);
  EXPECT_ACL_FAILURE(100000, Map(nullptr, 1, handle), "virPtr");
  EXPECT_ACL_FAILURE(100000, Map(range, 1, nullptr), "handle");
  EXPECT_ACL_FAILURE(100000, Map(range, 0, handle), "size");
  EXPECT_ACL_FAILURE(100000, aclrtMapMem(range, granule_, 0, handle, 1), "flags");
  EXPECT_ACL_FAILURE(107017, Map(range, 1, &prop_), "live physical memory");
  EXPECT_ACL_FAILURE(107000, Map(range + 4096, 1, handle), "multiple of");
  EXPECT_ACL_FAILURE(107000, aclrtMapMem(range, granule_ + 1, 0, handle, 0), "multiple of");
  EXPECT_ACL_FAILURE(107000, aclrtMapMem(range, granule_, 1, handle, 0), "multiple of");
  EXPECT_ACL_FAILURE(107000, Map(range, 2, handle), "at most the handle's");
  EXPECT_EQ(aclrtMapMem(range, granule_, SIZE_MAX / granule_ * granule_, handle, 0), 107000);
  EXPECT_ACL_FAILURE(107000, Map(range + 2 * granule_, 1, handle), "reserved range");
  ASSERT_EQ(Map(range, 1, handle), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, Map(range, 1, handle), "mapped already");
  EXPECT_ACL_FAILURE(100000, aclrtUnmapMem(nullptr), "virPtr");
  EXPECT_ACL_FAILURE(107000, aclrtUnmapMem(range + granule_), "mapped memory");
  EXPECT_EQ(aclrtUnmapMem(range), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnmapMem(range), 107000);
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(range), ACL_SUCCESS);
}

TEST_F(VmmTest, SharingIsNotSupported) {
  uint64_t id = 0;
  aclrtDrvMemHandle handle = nullptr;
  char key[65] = {};
  void* p = nullptr;
  int32_t pid = 1;
  EXPECT_ACL_FAILURE(200001,
                     aclrtMemExportToShareableHandle(nullptr, ACL_MEM_HANDLE_TYPE_NONE, 0, &id),
                     "aclrtMemExportToShareableHandle: ");
  EXPECT_ACL_FAILURE(200001, aclrtMemImportFromShareableHandle(1, 0, &handle),
                     "aclrtMemImportFromShareableHandle: ");
  EXPECT_ACL_FAILURE(200001, aclrtMemSetPidToShareableHandle(1, &pid, 1),
                     "aclrtMemSetPidToShareableHandle: ");
  EXPECT_ACL_FAILURE(200001, aclrtIpcMemGetExportKey(p, 1, key, 65, 0),
                     "aclrtIpcMemGetExportKey: ");
  EXPECT_ACL_FAILURE(200001, aclrtIpcMemClose(key), "aclrtIpcMemClose: ");
  EXPECT_ACL_FAILURE(200001, aclrtIpcMemImportByKey(&p, key, 0), "aclrtIpcMemImportByKey: ");
  EXPECT_ACL_FAILURE(200001, aclrtIpcMemSetImportPid(key, &pid, 1), "aclrtIpcMemSetImportPid: ");
}

}  // namespace
}  // namespace anyacl
