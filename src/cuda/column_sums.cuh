// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Column sums: the last step of every parameter gradient.
#ifndef ANYACL_CUDA_COLUMN_SUMS_CUH_
#define ANYACL_CUDA_COLUMN_SUMS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "cuda/elements.cuh"
#include "cuda/warp.cuh"
#include "runtime/backend.h"

namespace anyacl::cuda {

struct ColumnSums {
  const float* partials;  // [rows][cols]
  int64_t rows;
  int64_t cols;
  int64_t split;  // columns below it go to `first`, the others to `second`; null: not wanted
  void* first;
  void* second;
  DType dtype;

  // Part p adds rows p, p + parts, ...; then the parts are added, in order, wherever that is done.
  __host__ __device__ int parts() const { return rows <= 32 ? 8 : 32; }
  __device__ float Part(int part, int64_t column) const {
    float sum = 0;
#pragma unroll 4
    for (int64_t row = part; row < rows; row += parts())
      sum += __ldcg(partials + row * cols + column);
    return sum;
  }
  // The same of one column by one thread; up to 32 rows at a time are on their way.
  __device__ float Total(int64_t column) const {
    float total = 0;
    for (int first = 0; first < parts(); first += 8) {
      float sum[8] = {};
#pragma unroll 4
      for (int64_t row = first; row < rows; row += parts()) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          if (row + i < rows) sum[i] += __ldcg(partials + (row + i) * cols + column);
        }
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) total += sum[i];
    }
    return total;
  }
  __device__ void Store(int64_t column, float total) const {
    void* const to = column < split ? first : second;
    if (to) StoreAs(to, dtype, column < split ? column : column - split, total);
  }
};

// 32 columns of the sums, by all threads of a block.
__device__ inline void AddColumns(const ColumnSums& s, int64_t first_column) {
  __shared__ float sums[32][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t column = first_column + lane;
  for (int part = warp; part < s.parts(); part += static_cast<int>(blockDim.x) / kWarp) {
    sums[part][lane] = column < s.cols ? s.Part(part, column) : 0.0f;
  }
  __syncthreads();
  if (warp == 0 && column < s.cols) {
    float total = 0;
#pragma unroll 8
    for (int i = 0; i < s.parts(); ++i) total += sums[i][lane];
    s.Store(column, total);
  }
  __syncthreads();  // the sums are free again
}

void LaunchColumnSums(const Launch& launch, const ColumnSums& sums);

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_COLUMN_SUMS_CUH_
