// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The gradients of an RMS normalisation of two rows: set up, call, check, print.
#include "aclnnop/aclnn_rms_norm_grad.h"

#include "example.h"

int main() {
  Device device;
  const int rows = 2, cols = 3;
  const std::vector<float> dy = {1.0f, 2.0f, 3.0f, -1.0f, 0.5f, 2.0f};
  const std::vector<float> x = {0.5f, -1.0f, 2.0f, 1.0f, 1.0f, -2.0f};
  const std::vector<float> gamma = {1.0f, 0.5f, 2.0f};
  // The reciprocal root mean square of each row, as aclnnRmsNorm returns it.
  std::vector<float> rstd(rows);
  for (int i = 0; i < rows; ++i) {
    double squares = 0;
    for (int j = 0; j < cols; ++j) squares += x[i * cols + j] * x[i * cols + j];
    rstd[i] = static_cast<float>(1 / std::sqrt(squares / cols + 1e-6));
  }
  const FloatTensor dyTensor(dy, {rows, cols}), xTensor(x, {rows, cols}), rstdTensor(rstd, {rows});
  const FloatTensor gammaTensor(gamma, {cols});
  const FloatTensor dx(std::vector<float>(rows * cols), {rows, cols});
  const FloatTensor dgamma(std::vector<float>(cols), {cols});

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnRmsNormGradGetWorkspaceSize(dyTensor.tensor, xTensor.tensor, rstdTensor.tensor,
                                         gammaTensor.tensor, dx.tensor, dgamma.tensor,
                                         &workspaceSize, &executor));
  RunAndWait(aclnnRmsNormGrad, workspaceSize, executor, device.stream);

  std::vector<double> wantDx(rows * cols), wantDgamma(cols);
  for (int i = 0; i < rows; ++i) {
    double mean = 0;
    for (int k = i * cols; k < (i + 1) * cols; ++k) {
      mean += dy[k] * gamma[k % cols] * x[k] * rstd[i] / cols;
    }
    for (int k = i * cols; k < (i + 1) * cols; ++k) {
      wantDx[k] = (dy[k] * gamma[k % cols] - x[k] * rstd[i] * mean) * rstd[i];
      wantDgamma[k % cols] += dy[k] * x[k] * rstd[i];
    }
  }
  bool right = Compare("dx", dx.Read(), wantDx);
  right = Compare("dgamma", dgamma.Read(), wantDgamma) && right;
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
