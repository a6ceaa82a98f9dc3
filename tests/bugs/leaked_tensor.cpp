// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Descriptions of tensors are never destroyed.
// tool: ANYACL_GUARD=1
// finds: leaks: 3 aclTensor were never destroyed\n  made by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  for (int i = 0; i < 3; ++i) {
    aclTensor* x = Tensor(nullptr, {0});
    if (right) Destroy({x});
  }
}
