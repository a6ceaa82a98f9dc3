// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A mask of attention leaves nothing of the second row: its softmax is 0 / 0, and soon every number of the model is NaN.
// tool: ANYACL_VERIFY=1
// finds: verify: ok aclnnSoftmax; .*; new NaN at out\[1, 0\];
#include <cmath>

#include "aclnnop/aclnn_softmax.h"
#include "program.h"

void Program::Run() {
  constexpr int64_t kRows = 4, kColumns = 8;
  std::vector<float> scores(kRows * kColumns, 0.5F);
  for (int64_t column = right ? 1 : 0; column < kColumns; ++column)
    scores[kColumns + column] = -INFINITY;
  const size_t bytes = scores.size() * sizeof(float);
  void* in = Memory(bytes);
  void* out = Memory(bytes);
  MUST(aclrtMemcpy(in, bytes, scores.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* x = Tensor(in, {kRows, kColumns});
  aclTensor* y = Tensor(out, {kRows, kColumns});
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnSoftmaxGetWorkspaceSize(x, 1, y, &size, &executor));
  void* workspace = size > 0 ? Memory(size) : nullptr;
  MUST(aclnnSoftmax(workspace, size, executor, stream));
  Wait();
  Destroy({x, y});
  Free({in, out});
  if (workspace) Free({workspace});
}
