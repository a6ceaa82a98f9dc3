// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_DEVICE_FLOATS_H_
#define ANYACL_TESTS_DEVICE_FLOATS_H_

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "acl/acl.h"

namespace anyacl {

// Numbers in device memory. Needs a current context, like every allocation.
class DeviceFloats {
 public:
  DeviceFloats() = default;
  explicit DeviceFloats(const std::vector<float>& values) : count_(values.size()) {
    if (count_ == 0) return;
    EXPECT_EQ(aclrtMalloc(&data_, bytes(), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    Write(values);
  }
  DeviceFloats(size_t count, float value) : DeviceFloats(std::vector<float>(count, value)) {}
  ~DeviceFloats() {
    if (!data_) return;
    EXPECT_EQ(aclrtFree(data_), ACL_SUCCESS);
  }
  DeviceFloats(DeviceFloats&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceFloats& operator=(DeviceFloats&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  float* data() const { return static_cast<float*>(data_); }
  size_t size() const { return count_; }
  void Write(const std::vector<float>& values) const {
    EXPECT_EQ(aclrtMemcpy(data_, bytes(), values.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }
  std::vector<float> Read() const {
    std::vector<float> values(count_);
    if (count_ == 0) return values;
    EXPECT_EQ(aclrtMemcpy(values.data(), bytes(), data_, bytes(), ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return values;
  }

 private:
  size_t bytes() const { return count_ * sizeof(float); }

  void* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace anyacl

#endif  // ANYACL_TESTS_DEVICE_FLOATS_H_
