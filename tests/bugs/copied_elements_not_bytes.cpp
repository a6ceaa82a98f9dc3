// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A copy is told the number of elements where it wants bytes.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnRelu .*self is read, but 3072 of its 4096 bytes were never written, the first is byte 1024
#include "program.h"

void Program::Run() {
  void* in = Memory();
  void* out = Memory();
  const std::vector<float> host(kCount);
  MUST(aclrtMemcpy(in, kBytes, host.data(), right ? kBytes : kCount, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
