// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The offset of a view is given in bytes, but it counts elements.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self reaches 768 bytes behind the end of device memory of 4096 bytes
// finds: offset 256
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in, {960}, ACL_FLOAT, {1}, right ? 64 : 64 * sizeof(float));
  aclTensor* y = Tensor(out, {960});
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
