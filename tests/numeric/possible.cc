// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "numeric/possible.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace anyacl::numeric {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr double kUnit = 0x1p-24;  // half a unit in the last place of 1
constexpr double kHalfStep = 0x1p-150;
constexpr double kSecondOrder = 1 + 0x1p-10;  // products of errors, and the rounding of this double

bool HasNumbers(const Possible& p) { return !std::isnan(p.low()); }
bool Contains(const Possible& p, double value) { return p.low() <= value && value <= p.high(); }
bool IsPoint(const Possible& p) { return p.low() == p.high(); }

}  // namespace

Possible::Possible(double value) : low_(value), high_(value), nan_(std::isnan(value)) {}

Possible Possible::Between(double low, double high, bool nan) {
  Possible p(low);
  p.high_ = high;
  p.nan_ = nan || std::isnan(low);
  return p;
}

Possible Possible::OnlyNan() { return Possible(kNaN); }

double Possible::Magnitude() const { return std::max(std::fabs(low_), std::fabs(high_)); }

Possible Possible::operator-() const { return Between(-high_, -low_, nan_); }

Possible Possible::Rounded(double k) const {
  if (!HasNumbers(*this) || IsExactly(0)) return *this;
  const double relative = k * kUnit * kSecondOrder;
  Possible p = *this;
  // An infinity is not rounded, and a sum of an infinity with anything finite is one.
  if (std::isfinite(low_)) p.low_ -= std::fabs(low_) * relative + k * kHalfStep;
  if (std::isfinite(high_)) p.high_ += std::fabs(high_) * relative + k * kHalfStep;
  // Only the far end becomes infinite: a fused product need not be rounded where it stands.
  if (p.high_ > kLargest) p.high_ = kInf;
  if (p.low_ < -kLargest) p.low_ = -kInf;
  return p;
}

Possible operator+(const Possible& a, const Possible& b) {
  PossibleSum sum;
  sum.Add(a);
  sum.Add(b);
  return sum.Total(1);
}

Possible operator-(const Possible& a, const Possible& b) { return a + -b; }

Possible operator*(const Possible& a, const Possible& b) {
  if (!HasNumbers(a) || !HasNumbers(b)) return Possible::OnlyNan();
  const auto has_infinity = [](const Possible& p) { return p.low() == -kInf || p.high() == kInf; };
  const bool nan = a.nan() || b.nan() || (Contains(a, 0) && has_infinity(b)) ||
                   (Contains(b, 0) && has_infinity(a));
  double low = kNaN, high = kNaN;
  for (const double x : {a.low(), a.high()}) {
    for (const double y : {b.low(), b.high()}) {
      const double product = x * y;
      // 0 * inf: NaN, and beside it 0 when one of the two is a range that has more than that end.
      if (std::isnan(product) && IsPoint(a) && IsPoint(b)) return Possible::OnlyNan();
      const double end = std::isnan(product) ? 0 : product;
      low = std::isnan(low) ? end : std::min(low, end);
      high = std::isnan(high) ? end : std::max(high, end);
    }
  }
  return Possible::Between(low, high, nan).Rounded();
}

// A divisor of exactly 0 is +0: it is a sum over nothing, or of numbers that cancel.
Possible operator/(const Possible& a, const Possible& b) {
  if (!HasNumbers(a) || !HasNumbers(b)) return Possible::OnlyNan();
  if (b.IsExactly(0)) {
    const bool nan = a.nan() || Contains(a, 0);
    if (a.IsExactly(0)) return Possible::OnlyNan();
    return Possible::Between(a.low() < 0 ? -kInf : kInf, a.high() > 0 ? kInf : -kInf, nan);
  }
  if (Contains(b, 0)) return Possible::Between(-kInf, kInf, true);
  const double inverse[] = {1 / b.low(), 1 / b.high()};
  // Zeros here are quotients by infinity, which keep a finite dividend at 0 and an infinite at NaN.
  return a * Possible::Between(std::min(inverse[0], inverse[1]), std::max(inverse[0], inverse[1]),
                               b.nan());
}

Possible Either(const Possible& a, const Possible& b) {
  const bool nan = a.nan() || b.nan();
  if (!HasNumbers(a)) return Possible::Between(b.low(), b.high(), nan);
  if (!HasNumbers(b)) return Possible::Between(a.low(), a.high(), nan);
  return Possible::Between(std::min(a.low(), b.low()), std::max(a.high(), b.high()), nan);
}

void PossibleSum::Add(const Possible& term) {
  ++count_;
  may_be_nan_ = may_be_nan_ || term.nan();
  if (!HasNumbers(term)) {
    has_nan_ = true;
    return;
  }
  if (term.low() == kInf) has_positive_infinity_ = true;
  if (term.high() == -kInf) has_negative_infinity_ = true;
  if (term.high() == kInf) may_be_positive_infinity_ = true;
  if (term.low() == -kInf) may_be_negative_infinity_ = true;
  const auto finite = [](double v) { return std::isfinite(v) ? v : 0; };
  low_ += finite(term.low());
  high_ += finite(term.high());
  magnitude_ += std::max(std::fabs(finite(term.low())), std::fabs(finite(term.high())));
  // Multiples of 1/64 up to 2^17 are FLOAT32s, and so is every sum of some of them.
  const double steps = term.low() * 64;
  exact_ = exact_ && IsPoint(term) && magnitude_ <= 0x1p17 && steps == std::trunc(steps);
}

Possible PossibleSum::Total(double depth) const {
  if (has_nan_ || (has_positive_infinity_ && has_negative_infinity_)) return Possible::OnlyNan();
  const bool overflows = magnitude_ > kLargest;  // somewhere, in some order, to either side
  const bool up = may_be_positive_infinity_ || overflows;
  const bool down = may_be_negative_infinity_ || overflows;
  const bool nan = may_be_nan_ || (up && down);
  if (has_positive_infinity_) return Possible::Between(kInf, kInf, nan || down);
  if (has_negative_infinity_) return Possible::Between(-kInf, -kInf, nan || up);
  const double d = std::min(depth, static_cast<double>(std::max<int64_t>(count_ - 1, 0)));
  const double roundings = exact_ ? 0 : std::min(d, 4 * std::sqrt(d));
  const double error = roundings * kUnit * kSecondOrder * magnitude_;  // sums do not underflow
  return Possible::Between(down ? -kInf : low_ - error, up ? kInf : high_ + error, nan);
}

}  // namespace anyacl::numeric
