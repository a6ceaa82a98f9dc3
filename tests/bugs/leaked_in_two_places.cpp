// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Two places make a tensor each, and nobody destroys them.
// tool: ANYACL_GUARD=1
// finds: (?s)leaks: 1 aclTensor was never destroyed.*leaks: 1 aclTensor was never destroyed
#include "program.h"

void Program::Run() {
  void* in = Input();
  aclTensor* first = Tensor(in);
  aclTensor* second = Tensor(in);
  if (right) Destroy({first, second});
  Free({in});
}
