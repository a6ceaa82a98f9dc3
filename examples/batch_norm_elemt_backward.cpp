// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The last step of a synchronised batch norm's backward pass, from the sums of two ranks.
#include "aclnnop/aclnn_batch_norm_elemt_backward.h"

#include "example.h"

int main() {
  Device device;
  const int64_t n = 1, c = 2, hxw = 3;
  const std::vector<float> dy = {1.0f, 2.0f, 3.0f, -1.0f, 0.5f, 2.0f};
  const std::vector<float> x = {0.5f, -1.0f, 2.0f, 1.0f, 1.0f, -2.0f};
  const std::vector<float> mean = {0.25f, 0.5f}, invstd = {0.8f, 1.25f}, weight = {1.0f, 0.5f};
  // Sums over all ranks, and how many elements of a channel each of the two ranks had.
  const std::vector<float> sumDy = {7.0f, -2.0f}, sumDyXmu = {3.0f, 1.5f}, counts = {3.0f, 5.0f};
  const FloatTensor gradOut(dy, {n, c, hxw}), input(x, {n, c, hxw});
  const FloatTensor meanTensor(mean, {c}), invstdTensor(invstd, {c}), weightTensor(weight, {c});
  const FloatTensor sumDyTensor(sumDy, {c}), sumDyXmuTensor(sumDyXmu, {c}), counter(counts, {2});
  const FloatTensor dx(std::vector<float>(c * hxw), {n, c, hxw});

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnBatchNormElemtBackwardGetWorkspaceSize(
      gradOut.tensor, input.tensor, meanTensor.tensor, invstdTensor.tensor, weightTensor.tensor,
      sumDyTensor.tensor, sumDyXmuTensor.tensor, counter.tensor, dx.tensor, &workspaceSize,
      &executor));
  RunAndWait(aclnnBatchNormElemtBackward, workspaceSize, executor, device.stream);

  std::vector<double> wantDx(c * hxw);
  const double count = counts[0] + counts[1];
  for (int k = 0; k < c * hxw; ++k) {
    const int64_t channel = k / hxw;
    const double slope = sumDyXmu[channel] / count * invstd[channel] * invstd[channel];
    wantDx[k] = (dy[k] - sumDy[channel] / count - (x[k] - mean[channel]) * slope) *
                invstd[channel] * weight[channel];
  }
  const bool right = Compare("dx", dx.Read(), wantDx);
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
