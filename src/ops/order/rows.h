// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Operators along one axis work on rows: dense arrays of a compute type's own dtype with that axis last.
#ifndef ANYACL_OPS_ORDER_ROWS_H_
#define ANYACL_OPS_ORDER_ROWS_H_

#include <cstdint>

#include "core/dtype.h"
#include "ops/pointwise/pointwise.h"
#include "plan/plan.h"

namespace anyacl::order {

// The dtype of which the compute type's numbers are.
constexpr DType NaturalType(pointwise::Compute compute) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI64, DType::kU64, DType::kC64, DType::kC128};
  return kTypes[static_cast<int>(compute)];
}
constexpr DType NaturalType(DType dtype) { return NaturalType(pointwise::ComputeOf(dtype)); }

// The same elements with one axis last. An operand without dims has one.
Operand WithAxisLast(Operand operand, int64_t axis);

// `from`, converted to `dtype` and then to rows of its natural type.
Status RowsInput(PlanBuilder& plan, const Operand& from, DType dtype, Operand* rows);
// Where rows of a natural dtype are written that end in `target`, and how they get there after the kernel's step.
Operand RowsOutput(PlanBuilder& plan, const Operand& target, DType natural);
Status FinishRows(PlanBuilder& plan, const Operand& rows, const Operand& target);

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_ROWS_H_
