// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Resizing is one linear map per axis: every position of the output is a sum of a few positions of the input. The gradient is
// the transposed map.
#ifndef ANYACL_OPS_RESIZE_RESIZE_H_
#define ANYACL_OPS_RESIZE_RESIZE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::resize {

enum class Mode : int32_t { kNearest, kNearestExact, kLinear, kCubic, kLinearAA, kCubicAA };

constexpr bool IsAntialiased(Mode mode) { return mode == Mode::kLinearAA || mode == Mode::kCubicAA; }

// Dense arrays of FLOAT or DOUBLE. Forward: from [outer, in, inner], to [outer, out, inner]; transposed the other way round.
struct Params {
  const void* from;
  void* to;
  int64_t* index;  // [out, taps]: positions of the input, -1 behind the last one
  void* weight;    // [out, taps], of dtype
  int64_t outer;
  int64_t in;
  int64_t out;
  int64_t inner;
  int64_t taps;  // the most that a position has
  double rate;   // of input positions to output positions
  DType dtype;
  Mode mode;
  bool align_corners;
  bool transposed;
  bool round_bytes;  // results become whole numbers of 0 to 255, halves go up
};

}  // namespace anyacl::resize

#endif  // ANYACL_OPS_RESIZE_RESIZE_H_
