// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Windows that move over one to three axes of planes: their mean or their largest element, and the gradients.
#ifndef ANYACL_OPS_POOL_POOL_H_
#define ANYACL_OPS_POOL_POOL_H_

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"

namespace anyacl::pool {

// How windows lie along one axis. An adaptive axis is cut into `out` parts that together cover it.
struct Axis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t dilation = 1;
  bool adaptive = false;

  // First position, which may lie in the padding, and the one behind the last.
  int64_t Begin(int64_t o) const { return adaptive ? o * in / out : o * stride - pad; }
  int64_t End(int64_t o) const {
    return adaptive ? ((o + 1) * in + out - 1) / out : o * stride - pad + (kernel - 1) * dilation + 1;
  }
};

enum class Mode : int32_t { kAverage, kMaximum, kAverageGradient, kMaximumGradient };

// Dense arrays of FLOAT, DOUBLE or INT64: planes of in (large) and out (small) positions.
struct Params {
  const void* from;  // forward: large, gradient: small
  void* to;
  int64_t* indices;  // of maxima, inside their plane; may be null in the forward direction
  Axis axes[3];
  int64_t planes;
  int64_t divisor;  // of averages; 0: what the window holds
  DType dtype;
  Mode mode;
  bool count_padding;
};

}  // namespace anyacl::pool

#endif  // ANYACL_OPS_POOL_POOL_H_
