// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A scalar is made of a double and said to be a float: it takes the first four bytes, which are 0. Every call succeeds.
// tool: ANYACL_TRACE=FILE
// finds: aclnnMulsGetWorkspaceSize\(.*other=scalar#1 FLOAT 0,
#include "program.h"

void Program::Run() {
  void* in = Input();
  void* out = Memory();
  aclTensor* x = Tensor(in);
  aclTensor* y = Tensor(out);
  double factor = 0.5;
  aclScalar* scalar = aclCreateScalar(&factor, right ? ACL_DOUBLE : ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnMulsGetWorkspaceSize(x, scalar, y, &size, &executor));
  MUST(aclnnMuls(nullptr, size, executor, stream));
  Wait();
  MUST(aclDestroyScalar(scalar));
  Destroy({x, y});
  Free({in, out});
}
