// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Small products and distances of vectors, on dense arrays of a compute type.
#ifndef ANYACL_OPS_LINALG_VECTORS_H_
#define ANYACL_OPS_LINALG_VECTORS_H_

#include <cstdint>

#include "core/dtype.h"
#include "ops/pointwise/pointwise.h"

namespace anyacl::linalg {

// out = sum of a_i * b_i
struct DotParams {
  const void* a;
  const void* b;
  void* out;
  int64_t count;
  pointwise::Compute compute;
};

// out = whether a_i = b_i everywhere; one byte. Complex numbers are pairs of real ones here.
struct EqualParams {
  const void* a;
  const void* b;
  void* out;
  void* scratch;
  int64_t count;
  pointwise::Compute compute;
};

// Rows of three: out = a x b
struct CrossParams {
  const void* a;
  const void* b;
  void* out;
  int64_t rows;
  pointwise::Compute compute;
};

// The p-norm of differences of rows, FLOAT or DOUBLE. With `pairs` the rows of one matrix, (0, 1), (0, 2), ...
struct DistanceParams {
  const void* a;  // [batch, m, length]
  const void* b;  // [batch, n, length]
  void* out;      // [batch, m, n]
  int64_t batch, m, n, length;
  double p;
  bool pairs;
  bool is_double;
};

// The gradient of it for a.
struct DistanceGradParams {
  const void* grad;      // [batch, m, n]
  const void* a;         // [batch, m, length]
  const void* b;         // [batch, n, length]
  const void* distance;  // [batch, m, n]
  void* out;             // [batch, m, length]
  int64_t batch, m, n, length;
  double p;
  DType element;  // of the tensors
  bool is_double;
};

// Where the pixels of an affine map lie: theta [n, axes, axes + 1], out [n, d, h, w, axes] (d = 1 for two axes).
struct AffineGridParams {
  const void* theta;
  void* out;
  int64_t n, d, h, w;
  int32_t axes;
  bool align_corners;
  bool is_double;
};

// X of A X = B or A^T X = B for triangular A, [batch, n, n], and B, [batch, n, k]; out is B's.
struct TriangularParams {
  const void* a;
  const void* b;
  void* out;
  int64_t batch, n, k;
  pointwise::Compute compute;  // a floating or complex one
  bool upper, transpose, unit;
};

}  // namespace anyacl::linalg

#endif  // ANYACL_OPS_LINALG_VECTORS_H_
