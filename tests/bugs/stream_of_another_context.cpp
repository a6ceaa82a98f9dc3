// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream is used in a context that it was not made in.
// tool: ANYACL_LOG=error
// finds: aclnnRelu: stream must belong to the current context
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  aclrtContext mine = nullptr, other = nullptr;
  MUST(aclrtGetCurrentContext(&mine));
  MUST(aclrtCreateContext(&other, 0));
  MUST(aclrtSetCurrentContext(right ? mine : other));
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnReluGetWorkspaceSize(x, y, &size, &executor));
  static_cast<void>(aclnnRelu(nullptr, size, executor, stream));
  MUST(aclrtSetCurrentContext(mine));
  MUST(aclrtDestroyContext(other));
  Wait();
  Destroy({x, y});
  Free({in, out});
}
