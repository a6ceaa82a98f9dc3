// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An event that is never destroyed.
// tool: ANYACL_GUARD=1
// finds: leaks: 1 aclrtEvent was never destroyed\n  made by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  aclrtEvent event = nullptr;
  MUST(aclrtCreateEvent(&event));
  if (right) MUST(aclrtDestroyEvent(event));
}
