// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The rows of a table of partial sums, added up in one fixed order.
#include "cuda/block.cuh"

namespace anyacl::cuda {
namespace {

constexpr int kColumns = 32;  // of one block

// One block per 32 columns: warp w of kParts adds rows w, w + kParts, ...; then the results of the warps are
// added, in order.
template <int kParts>
__global__ void __launch_bounds__(kColumns* kParts) AddColumns(ColumnSums s) {
  __shared__ float sums[kParts][kColumns];
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
  if (part != 0 || column >= s.cols) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) total += sums[i][lane];
  void* const to = column < s.split ? s.first : s.second;
  if (to) StoreAs(to, s.dtype, column < s.split ? column : column - s.split, total);
}

template <int kParts>
void LaunchWith(const Launch& launch, const ColumnSums& sums) {
  LaunchKernel<AddColumns<kParts>>(launch,
                                   {.blocks = CeilDiv<int64_t>(sums.cols, kColumns),
                                    .threads = kColumns * kParts,
                                    .early = true},
                                   sums);
}

}  // namespace

void LaunchColumnSums(const Launch& launch, const ColumnSums& sums) {
  sums.rows <= 32 ? LaunchWith<8>(launch, sums) : LaunchWith<32>(launch, sums);
}

}  // namespace anyacl::cuda
