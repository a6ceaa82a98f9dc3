// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rows are said to be further apart than they are.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self reaches 1984 bytes behind the end of device memory of 4096 bytes
// finds: self FLOAT \[32, 32\] with strides \[48, 1\]
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in, {32, 32}, ACL_FLOAT, {right ? 32 : 48, 1});
  aclTensor* y = Tensor(out, {32, 32});
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
