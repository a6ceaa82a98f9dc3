// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The memory of an input serves as the workspace.
// tool: ANYACL_GUARD=1
// finds: guard: aclnnEluBackward .*the workspace and gradOutput overlap
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
  void* workspace = Memory(size);
  MUST(aclnnEluBackward(right ? workspace : in,
                        right           ? size
                        : kBytes < size ? size
                                        : kBytes,
                        executor, stream));
  Wait();
  Free({workspace});
  MUST(aclDestroyScalar(one));
  Destroy({x, y});
  Free({in, out});
}
