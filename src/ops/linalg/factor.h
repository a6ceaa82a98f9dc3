// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Factorizations of small matrices, one after the other in dense arrays of a floating or complex compute type. Where nothing
// else is said matrices are row-major. A matrix that has no result is answered with NaN.
#ifndef ANYACL_OPS_LINALG_FACTOR_H_
#define ANYACL_OPS_LINALG_FACTOR_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::linalg {

// out = a^-1
struct InverseParams {
  const void* a;  // [batch, n, n]
  void* out;
  void* scratch;
  int64_t batch, n;
  pointwise::Compute compute;
};

// det a = sign * e^log; without `sign`, log is that of the determinant itself.
struct DeterminantParams {
  void* a;     // [batch, n, n], overwritten
  void* sign;  // [batch], may be null
  void* log;   // [batch]
  void* scratch;
  int64_t batch, n;
  pointwise::Compute compute;
};

// a = L L^H, or U^H U for `upper`; the other triangle of a is not read, that of out is 0.
struct CholeskyParams {
  const void* a;  // [batch, n, n]
  void* out;
  int64_t batch, n;
  pointwise::Compute compute;
  bool upper;
};

// a = Q R: q_columns columns of Q, r_rows rows of R.
struct QrParams {
  void* a;  // [batch, m, n], columns one after the other; overwritten
  void* q;  // [batch, m, q_columns], columns one after the other; may be null
  void* r;  // [batch, r_rows, n]; may be null
  void* scratch;
  int64_t batch, m, n, q_columns, r_rows;
  pointwise::Compute compute;
};

// a = u diag(sigma) vt, without a conjugate; `full`: u and vt are square.
struct SvdParams {
  void* a;      // [batch, m, n], overwritten
  void* sigma;  // [batch, min(m, n)]
  void* u;      // [batch, m, .]
  void* vt;     // [batch, ., n]
  void* scratch;
  int64_t batch, m, n;
  pointwise::Compute compute;
  bool vectors;  // u and vt are wanted; null else
  bool full;
};

}  // namespace anyacl::linalg

#endif  // ANYACL_OPS_LINALG_FACTOR_H_
