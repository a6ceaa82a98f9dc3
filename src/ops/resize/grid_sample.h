// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Images sampled at places that a grid names, in coordinates of -1 to 1 on each axis; and the gradients of that.
#ifndef ANYACL_OPS_RESIZE_GRID_SAMPLE_H_
#define ANYACL_OPS_RESIZE_GRID_SAMPLE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::resize {

enum class Sampling : int64_t { kLinear, kNearest, kCubic };
enum class Padding : int64_t { kZeros, kBorder, kReflection };

// Dense arrays of FLOAT or DOUBLE. input [batch, channels, size...], grid [batch, places, axes] with the innermost axis first,
// samples [batch, channels, places].
struct GridSampleParams {
  const void* input;
  const void* grid;
  void* samples;      // the result; of gradients what they start from
  void* input_grad;   // either may be null; without both it is the forward direction
  void* grid_grad;
  int64_t batch;
  int64_t channels;
  int64_t places;
  int64_t size[3];    // the innermost axis first, 1 where there is none
  int32_t axes;
  DType dtype;
  Sampling sampling;
  Padding padding;
  bool align_corners;
};

}  // namespace anyacl::resize

#endif  // ANYACL_OPS_RESIZE_GRID_SAMPLE_H_
