// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the parts of the family share.
#ifndef ANYACL_OPS_RNN_FAMILIES_H_
#define ANYACL_OPS_RNN_FAMILIES_H_

#include <type_traits>

#include "ops/operators.h"
#include "plan/plan.h"

namespace anyacl::rnn {

// An operand and the pointer to numbers of the present step that receives it.
template <class T>
void Bind(PlanBuilder& plan, const Operand& operand, T*& member) {
  plan.Bind(operand, reinterpret_cast<std::conditional_t<std::is_const_v<T>, const void*, void*>&>(member));
}

void DeclareCells(Declarations& declarations);

}  // namespace anyacl::rnn

#endif  // ANYACL_OPS_RNN_FAMILIES_H_
