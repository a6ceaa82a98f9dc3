// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The gradients of a group normalisation, one sample of two groups: set up, call, check, print.
#include "aclnnop/aclnn_group_norm_backward.h"

#include "example.h"

int main() {
  Device device;
  const int64_t n = 1, c = 2, hxw = 3, groups = 2;
  const std::vector<float> dy = {1.0f, 2.0f, 3.0f, -1.0f, 0.5f, 2.0f};
  const std::vector<float> x = {0.5f, -1.0f, 2.0f, 1.0f, 1.0f, -2.0f};
  const std::vector<float> gamma = {1.0f, 0.5f};
  // Here a group is one channel; the forward operator would hand out these statistics.
  std::vector<float> mean(groups), rstd(groups);
  for (int g = 0; g < groups; ++g) {
    double sum = 0, squares = 0;
    for (int k = 0; k < hxw; ++k) sum += x[g * hxw + k];
    for (int k = 0; k < hxw; ++k) squares += std::pow(x[g * hxw + k] - sum / hxw, 2);
    mean[g] = static_cast<float>(sum / hxw);
    rstd[g] = static_cast<float>(1 / std::sqrt(squares / hxw + 1e-5));
  }
  const FloatTensor gradOut(dy, {n, c, hxw}), input(x, {n, c, hxw});
  const FloatTensor meanTensor(mean, {n, groups}), rstdTensor(rstd, {n, groups});
  const FloatTensor gammaTensor(gamma, {c});
  const FloatTensor dx(std::vector<float>(c * hxw), {n, c, hxw});
  const FloatTensor dgamma(std::vector<float>(c), {c}), dbeta(std::vector<float>(c), {c});
  const bool wanted[3] = {true, true, true};
  aclBoolArray* mask = aclCreateBoolArray(wanted, 3);

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnGroupNormBackwardGetWorkspaceSize(
      gradOut.tensor, input.tensor, meanTensor.tensor, rstdTensor.tensor, gammaTensor.tensor, n, c,
      hxw, groups, mask, dx.tensor, dgamma.tensor, dbeta.tensor, &workspaceSize, &executor));
  RunAndWait(aclnnGroupNormBackward, workspaceSize, executor, device.stream);
  aclDestroyBoolArray(mask);

  std::vector<double> wantDx(c * hxw), wantDgamma(c), wantDbeta(c);
  for (int g = 0; g < groups; ++g) {
    for (int k = g * hxw; k < (g + 1) * hxw; ++k) {
      wantDbeta[g] += dy[k];
      wantDgamma[g] += dy[k] * (x[k] - mean[g]) * rstd[g];
    }
    for (int k = g * hxw; k < (g + 1) * hxw; ++k) {
      const double xhat = (x[k] - mean[g]) * rstd[g];
      wantDx[k] = rstd[g] * gamma[g] * (dy[k] - wantDbeta[g] / hxw - xhat * wantDgamma[g] / hxw);
    }
  }
  bool right = Compare("dx", dx.Read(), wantDx);
  right = Compare("dgamma", dgamma.Read(), wantDgamma) && right;
  right = Compare("dbeta", dbeta.Read(), wantDbeta) && right;
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
