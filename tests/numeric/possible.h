// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every value that an expression may have when it is evaluated in FLOAT32: operations in any order,
// products fused or not, sums in any tree of a known depth. A reference written with these says by
// itself how far a result may be from it, and when infinity or NaN is right because something on the
// way overflows.
#ifndef ANYACL_TESTS_NUMERIC_POSSIBLE_H_
#define ANYACL_TESTS_NUMERIC_POSSIBLE_H_

#include <cstdint>

namespace anyacl::numeric {

// Numbers from low to high, infinities included, and NaN if `nan`. Both ends NaN: no number at all.
class Possible {
 public:
  Possible(double value = 0);  // NOLINT: a number is the set of itself, exactly
  static Possible Between(double low, double high, bool nan);
  static Possible OnlyNan();

  double low() const { return low_; }
  double high() const { return high_; }
  bool nan() const { return nan_; }
  bool IsExactly(double value) const { return low_ == value && high_ == value && !nan_; }
  double Magnitude() const;  // the largest there is

  // After k roundings of half a unit in the last place, and the half of the smallest step that each
  // loses to underflow. What may be too large may also be infinite.
  Possible Rounded(double k = 1) const;

  // Each is rounded once.
  friend Possible operator+(const Possible& a, const Possible& b);
  friend Possible operator-(const Possible& a, const Possible& b);
  friend Possible operator*(const Possible& a, const Possible& b);
  friend Possible operator/(const Possible& a, const Possible& b);
  Possible operator-() const;

  // What one of two ways to compute it may give.
  friend Possible Either(const Possible& a, const Possible& b);

 private:
  double low_;
  double high_;
  bool nan_ = false;
};

// A sum of n terms t in any order. Each term takes part in at most `depth` additions, and
//
//   |error| <= u * min(d, 4 sqrt(d)) * sum |t|,   d = min(n - 1, depth),   u = 2^-24
//
// d is the worst case of all roundings in one direction; 4 sqrt(d) is the probabilistic bound of
// Higham and Mary for errors that are independent (they are for data with noise in its last bits),
// with a factor of 4 for the tails.
class PossibleSum {
 public:
  // Kernels add up chunks of 4096 elements, in two accumulators at least, on machines with one lane
  // at least; beyond a chunk they add in double.
  static constexpr double kDepth = 2048;

  void Add(const Possible& term);
  Possible Total(double depth = kDepth) const;

 private:
  int64_t count_ = 0;
  double low_ = 0;
  double high_ = 0;
  double magnitude_ = 0;
  bool exact_ = true;  // every sum on the way is a FLOAT32: no order rounds (integers, quarters)
  bool may_be_positive_infinity_ = false, may_be_negative_infinity_ = false, may_be_nan_ = false;
  bool has_positive_infinity_ = false, has_negative_infinity_ = false, has_nan_ = false;
};

}  // namespace anyacl::numeric

#endif  // ANYACL_TESTS_NUMERIC_POSSIBLE_H_
