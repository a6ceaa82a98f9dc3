// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The next input is copied over the last one while an operator may still read it.
// tool: ANYACL_RACES=1
// unless: ANYACL_BLOCKING=1
// finds: races: aclrtMemcpy \(host\) writes dst while aclnnRelu, call 1 \(stream \d+\) may still read it as self: the host did not wait
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  Relu(x, y);
  if (right) Wait();
  Upload(in);
  Wait();
  Destroy({x, y});
  Free({in, out});
}
