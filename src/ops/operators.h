// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_OPERATORS_H_
#define ANYACL_OPS_OPERATORS_H_

#include <span>

#include "plan/operator.h"

namespace anyacl {

// Every operator of op_list.inc, in that order.
std::span<const Operator* const> Operators();

// One function per operator, defined in <family>/<stem>.cc.
#define ANYACL_OPERATOR(name, stem, family) const Operator& name##Operator();
#include "ops/op_list.inc"
#undef ANYACL_OPERATOR

}  // namespace anyacl

#endif  // ANYACL_OPS_OPERATORS_H_
