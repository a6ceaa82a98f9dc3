// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Allocation, freeing and questions about memory: the rows of semantics.md 4 and the frees of 1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <vector>

#include "memory_fixture.h"

namespace anyacl {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;

using MallocFunction = aclError (*)(void**, size_t);
struct MallocCase {
  const char* name;
  MallocFunction call;
  aclError (*free)(void*);
};
const MallocCase kMallocs[] = {
    {"aclrtMalloc", [](void** p, size_t n) { return aclrtMalloc(p, n, kPolicy); }, aclrtFree},
    {"aclrtMallocAlign32", [](void** p, size_t n) { return aclrtMallocAlign32(p, n, kPolicy); },
     aclrtFree},
    {"aclrtMallocCached", [](void** p, size_t n) { return aclrtMallocCached(p, n, kPolicy); },
     aclrtFreeWithDevSync},
    {"aclrtMallocWithCfg",
     [](void** p, size_t n) { return aclrtMallocWithCfg(p, n, kPolicy, nullptr); }, aclrtFree},
    {"aclrtMallocForTaskScheduler",
     [](void** p, size_t n) { return aclrtMallocForTaskScheduler(p, n, kPolicy, nullptr); },
     aclrtFree},
    {"aclrtMallocHost", [](void** p, size_t n) { return aclrtMallocHost(p, n); }, aclrtFreeHost},
    {"aclrtMallocHostWithCfg",
     [](void** p, size_t n) { return aclrtMallocHostWithCfg(p, n, nullptr); },
     aclrtFreeHostWithDevSync},
};

class MallocTest : public MemoryTest, public ::testing::WithParamInterface<MallocCase> {};

TEST_P(MallocTest, RejectsSizeZeroAndNull) {
  void* p = nullptr;
  EXPECT_ACL_FAILURE(100000, GetParam().call(&p, 0), "size must be greater than 0, got 0");
  EXPECT_EQ(p, nullptr);
  EXPECT_ACL_FAILURE(100000, GetParam().call(nullptr, 16), "Ptr must not be null");
}

TEST_P(MallocTest, NamesItselfInTheSentence) {
  void* p = nullptr;
  EXPECT_ACL_FAILURE(100000, GetParam().call(&p, 0), std::string(GetParam().name) + ": size");
}

TEST_P(MallocTest, OutOfMemoryIs207001) {
  for (const size_t size : {size_t{1} << 40, size_t{1} << 62, SIZE_MAX, SIZE_MAX - 31}) {
    void* p = nullptr;
    EXPECT_ACL_FAILURE(207001, GetParam().call(&p, size), "out of memory");
    EXPECT_EQ(p, nullptr);
  }
}

TEST_P(MallocTest, AlignedWithReadableTail) {
  for (const size_t size : {size_t{1}, size_t{31}, size_t{511}, size_t{512}, 100 * kKiB,
                            2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 4064, 5 * kMiB + 3}) {
    void* p = nullptr;
    ASSERT_EQ(GetParam().call(&p, size), ACL_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 512, 0u);
    if (size >= 2 * kMiB && !runtime::CurrentBackend().launches()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % (2 * kMiB), 0u);
    }
    std::vector<unsigned char> bytes(size + 32, 1);
    EXPECT_EQ(aclrtMemcpy(p, size, bytes.data(), size, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpy(bytes.data(), size + 32, p, size + 32, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
    EXPECT_EQ(GetParam().free(p), ACL_SUCCESS);
  }
}

TEST_P(MallocTest, FreeRules) {
  EXPECT_ACL_FAILURE(100000, GetParam().free(nullptr), "Ptr must not be null");
  void* p = nullptr;
  ASSERT_EQ(GetParam().call(&p, 4 * kKiB), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, GetParam().free(static_cast<char*>(p) + 64), "64 bytes inside");
  EXPECT_EQ(GetParam().free(p), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, GetParam().free(p), "not allocated");
  int local = 0;
  EXPECT_ACL_FAILURE(107000, GetParam().free(&local), "not allocated");
  EXPECT_ACL_FAILURE(107000, GetParam().free(reinterpret_cast<void*>(0x10)), "not allocated");
}

TEST_P(MallocTest, NeedsAContextToAllocateButNotToFree) {
  void* p = nullptr;
  ASSERT_EQ(GetParam().call(&p, 64), ACL_SUCCESS);
  std::thread([&] {
    void* none = nullptr;
    EXPECT_EQ(GetParam().call(&none, 64), 107002);
    EXPECT_EQ(GetParam().free(p), ACL_SUCCESS);
  }).join();
}

INSTANTIATE_TEST_SUITE_P(All, MallocTest, ::testing::ValuesIn(kMallocs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(MemoryTest, UnknownPolicyIsNoError) {
  for (const int policy : {0, 1, 2, 7, 0x100, 0x1002, 12345, -1}) {
    for (const size_t size : {64 * kKiB, 3 * kMiB}) {
      void* p = nullptr;
      EXPECT_EQ(aclrtMalloc(&p, size, static_cast<aclrtMemMallocPolicy>(policy)), ACL_SUCCESS);
      EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
    }
  }
}

TEST_F(MemoryTest, FreeDoesNotTakeTheOtherKind) {
  auto device = MallocDevice(64);
  auto pinned = MallocPinned(64);
  EXPECT_ACL_FAILURE(107000, aclrtFree(pinned.get()), "aclrtMallocHost");
  EXPECT_ACL_FAILURE(107000, aclrtFreeHost(device.get()), "device memory of aclrtMalloc");
}

// Pages nobody touched count as allocated: without that the machine would promise the same memory
// to many blocks and end the process when they are used.
TEST_F(MemoryTest, UntouchedMemoryCounts) {
  const size_t total = MachineMemory().total;
  std::vector<void*> blocks;
  aclError last = ACL_SUCCESS;
  while (blocks.size() < 16) {
    void* p = nullptr;
    last = aclrtMalloc(&p, total / 4, kPolicy);
    if (last != ACL_SUCCESS) break;
    blocks.push_back(p);
  }
  EXPECT_EQ(last, 207001);
  EXPECT_LE(blocks.size(), 4u);
  for (void* p : blocks) EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
  void* again = nullptr;
  EXPECT_EQ(aclrtMalloc(&again, total / 64, kPolicy), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(again), ACL_SUCCESS);
}

TEST_F(MemoryTest, MemInfoFollowsAllocations) {
  const Memory start = MachineMemory();
  const size_t before = start.free;
  EXPECT_GT(before, 0u);
  EXPECT_LE(before, start.total);
  const size_t size = before / 2;
  size_t during = 0;
  {
    const auto block = MallocDevice(size);
    during = MachineMemory(ACL_DDR_MEM).free;
  }
  const size_t after = MachineMemory(ACL_HBM_MEM_HUGE).free;
  EXPECT_LT(during, before - size / 2);
  EXPECT_GT(after, during + size / 2);
}

TEST_F(MemoryTest, MemInfoArguments) {
  size_t free_bytes = 1;
  size_t total = 1;
  EXPECT_ACL_FAILURE(100000, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), "free");
  EXPECT_ACL_FAILURE(100000, aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, nullptr), "total");
  EXPECT_ACL_FAILURE(100000, aclrtGetMemInfo(static_cast<aclrtMemAttr>(18), &free_bytes, &total),
                     "attr must be 0 to 17, got 18");
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free_bytes, &total), ACL_SUCCESS);
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_EQ(total, 0u);
  std::thread([&] { EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), 107002); }).join();
}

// The block goes away only when work queued before the free is done; its address is not given out
// again before that.
TEST_F(MemoryTest, FreeWaitsForQueuedWorkWithoutBlocking) {
  constexpr size_t kSize = 3 * kMiB;
  Gate gate(stream_);
  std::set<void*> freed;
  for (const size_t size : {kSize, 4 * kKiB}) {
    void* p = nullptr;
    ASSERT_EQ(aclrtMalloc(&p, size, kPolicy), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemsetAsync(p, size, 7, size, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtFree(p), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(p), 107000);
    freed.insert(p);
  }
  for (int i = 0; i < 4; ++i) {
    const auto other = MallocDevice(kSize);
    EXPECT_EQ(freed.count(other.get()), 0u);
    other.Fill(1, kSize);
  }
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(MemoryTest, PinnedMemoryFreedInStreamOrder) {
  Gate gate(stream_);
  const auto device = MallocDevice<int>(256);
  {
    const auto pinned = MallocPinned<int>(256);
    for (int i = 0; i < 256; ++i) pinned[i] = i;
    ASSERT_EQ(aclrtMemcpyAsync(device.get(), 1024, pinned.get(), 1024, ACL_MEMCPY_HOST_TO_DEVICE,
                               stream_),
              ACL_SUCCESS);
  }
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(device[i], i);
}

// To the caller freed memory is free, even while it waits for queued work.
TEST_F(MemoryTest, AllocationWaitsForPendingFreesWhenNothingElseIsLeft) {
  const size_t most = MachineMemory().free / 4 * 3;
  Gate gate(stream_);
  void* p = nullptr;
  ASSERT_EQ(aclrtMalloc(&p, most, kPolicy), ACL_SUCCESS);
  ASSERT_EQ(aclrtFree(p), ACL_SUCCESS);
  EXPECT_GT(MachineMemory().free, most);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.Open();
  });
  EXPECT_EQ(aclrtMalloc(&p, most, kPolicy), ACL_SUCCESS);
  opener.join();
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
}

TEST_F(MemoryTest, Configuration) {
  aclrtMallocAttribute attributes[2] = {};
  attributes[0].attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attributes[0].value.moduleId = 33;
  attributes[1].attr = ACL_RT_MEM_ATTR_DEVICE_ID;
  attributes[1].value.deviceId = 0;
  aclrtMallocConfig config{attributes, 2};
  void* p = nullptr;
  EXPECT_EQ(aclrtMallocWithCfg(&p, 64, kPolicy, &config), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
  attributes[1].value.deviceId = 4000;
  EXPECT_EQ(aclrtMallocWithCfg(&p, 64, kPolicy, &config), 107001);
  attributes[1].attr = static_cast<aclrtMallocAttrType>(77);
  EXPECT_ACL_FAILURE(100000, aclrtMallocHostWithCfg(&p, 64, &config),
                     "attrs[1].attr must be 0 to 3");
  config.attrs = nullptr;
  EXPECT_ACL_FAILURE(100000, aclrtMallocWithCfg(&p, 64, kPolicy, &config), "cfg->attrs");
}

TEST_F(MemoryTest, PointerAttributes) {
  const auto small = MallocDevice(1000);
  const auto large = MallocDevice(4 * kMiB);
  const auto pinned = MallocPinned(1000);
  int local = 0;
  aclrtPtrAttributes attributes;
  ASSERT_EQ(aclrtPointerGetAttributes(&small[999], &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, 0u);
  EXPECT_EQ(attributes.pageSize, 4096u);
  ASSERT_EQ(aclrtPointerGetAttributes(&large[3 * kMiB], &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.pageSize, 2 * kMiB);
  ASSERT_EQ(aclrtPointerGetAttributes(pinned.get(), &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  ASSERT_EQ(aclrtPointerGetAttributes(&local, &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  attributes.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  ASSERT_EQ(aclrtPointerGetAttributes(nullptr, &attributes), ACL_SUCCESS);  // of an empty tensor
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_ACL_FAILURE(100000, aclrtPointerGetAttributes(&local, nullptr), "attributes");
}

TEST_F(MemoryTest, AddressRange) {
  const auto block = MallocDevice(1000);
  void* base = nullptr;
  size_t size = 0;
  ASSERT_EQ(aclrtMemGetAddressRange(&block[500], &base, &size), ACL_SUCCESS);
  EXPECT_EQ(base, block.get());
  EXPECT_EQ(size, 1000u);
  EXPECT_EQ(aclrtMemGetAddressRange(&block[1], nullptr, nullptr), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtMemGetAddressRange(nullptr, &base, &size), "ptr");
  EXPECT_ACL_FAILURE(107000, aclrtMemGetAddressRange(&size, &base, &size), "device memory");
}

TEST_F(MemoryTest, Usage) {
  aclrtMemUsageInfo info[2];
  size_t rows = 0;
  const auto block = MallocDevice(kMiB);
  ASSERT_EQ(aclrtGetMemUsageInfo(0, info, 2, &rows), ACL_SUCCESS);
  ASSERT_EQ(rows, 1u);
  EXPECT_STREQ(info[0].name, "APP");
  EXPECT_GE(info[0].curMemSize, kMiB);
  EXPECT_GE(info[0].memPeakSize, info[0].curMemSize);
  EXPECT_EQ(aclrtGetMemUsageInfo(999, info, 2, &rows), 107001);
  EXPECT_EQ(aclrtGetMemUsageInfo(-1, info, 2, &rows), 107001);
  EXPECT_ACL_FAILURE(100000, aclrtGetMemUsageInfo(0, nullptr, 2, &rows), "memUsageInfo");
  EXPECT_ACL_FAILURE(100000, aclrtGetMemUsageInfo(0, info, 2, nullptr), "outputNum");
  EXPECT_ACL_FAILURE(100000, aclrtGetMemUsageInfo(0, info, 0, &rows), "inputNum");
}

// Page-aligned memory of the test's own.
class HostRegisterTest : public MemoryTest {
 protected:
  static constexpr size_t kBytes = 4 * 4096;
  void SetUp() override {
    MemoryTest::SetUp();
    host_ = std::aligned_alloc(4096, kBytes);
  }
  void TearDown() override {
    std::free(host_);
    MemoryTest::TearDown();
  }
  char* At(size_t offset) { return static_cast<char*>(host_) + offset; }

  void* host_ = nullptr;
};

TEST_F(HostRegisterTest, RegisterTwiceAndUnregisterTwice) {
  void* device = nullptr;
  ASSERT_EQ(aclrtHostRegister(host_, kBytes, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
  EXPECT_EQ(device, host_);
  EXPECT_ACL_FAILURE(507910, aclrtHostRegister(host_, 4096, ACL_HOST_REGISTER_MAPPED, &device),
                     "registered already");
  EXPECT_EQ(aclrtHostRegisterV2(At(4096), 4096, ACL_HOST_REG_PINNED), 507910);
  aclrtPtrAttributes attributes;
  ASSERT_EQ(aclrtPointerGetAttributes(At(5000), &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  void* view = nullptr;
  EXPECT_EQ(aclrtHostGetDevicePointer(At(100), &view, 0), ACL_SUCCESS);
  EXPECT_EQ(view, At(100));
  EXPECT_EQ(aclrtHostUnregister(At(4096)), 507911);
  EXPECT_EQ(aclrtHostUnregister(host_), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(507911, aclrtHostUnregister(host_), "registered memory");
  EXPECT_EQ(aclrtHostGetDevicePointer(host_, &view, 0), 107000);
}

TEST_F(HostRegisterTest, Arguments) {
  void* device = nullptr;
  const auto type = ACL_HOST_REGISTER_MAPPED;
  EXPECT_ACL_FAILURE(100000, aclrtHostRegister(nullptr, 4096, type, &device), "ptr");
  EXPECT_ACL_FAILURE(100000, aclrtHostRegister(host_, 4096, type, nullptr), "devPtr");
  EXPECT_ACL_FAILURE(100000, aclrtHostRegister(host_, 0, type, &device), "size");
  EXPECT_ACL_FAILURE(107000, aclrtHostRegister(At(8), 4096, type, &device), "aligned to 4096");
  EXPECT_ACL_FAILURE(107000, aclrtHostRegister(host_, 100, type, &device), "multiple of 4096");
  EXPECT_ACL_FAILURE(107000, aclrtHostRegister(host_, ~uint64_t{4095}, type, &device), "address");
  EXPECT_ACL_FAILURE(100000,
                     aclrtHostRegister(host_, 4096, static_cast<aclrtHostRegisterType>(3), &device),
                     "type must be 0, 4 or 8, got 3");
  EXPECT_ACL_FAILURE(100000, aclrtHostRegisterV2(host_, 4096, 1), "flag");
  EXPECT_ACL_FAILURE(100000, aclrtHostUnregister(nullptr), "ptr");
  EXPECT_ACL_FAILURE(100000, aclrtHostGetDevicePointer(nullptr, &device, 0), "pHost");
  EXPECT_ACL_FAILURE(100000, aclrtHostGetDevicePointer(host_, nullptr, 0), "pDevice");
  EXPECT_ACL_FAILURE(100000, aclrtHostGetDevicePointer(host_, &device, 1), "flag");
}

TEST_F(HostRegisterTest, RegisteredMemoryIsNotFreedByUs) {
  ASSERT_EQ(aclrtHostRegisterV2(host_, kBytes, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED),
            ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000, aclrtFreeHost(host_), "aclrtHostRegister");
  EXPECT_ACL_FAILURE(107000, aclrtFree(host_), "aclrtHostRegister");
  EXPECT_EQ(aclrtHostUnregister(host_), ACL_SUCCESS);
}

// A caller that unmaps registered memory without a word must not make our next block unknown.
TEST_F(HostRegisterTest, ForgottenRegistrationDoesNotHideANewBlock) {
  constexpr size_t kSize = 64 * kMiB;
  void* own = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(own, MAP_FAILED);
  ASSERT_EQ(aclrtHostRegisterV2(own, kSize, 0), ACL_SUCCESS);
  munmap(own, kSize);
  std::vector<Device<unsigned char>> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(MallocDevice(16 * kMiB));  // freed without error
  for (const auto& block : blocks) {
    aclrtPtrAttributes attributes;
    ASSERT_EQ(aclrtPointerGetAttributes(block.get(), &attributes), ACL_SUCCESS);
    EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  }
  aclrtHostUnregister(own);
}

// torch_npu does so for memory of the host that the device computes in.
TEST_F(MemoryTest, PinnedMemoryCanBeRegistered) {
  const auto pinned = MallocPinned(5000);
  char* const start = reinterpret_cast<char*>(pinned.get());
  void* view = nullptr;
  EXPECT_EQ(aclrtHostUnregister(start), 507911);
  ASSERT_EQ(aclrtHostRegister(start, 8192, ACL_HOST_REGISTER_MAPPED, &view), ACL_SUCCESS);
  EXPECT_EQ(view, start);
  EXPECT_NE(aclrtHostRegister(start, 8192, ACL_HOST_REGISTER_MAPPED, &view), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(start), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(start), 507911);
  EXPECT_NE(aclrtHostRegister(start, 64 * 4096, ACL_HOST_REGISTER_MAPPED, &view), ACL_SUCCESS);
  EXPECT_NE(aclrtHostRegister(start + 512, 4096, ACL_HOST_REGISTER_MAPPED, &view), ACL_SUCCESS);
}

// What a program registers ends somewhere in a page whose rest belongs to others, small blocks of ours among them.
TEST_F(MemoryTest, RegisteredPageWithASmallBlockInIt) {
  ANYACL_CPU_ONLY("elsewhere device memory is not in the pages of the program");
  const auto type_of = [](const void* pointer) {
    aclrtPtrAttributes attributes{};
    EXPECT_EQ(aclrtPointerGetAttributes(pointer, &attributes), ACL_SUCCESS);
    return attributes.location.type;
  };
  std::vector<void*> others;
  char* block = nullptr;
  char* page = nullptr;
  for (int tries = 0; tries < 1000 && !page; ++tries) {
    void* made = nullptr;
    ASSERT_EQ(aclrtMalloc(&made, 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    const size_t into = reinterpret_cast<uintptr_t>(made) % 4096;
    block = static_cast<char*>(made);
    if (into > 0 && type_of(block - into) == ACL_MEM_LOCATION_TYPE_UNREGISTERED)
      page = block - into;
    if (!page) others.push_back(made);
  }
  ASSERT_NE(page, nullptr);
  void* view = nullptr;
  ASSERT_EQ(aclrtHostRegister(page, 4096, ACL_HOST_REGISTER_MAPPED, &view), ACL_SUCCESS);
  EXPECT_EQ(view, page);
  EXPECT_EQ(type_of(page), ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(type_of(block), ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  for (int i = 0; i < 8; ++i) {  // some of them in the page, after it was registered
    others.push_back(nullptr);
    ASSERT_EQ(aclrtMalloc(&others.back(), 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQ(type_of(others.back()), ACL_MEM_LOCATION_TYPE_DEVICE);
  }
  EXPECT_EQ(type_of(page), ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(aclrtHostUnregister(page), ACL_SUCCESS);
  for (void* other : others) EXPECT_EQ(aclrtFree(other), ACL_SUCCESS);
}

TEST_F(MemoryTest, CacheCallsOnlyCheck) {
  const auto block = MallocDevice(64);
  EXPECT_EQ(aclrtMemFlush(block.get(), 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemInvalidate(block.get(), 64), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtMemFlush(nullptr, 64), "devPtr");
  EXPECT_ACL_FAILURE(100000, aclrtMemInvalidate(block.get(), 0), "size");
  EXPECT_EQ(aclrtCmoAsync(block.get(), 64, ACL_RT_CMO_TYPE_PREFETCH, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoAsync(block.get(), 64, ACL_RT_CMO_TYPE_FLUSH, nullptr), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtCmoAsync(nullptr, 64, ACL_RT_CMO_TYPE_FLUSH, stream_), "src");
  EXPECT_ACL_FAILURE(100000, aclrtCmoAsync(block.get(), 0, ACL_RT_CMO_TYPE_FLUSH, stream_), "size");
  EXPECT_ACL_FAILURE(100000, aclrtCmoAsync(block.get(), 64, static_cast<aclrtCmoType>(4), stream_),
                     "cmoType");
  EXPECT_EQ(aclrtCmoAsync(block.get(), 64, ACL_RT_CMO_TYPE_FLUSH, &stream_), 107017);
}

// Samples hold device memory in smart pointers whose destructors run after aclFinalize. In a
// process of its own, because finalising is for good.
TEST(MemoryLifetimeDeathTest, FreeAfterResetAndFinalise) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        void* device = nullptr;
        void* large = nullptr;
        void* host = nullptr;
        const bool made = aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS &&
                          aclrtMalloc(&device, 64, kPolicy) == ACL_SUCCESS &&
                          aclrtMalloc(&large, 8 * kMiB, kPolicy) == ACL_SUCCESS &&
                          aclrtMallocHost(&host, 64) == ACL_SUCCESS &&
                          aclrtResetDevice(0) == ACL_SUCCESS && aclFinalize() == ACL_SUCCESS;
        const bool freed = aclrtFree(device) == ACL_SUCCESS && aclrtFree(large) == ACL_SUCCESS &&
                           aclrtFreeHost(host) == ACL_SUCCESS && aclrtFree(device) == 107000;
        std::exit(made && freed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "^$");
}

// Memory does not belong to a device's count: a reset leaves it alone.
TEST(MemoryLifetime, SurvivesTheResetOfItsDevice) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* p = nullptr;
  ASSERT_EQ(aclrtMalloc(&p, 4096, kPolicy), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(p, 4096, 5, 4096), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  char last = 0;
  EXPECT_EQ(aclrtMemcpy(&last, 1, static_cast<char*>(p) + 4095, 1, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(last, 5);
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
}

TEST_F(MemoryTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int i = 0; i < 50; ++i) {
        const size_t size = i % 10 == 0 ? 2 * kMiB : 1 + static_cast<size_t>(i * 97 + t);
        const auto a = MallocDevice(size);
        const auto b = MallocPinned(size);
        b[size - 1] = static_cast<unsigned char>(t);
        EXPECT_EQ(aclrtMemsetAsync(a.get(), size, t, size, stream_), ACL_SUCCESS);
        EXPECT_EQ(aclrtFree(&a[0] + 1), 107000);
        size_t total = 0;
        size_t free_bytes = 0;
        if (i % 10 == 0) {
          EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), ACL_SUCCESS);
        }
      }
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(MemoryTest, ForkedChildCanFree) {
  const auto block = MallocDevice(64);
  const pid_t child = fork();
  if (child == 0) _exit(aclrtFree(block.get()) == ACL_SUCCESS ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace anyacl
