// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The output has room for one element less than the operator writes.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu \(call 1, stream \d+\): out reaches 4 bytes behind the end of device memory of 4092 bytes
// finds: guard: 4 bytes behind the end, from byte 0 behind it on, of device memory of 4092 bytes
// finds: found after aclnnRelu \(call 1
// finds: allocated by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory(right ? kBytes : kBytes - sizeof(float));
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
