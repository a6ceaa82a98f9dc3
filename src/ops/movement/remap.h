// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements that come from another place on each axis by itself: out[j0, j1, ...] = in[m0(j0), m1(j1), ...]. Pads, flips and
// rolls are such; so are, the other way round, the gradients of pads.
#ifndef ANYACL_OPS_MOVEMENT_REMAP_H_
#define ANYACL_OPS_MOVEMENT_REMAP_H_

#include <cstdint>

#include "core/dtype.h"
#include "core/view.h"

namespace anyacl::movement {

enum class Mapping : uint8_t { kSame, kReverse, kReflect, kClamp, kWrap };

// The place on an axis of `size` that place j of the mapped axis comes from.
inline int64_t SourceOf(Mapping mapping, int64_t j, int64_t before, int64_t size) {
  const int64_t i = j - before;
  switch (mapping) {
    case Mapping::kReverse:
      return size - 1 - i;
    case Mapping::kReflect: {
      const int64_t low = i < 0 ? -i : i;
      return low < size ? low : 2 * (size - 1) - low;
    }
    case Mapping::kClamp:
      return i < 0 ? 0 : i < size ? i : size - 1;
    case Mapping::kWrap: {
      const int64_t rest = i % size;
      return rest < 0 ? rest + size : rest;
    }
    default:
      return i;
  }
}

struct RemapParams {
  View in;
  View out;
  int64_t before[kMaxAxes];
  Mapping mapping[kMaxAxes];
  int32_t element_size;
};

// sum[plane, i] = the sum of grad[plane, j] over all j that come from i, in the order of j. Both dense; unused axes first, 1.
struct PadBackParams {
  const void* grad;
  void* sum;
  int64_t planes;
  int64_t grad_dims[3];
  int64_t sum_dims[3];
  int64_t before[3];
  Mapping mapping;
  DType dtype;  // FLOAT, DOUBLE, COMPLEX64 or COMPLEX128
};

// sum[plane, y, x] = the sum of columns[plane, ky, kx, by, bx] with y = by * stride + ky * dilation - padding, x alike.
struct FoldParams {
  const void* columns;
  void* sum;
  int64_t planes;
  int64_t size[2];
  int64_t kernel[2];
  int64_t blocks[2];
  int64_t stride[2];
  int64_t dilation[2];
  int64_t padding[2];
  DType dtype;
};

// out = in where column - row <= diagonal (lower) or >= diagonal, else 0, over the last two axes.
struct TriangleParams {
  View in;
  View out;
  int64_t diagonal;
  int32_t element_size;
  bool lower;
};

}  // namespace anyacl::movement

#endif  // ANYACL_OPS_MOVEMENT_REMAP_H_
