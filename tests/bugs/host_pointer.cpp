// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Ordinary memory of the program is given to an operator.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self lies at 0x[0-9a-f]+, which is no memory of a device
#include "program.h"

void Program::Run() {
  std::vector<float> host(kCount);
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(right ? in : host.data());
  aclTensor* y = Tensor(out);
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
