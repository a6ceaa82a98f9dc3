// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Phase 1 without phase 2.
// tool: ANYACL_GUARD=1
// finds: leaks: 1 aclOpExecutor was never destroyed\n  made by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  void* in = Input();
  aclTensor* x = Tensor(in);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnReluGetWorkspaceSize(x, x, &size, &executor));
  if (right) MUST(aclDestroyAclOpExecutor(executor));
  Destroy({x});
  Free({in});
}
