// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The gradient of ELU for six numbers: set up, call, check, print.
#include "aclnnop/aclnn_elu_backward.h"

#include "example.h"

int main() {
  Device device;
  const std::vector<float> dy = {1.0f, 1.0f, 1.0f, 0.5f, 0.5f, 0.5f};
  const std::vector<float> x = {-2.0f, -1.0f, -0.5f, 0.0f, 1.0f, 2.0f};
  const FloatTensor gradOutput(dy, {2, 3});
  const FloatTensor self(x, {2, 3});
  const FloatTensor gradInput(std::vector<float>(6), {2, 3});
  float one = 1.0f;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  aclScalar* scale = aclCreateScalar(&one, ACL_FLOAT);
  aclScalar* inputScale = aclCreateScalar(&one, ACL_FLOAT);

  // Phase 1 checks the call and says how much workspace it needs; phase 2 puts it on the stream.
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnEluBackwardGetWorkspaceSize(gradOutput.tensor, alpha, scale, inputScale, false,
                                         self.tensor, gradInput.tensor, &workspaceSize, &executor));
  RunAndWait(aclnnEluBackward, workspaceSize, executor, device.stream);
  aclDestroyScalar(alpha);
  aclDestroyScalar(scale);
  aclDestroyScalar(inputScale);

  std::vector<double> expected;
  for (size_t i = 0; i < x.size(); ++i) {
    expected.push_back(x[i] > 0 ? dy[i] : dy[i] * std::exp(static_cast<double>(x[i])));
  }
  const bool right = Compare("gradient", gradInput.Read(), expected);
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
