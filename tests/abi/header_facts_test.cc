// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The numbers and sizes that programs were compiled with, checked while this file is compiled.
#include <cstring>
#include <iostream>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_tdt.h"
#include "aclnn/aclnn_base.h"

#define ANYACL_VALUE(name, value) \
  static_assert(static_cast<long long>(name) == static_cast<long long>(value), #name);
#define ANYACL_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type);
#define ANYACL_TEXT(name, text)
#include "header_facts.inc"
#undef ANYACL_VALUE
#undef ANYACL_SIZE
#undef ANYACL_TEXT

namespace {

int wrong = 0;

void CheckText(const char* name, const char* actual, const char* expected) {
  if (std::strcmp(actual, expected) == 0) return;
  std::cerr << name << " is \"" << actual << "\", must be \"" << expected << "\"\n";
  ++wrong;
}

}  // namespace

int main() {
#define ANYACL_VALUE(name, value)
#define ANYACL_SIZE(type, bytes)
#define ANYACL_TEXT(name, text) CheckText(#name, name, text);
#include "header_facts.inc"
  return wrong == 0 ? 0 : 1;
}
