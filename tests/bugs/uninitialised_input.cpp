// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An operator reads memory that nobody has written.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self is read, but 4096 of its 4096 bytes were never written
// finds: which was called by\n.*Program::Relu
#include "program.h"

void Program::Run() {
  void* in = Memory();
  void* out = Memory();
  if (right) Upload(in);
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
