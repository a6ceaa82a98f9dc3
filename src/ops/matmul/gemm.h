// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// c[b, m, n] = sum_k a[b, m, k] * b[b, k, n], in FLOAT whatever the operands are.
#ifndef ANYACL_OPS_MATMUL_GEMM_H_
#define ANYACL_OPS_MATMUL_GEMM_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl {

inline constexpr int kMaxGemmAxes = 12;

// One operand: its axes are those of the batch, then those of its lines (rows of a, columns of b), then those of k; each
// group together counts row-major. Strides may be anything, so a window over an image, which is read many times, is
// an operand as it lies: convolution needs no image-to-column copy. Operands are packed, as FLOAT, in the order the kernel reads them.
struct GemmOperand {
  void* data;
  int64_t dims[kMaxGemmAxes];
  int64_t strides[kMaxGemmAxes];
  DType dtype;
  uint8_t batch_axes;
  uint8_t line_axes;
  uint8_t k_axes;
};

struct GemmParams {
  GemmOperand a;
  GemmOperand b;
  float* c;  // dense [batch, m, n]
  float* packed_a;
  float* packed_b;
  int64_t batch;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t wave;  // tiles of columns that are packed at a time
  bool columns_packed;  // packed_b holds all of b from an earlier run
};

// Which of the packed matrices of an operand belongs to a batch: one that is repeated (stride 0) is packed once.
inline int64_t PackedBatch(const GemmOperand& x, int64_t batch) {
  int64_t index = 0, step = 1;
  for (int axis = x.batch_axes - 1; axis >= 0; --axis) {
    const int64_t at = batch % x.dims[axis];
    batch /= x.dims[axis];
    if (x.strides[axis] == 0) continue;
    index += at * step;
    step *= x.dims[axis];
  }
  return index;
}
inline int64_t PackedBatches(const GemmOperand& x) {
  int64_t count = 1;
  for (int axis = 0; axis < x.batch_axes; ++axis) count *= x.strides[axis] == 0 ? 1 : x.dims[axis];
  return count;
}

// Floats of one packed matrix of a, and of one packed tile of columns of b: whole panels of whatever SIMD target.
inline constexpr int64_t kMostPanelRows = 12;
inline constexpr int64_t kMostPanelColumns = 32;
inline constexpr int64_t kTileColumns = 256;
inline int64_t PackedRows(int64_t m, int64_t k) { return (m + kMostPanelRows - 1) / kMostPanelRows * kMostPanelRows * k; }
inline int64_t PackedTile(int64_t n, int64_t k) {
  const int64_t columns = (n + kMostPanelColumns - 1) / kMostPanelColumns * kMostPanelColumns;
  return (columns < kTileColumns ? columns : kTileColumns) * k;
}
inline int64_t TilesOf(int64_t n) { return (n + kTileColumns - 1) / kTileColumns; }

// For kernels that multiply between other things.
namespace cpu {
void Gemm(const GemmParams& p);
}

}  // namespace anyacl

#endif  // ANYACL_OPS_MATMUL_GEMM_H_
