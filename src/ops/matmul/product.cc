// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/product.h"

#include <algorithm>
#include <utility>

#include "ops/matmul/gemm.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::matmul {
namespace {

using pointwise::Formula;

// The axes before the last two repeated where `batch` has more.
Operand WithBatch(Operand operand, const Dims& batch) {
  const int rank = operand.dims.rank();
  Dims dims = batch;
  dims.push_back(operand.dims[rank - 2]);
  dims.push_back(operand.dims[rank - 1]);
  return pointwise::BroadcastTo(std::move(operand), dims);
}

Status AddFill(PlanBuilder& plan, const Operand& to) {
  const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}};
  return pointwise::AddPass(plan, Formula::kFill, DType::kF32, {}, to, zero);
}

}  // namespace

namespace {

int64_t Product(const Dims& dims, int begin, int count) {
  int64_t product = 1;
  for (int i = begin; i < begin + count; ++i) product *= dims[i];
  return product;
}

// The axes of a group; those that lie one behind the other are one, so that runs along it are long. Returns how many they are.
uint8_t DescribeGroup(const Operand& operand, int begin, int count, int64_t* dims, int64_t* strides) {
  int written = 0;
  for (int i = begin; i < begin + count; ++i) {
    const int64_t size = operand.dims[i], stride = operand.strides[i];
    if (written > 0 && size == 1) continue;
    if (written > 0 && dims[written - 1] == 1) --written;
    if (written > 0 && strides[written - 1] == size * stride) {
      dims[written - 1] *= size;
      strides[written - 1] = stride;
      continue;
    }
    dims[written] = size;
    strides[written++] = stride;
  }
  return static_cast<uint8_t>(written);
}

void Describe(const Operand& operand, Groups groups, GemmOperand* member) {
  int64_t *dims = member->dims, *strides = member->strides;
  int begin = 0;
  const auto describe = [&](int count) {
    const uint8_t axes = DescribeGroup(operand, begin, count, dims, strides);
    begin += count;
    dims += axes;
    strides += axes;
    return axes;
  };
  member->dtype = operand.dtype;
  member->batch_axes = describe(groups.batch);
  member->line_axes = describe(groups.lines);
  member->k_axes = describe(groups.k);
}

// So many tiles of columns that a wave of them keeps every thread busy, and no more than this of memory.
constexpr int64_t kWaveFloats = int64_t{8} << 20;

int64_t WaveOf(int64_t tiles, int64_t tile_size) { return std::clamp(kWaveFloats / tile_size, std::min<int64_t>(tiles, 16), tiles); }

// The waves of a product, and the floats of one.
int64_t WaveFloats(int64_t batch, int64_t n, int64_t k, bool in_waves, int64_t* wave) {
  const int64_t tiles = batch * TilesOf(n), tile_size = PackedTile(n, k);
  *wave = in_waves ? WaveOf(tiles, tile_size) : tiles;
  return *wave * tile_size;
}

void DescribeBoth(const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, GemmParams* params) {
  Describe(a, a_groups, &params->a);
  Describe(b, b_groups, &params->b);
  params->batch = Product(a.dims, 0, a_groups.batch);
  params->m = Product(a.dims, a_groups.batch, a_groups.lines);
  params->n = Product(b.dims, b_groups.batch, b_groups.lines);
  params->k = Product(a.dims, a_groups.batch + a_groups.lines, a_groups.k);
}

void BindAll(PlanBuilder& plan, const Operand& a, const Operand& b, const Operand& c, const Operand& packed_a, const Operand& packed_b,
             GemmParams* params) {
  plan.Bind(a, params->a.data);
  plan.Bind(b, params->b.data);
  plan.Bind(c, reinterpret_cast<void*&>(params->c));
  plan.Bind(packed_a, reinterpret_cast<void*&>(params->packed_a));
  plan.Bind(packed_b, reinterpret_cast<void*&>(params->packed_b));
}

// Describes a product in the params of the present step and books its memory.
void Bind(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c, bool in_waves,
          GemmParams* params) {
  DescribeBoth(a, a_groups, b, b_groups, params);
  const int64_t columns = WaveFloats(params->batch, params->n, params->k, in_waves, &params->wave);
  const Operand packed_a = plan.ScratchOperand("packed rows", DType::kF32, {PackedBatches(params->a), PackedRows(params->m, params->k)});
  const Operand packed_b = plan.ScratchOperand("packed columns", DType::kF32, {columns});
  BindAll(plan, a, b, c, packed_a, packed_b, params);
}

}  // namespace

Status AddContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c) {
  const int64_t lines = Product(a.dims, 0, a_groups.batch + a_groups.lines) * Product(b.dims, b_groups.batch, b_groups.lines);
  if (lines == 0) return {};
  if (Product(a.dims, a_groups.batch + a_groups.lines, a_groups.k) == 0) return AddFill(plan, c);
  Bind(plan, a, a_groups, b, b_groups, c, /*in_waves=*/true, &plan.MakeParams<GemmParams>());
  return plan.ChooseKernel("gemm");
}

void ProductRoom::Fit(int64_t m, int64_t n, int64_t k, int64_t batch) {
  int64_t wave = 0;
  rows_ = std::max(rows_, batch * PackedRows(m, k));
  columns_ = std::max(columns_, WaveFloats(batch, n, std::max<int64_t>(k, 1), true, &wave));
  sums_ = std::max(sums_, batch * m * n);
}

void ProductRoom::Book(PlanBuilder& plan) {
  packed_rows_ = plan.ScratchOperand("packed rows", DType::kF32, {rows_});
  packed_columns_ = plan.ScratchOperand("packed columns", DType::kF32, {columns_});
  product_ = plan.ScratchOperand("product", DType::kF32, {sums_});
}

Operand ProductRoom::Sums(const Dims& dims) const {
  Operand sums = product_;
  sums.dims = dims;
  sums.strides = ContiguousStrides(dims);
  return sums;
}

void BindContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                     const ProductRoom& room, GemmParams* params) {
  DescribeBoth(a, a_groups, b, b_groups, params);
  WaveFloats(params->batch, params->n, std::max<int64_t>(params->k, 1), true, &params->wave);
  BindAll(plan, a, b, c, room.packed_rows_, room.packed_columns_, params);
}

Status AddContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                      const ProductRoom& room) {
  if (Product(a.dims, a_groups.batch + a_groups.lines, a_groups.k) == 0) return AddFill(plan, c);
  BindContraction(plan, a, a_groups, b, b_groups, c, room, &plan.MakeParams<GemmParams>());
  return plan.ChooseKernel("gemm");
}

void BindContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                     GemmParams* params) {
  Bind(plan, a, a_groups, b, b_groups, c, /*in_waves=*/false, params);
}

Status AddProduct(PlanBuilder& plan, const Operand& a, const Operand& b, const Operand& c) {
  Dims batch;
  for (int i = 0; i + 2 < c.dims.rank(); ++i) batch.push_back(c.dims[i]);
  const Groups groups = {batch.rank(), 1, 1};
  return AddContraction(plan, WithBatch(a, batch), groups, WithBatch(Transposed(b), batch), groups, c);
}

Operand Transposed(Operand operand) {
  const int rank = operand.dims.rank();
  std::swap(operand.dims[rank - 2], operand.dims[rank - 1]);
  std::swap(operand.strides[rank - 2], operand.strides[rank - 1]);
  return operand;
}

Operand WithUnitAxis(const Operand& operand, int axis) {
  Operand result = operand;
  result.dims = result.strides = Dims();
  for (int i = 0; i <= operand.dims.rank(); ++i) {
    if (i == axis) {
      result.dims.push_back(1);
      result.strides.push_back(0);
    }
    if (i == operand.dims.rank()) break;
    result.dims.push_back(operand.dims[i]);
    result.strides.push_back(operand.strides[i]);
  }
  return result;
}

Status AddScaledSum(PlanBuilder& plan, const Operand& product, float alpha, const Operand* added, float beta, const Operand& to) {
  const pointwise::ScalarUse factors[] = {{Scalar::OfFloat(alpha)}, {Scalar::OfFloat(beta)}};
  if (beta == 0 && alpha == 0) return AddFill(plan, to);
  if (alpha == 0) return pointwise::AddPass(plan, Formula::kScaled, DType::kF32, {added, 1}, to, {factors + 1, 1});
  if (beta != 0) {
    const Operand inputs[] = {product, *added};
    return pointwise::AddPass(plan, Formula::kScaledSum, DType::kF32, inputs, to, factors);
  }
  if (alpha == 1) return pointwise::AddCopy(plan, product, to);
  return pointwise::AddPass(plan, Formula::kScaled, DType::kF32, {&product, 1}, to, factors);
}

}  // namespace anyacl::matmul
