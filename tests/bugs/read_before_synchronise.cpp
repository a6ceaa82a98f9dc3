// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A result is read without waiting for the stream.
// tool: ANYACL_RACES=1
// finds: races: aclrtMemcpy \(host\) reads src while aclnnRelu, call 1 \(stream \d+\) may still write it as out: the host did not wait for stream \d+
// finds: the first was called by\n.*Program::Relu
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  if (right) Wait();
  std::vector<char> host(kBytes);
  MUST(aclrtMemcpy(host.data(), kBytes, out, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  Wait();
  Destroy({x, y});
  Free({in, out});
}
