// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Numbers in a row, computed in DOUBLE or INT64 and rounded once.
#ifndef ANYACL_OPS_CREATION_SERIES_H_
#define ANYACL_OPS_CREATION_SERIES_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::creation {

struct SeriesParams {
  enum Kind : uint8_t {
    kWholeSteps,  // whole + i * whole_step, 64 bits that wrap
    kSteps,       // start + i * step
    kBetween,     // from both ends: start + i * step, then end - (n - 1 - i) * step
    kPowers,      // base to the power of kBetween
  };
  void* out;  // dense
  int64_t count;
  int64_t whole, whole_step;
  double start[2], end[2], step[2];  // complex numbers have a second part
  double base;
  DType dtype;
  Kind kind;
};

}  // namespace anyacl::creation

#endif  // ANYACL_OPS_CREATION_SERIES_H_
