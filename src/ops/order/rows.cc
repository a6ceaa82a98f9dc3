// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/rows.h"

#include "ops/pointwise/pass.h"

namespace anyacl::order {

Operand WithAxisLast(Operand operand, int64_t axis) {
  const int rank = operand.dims.rank();
  if (rank == 0) {
    operand.dims = {1};
    operand.strides = {1};
    return operand;
  }
  const int last = static_cast<int>(axis < 0 ? axis + rank : axis);
  Dims dims, strides;
  for (int i = 0; i < rank; ++i) {
    if (i == last) continue;
    dims.push_back(operand.dims[i]);
    strides.push_back(operand.strides[i]);
  }
  dims.push_back(operand.dims[last]);
  strides.push_back(operand.strides[last]);
  operand.dims = dims;
  operand.strides = strides;
  return operand;
}

Status RowsInput(PlanBuilder& plan, const Operand& from, DType dtype, Operand* rows) {
  const DType natural = NaturalType(dtype);
  *rows = from;
  if (from.dtype == natural && natural == dtype && from.row_major()) return {};
  Operand source = from;
  if (from.dtype != dtype && natural != dtype) {
    source = plan.ScratchOperand("converted input", dtype, from.dims);
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, source));
  }
  *rows = plan.ScratchOperand("rows", natural, from.dims);
  return pointwise::AddCopy(plan, source, *rows);
}

Operand RowsOutput(PlanBuilder& plan, const Operand& target, DType natural) {
  if (target.dtype == natural && target.row_major() && !plan.Overlaps(target, /*exact_too=*/true)) return target;
  return plan.ScratchOperand("rows of the result", natural, target.dims);
}

Status FinishRows(PlanBuilder& plan, const Operand& rows, const Operand& target) {
  if (rows.index >= 0) return {};
  return pointwise::AddCopy(plan, rows, target);
}

}  // namespace anyacl::order
