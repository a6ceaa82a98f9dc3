// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Nobody looks at what the calls return: one is refused, and the program goes on with memory that nothing was written to.
// tool: ANYACL_TRACE=FILE
// finds: aclnnReluGetWorkspaceSize\(self=tensor#1 FLOAT \[1024\] at mem#1, out=tensor#2 FLOAT \[512\] at mem#2\) = 161002
// finds: error: aclnnRelu: .*out.*self
// finds: aclnnRelu\(workspace=null, workspaceSize=0, executor=null,
// finds: \d+ calls of 1 threads, 2 failed
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out, {right ? kCount : kCount / 2});
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclnnReluGetWorkspaceSize(x, y, &size, &executor);
  aclnnRelu(nullptr, size, executor, stream);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
