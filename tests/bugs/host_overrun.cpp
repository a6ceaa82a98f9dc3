// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The program writes behind the end of its own host memory.
// tool: ANYACL_GUARD=1
// finds: guard: 8 bytes behind the end, from byte 0 behind it on, of host memory of 4096 bytes
// finds: allocated by\n(    #.*\n)*    #\d Program::Run\(\)
#include "program.h"

void Program::Run() {
  void* memory = nullptr;
  MUST(aclrtMallocHost(&memory, kBytes));
  auto* const numbers = static_cast<volatile float*>(memory);
  for (int64_t i = 0; i < kCount + (right ? 0 : 2); ++i) numbers[i] = 1;
  MUST(aclrtFreeHost(memory));
}
