// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A small call of aclnnEluBackward with every handle in reach, for tests about executors rather
// than numbers. With x > 0 everywhere the result is gradOutput * 2.
#ifndef ANYACL_TESTS_PLAN_ELU_CALL_H_
#define ANYACL_TESTS_PLAN_ELU_CALL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

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
        dy(rows * columns),
        x(rows * columns, 1.0f),
        dx(rows * columns * 2, kUntouched),
        step_(strided ? 2 : 1) {
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i % 1000);
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
    workspace.resize(size);
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
  int64_t Wrong() const { return Wrong(dx.data(), dy.data()); }
  int64_t Wrong(const float* result, const float* gradient) const {
    int64_t wrong = 0;
    for (size_t i = 0; i < dy.size(); ++i) wrong += result[i * step_] != 2 * gradient[i];
    return wrong;
  }
  bool IsUntouched() const {
    for (float v : dx) {
      if (v != kUntouched) return false;
    }
    return true;
  }

  static constexpr float kUntouched = -12345;

  std::vector<int64_t> dims;
  std::vector<float> dy;
  std::vector<float> x;
  std::vector<float> dx;
  aclTensor* grad_output;
  aclTensor* self;
  aclTensor* grad_input;
  aclScalar* alpha;
  aclScalar* scale;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  std::vector<unsigned char> workspace;

 private:
  int64_t step_;
};

// Holds everything queued behind it until Open.
class Gate {
 public:
  explicit Gate(aclrtStream stream) {
    EXPECT_EQ(aclrtLaunchHostFunc(
                  stream, [](void* gate) { static_cast<Gate*>(gate)->opened_.wait(); }, this),
              0);
  }
  ~Gate() { Open(); }
  void Open() {
    if (!is_open_) open_.set_value();
    is_open_ = true;
  }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
  bool is_open_ = false;
};

}  // namespace anyacl

#endif  // ANYACL_TESTS_PLAN_ELU_CALL_H_
