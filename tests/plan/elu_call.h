// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A small call of aclnnEluBackward with every handle in reach, for tests about executors rather
// than numbers. With x > 0 everywhere the result is gradOutput * 2.
#ifndef ANYACL_TESTS_PLAN_ELU_CALL_H_
#define ANYACL_TESTS_PLAN_ELU_CALL_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "device_floats.h"

namespace anyacl {

inline std::string TakeText() {
  const char* const text = aclGetRecentErrMsg();
  return text ? text : "";
}

inline aclTensor* DenseTensor(const std::vector<int64_t>& dims, void* data,
                              const int64_t* strides = nullptr) {
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, strides, 0, ACL_FORMAT_ND,
                         dims.data(), dims.size(), data);
}

class EluCall {
 public:
  // A strided output needs scratch memory, and holds `rows` x `columns` elements in a larger block.
  explicit EluCall(int64_t rows, int64_t columns = 1, bool strided = false)
      : dims{rows, columns},
        x(rows * columns, 1.0f),
        dx(rows * columns * 2, kUntouched),
        step_(strided ? 2 : 1) {
    std::vector<float> counting(rows * columns);
    for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<float>(i % 1000);
    dy = DeviceFloats(counting);
    const int64_t strides[] = {columns * step_, step_};
    grad_output = DenseTensor(dims, dy.data());
    self = DenseTensor(dims, x.data());
    grad_input = DenseTensor(dims, dx.data(), strides);
    float one = 1;
    float two = 2;
    alpha = aclCreateScalar(&one, ACL_FLOAT);
    scale = aclCreateScalar(&two, ACL_FLOAT);
  }
  ~EluCall() {
    DestroyTensors();
    aclDestroyScalar(alpha);
    aclDestroyScalar(scale);
  }
  EluCall(const EluCall&) = delete;
  EluCall& operator=(const EluCall&) = delete;

  void DestroyTensors() {
    aclDestroyTensor(grad_output);
    aclDestroyTensor(self);
    aclDestroyTensor(grad_input);
    grad_output = self = grad_input = nullptr;
  }

  aclnnStatus TryPlan() {
    return aclnnEluBackwardGetWorkspaceSize(grad_output, alpha, scale, alpha, true, self,
                                            grad_input, &size, &executor);
  }
  aclOpExecutor* Plan() {
    EXPECT_EQ(TryPlan(), 0) << TakeText();
    if (size > workspace.size() * sizeof(float)) workspace = DeviceFloats(size / sizeof(float) + 1, 0);
    return executor;
  }
  aclOpExecutor* PlanRepeatable() {
    Plan();
    EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
    return executor;
  }
  aclnnStatus Run(aclrtStream stream) {
    return aclnnEluBackward(size ? workspace.data() : nullptr, size, executor, stream);
  }

  // How many elements of the result are not gradOutput * 2.
  int64_t Wrong() const {
    const std::vector<float> result = dx.Read();
    const std::vector<float> gradient = dy.Read();
    int64_t wrong = 0;
    for (size_t i = 0; i < dy.size(); ++i) wrong += result[i * step_] != 2 * gradient[i];
    return wrong;
  }
  bool IsUntouched() const {
    for (float v : dx.Read()) {
      if (v != kUntouched) return false;
    }
    return true;
  }

  static constexpr float kUntouched = -12345;

  std::vector<int64_t> dims;
  DeviceFloats dy;
  DeviceFloats x;
  DeviceFloats dx;
  aclTensor* grad_output;
  aclTensor* self;
  aclTensor* grad_input;
  aclScalar* alpha;
  aclScalar* scale;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  DeviceFloats workspace;

 private:
  int64_t step_;
};

// Holds everything queued behind it until Open. The stream may come by after this object is gone,
// so both sides share the state.
class Gate {
 public:
  explicit Gate(aclrtStream stream) {
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Hold, new std::shared_ptr<State>(state_)), 0);
  }
  ~Gate() { Open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void Open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->opened.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  };
  static void Hold(void* pointer) {
    const std::unique_ptr<std::shared_ptr<State>> owner(
        static_cast<std::shared_ptr<State>*>(pointer));
    State& state = **owner;
    std::unique_lock lock(state.mutex);
    state.opened.wait(lock, [&] { return state.open; });
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace anyacl

#endif  // ANYACL_TESTS_PLAN_ELU_CALL_H_
