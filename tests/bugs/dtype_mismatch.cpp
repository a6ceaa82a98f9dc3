// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An output of another dtype than the operator gives.
// tool: ANYACL_LOG=error
// finds: aclnnRelu: .*(dtype|must).*
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out, {kCount}, right ? ACL_FLOAT : ACL_BOOL);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  if (aclnnReluGetWorkspaceSize(x, y, &size, &executor) == 0)
    MUST(aclnnRelu(nullptr, size, executor, stream));
  Wait();
  Destroy({x, y});
  Free({in, out});
}
