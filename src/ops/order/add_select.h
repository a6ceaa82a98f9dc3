// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_ORDER_ADD_SELECT_H_
#define ANYACL_OPS_ORDER_ADD_SELECT_H_

#include "ops/order/select.h"
#include "plan/plan.h"

namespace anyacl::order {

// A step that picks elements of the rows of `from` as `facts` say. Values and places end in those operands, whose last axis
// has as many elements as are picked; null: not wanted.
Status AddSelect(PlanBuilder& plan, const SelectParams& facts, const Operand& from, const Operand* values,
                 const Operand* places);

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_ADD_SELECT_H_
