// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/indexing/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/codes.h"
#include "plan/operator.h"

namespace anyacl::indexing {
namespace {

// Neighbours of a kind that every operand walks through in one stride become one axis; those of one step vanish.
std::vector<Axis> Merged(std::vector<Axis> axes, size_t indices) {
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.kind < b.kind; });
  std::vector<Axis> kept;
  for (Axis& axis : axes) {
    if (axis.size == 1) continue;
    axis.index.resize(indices);
    bool merges = !kept.empty() && kept.back().kind == axis.kind && kept.back().table == axis.table * axis.size &&
                  kept.back().data == axis.data * axis.size;
    for (size_t k = 0; merges && k < indices; ++k) merges = kept.back().index[k] == axis.index[k] * axis.size;
    if (merges) axis.size *= kept.back().size;
    if (merges) kept.back() = std::move(axis);
    else kept.push_back(std::move(axis));
  }
  return kept;
}

}  // namespace

Status AddWalk(PlanBuilder& plan, Spec spec) {
  for (const Axis& axis : spec.axes) {
    if (axis.size == 0) return {};
  }
  const std::vector<Axis> axes = Merged(std::move(spec.axes), spec.indices.size());
  if (axes.size() > kMaxAxes || spec.indices.size() > kMaxIndices) {
    return Status(code::kInvalid, fmt::format("{}: at most {} separate axes and {} indices are supported, got {} and {}",
                                              plan.op().contract.op(), kMaxAxes, kMaxIndices, axes.size(), spec.indices.size()));
  }
  auto& p = plan.MakeParams<WalkParams>();
  p.action = spec.action;
  p.element_size = static_cast<int32_t>(SizeOf(spec.table.dtype));
  p.dtype = spec.table.dtype;
  p.indices = static_cast<uint8_t>(spec.indices.size());
  for (size_t k = 0; k < spec.indices.size(); ++k) {
    const Index& index = spec.indices[k];
    p.size[k] = index.size;
    p.step[k] = index.step;
    p.wraps |= static_cast<uint8_t>(index.wraps ? 1u << k : 0);
    p.wide |= static_cast<uint8_t>(index.operand.dtype == DType::kI64 ? 1u << k : 0);
    plan.Bind(index.operand, p.index[k]);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    p.dims[i] = axes[i].size;
    p.table_strides[i] = axes[i].table;
    p.data_strides[i] = axes[i].data;
    for (size_t k = 0; k < spec.indices.size(); ++k) p.index_strides[k][i] = axes[i].index[k];
    ++(axes[i].kind == Axis::kLane ? p.lanes : axes[i].kind == Axis::kSerial ? p.serial : p.runs);
  }
  plan.Bind(spec.table, p.table);
  plan.Bind(spec.data, p.data);
  p.keeps_first = spec.keeps_first;
  if (spec.scale) plan.Bind(*spec.scale, p.scale);
  if (spec.hits) plan.Bind(*spec.hits, p.hits);
  return plan.ChooseKernel("walk");
}

std::vector<Axis> AxesAlong(int dim, const Operand& table, const Operand& data, const Operand& index, bool writes) {
  std::vector<Axis> axes;
  for (int i = 0; i < table.dims.rank(); ++i) {
    if (i == dim) {
      axes.push_back({writes ? Axis::kSerial : Axis::kLane, data.dims[i], 0, data.strides[i], {index.strides[0]}});
    } else {
      axes.push_back({i < dim ? Axis::kLane : Axis::kRun, table.dims[i], table.strides[i], data.strides[i]});
    }
  }
  return axes;
}

std::vector<Axis> AxesEach(int dim, const Operand& table, const Operand& data, const Operand& index, bool writes) {
  std::vector<Axis> axes;
  for (int i = 0; i < index.dims.rank(); ++i) {
    const bool named = i == dim;
    axes.push_back({named && writes ? Axis::kSerial : Axis::kLane, index.dims[i], named ? 0 : table.strides[i],
                    data.strides[i], {index.strides[i]}});
  }
  return axes;
}

Spec TupleSpec(Action action, const Operand& table, const Operand& data, const Operand& indices, bool wraps) {
  const int last = indices.dims.rank() - 1;
  const int k = static_cast<int>(indices.dims[last]);
  Spec spec{action, table, data, {}, {}};
  for (int i = 0; i < k; ++i) {
    const Operand column = movement::WithoutAxis(movement::Narrow(indices, last, i, 1), last);
    spec.indices.push_back({column, table.dims[i], table.strides[i], wraps});
  }
  for (int i = 0; i < last; ++i) {
    spec.axes.push_back({action == Action::kRead ? Axis::kLane : Axis::kSerial, indices.dims[i], 0, data.strides[i],
                         std::vector<int64_t>(static_cast<size_t>(k), indices.strides[i])});
  }
  for (int i = k; i < table.dims.rank(); ++i) {
    spec.axes.push_back({Axis::kRun, table.dims[i], table.strides[i], data.strides[last + i - k]});
  }
  return spec;
}

DType AccumulatorOf(DType dtype) {
  if (dtype == DType::kC32) return DType::kC64;
  if (dtype == DType::kF64 || IsComplex(dtype)) return dtype;
  return IsInteger(dtype) || dtype == DType::kBool ? DType::kI64 : DType::kF32;
}

Status Converted(PlanBuilder& plan, Operand operand, DType dtype, Operand* result) {
  *result = operand;
  if (operand.dtype == dtype) return {};
  *result = plan.ScratchOperand("converted", dtype, operand.dims);
  return pointwise::AddCopy(plan, operand, *result);
}

Status IndexOperand(PlanBuilder& plan, int arg, Operand* index) {
  const Operand tensor = plan.TensorOperand(arg);
  return Converted(plan, tensor, tensor.dtype == DType::kI32 ? DType::kI32 : DType::kI64, index);
}

Status BeginUpdate(PlanBuilder& plan, int self, int out, DType dtype, bool dense, Operand* table) {
  const Operand target = plan.TensorOperand(out), start = plan.TensorOperand(self);
  *table = target;
  if (target.dtype != dtype || plan.OverlapsAllBut(target, self) || (dense && !target.row_major())) {
    *table = plan.ScratchOperand("updated", dtype, target.dims);
  } else if (self == out || plan.Overlaps(target, /*exact_too=*/true)) {
    return {};  // it is self
  }
  return pointwise::AddCopy(plan, start, *table);
}

Status AddMean(PlanBuilder& plan, const Operand& table, const Operand& hits, DType dtype, bool included) {
  auto& p = plan.MakeParams<MeanParams>();
  p.count = Numel(table.dims);
  p.dtype = table.dtype;
  p.bits = IsInteger(dtype) ? static_cast<int32_t>(8 * SizeOf(dtype)) : 0;
  p.is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  p.included = included;
  plan.Bind(table, p.table);
  plan.Bind(hits, p.hits);
  return plan.ChooseKernel("mean");
}

Status EndUpdate(PlanBuilder& plan, int out, const Operand& table) { return pointwise::FinishOutput(plan, out, 0, table); }

}  // namespace anyacl::indexing
