// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/dense.h"

#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl {
namespace {

Operand Moved(const Operand& operand, int axis, int to) {
  std::vector<int> order;
  for (int i = 0; i < operand.dims.rank(); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.insert(order.begin() + to, axis);
  Operand moved = operand;
  for (int i = 0; i < operand.dims.rank(); ++i) {
    moved.dims[i] = operand.dims[order[i]];
    moved.strides[i] = operand.strides[order[i]];
  }
  return moved;
}

}  // namespace

Operand AxisFirst(const Operand& operand, int axis) { return Moved(operand, axis, 0); }
Operand AxisLast(const Operand& operand, int axis) { return Moved(operand, axis, operand.dims.rank() - 1); }

Status Dense::Read(int arg, DType dtype) {
  if (!values_[arg].given()) return {};
  return pointwise::DenseInput(plan_, arg, 0, dtype, &read_[arg]);
}

Status Dense::Read(int arg, const Operand& view, DType dtype) {
  Operand& operand = read_[arg];
  operand = view;
  if (view.dtype == dtype && view.row_major()) return {};
  operand = plan_.ScratchOperand("converted input", dtype, view.dims);
  return pointwise::AddCopy(plan_, view, operand);
}

void Dense::Write(int arg) {
  if (values_[arg].given()) Write(arg, plan_.TensorOperand(arg));
}

void Dense::Write(int arg, const Operand& view, DType dtype) {
  const bool in_place = view.dtype == dtype && view.row_major() && !plan_.Overlaps(view, /*exact_too=*/true);
  written_[arg] = {in_place ? view : plan_.ScratchOperand("output before conversion", dtype, view.dims), view};
}

Status Dense::Finish() {
  for (const auto& [arg, result] : written_) {
    if (result.dense.index < 0) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, result.dense, result.tensor));
  }
  return {};
}

DType StoredType(DType computed, std::initializer_list<Operand> operands) {
  const DType stored = operands.begin()->dtype;
  if (computed != DType::kF32 || (stored != DType::kF16 && stored != DType::kBF16)) return computed;
  for (const Operand& operand : operands) {
    if (operand.dtype != stored || !operand.row_major()) return computed;
  }
  return stored;
}

Status FillOutput(PlanBuilder& plan, int arg, double value) {
  const Operand out = plan.TensorOperand(arg);
  const DType computed = out.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const pointwise::ScalarUse scalars[] = {{Scalar::Of(DType::kF64, value)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, computed, {}, out, scalars);
}

}  // namespace anyacl
