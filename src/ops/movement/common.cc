// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/movement/common.h"
#include "ops/pointwise/formulas.h"

#include <algorithm>
#include <cstdlib>

namespace anyacl::movement {

using namespace contract;

std::vector<TypeRow> EverywhereRows(DTypeSet types) {
  std::vector<TypeRow> rows;
  for (DType t : types.List()) rows.push_back({{t}});
  return rows;
}

void AddRankRules(Table* table) {
  for (const Arg& arg : table->args) {
    if (arg.is_tensor() || arg.is_tensor_list()) table->rules.push_back(Rank(arg.name, 0, 8));
  }
}

void AddStorageRules(Table* table) {
  for (const Arg& arg : table->args) {
    if (arg.is_tensor() || arg.is_tensor_list()) table->rules.push_back(PlainStorage(arg.name));
  }
}

Operand Narrow(Operand operand, int axis, int64_t start, int64_t count, int64_t step) {
  operand.dims[axis] = count;
  if (count > 0) {
    const int64_t skipped = start * operand.strides[axis] * static_cast<int64_t>(SizeOf(operand.dtype));
    operand.offset += skipped;
    operand.bytes -= skipped;
  }
  operand.strides[axis] *= step;
  return operand;
}

Operand Permuted(const Operand& operand, const std::vector<int>& axes) {
  Operand result = operand;
  for (size_t i = 0; i < axes.size(); ++i) {
    result.dims[static_cast<int>(i)] = operand.dims[axes[i]];
    result.strides[static_cast<int>(i)] = operand.strides[axes[i]];
  }
  return result;
}

Operand WithAxis(const Operand& operand, int axis, int64_t size) {
  Operand result = operand;
  result.dims = result.strides = Dims();
  for (int i = 0; i <= operand.dims.rank(); ++i) {
    if (i == axis) {
      result.dims.push_back(size);
      result.strides.push_back(0);
    }
    if (i == operand.dims.rank()) break;
    result.dims.push_back(operand.dims[i]);
    result.strides.push_back(operand.strides[i]);
  }
  return result;
}

Operand WithoutAxis(const Operand& operand, int axis) {
  Operand result = operand;
  result.dims = result.strides = Dims();
  for (int i = 0; i < operand.dims.rank(); ++i) {
    if (i == axis) continue;
    result.dims.push_back(operand.dims[i]);
    result.strides.push_back(operand.strides[i]);
  }
  return result;
}

Operand SplitAxis(const Operand& operand, int axis, int64_t inner) {
  Operand result = WithAxis(operand, axis, inner == 0 ? 0 : operand.dims[axis] / inner);
  result.strides[axis] = operand.strides[axis] * inner;
  result.dims[axis + 1] = inner;
  return result;
}

Operand DiagonalOf(const Operand& operand, int64_t diagonal) {
  const int row = operand.dims.rank() - 2, column = row + 1;
  const int64_t rows = operand.dims[row], columns = operand.dims[column];
  const int64_t above = std::clamp<int64_t>(diagonal, 0, columns), below = diagonal < -rows ? rows : -std::min<int64_t>(diagonal, 0);
  const int64_t count = std::max<int64_t>(0, std::min(rows - below, columns - above));
  Operand result = Narrow(Narrow(operand, row, count > 0 ? below : 0, count), column, count > 0 ? above : 0, count);
  result.strides[row] += result.strides[column];
  return WithoutAxis(result, column);
}

Operand Reshaped(const Operand& operand, const Dims& dims) {
  Operand result = operand;
  result.dims = dims;
  result.strides = ContiguousStrides(dims);
  return result;
}

Operand AtLeast1d(const Operand& operand) { return operand.dims.rank() > 0 ? operand : WithAxis(operand, 0); }

Operand ApartOutput(PlanBuilder& plan, int arg, int item) {
  const Operand tensor = plan.TensorOperand(arg, item);
  if (!plan.Overlaps(tensor, /*exact_too=*/true)) return tensor;
  return plan.ScratchOperand("output apart from inputs", tensor.dtype, tensor.dims);
}

Status DenseOf(PlanBuilder& plan, Operand operand, Operand* dense) {
  *dense = operand;
  if (operand.row_major()) return {};
  *dense = plan.ScratchOperand("dense copy", operand.dtype, operand.dims);
  return pointwise::AddCopy(plan, operand, *dense);
}

Status AddFill(PlanBuilder& plan, const Operand& out, const Scalar& value) {
  const pointwise::ScalarUse use[] = {{value, out.dtype}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, out.dtype, {}, out, use);
}

Status AddZeros(PlanBuilder& plan, const Operand& out) { return AddFill(plan, out, Scalar::OfInt(0)); }

Status CopyOut(PlanBuilder& plan, const Operand& from, int arg, int item) {
  const Operand out = ApartOutput(plan, arg, item);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, out));
  return pointwise::FinishOutput(plan, arg, item, out);
}

}  // namespace anyacl::movement
