// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The memory is of another device than the stream.
// tool: ANYACL_GUARD=1 ANYACL_DEVICES=2
// finds: guard: aclnnRelu .*out lies on device 1, but the stream is of device 0
#include "program.h"

void Program::Run() {
  void* in = Input();
  if (!right) MUST(aclrtSetDevice(1));
  void* out = Memory();
  MUST(aclrtSetDevice(0));
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
