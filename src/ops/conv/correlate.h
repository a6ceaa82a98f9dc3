// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// y[n, o, p] = sum over c, q of x[n, c, p * stride + q * dilation - padding] * w[o, c, q] over one to three spatial axes, and
// the sums that belong to it. Each is one product over windows of an image as it lies (ops/matmul/product.h).
#ifndef ANYACL_OPS_CONV_CORRELATE_H_
#define ANYACL_OPS_CONV_CORRELATE_H_

#include <cstdint>

#include "plan/plan.h"

namespace anyacl::conv {

inline constexpr int kMaxSpatial = 3;

struct Geometry {
  int axes = 0;
  int64_t n = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t groups = 1;
  int64_t in[kMaxSpatial] = {};
  int64_t kernel[kMaxSpatial] = {};
  int64_t out[kMaxSpatial] = {};
  int64_t stride[kMaxSpatial] = {};
  int64_t dilation[kMaxSpatial] = {};
  int64_t before[kMaxSpatial] = {};  // padding
  int64_t after[kMaxSpatial] = {};
};

Dims InputDims(const Geometry& g);   // [n, in_channels, in...]
Dims OutputDims(const Geometry& g);  // [n, out_channels, out...]
Dims WeightDims(const Geometry& g);  // [out_channels, in_channels / groups, kernel...]

// Results are FLOAT operands in scratch memory, their axes in any order there.
Status Correlate(PlanBuilder& plan, const Geometry& g, const Operand& x, const Operand& w, Operand* y);
Status InputGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& w, Operand* dx);
Status WeightGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& x, Operand* dw);
// Sum over everything but axis 1: [channels].
Status ChannelSums(PlanBuilder& plan, const Operand& x, Operand* sums);

}  // namespace anyacl::conv

#endif  // ANYACL_OPS_CONV_CORRELATE_H_
