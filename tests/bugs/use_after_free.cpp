// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An input is freed before the operator that reads it is called.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self lies in device memory of 4096 bytes at 0x[0-9a-f]+, which was freed
// finds: freed by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  if (!right) Free({in});
  Relu(x, y);
  Wait();
  if (right) Free({in});
  Destroy({x, y});
  Free({out});
}
