// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The device is never given back, nor a stream of it.
// tool: ANYACL_GUARD=1
// finds: leaks: 1 aclrtStream was never destroyed\n  made by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  aclrtStream other = nullptr;
  MUST(aclrtSetDevice(0));  // counts: two calls to reset it
  MUST(aclrtCreateStream(&other));
  if (!right) return;
  MUST(aclrtDestroyStream(other));
  MUST(aclrtResetDevice(0));
}
