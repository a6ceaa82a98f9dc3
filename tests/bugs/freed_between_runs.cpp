// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A repeatable executor runs again after the memory of its output was freed.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu \(call 2, stream \d+\): out lies in device memory of 4096 bytes at 0x[0-9a-f]+, which was freed
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnReluGetWorkspaceSize(x, y, &size, &executor));
  MUST(aclSetAclOpExecutorRepeatable(executor));
  MUST(aclnnRelu(nullptr, size, executor, stream));
  Wait();
  if (!right) Free({out});
  MUST(aclnnRelu(nullptr, size, executor, stream));
  Wait();
  MUST(aclDestroyAclOpExecutor(executor));
  Destroy({x, y});
  if (right) Free({out});
  Free({in});
}
