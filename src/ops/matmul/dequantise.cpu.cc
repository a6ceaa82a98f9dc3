// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/dequantise.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl {
namespace {

constexpr int64_t kBlock = 256;  // of columns

int Weight(const DequantiseParams& p, int64_t element) {
  const auto* const bytes = static_cast<const int8_t*>(p.weight);
  if (p.bits == 8) return bytes[element];
  const int8_t both = bytes[element / 2];
  return element % 2 != 0 ? both >> 4 : static_cast<int8_t>(both << 4) >> 4;
}

void Row(const DequantiseParams& p, int64_t row, pointwise::RunConversion store) {
  float values[kBlock];
  const int64_t factors = row / p.row_group * p.scale_row;
  for (int64_t begin = 0; begin < p.columns; begin += kBlock) {
    const int64_t count = std::min(kBlock, p.columns - begin);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = begin + i, factor = factors + column / p.column_group * p.scale_column;
      const float weight = static_cast<float>(Weight(p, row * p.row_step + column / p.pack * p.column_step + column % p.pack));
      values[i] = (p.offset ? weight + p.offset[factor] : weight) * p.scale[factor];
    }
    store(values, 1, static_cast<unsigned char*>(p.out) + (row * p.columns + begin) * static_cast<int64_t>(SizeOf(p.dtype)), 1, count);
  }
}

void Dequantise(const DequantiseParams& p) {
  const pointwise::RunConversion store = pointwise::StoreConversion(pointwise::Compute::kFloat, p.dtype);
  const int64_t together = std::max<int64_t>(1, cpu::kTask / p.columns);
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) Row(p, row, store);
  });
}

}  // namespace

namespace cpu {

std::span<const Kernel> DequantiseKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<DequantiseParams, FitsAlways<DequantiseParams>, Dequantise>("rows")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
