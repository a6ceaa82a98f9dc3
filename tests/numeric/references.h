// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the numeric drivers know of an operator: its reference in double and how far a result may be from it.
#ifndef ANYACL_TESTS_NUMERIC_REFERENCES_H_
#define ANYACL_TESTS_NUMERIC_REFERENCES_H_

#include <optional>
#include <vector>

#include "harness/call.h"

namespace anyacl::numeric {

// What one element may be.
struct Expected {
  double value = 0;      // the reference in double; NaN and infinity stand for themselves
  double tolerance = 0;  // absolute; 0: exactly `value`
  // Set where the order of float operations is promised: the result is this, bit for bit.
  std::optional<double> exact;
};

// Of every output, in the order of Call::Outputs().
using Reference = std::vector<std::vector<Expected>> (*)(const harness::Call& call);

// Throws std::out_of_range for an operator without a reference.
Reference ReferenceOf(const char* op);

// The rounding of a dtype: |rounded - x| <= unit * |x| + half_step, the second where it is subnormal.
struct Rounding {
  double unit;
  double half_step;
};
Rounding RoundingOf(DType dtype);

// The one tolerance of this project:
//   k roundings in FLOAT32, each relative to the result; then one rounding to each dtype of `stored`.
// `floor` is the absolute error that FLOAT32 intermediates lose to underflow, as it reaches the result.
double Tolerance(double reference, double k, double floor, std::initializer_list<DType> stored);

}  // namespace anyacl::numeric

#endif  // ANYACL_TESTS_NUMERIC_REFERENCES_H_
