// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/add_select.h"

#include "ops/order/rows.h"

namespace anyacl::order {

Status AddSelect(PlanBuilder& plan, const SelectParams& facts, const Operand& from, const Operand* values,
                 const Operand* places) {
  Operand in;
  ANYACL_RETURN_IF_ERROR(RowsInput(plan, from, from.dtype, &in));
  Operand value_rows, place_rows;
  if (values) value_rows = RowsOutput(plan, *values, NaturalType(from.dtype));
  if (places) place_rows = RowsOutput(plan, *places, DType::kI64);
  auto& params = plan.MakeParams<SelectParams>();
  params = facts;
  params.length = from.dims[from.dims.rank() - 1];
  params.rows = params.length == 0 ? 1 : Numel(from.dims) / params.length;
  params.compute = pointwise::ComputeOf(from.dtype);
  if (params.length > 0) plan.Bind(in, params.in);
  if (values) plan.Bind(value_rows, params.values);
  if (places) plan.Bind(place_rows, params.places);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "select"));
  if (values) ANYACL_RETURN_IF_ERROR(FinishRows(plan, value_rows, *values));
  return places ? FinishRows(plan, place_rows, *places) : Status();
}

}  // namespace anyacl::order
