// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_RUNTIME_MEMORY_FIXTURE_H_
#define ANYACL_TESTS_RUNTIME_MEMORY_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "backend.h"

namespace anyacl {

// The text of the last failure, and that it names the function.
inline std::string RecentText() {
  const char* text = aclGetRecentErrMsg();
  return text ? text : "";
}

// Expects a code, and a sentence that starts with the function and holds `part`.
#define EXPECT_ACL_FAILURE(wanted, call, part)                            \
  do {                                                                    \
    aclGetRecentErrMsg();                                                 \
    EXPECT_EQ((call), (wanted));                                          \
    const std::string anyacl_text = RecentText();                         \
    EXPECT_NE(anyacl_text.find(part), std::string::npos) << anyacl_text;  \
    EXPECT_NE(anyacl_text.find("acl"), std::string::npos) << anyacl_text; \
  } while (false)

// An array in device memory whose elements are read and written by copies, because a GPU's memory is not the host's.
template <class T>
class DeviceArray {
 public:
  class Element {
   public:
    explicit Element(T* at) : at_(at) {}
    operator T() const {  // NOLINT: stands for the element
      T value{};
      EXPECT_EQ(aclrtMemcpy(&value, sizeof(T), at_, sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST),
                ACL_SUCCESS);
      return value;
    }
    Element& operator=(T value) {
      EXPECT_EQ(aclrtMemcpy(at_, sizeof(T), &value, sizeof(T), ACL_MEMCPY_HOST_TO_DEVICE),
                ACL_SUCCESS);
      return *this;
    }
    T* operator&() const { return at_; }  // NOLINT: its address is the device's

   private:
    T* at_;
  };

  DeviceArray() = default;
  explicit DeviceArray(T* data) : data_(data) {}
  T* get() const { return data_.get(); }
  void reset() { data_.reset(); }
  Element operator[](size_t i) const { return Element(get() + i); }

  std::vector<T> Read(size_t count, size_t from = 0) const {
    std::vector<T> values(count);
    const size_t bytes = count * sizeof(T);
    EXPECT_EQ(aclrtMemcpy(values.data(), bytes, get() + from, bytes, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return values;
  }
  void Fill(int byte, size_t count) const {
    EXPECT_EQ(aclrtMemset(get(), count * sizeof(T), byte, count * sizeof(T)), ACL_SUCCESS);
  }

 private:
  struct Free {
    void operator()(void* p) const { EXPECT_EQ(aclrtFree(p), ACL_SUCCESS); }
  };
  std::unique_ptr<T[], Free> data_;
};

// Device 0 and a stream.
class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }

  // What all devices show together: each shows its share of the machine.
  struct Memory {
    size_t free = 0;
    size_t total = 0;
  };
  static Memory MachineMemory(aclrtMemAttr attr = ACL_HBM_MEM) {
    uint32_t devices = 0;
    Memory memory;
    EXPECT_EQ(aclrtGetDeviceCount(&devices), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetMemInfo(attr, &memory.free, &memory.total), ACL_SUCCESS);
    return {memory.free * devices, memory.total * devices};
  }

  struct FreePinned {
    void operator()(void* p) const { EXPECT_EQ(aclrtFreeHost(p), ACL_SUCCESS); }
  };
  template <class T>
  using Device = DeviceArray<T>;
  template <class T>
  using Pinned = std::unique_ptr<T[], FreePinned>;

  template <class T = unsigned char>
  static Device<T> MallocDevice(size_t count) {
    void* p = nullptr;
    EXPECT_EQ(aclrtMalloc(&p, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return Device<T>(static_cast<T*>(p));
  }
  template <class T = unsigned char>
  static Pinned<T> MallocPinned(size_t count) {
    void* p = nullptr;
    EXPECT_EQ(aclrtMallocHost(&p, count * sizeof(T)), ACL_SUCCESS);
    return Pinned<T>(static_cast<T*>(p));
  }

  aclrtStream stream_ = nullptr;
};

// Keeps a stream busy until Open is called or the gate goes out of scope.
class Gate {
 public:
  explicit Gate(aclrtStream stream) : stream_(stream) {
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Wait, &open_), ACL_SUCCESS);
  }
  ~Gate() {
    Open();
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  static void Wait(void* open) { static_cast<std::atomic<bool>*>(open)->wait(false); }

  aclrtStream stream_;
  std::atomic<bool> open_{false};
};

}  // namespace anyacl

#endif  // ANYACL_TESTS_RUNTIME_MEMORY_FIXTURE_H_
