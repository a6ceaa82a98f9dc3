// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The program goes on writing to host memory that it has freed.
// tool: ANYACL_GUARD=1
// finds: guard: 4 bytes from byte 16 on, after they were freed, of host memory of 4096 bytes
// finds: freed by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  void* memory = nullptr;
  MUST(aclrtMallocHost(&memory, kBytes));
  auto* const numbers = static_cast<volatile float*>(memory);
  if (right) numbers[4] = 1;
  MUST(aclrtFreeHost(memory));
  if (!right) numbers[4] = 1;
}
