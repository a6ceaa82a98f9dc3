// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Two results of one operator are views of the same memory.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnMaxDim .*the outputs out and indices overlap
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* memory = Memory();
  char* const first = static_cast<char*>(memory);
  aclTensor* x = Tensor(in, {32, 32});
  aclTensor* out = Tensor(first, {32});
  aclTensor* indices = Tensor(first + (right ? 1024 : 64), {32}, ACL_INT64);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnMaxDimGetWorkspaceSize(x, 1, false, out, indices, &size, &executor));
  void* workspace = size > 0 ? Memory(size) : nullptr;
  MUST(aclnnMaxDim(workspace, size, executor, stream));
  Wait();
  Destroy({x, out, indices});
  Free({in, memory});
  if (workspace) Free({workspace});
}
