// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A result is copied after its memory was freed.
// tool: ANYACL_GUARD=1
// finds: guard: aclrtMemcpy: src lies in device memory of 4096 bytes at 0x[0-9a-f]+, which was freed
#include "program.h"

void Program::Run() {
  void* in = Input();
  std::vector<char> host(kBytes);
  if (!right) Free({in});
  MUST(aclrtMemcpy(host.data(), kBytes, in, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  if (right) Free({in});
}
