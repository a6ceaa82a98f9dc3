// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One executor is run twice, though it was not made repeatable.
// tool: ANYACL_LOG=error
// finds: aclnnRelu: executor was already run
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnReluGetWorkspaceSize(x, y, &size, &executor));
  if (right) MUST(aclSetAclOpExecutorRepeatable(executor));
  for (int i = 0; i < 2; ++i) static_cast<void>(aclnnRelu(nullptr, size, executor, stream));
  Wait();
  if (right) MUST(aclDestroyAclOpExecutor(executor));
  Destroy({x, y});
  Free({in, out});
}
