// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_LOSS_CHAMFER_H_
#define ANYACL_OPS_LOSS_CHAMFER_H_

#include <cstdint>

namespace anyacl::loss {

// The gradient of dist1[i] = |a[i] - b[idx1[i]]|^2 and dist2[j] = |b[j] - a[idx2[j]]|^2 for the points of the plane a and b.
// An index that is no point's takes part in nothing. Dense FLOAT and INT64.
struct ChamferParams {
  const void* a;        // [batch, n, 2]
  const void* b;        // [batch, m, 2]
  const void* index_a;  // [batch, n], into b
  const void* index_b;  // [batch, m], into a
  const void* grad_a;   // [batch, n]
  const void* grad_b;   // [batch, m]
  void* out_a;          // as a
  void* out_b;          // as b
  int64_t batch, n, m;
};

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_CHAMFER_H_
