// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Random numbers without a state: element i is a function of (seed, offset, i), so neither threads nor layouts matter. The
// generator and every map from its words are written down in docs/numerics.md.
#ifndef ANYACL_OPS_RANDOM_RANDOM_H_
#define ANYACL_OPS_RANDOM_RANDOM_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::random {

// Which words: of (seed, offset), or of (*seed_at, *offset_at + offset) with numbers that are in memory when the kernel runs.
struct Source {
  const void* seed_at;
  const void* offset_at;
  uint64_t seed;
  uint64_t offset;
};

struct Key {
  uint64_t seed;
  uint64_t offset;
};
inline Key KeyOf(const Source& s) {
  const auto at = [](const void* word) { return *static_cast<const uint64_t*>(word); };
  return {s.seed_at ? at(s.seed_at) : s.seed, (s.offset_at ? at(s.offset_at) : 0) + s.offset};
}

enum class Draw : uint8_t {
  kUniform,      // from low up to high; where rounding to `dtype` makes it high, low
  kNormal,       // mean + std * n
  kExponential,  // with the rate low
  kBernoulli,    // 1 with the probability `mean`
  kWhole,        // from .. from + range - 1
  kKeys,         // 64 bits
  kScores,       // mean / e, or 0 where mean is not positive: their order is a draw without replacement
};

// Numbers of kFloat, kDouble, kInt (kWhole) or kUnsigned (kKeys), converted to `dtype`.
struct RandomParams {
  Source source = {};
  const void* mean = nullptr;  // dense numbers of the type computed in; null: low
  const void* std = nullptr;   // null: high
  void* out = nullptr;         // dense
  int64_t count = 0;
  double low = 0;
  double high = 0;
  int64_t from = 0;
  uint64_t range = 0;
  DType dtype = DType::kUndefined;
  Draw draw = Draw::kUniform;
  bool wide = false;  // DOUBLE
};

// One bit per element, the lowest first: 1 where an element is kept, 0 behind the last one.
struct DropMaskParams {
  Source source;
  void* out;      // `bytes` of them
  int64_t count;  // elements
  int64_t bytes;
  float keep;     // bit = uniform < keep
  bool all;       // 1 everywhere, behind the last element too
};

// out = bit ? x * scale : 0; out may be x.
struct DropParams {
  const void* x;     // dense
  const void* mask;  // as above
  void* out;         // dense
  int64_t count;
  double scale;      // rounded to FLOAT unless `wide`
  DType x_type;
  DType out_type;
  bool wide;  // DOUBLE
};

// Categories drawn with replacement; of a row without a positive weight always the first.
struct MultinomialParams {
  Source source;
  const void* weights;  // double [rows, categories]
  void* sums;           // double, the same
  void* out;            // int64 [rows, samples]
  int64_t rows;
  int64_t categories;
  int64_t samples;
};

}  // namespace anyacl::random

#endif  // ANYACL_OPS_RANDOM_RANDOM_H_
