// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A tensor is destroyed between the two phases.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self was destroyed after phase 1
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnReluGetWorkspaceSize(x, y, &size, &executor));
  if (!right) Destroy({x});
  MUST(aclnnRelu(nullptr, size, executor, stream));
  if (right) Destroy({x});
  Wait();
  Destroy({y});
  Free({in, out});
}
