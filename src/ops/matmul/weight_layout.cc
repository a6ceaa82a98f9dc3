// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/weight_layout.h"

#include <fmt/format.h>

#include <utility>

#include "ops/matmul/product.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::matmul {
namespace {

// The same elements in the image and in dense matrices: whole blocks of columns, and the columns that are left.
struct Part {
  Operand image;
  Operand dense;
};

Operand View(const Operand& memory, int64_t first, int64_t count, const Dims& dims, const Dims& strides) {
  const int64_t size = static_cast<int64_t>(SizeOf(memory.dtype));
  return {memory.index, memory.offset + first * size, (count - first) * size, memory.dtype, dims, strides};
}

struct Parts {
  Parts(const Operand& memory, const Operand& matrices) {
    const int rank = matrices.dims.rank();
    const int64_t rows = matrices.dims[rank - 2], columns = matrices.dims[rank - 1], block = NzColumns(memory.dtype);
    const int64_t batch = Numel(matrices.dims) / (rows * columns), whole = columns / block, rest = columns % block;
    const int64_t column_step = NzBlocks(rows, kNzRows) * kNzRows * block;  // from block to block of columns
    const int64_t image = NzBlocks(columns, block) * column_step, all = batch * image, plain = batch * rows * columns;
    blocks = {View(memory, 0, all, {batch, rows, whole, block}, {image, block, column_step, 1}),
              View(matrices, 0, plain, {batch, rows, whole, block}, {rows * columns, columns, block, 1})};
    left = {View(memory, whole * column_step, all, {batch, rows, rest}, {image, block, 1}),
            View(matrices, whole * block, plain, {batch, rows, rest}, {rows * columns, columns, 1})};
    everything = View(memory, 0, all, {all}, {1});
    is_padded = all != plain;
  }
  Part blocks;
  Part left;
  Operand everything;
  bool is_padded;
};

}  // namespace

bool NzMatrices(const Tensor& t, Dims* matrices, bool* exchanged) {
  if (t.rank() < 2) return false;
  *matrices = t.dims;
  *exchanged = false;
  if (IsContiguous(t)) return true;
  Tensor other = t;
  const int last = t.rank() - 1;
  std::swap(other.dims[last], other.dims[last - 1]);
  std::swap(other.strides[last], other.strides[last - 1]);
  *matrices = other.dims;
  *exchanged = true;
  return IsContiguous(other);
}

std::string WrongNz(const Tensor& t) {
  Dims matrices;
  bool exchanged = false;
  if (!NzMatrices(t, &matrices, &exchanged) || t.offset != 0) {
    return fmt::format("must be a whole FRACTAL_NZ matrix or have its last two axes exchanged, got shape {} with strides {} and offset {}",
                       ToString(t.dims), ToString(t.strides), t.offset);
  }
  if (t.empty()) return "";
  const Dims storage = NzStorage(matrices, t.dtype);
  if (Numel(storage) != kOverflow && Numel(t.storage) == Numel(storage)) return "";
  return fmt::format("must have the FRACTAL_NZ storage {} of {}, got {}", ToString(storage), ToString(matrices), ToString(t.storage));
}

std::string WrongWeight(const Tensor& t) {
  if (t.format == Format::kFractalNZ) return WrongNz(t);
  return IsPrivate(t.format) ? fmt::format("must be in no private format but FRACTAL_NZ, got {}", Name(t.format)) : "";
}

Status WeightOperand(PlanBuilder& plan, int arg, Operand* weight) {
  const Operand tensor = plan.TensorOperand(arg);
  *weight = tensor;
  const Tensor& t = plan.TensorOf(arg);
  if (t.format != Format::kFractalNZ || t.empty()) return {};
  Dims matrices;
  bool exchanged = false;
  NzMatrices(t, &matrices, &exchanged);
  *weight = plan.ScratchOperand("weight", t.dtype, matrices);
  ANYACL_RETURN_IF_ERROR(UnpackNz(plan, tensor, *weight));
  if (exchanged) *weight = Transposed(*weight);
  return {};
}

Status PackNz(PlanBuilder& plan, const Operand& matrices, const Operand& memory) {
  const Parts parts(memory, matrices);
  if (parts.is_padded) {
    const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}};
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, pointwise::Formula::kFill, memory.dtype, {}, parts.everything, zero));
  }
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, parts.blocks.dense, parts.blocks.image));
  return pointwise::AddCopy(plan, parts.left.dense, parts.left.image);
}

Status UnpackNz(PlanBuilder& plan, const Operand& memory, const Operand& matrices) {
  const Parts parts(memory, matrices);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, parts.blocks.image, parts.blocks.dense));
  return pointwise::AddCopy(plan, parts.left.image, parts.left.dense);
}

}  // namespace anyacl::matmul
