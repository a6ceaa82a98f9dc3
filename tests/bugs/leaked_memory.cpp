// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Memory that is never freed.
// tool: ANYACL_GUARD=1
// finds: leaks: 2 blocks of memory with 8192 bytes in all were never freed\n  allocated by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  for (int i = 0; i < 2; ++i) {
    void* memory = Memory();
    if (right) Free({memory});
  }
}
