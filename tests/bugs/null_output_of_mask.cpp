// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The mask asks for three gradients, and there is no tensor for the third.
// tool: ANYACL_LOG=error
// finds: aclnnLayerNormBackward: gradBiasOut must not be null
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "program.h"

void Program::Run() {
  constexpr int64_t kRows = 32, kColumns = 32;
  void* in = Input();
  void* rows = Input();
  void* columns = Input();
  void* out = Memory();
  void* sums = Memory();
  aclTensor* gradient = Tensor(in, {kRows, kColumns});
  aclTensor* x = Tensor(in, {kRows, kColumns});
  aclTensor* mean = Tensor(rows, {kRows, 1});
  aclTensor* rstd = Tensor(rows, {kRows, 1});
  aclTensor* weight = Tensor(columns, {kColumns});
  aclTensor* of_input = Tensor(out, {kRows, kColumns});
  aclTensor* of_weight = Tensor(sums, {kColumns});
  const int64_t shape[] = {kColumns};
  aclIntArray* normalized = aclCreateIntArray(shape, 1);
  const bool wanted[] = {true, true, !right};
  aclBoolArray* mask = aclCreateBoolArray(wanted, 3);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  void* workspace = nullptr;
  if (aclnnLayerNormBackwardGetWorkspaceSize(gradient, x, normalized, mean, rstd, weight, nullptr,
                                             mask, of_input, of_weight, nullptr, &size,
                                             &executor) == 0) {
    if (size > 0) workspace = Memory(size);
    MUST(aclnnLayerNormBackward(workspace, size, executor, stream));
  }
  Wait();
  MUST(aclDestroyBoolArray(mask));
  MUST(aclDestroyIntArray(normalized));
  Destroy({gradient, x, mean, rstd, weight, of_input, of_weight});
  Free({in, rows, columns, out, sums});
  if (workspace) Free({workspace});
}
