// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The rows of a table of partial sums, added up in one fixed order: a block per 32 columns, a warp per part.
#include "cuda/column_sums.cuh"
#include "cuda/launch.cuh"
#include "cuda/warp.cuh"

namespace anyacl::cuda {
namespace {

__global__ void __launch_bounds__(32 * kWarp) AddAllColumns(const __grid_constant__ ColumnSums s) {
  BeginKernel();
  AddColumns(s, static_cast<int64_t>(blockIdx.x) * kWarp);
}

}  // namespace

void LaunchColumnSums(const Launch& launch, const ColumnSums& sums) {
  LaunchKernel<AddAllColumns>(
      launch, {.blocks = CeilDiv<int64_t>(sums.cols, kWarp), .threads = sums.parts() * kWarp},
      sums);
}

}  // namespace anyacl::cuda
