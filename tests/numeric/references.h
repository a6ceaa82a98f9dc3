// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the numeric drivers know of an operator: its reference in double and how far a result may be
// from it.
#ifndef ANYACL_TESTS_NUMERIC_REFERENCES_H_
#define ANYACL_TESTS_NUMERIC_REFERENCES_H_

#include <initializer_list>
#include <vector>

#include "core/dtype.h"
#include "harness/call.h"
#include "numeric/possible.h"

namespace anyacl::numeric {

// What one element may be: rounding never changes an order, so a result that is within the
// tolerance before it is stored lies between the two rounded ends afterwards.
struct Expected {
  double low = 0;
  double high = 0;
  // The order of float operations is promised: `low` bit for bit, the sign of 0 too.
  bool exact = false;
  bool nan = false;  // NaN is right, too; the only right one when both ends are NaN

  double Tolerance() const { return (high - low) / 2; }
};

bool Matches(double got, const Expected& expected);

// Of every output, in the order of Call::Outputs().
using Reference = std::vector<std::vector<Expected>> (*)(const harness::Call& call);

// Throws std::out_of_range for an operator without a reference.
Reference ReferenceOf(const char* op);

// The one tolerance of this project, for a result in FLOAT32 before it is stored: k roundings of
// half a unit in the last place, relative to the result. `floor` is what intermediates lose to
// underflow, as it reaches the result.
double Tolerance(double reference, double k, double floor);

// The ends, each rounded to the dtypes of `stored` one after the other.
Expected Between(double reference, double tolerance, std::initializer_list<DType> stored);
Expected Exactly(double value, std::initializer_list<DType> stored);
Expected OneOf(const Possible& values, DType stored);

}  // namespace anyacl::numeric

#endif  // ANYACL_TESTS_NUMERIC_REFERENCES_H_
