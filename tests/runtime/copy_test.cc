// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Copies, fills and reductions: the rows of semantics.md 4.
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "core/scalar.h"
#include "memory_fixture.h"

namespace anyacl {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr auto kToDevice = ACL_MEMCPY_HOST_TO_DEVICE;
constexpr auto kToHost = ACL_MEMCPY_DEVICE_TO_HOST;

aclrtMemcpyKind Kind(int number) { return static_cast<aclrtMemcpyKind>(number); }

std::vector<unsigned char> Counting(size_t count) {
  std::vector<unsigned char> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<unsigned char>(i * 31 + i / 251);
  return values;
}

using CopyTest = MemoryTest;

TEST_F(CopyTest, CountZeroChecksNothing) {
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, Kind(77)), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, Kind(77), nullptr), ACL_SUCCESS);
  std::thread([] { EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, Kind(-1)), ACL_SUCCESS); }).join();
}

TEST_F(CopyTest, ArgumentsOfMemcpy) {
  const auto device = MallocDevice(64);
  char host[64] = {};
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy(nullptr, 64, host, 64, kToDevice),
                     "aclrtMemcpy: dst must not be null");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy(device.get(), 64, nullptr, 64, kToDevice),
                     "aclrtMemcpy: src must not be null");
  EXPECT_ACL_FAILURE(107000, aclrtMemcpy(device.get(), 63, host, 64, kToDevice),
                     "count must be at most destMax 63, got 64");
  EXPECT_EQ(aclrtMemcpy(device.get(), 0, host, 64, kToDevice), 107000);
  for (const int kind : {-1, 6, 7, 1000}) {
    EXPECT_ACL_FAILURE(100000, aclrtMemcpy(device.get(), 64, host, 64, Kind(kind)),
                       "kind must be 0 to 5, got " + std::to_string(kind));
  }
}

TEST_F(CopyTest, NeedsAContext) {
  const auto device = MallocDevice(64);
  std::thread([&] {
    char host[64] = {};
    EXPECT_EQ(aclrtMemcpy(device.get(), 64, host, 64, kToDevice), 107002);
    EXPECT_EQ(aclrtMemcpyAsync(device.get(), 64, host, 64, kToDevice, nullptr), 107002);
    EXPECT_EQ(aclrtMemset(device.get(), 64, 0, 64), 107002);
    EXPECT_EQ(aclrtMemsetAsync(device.get(), 64, 0, 64, nullptr), 107002);
  }).join();
}

TEST_F(CopyTest, KindIsAdvisory) {
  for (int kind = 0; kind <= 5; ++kind) {
    const auto device = MallocDevice(1000);
    const std::vector<unsigned char> from = Counting(1000);
    std::vector<unsigned char> back(1000);
    ASSERT_EQ(aclrtMemcpy(device.get(), 1000, from.data(), 1000, Kind(kind)), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(back.data(), 1000, device.get(), 1000, Kind(kind)), ACL_SUCCESS);
    EXPECT_EQ(back, from);
  }
}

TEST_F(CopyTest, AllSizes) {
  for (const size_t size : {size_t{1}, size_t{4095}, 4 * kMiB - 1, 4 * kMiB, 9 * kMiB + 17}) {
    const auto a = MallocDevice(size);
    const auto b = MallocDevice(size);
    const std::vector<unsigned char> from = Counting(size);
    std::vector<unsigned char> back(size);
    ASSERT_EQ(aclrtMemcpy(a.get(), size, from.data(), size, kToDevice), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpyAsync(b.get(), size, a.get(), size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(back.data(), size, b.get(), size, kToHost), ACL_SUCCESS);
    EXPECT_EQ(back, from);
  }
}

TEST_F(CopyTest, SameAndOverlappingAddresses) {
  const size_t size = 8 * kMiB;
  const auto device = MallocDevice(size + 64);
  const std::vector<unsigned char> from = Counting(size);
  ASSERT_EQ(aclrtMemcpy(device.get(), size, from.data(), size, kToDevice), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(device.get(), size, device.get(), size, ACL_MEMCPY_DEVICE_TO_DEVICE),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(&device[64], size, device.get(), size, ACL_MEMCPY_DEVICE_TO_DEVICE),
            ACL_SUCCESS);
  if (!runtime::CurrentBackend().launches()) {  // a GPU does not promise what becomes of an overlap
    EXPECT_EQ(device.Read(size, 64), from);
  }
}

TEST_F(CopyTest, CopiesStayInsideOurBlocks) {
  const auto device = MallocDevice(1000);
  std::vector<unsigned char> host(4 * kMiB);
  EXPECT_ACL_FAILURE(107000,
                     aclrtMemcpy(device.get(), host.size(), host.data(), host.size(), kToDevice),
                     "dst must have 4194304 bytes");
  EXPECT_ACL_FAILURE(
      107000,
      aclrtMemcpyAsync(host.data(), host.size(), device.get(), host.size(), kToHost, stream_),
      "src must have 4194304 bytes");
  EXPECT_EQ(aclrtMemset(device.get(), SIZE_MAX, 0, SIZE_MAX), 107000);
  EXPECT_EQ(aclrtMemsetAsync(&device[999], 5000, 0, 5000, stream_), 107000);
  EXPECT_EQ(aclrtMemcpy(device.get(), SIZE_MAX, host.data(), SIZE_MAX, kToDevice), 107000);
  // The 32 bytes behind a block are there for everyone.
  EXPECT_EQ(aclrtMemcpy(host.data(), 1032, device.get(), 1032, kToHost), ACL_SUCCESS);
}

// aclrtMemcpy does not use any stream: a busy one does not hold it up.
TEST_F(CopyTest, MemcpyDoesNotWaitForStreams) {
  const auto device = MallocDevice(64);
  char host[64] = {1};
  Gate gate(stream_);
  EXPECT_EQ(aclrtMemcpy(device.get(), 64, host, 64, kToDevice), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(device.get(), 64, 3, 64), ACL_SUCCESS);
  EXPECT_EQ(device[63], 3);
}

TEST_F(CopyTest, PinnedMemoryIsCopiedLater) {
  const auto device = MallocDevice(64);
  const auto pinned = MallocPinned(64);
  device.Fill(0, 64);
  std::memset(pinned.get(), 1, 64);
  {
    Gate gate(stream_);
    ASSERT_EQ(aclrtMemcpyAsync(device.get(), 64, pinned.get(), 64, kToDevice, stream_),
              ACL_SUCCESS);
    EXPECT_EQ(device[0], 0);
    std::memset(pinned.get(), 2, 64);  // the copy has not read it yet
  }
  EXPECT_EQ(device[0], 2);
  EXPECT_EQ(device[63], 2);
}

TEST_F(CopyTest, RegisteredMemoryIsCopiedLater) {
  const auto device = MallocDevice(4096);
  device.Fill(0, 4096);
  void* host = std::aligned_alloc(4096, 4096);
  std::memset(host, 1, 4096);
  ASSERT_EQ(aclrtHostRegisterV2(host, 4096, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  {
    Gate gate(stream_);
    ASSERT_EQ(aclrtMemcpyAsync(device.get(), 4096, host, 4096, kToDevice, stream_), ACL_SUCCESS);
    EXPECT_EQ(device[0], 0);
  }
  EXPECT_EQ(device[4095], 1);
  EXPECT_EQ(aclrtHostUnregister(host), ACL_SUCCESS);
  std::free(host);
}

// Runs `call` on another thread, and expects that it ends only after the gate was opened.
void ExpectWaitsForStream(aclrtStream stream, const std::function<void()>& call) {
  Gate gate(stream);
  std::atomic<bool> returned{false};
  std::thread caller([&] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    call();
    returned = true;
    ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  gate.Open();
  caller.join();
}

TEST_F(CopyTest, PageableMemoryWaitsForTheStream) {
  const auto device = MallocDevice<int>(256);
  std::vector<int> back(256);
  ExpectWaitsForStream(stream_, [&] {
    std::vector<int> from(256);
    std::iota(from.begin(), from.end(), 0);
    EXPECT_EQ(aclrtMemcpyAsync(device.get(), 1024, from.data(), 1024, kToDevice, stream_),
              ACL_SUCCESS);
    from.assign(256, -1);  // ours again
  });
  EXPECT_EQ(device[255], 255);
  ExpectWaitsForStream(stream_, [&] {
    EXPECT_EQ(aclrtMemcpyAsync(back.data(), 1024, device.get(), 1024, kToHost, stream_),
              ACL_SUCCESS);
    EXPECT_EQ(back[255], 255);
  });
  ExpectWaitsForStream(stream_, [&] {
    EXPECT_EQ(aclrtMemsetAsync(back.data(), 1024, 0, 1024, stream_), ACL_SUCCESS);
    EXPECT_EQ(back[255], 0);
  });
}

TEST_F(CopyTest, BufferedCopyReleasesItsSource) {
  const auto device = MallocDevice(64);
  const auto pinned = MallocPinned(64);
  std::memset(pinned.get(), 9, 64);
  ExpectWaitsForStream(stream_, [&] {
    EXPECT_EQ(aclrtMemcpyAsync(device.get(), 64, pinned.get(), 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
                               stream_),
              ACL_SUCCESS);
    std::memset(pinned.get(), 0, 64);
  });
  EXPECT_EQ(device[63], 9);
}

// Callbacks should not call the runtime; one that does must not hang.
TEST_F(CopyTest, PageableCopyInsideAHostFunction) {
  struct Args {
    void* device;
    aclrtStream stream;
    aclrtContext context;
    std::array<char, 64> host;
    aclError result;
  };
  const auto device = MallocDevice(64);
  Args args{device.get(), stream_, nullptr, {}, -1};
  args.host.fill(4);
  ASSERT_EQ(aclrtGetCurrentContext(&args.context), ACL_SUCCESS);
  const auto copy = [](void* p) {
    auto* a = static_cast<Args*>(p);
    aclrtSetCurrentContext(a->context);
    a->result = aclrtMemcpyAsync(a->device, 64, a->host.data(), 64, kToDevice, a->stream);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, copy, &args), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(args.result, ACL_SUCCESS);
  EXPECT_EQ(device[63], 4);
}

TEST_F(CopyTest, ArgumentsOfMemcpyAsync) {
  const auto device = MallocDevice(64);
  const auto pinned = MallocPinned(64);
  char host[64] = {};
  char other[64] = {};
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyAsync(nullptr, 64, host, 64, kToDevice, stream_), "dst");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyAsync(device.get(), 64, nullptr, 64, kToDevice, stream_),
                     "src");
  EXPECT_EQ(aclrtMemcpyAsync(device.get(), 63, host, 64, kToDevice, stream_), 107000);
  EXPECT_EQ(aclrtMemcpyAsync(device.get(), 64, host, 64, Kind(6), stream_), 100000);
  EXPECT_EQ(aclrtMemcpyAsync(device.get(), 64, host, 64, kToDevice, &host), 107017);
  EXPECT_ACL_FAILURE(207000,
                     aclrtMemcpyAsync(other, 64, host, 64, ACL_MEMCPY_HOST_TO_HOST, stream_),
                     "host to host");
  EXPECT_EQ(aclrtMemcpyAsync(pinned.get(), 64, host, 64, ACL_MEMCPY_DEFAULT, stream_), 207000);
  EXPECT_EQ(aclrtMemcpyAsync(device.get(), 64, host, 64, kToDevice, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsyncWithCondition(device.get(), 64, host, 64, kToDevice, stream_),
            ACL_SUCCESS);
  EXPECT_ACL_FAILURE(107000,
                     aclrtMemcpyAsyncWithCondition(device.get(), 1, host, 64, kToDevice, stream_),
                     "aclrtMemcpyAsyncWithCondition: count");
}

TEST_F(CopyTest, PitchedCopy) {
  constexpr size_t kWidth = 5;
  constexpr size_t kHeight = 7;
  const std::vector<unsigned char> from = Counting(8 * kHeight);
  const auto device = MallocDevice(6 * kHeight);
  std::vector<unsigned char> back(9 * kHeight, 0xee);
  ASSERT_EQ(aclrtMemcpy2d(device.get(), 6, from.data(), 8, kWidth, kHeight, kToDevice),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy2dAsync(back.data(), 9, device.get(), 6, kWidth, kHeight, kToHost, stream_),
            ACL_SUCCESS);
  for (size_t row = 0; row < kHeight; ++row) {
    for (size_t column = 0; column < 9; ++column) {
      const unsigned char wanted = column < kWidth ? from[row * 8 + column] : 0xee;
      EXPECT_EQ(back[row * 9 + column], wanted);
    }
  }
}

TEST_F(CopyTest, LargePitchedCopy) {
  constexpr size_t kWidth = 3 * kMiB / 2;
  constexpr size_t kHeight = 5;
  constexpr size_t kPitch = kWidth + 64;
  const std::vector<unsigned char> from = Counting(kPitch * kHeight);
  const auto device = MallocDevice(kPitch * kHeight);
  ASSERT_EQ(aclrtMemcpy2dAsync(device.get(), kPitch, from.data(), kPitch, kWidth, kHeight,
                               kToDevice, stream_),
            ACL_SUCCESS);
  for (size_t row = 0; row < kHeight; ++row) {
    const std::vector<unsigned char> line = device.Read(kWidth, row * kPitch);
    EXPECT_EQ(std::memcmp(line.data(), &from[row * kPitch], kWidth), 0);
  }
}

TEST_F(CopyTest, ArgumentsOfPitchedCopies) {
  const auto device = MallocDevice(64);
  char host[64] = {};
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 0, 5, Kind(9)), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 5, 0, Kind(9)), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy2dAsync(nullptr, 0, nullptr, 0, 0, 5, Kind(9), nullptr), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy2d(nullptr, 8, host, 8, 8, 8, kToDevice), "dst");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy2d(device.get(), 8, nullptr, 8, 8, 8, kToDevice), "src");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy2d(device.get(), 8, host, 7, 8, 8, kToDevice),
                     "got width 8 dpitch 8 spitch 7");
  EXPECT_EQ(aclrtMemcpy2d(device.get(), 7, host, 8, 8, 8, kToDevice), 100000);
  EXPECT_EQ(aclrtMemcpy2dAsync(device.get(), 7, host, 8, 8, 8, kToDevice, stream_), 100000);
  EXPECT_EQ(aclrtMemcpy2d(device.get(), 8, host, 8, 8, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), 100000);
  EXPECT_EQ(aclrtMemcpy2d(device.get(), 8, host, 8, 8, 8, Kind(100)), 100000);
  EXPECT_EQ(aclrtMemcpy2dAsync(device.get(), 8, &device[0], 8, 8, 4, ACL_MEMCPY_DEVICE_TO_DEVICE,
                               stream_),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy2dAsync(device.get(), 8, host, 8, 8, 8, ACL_MEMCPY_HOST_TO_HOST, stream_),
            100000);
  EXPECT_ACL_FAILURE(
      100000,
      aclrtMemcpy2dAsync(device.get(), 1 << 30, host, 1 << 30, 5000001, 1, kToDevice, stream_),
      "width must be at most 5000000");
  EXPECT_EQ(aclrtMemcpy2dAsync(device.get(), 1, host, 1, 1, 5242881, kToDevice, stream_), 100000);
  EXPECT_ACL_FAILURE(100000, aclrtMemcpy2d(device.get(), SIZE_MAX, host, 8, 8, SIZE_MAX, kToDevice),
                     "fit in 64 bits");
  EXPECT_EQ(aclrtMemcpy2d(device.get(), SIZE_MAX - 64, host, 8, 8, 2, kToDevice), 107000);
  EXPECT_EQ(aclrtMemcpy2d(device.get(), size_t{1} << 40, host, 8, 8, 8, kToDevice), 107000);
}

TEST_F(CopyTest, Memset) {
  const auto device = MallocDevice(5 * kMiB);
  ASSERT_EQ(aclrtMemset(device.get(), 5 * kMiB, 0x1234, 5 * kMiB), ACL_SUCCESS);
  for (const size_t i : {size_t{0}, kMiB, 5 * kMiB - 1}) EXPECT_EQ(device[i], 0x34);
  char host[8] = {};
  ASSERT_EQ(aclrtMemset(host, 8, -1, 4), ACL_SUCCESS);
  EXPECT_EQ(host[3], '\xff');
  EXPECT_EQ(host[4], 0);
  EXPECT_EQ(aclrtMemset(nullptr, 0, 1, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(nullptr, 0, 1, 0, nullptr), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtMemset(nullptr, 4, 1, 4), "devPtr");
  EXPECT_ACL_FAILURE(100000, aclrtMemsetAsync(nullptr, 4, 1, 4, stream_), "devPtr");
  EXPECT_ACL_FAILURE(107000, aclrtMemset(host, 4, 1, 5), "at most maxCount 4, got 5");
  EXPECT_EQ(aclrtMemsetAsync(device.get(), 4, 1, 5, stream_), 107000);
}

TEST_F(CopyTest, MemsetD32) {
  constexpr size_t kWords = 3 * kMiB / 2;
  const auto device = MallocDevice<uint32_t>(kWords);
  ASSERT_EQ(aclrtMemsetD32(device.get(), 4 * kWords, 0xdeadbeef, kWords), ACL_SUCCESS);
  EXPECT_EQ(device[0], 0xdeadbeef);
  EXPECT_EQ(device[kWords - 1], 0xdeadbeef);
  ASSERT_EQ(aclrtMemsetD32Async(device.get(), 8, 7, 2, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(device[1], 7u);
  EXPECT_EQ(device[2], 0xdeadbeef);
  auto* odd = reinterpret_cast<char*>(device.get()) + 1;
  EXPECT_EQ(aclrtMemsetD32(nullptr, 0, 1, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetD32Async(nullptr, 0, 1, 0, nullptr), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, aclrtMemsetD32(nullptr, 4, 1, 1), "ptr");
  EXPECT_ACL_FAILURE(100000, aclrtMemsetD32(odd, 4, 1, 1), "aligned to 4 bytes");
  EXPECT_ACL_FAILURE(100000, aclrtMemsetD32(device.get(), 7, 1, 2), "got memSize 7 N 2");
  EXPECT_EQ(aclrtMemsetD32(device.get(), SIZE_MAX, 1, SIZE_MAX), 100000);
  EXPECT_EQ(aclrtMemsetD32Async(odd, 4, 1, 1, stream_), 100000);
  EXPECT_EQ(aclrtMemsetD32Async(device.get(), 3, 1, 1, stream_), 100000);
  EXPECT_EQ(aclrtMemsetD32(device.get(), SIZE_MAX, 1, SIZE_MAX / 4), 107000);
}

// Three copies of 8 bytes to the device.
class BatchTest : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    device_ = MallocDevice(24);
    for (size_t i = 0; i < 3; ++i) {
      dsts_[i] = &device_[8 * i];
      srcs_[i] = &host_[8 * i];
    }
    attr_.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attr_.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    std::iota(host_.begin(), host_.end(), 1);
  }
  void TearDown() override {
    device_.reset();
    MemoryTest::TearDown();
  }
  aclError Copy() {
    return aclrtMemcpyBatch(dsts_.data(), maxs_.data(), srcs_.data(), sizes_.data(), 3, &attr_,
                            &first_, 1, &fail_);
  }

  Device<unsigned char> device_;
  std::array<char, 24> host_{};
  std::array<void*, 3> dsts_{};
  std::array<void*, 3> srcs_{};
  std::array<size_t, 3> maxs_{8, 8, 8};
  std::array<size_t, 3> sizes_{8, 8, 8};
  aclrtMemcpyBatchAttr attr_{};
  size_t first_ = 0;
  size_t fail_ = 0;
};

TEST_F(BatchTest, CopiesAll) {
  ASSERT_EQ(Copy(), ACL_SUCCESS);
  EXPECT_EQ(fail_, SIZE_MAX);
  EXPECT_EQ(std::memcmp(device_.Read(24).data(), host_.data(), 24), 0);
  device_.Fill(0, 24);
  sizes_[1] = 0;
  dsts_[1] = nullptr;  // nothing to copy, nothing to check
  ASSERT_EQ(aclrtMemcpyBatchAsync(dsts_.data(), maxs_.data(), srcs_.data(), sizes_.data(), 3,
                                  &attr_, &first_, 1, &fail_, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(device_[23], 24);  // pageable: done on return
  EXPECT_EQ(device_[8], 0);
  EXPECT_EQ(aclrtMemcpyBatchV2(dsts_.data(), maxs_.data(), srcs_.data(), sizes_.data(), 3, &attr_,
                               &first_, 1),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyBatchAsyncV2(dsts_.data(), maxs_.data(), srcs_.data(), sizes_.data(), 3,
                                    &attr_, &first_, 1, nullptr),
            ACL_SUCCESS);
}

TEST_F(BatchTest, NamesTheItemToBlame) {
  device_.Fill(0, 24);
  maxs_[2] = 7;
  EXPECT_EQ(Copy(), 107000);
  EXPECT_EQ(fail_, 2u);
  EXPECT_EQ(device_[0], 0) << "nothing is copied when one item is wrong";
  dsts_[1] = nullptr;
  EXPECT_EQ(Copy(), 100000);
  EXPECT_EQ(fail_, 1u);
}

TEST_F(BatchTest, NoItemToBlame) {
  const auto expect = [&](aclError wanted) {
    fail_ = 0;
    EXPECT_EQ(Copy(), wanted);
    EXPECT_EQ(fail_, SIZE_MAX);
  };
  first_ = 1;
  expect(100000);
  first_ = 0;
  attr_.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  expect(100000);
  attr_.srcLoc.type = static_cast<aclrtMemLocationType>(9);
  expect(100000);
}

TEST_F(BatchTest, AttributesAscendAndAgree) {
  std::array<aclrtMemcpyBatchAttr, 3> attrs{attr_, attr_, attr_};
  std::array<size_t, 3> starts{0, 1, 2};
  const auto copy = [&](size_t count) {
    return aclrtMemcpyBatch(dsts_.data(), maxs_.data(), srcs_.data(), sizes_.data(), 3,
                            attrs.data(), starts.data(), count, &fail_);
  };
  EXPECT_EQ(copy(3), ACL_SUCCESS);
  starts = {0, 2, 2};
  EXPECT_ACL_FAILURE(100000, copy(3), "attrsIndexes[2] = 2");
  starts = {0, 1, 3};
  EXPECT_EQ(copy(3), 100000);
  starts = {0, 1, 2};
  std::swap(attrs[2].dstLoc, attrs[2].srcLoc);
  EXPECT_ACL_FAILURE(100000, copy(3), "attrs[2]");
  EXPECT_ACL_FAILURE(100000, copy(4), "numAttrs must be 1 to numBatches 3, got 4");
  EXPECT_EQ(copy(0), 100000);
}

TEST_F(BatchTest, NullArrays) {
  auto** d = dsts_.data();
  auto* m = maxs_.data();
  auto** s = srcs_.data();
  auto* n = sizes_.data();
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(nullptr, m, s, n, 3, &attr_, &first_, 1, &fail_),
                     "dsts");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, nullptr, s, n, 3, &attr_, &first_, 1, &fail_),
                     "destMaxs");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, m, nullptr, n, 3, &attr_, &first_, 1, &fail_),
                     "srcs");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, m, s, nullptr, 3, &attr_, &first_, 1, &fail_),
                     "sizes");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, m, s, n, 3, nullptr, &first_, 1, &fail_), "attrs");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, m, s, n, 3, &attr_, nullptr, 1, &fail_),
                     "attrsIndexes");
  EXPECT_ACL_FAILURE(100000, aclrtMemcpyBatch(d, m, s, n, 0, &attr_, &first_, 1, &fail_),
                     "numBatches");
  EXPECT_EQ(aclrtMemcpyBatch(d, m, s, n, 3, &attr_, &first_, 1, nullptr), ACL_SUCCESS);
}

// dst = dst op src on the device, and back.
template <class T>
std::vector<T> Reduce(aclrtStream stream, std::vector<T> a, const std::vector<T>& b, int kind,
                      aclDataType type) {
  const size_t bytes = a.size() * sizeof(T);
  void* dst = nullptr;
  void* src = nullptr;
  EXPECT_EQ(aclrtMalloc(&dst, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMalloc(&src, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(dst, bytes, a.data(), bytes, kToDevice), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(src, bytes, b.data(), bytes, kToDevice), ACL_SUCCESS);
  EXPECT_EQ(
      aclrtReduceAsync(dst, src, bytes, static_cast<aclrtReduceKind>(kind), type, stream, nullptr),
      ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(a.data(), bytes, dst, bytes, kToHost), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(dst), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(src), ACL_SUCCESS);
  return a;
}

TEST_F(CopyTest, ReduceIntegers) {
  using I8 = std::vector<int8_t>;
  EXPECT_EQ(Reduce<int8_t>(stream_, {1, 127, -5}, {2, 1, 3}, 10, ACL_INT8), (I8{3, -128, -2}));
  EXPECT_EQ(Reduce<int8_t>(stream_, {1, 127, -5}, {2, 1, 3}, 11, ACL_INT8), (I8{2, 127, 3}));
  EXPECT_EQ(Reduce<int8_t>(stream_, {1, 127, -5}, {2, 1, 3}, 12, ACL_INT8), (I8{1, 1, -5}));
  EXPECT_EQ(Reduce<int32_t>(stream_, {INT32_MAX}, {1}, 10, ACL_INT32)[0], INT32_MIN);
  EXPECT_EQ(Reduce<int64_t>(stream_, {INT64_MAX}, {1}, 10, ACL_INT64)[0], INT64_MIN);
  EXPECT_EQ(Reduce<uint64_t>(stream_, {3}, {4}, 11, ACL_UINT64)[0], 4u);
}

TEST_F(CopyTest, ReduceFloats) {
  const size_t count = 2 * kMiB;
  std::vector<float> a(count, 1.5f);
  const std::vector<float> b(count, 2.0f);
  EXPECT_EQ(Reduce(stream_, a, b, 10, ACL_FLOAT), std::vector<float>(count, 3.5f));
  EXPECT_EQ(Reduce<double>(stream_, {1.0, -2.0}, {0.5, 4.0}, 12, ACL_DOUBLE),
            (std::vector<double>{0.5, -2.0}));
  EXPECT_TRUE(std::isnan(Reduce<float>(stream_, {NAN}, {1}, 11, ACL_FLOAT)[0]));
  EXPECT_TRUE(std::isnan(Reduce<float>(stream_, {1}, {NAN}, 12, ACL_FLOAT)[0]));
  const uint16_t half =
      Reduce<uint16_t>(stream_, {Half(1.0f).bits}, {Half(2.5f).bits}, 10, ACL_FLOAT16)[0];
  EXPECT_EQ(half, Half(3.5f).bits);
  const uint16_t brain =
      Reduce<uint16_t>(stream_, {BFloat16(1.0f).bits}, {BFloat16(2.5f).bits}, 11, ACL_BF16)[0];
  EXPECT_EQ(brain, BFloat16(2.5f).bits);
}

TEST_F(CopyTest, ArgumentsOfReduce) {
  const auto a = MallocDevice(64);
  const auto b = MallocDevice(64);
  const auto sum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
  const auto call = [&](void* dst, const void* src, uint64_t count, int kind, int type) {
    return aclrtReduceAsync(dst, src, count, static_cast<aclrtReduceKind>(kind),
                            static_cast<aclDataType>(type), stream_, nullptr);
  };
  EXPECT_EQ(call(nullptr, nullptr, 0, 99, 99), ACL_SUCCESS);
  EXPECT_ACL_FAILURE(100000, call(nullptr, b.get(), 64, sum, ACL_FLOAT), "dst");
  EXPECT_ACL_FAILURE(100000, call(a.get(), nullptr, 64, sum, ACL_FLOAT), "src");
  EXPECT_ACL_FAILURE(100000, call(a.get(), b.get(), 64, 9, ACL_FLOAT),
                     "kind must be 10 to 13, got 9");
  EXPECT_ACL_FAILURE(207000, call(a.get(), b.get(), 64, 13, ACL_FLOAT), "kind 13");
  EXPECT_ACL_FAILURE(207000, call(a.get(), b.get(), 64, sum, ACL_COMPLEX64), "COMPLEX64");
  EXPECT_EQ(call(a.get(), b.get(), 64, sum, 99), 207000);
  EXPECT_ACL_FAILURE(100000, call(a.get(), b.get(), 63, sum, ACL_FLOAT), "multiple of 4 bytes");
  EXPECT_EQ(call(a.get(), b.get(), uint64_t{1} << 40, sum, ACL_FLOAT), 107000);
  EXPECT_EQ(aclrtReduceAsync(a.get(), b.get(), 64, sum, ACL_FLOAT, a.get(), nullptr), 107017);
}

// On the CPU a device pointer is an ordinary one; many test programs look at results directly.
TEST_F(CopyTest, DeviceMemoryIsOrdinaryMemory) {
  ANYACL_CPU_ONLY("the memory of a GPU is not the host's");
  const auto device = MallocDevice<int>(4);
  device.get()[3] = 42;
  int back = 0;
  ASSERT_EQ(aclrtMemcpy(&back, sizeof(back), &device[3], sizeof(back), kToHost), ACL_SUCCESS);
  EXPECT_EQ(back, 42);
}

}  // namespace
}  // namespace anyacl
