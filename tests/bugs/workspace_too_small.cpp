// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The workspace is smaller than phase 1 said, though phase 2 is told otherwise.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnEluBackward \(call 1, stream \d+\): workspace reaches 512 bytes behind the end of device memory of \d+ bytes
#include "program.h"

namespace {

aclScalar* One() {
  float one = 1;
  return aclCreateScalar(&one, ACL_FLOAT);
}

}  // namespace

void Program::Run() {
  void* in = Input();
  void* out = Memory(2 * kBytes);
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out, {kCount}, ACL_FLOAT, {2});
  aclScalar* one = One();
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnEluBackwardGetWorkspaceSize(x, one, one, one, false, x, y, &size, &executor));
  void* workspace = Memory(right ? size : size - 512);
  MUST(aclnnEluBackward(workspace, size, executor, stream));
  Wait();
  Free({workspace});
  MUST(aclDestroyScalar(one));
  Destroy({x, y});
  Free({in, out});
}
