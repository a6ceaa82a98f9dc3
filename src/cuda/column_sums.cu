// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The rows of a table of partial sums, added up in one fixed order.
#include "cuda/block.cuh"

namespace anyacl::cuda {
namespace {

constexpr int kColumns = 32;  // of one block
constexpr int kParts = 32;    // that the rows are dealt to, one warp each

// One block per 32 columns: warp w adds rows w, w + 32, ...; then the first warp adds the 32 results.
__global__ void __launch_bounds__(kColumns * kParts) AddColumns(ColumnSums s) {
  __shared__ float sums[kParts][kColumns + 1];
  const int lane = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + lane;
  WaitForKernelInFront();
  float sum = 0;
  if (column < s.cols) {
#pragma unroll 4
    for (int64_t row = part; row < s.rows; row += kParts) sum += s.partials[row * s.cols + column];
  }
  sums[part][lane] = sum;
  __syncthreads();
  // Turned round, so that a warp holds one column and every lane has one part of it.
  const float total = WarpSum(sums[lane][part]);
  const int64_t mine = static_cast<int64_t>(blockIdx.x) * kColumns + part;
  if (lane != 0 || mine >= s.cols) return;
  void* const to = mine < s.split ? s.first : s.second;
  if (to) StoreAs(to, s.dtype, mine < s.split ? mine : mine - s.split, total);
}

}  // namespace

void LaunchColumnSums(const Launch& launch, const ColumnSums& sums) {
  LaunchKernel<AddColumns>(launch,
                           {.blocks = CeilDiv<int64_t>(sums.cols, kColumns),
                            .threads = kColumns * kParts,
                            .early = true},
                           sums);
}

}  // namespace anyacl::cuda
