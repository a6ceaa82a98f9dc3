// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A tensor is destroyed twice.
// tool: ANYACL_LOG=error
// finds: aclDestroyTensor: tensor .*live aclTensor
#include "program.h"

void Program::Run() {
  aclTensor* x = Tensor(nullptr, {0});
  for (int i = 0; i < (right ? 1 : 2); ++i) static_cast<void>(aclDestroyTensor(x));
}
