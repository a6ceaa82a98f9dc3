// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rotations of pairs of a row: y_a = x_a * cos_a - x_b * sin_a, y_b = x_b * cos_b + x_a * sin_b. Arrays are dense FLOAT.
#ifndef ANYACL_OPS_ROTARY_ROTARY_H_
#define ANYACL_OPS_ROTARY_ROTARY_H_

#include <cstdint>

namespace anyacl::rotary {

// Which elements of a row of 2 * h are pairs.
enum class Mode : int32_t {
  kHalf,            // (d, d + h)
  kInterleave,      // (2 d, 2 d + 1)
  kQuarter,         // halves of each half of the row
  kInterleaveHalf,  // (2 d, 2 d + 1), which become (d, d + h)
};

inline constexpr int kOuterAxes = 3;

// Rows of x, over three axes, and which row of cos and sin belongs to each: `steps` count rows and are 0 where one is repeated.
struct Rows {
  int64_t dims[kOuterAxes];
  int64_t steps[kOuterAxes];
  int64_t width;
  Mode mode;
};

struct RotaryParams {
  Rows rows;
  const float* x;
  const float* cos;
  const float* sin;
  float* y;
};

struct RotaryGradParams {
  Rows rows;
  const float* dy;
  const float* x;  // null: no gradients of cos and sin
  const float* cos;
  const float* sin;
  float* dx;
  float* dcos;
  float* dsin;
};

// The first `rotated` elements of every head; cos and sin of a position are a row of the cache. A token with a position
// outside of it is copied.
struct RotaryCacheParams {
  const float* x;
  const int64_t* positions;  // [sections, tokens]
  const float* cache;        // [cache_rows, rotated]
  float* y;
  int64_t tokens;
  int64_t heads;
  int64_t head_size;
  int64_t rotated;
  int64_t cache_rows;
  int64_t sections;         // 1 or 3
  int64_t section_ends[3];  // columns of cos from which on the next section's position counts
  bool halves;              // pairs are (d, d + rotated / 2), else (2 d, 2 d + 1)
};

}  // namespace anyacl::rotary

#endif  // ANYACL_OPS_ROTARY_ROTARY_H_
