// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream waits for an event before that is recorded, which waits for nothing.
// tool: ANYACL_RACES=1
// finds: races: aclnnRelu, call 2 \(stream \d+\) reads self while aclnnRelu, call 1 \(stream \d+\) may still write it as out
#include "program.h"

void Program::Run() {
  aclrtStream other = nullptr;
  aclrtEvent event = nullptr;
  MUST(aclrtCreateStream(&other));
  MUST(aclrtCreateEvent(&event));
  void* in = Input();
  void* between = Memory();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(between);
  aclTensor* z = Tensor(out);
  if (!right) MUST(aclrtStreamWaitEvent(other, event));
  Relu(x, y);
  MUST(aclrtRecordEvent(event, stream));
  if (right) MUST(aclrtStreamWaitEvent(other, event));
  Relu(y, z, other);
  Wait();
  MUST(aclrtSynchronizeStream(other));
  Destroy({x, y, z});
  Free({in, between, out});
  MUST(aclrtDestroyEvent(event));
  MUST(aclrtDestroyStream(other));
}
