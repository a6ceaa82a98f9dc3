// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Two streams use one workspace at the same time.
// tool: ANYACL_RACES=1
// finds: races: aclnnEluBackward, call 2 \(stream \d+\) writes workspace while aclnnEluBackward, call 1 \(stream \d+\) may still write it as workspace
#include "program.h"

namespace {

aclScalar* One() {
  float one = 1;
  return aclCreateScalar(&one, ACL_FLOAT);
}

}  // namespace

void Program::Run() {
  aclrtStream other = nullptr;
  MUST(aclrtCreateStream(&other));
  void* in = Input();
  void* out = Memory(2 * kBytes);
  void* out2 = Memory(2 * kBytes);
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out, {kCount}, ACL_FLOAT, {2});
  aclTensor* z = Tensor(out2, {kCount}, ACL_FLOAT, {2});
  aclScalar* one = One();
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnEluBackwardGetWorkspaceSize(x, one, one, one, false, x, y, &size, &executor));
  void* workspace = Memory(size);
  MUST(aclnnEluBackward(workspace, size, executor, stream));
  if (right) Wait();
  MUST(aclnnEluBackwardGetWorkspaceSize(x, one, one, one, false, x, z, &size, &executor));
  MUST(aclnnEluBackward(workspace, size, executor, other));
  Wait();
  MUST(aclrtSynchronizeStream(other));
  MUST(aclDestroyScalar(one));
  Destroy({x, y, z});
  Free({in, out, out2, workspace});
  MUST(aclrtDestroyStream(other));
}
