// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/operators.h"

namespace anyacl {

std::span<const Operator* const> Operators() {
  static const Operator* const kAll[] = {
#define ANYACL_OPERATOR(name, stem, family) &name##Operator(),
#include "ops/op_list.inc"
#undef ANYACL_OPERATOR
  };
  return kAll;
}

}  // namespace anyacl
