// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

DType PartOf(DType dtype) {
  switch (dtype) {
    case DType::kC32: return DType::kF16;
    case DType::kC64: return DType::kF32;
    case DType::kC128: return DType::kF64;
    default: return dtype;
  }
}

// The dtype whose ulps Limits::ulps counts.
DType UnitOf(const Host& expected) {
  const DType unit = PartOf(expected.computed != DType::kUndefined ? expected.computed : expected.dtype);
  return unit == DType::kF16 || unit == DType::kBF16 ? DType::kF32 : unit;
}

// How far a real number is off; infinite where no distance makes sense.
struct Off {
  Real by;
  bool close;
};
Off OffBy(DType dtype, Real got, Real exact, Real tolerance) {
  if (std::isnan(exact) || std::isnan(got)) {
    const bool both = std::isnan(exact) && std::isnan(got);
    return {both ? 0 : kInfinity, both};
  }
  if (got == Rounded(dtype, exact).real()) return {std::isinf(got) ? 0 : std::fabs(got - exact), true};
  if (std::isinf(exact)) return {kInfinity, false};
  if (std::isinf(got)) {
    const bool may = std::isinf(Rounded(dtype, exact + std::copysign(tolerance, exact)).real()) && (got > 0) == (exact > 0);
    return {may ? 0 : kInfinity, may};
  }
  const Real by = std::fabs(got - exact);
  return {by, by <= tolerance};
}

Error WholeError(const Host& expected, int64_t i, Number got, Real slack) {
  const Real by = std::abs(got - Rounded(expected.dtype, expected.values[i]));
  return {.close = by <= slack, .ulps = by, .of_bound = by == 0 ? 0 : by / slack};
}

}  // namespace

Error ErrorOf(const Host& expected, int64_t i, Number got, const Limits& limits) {
  const Number exact = expected.values[i];
  const Real slack = expected.slack.empty() ? 0 : expected.slack[i];
  const DType part = PartOf(expected.dtype);
  if (IsInteger(part) || part == DType::kBool) return WholeError(expected, i, got, slack);
  const bool is_complex = part != expected.dtype;
  const Real magnitude = is_complex ? std::abs(exact) : std::fabs(exact.real());
  const Real size = std::isfinite(magnitude) ? magnitude : 0;
  const Real ulp = UlpOf(part, size);
  const Real tolerance = ulp / 2 + static_cast<Real>(limits.ulps) * UlpOf(UnitOf(expected), size) + slack;
  Off off = OffBy(part, got.real(), exact.real(), tolerance);
  if (is_complex) {
    const Off imaginary = OffBy(part, got.imag(), exact.imag(), tolerance);
    off = {std::fmax(off.by, imaginary.by), off.close && imaginary.close};
  }
  const Real of_bound = off.by / tolerance;
  return {.close = off.close, .ulps = off.by / ulp, .of_bound = off.close ? std::fmin(of_bound, 1) : of_bound};
}

std::string Describe(const Host& expected, int64_t i, Number got, const Error& error) {
  const Number exact = IsInteger(expected.dtype) ? Rounded(expected.dtype, expected.values[i]) : expected.values[i];
  const auto text = [&](Number x) {
    const bool is_complex = PartOf(expected.dtype) != expected.dtype;
    const std::string real = fmt::format("{:.9g}", static_cast<double>(x.real()));
    return is_complex ? fmt::format("{}{:+.9g}i", real, static_cast<double>(x.imag())) : real;
  };
  const std::string both = fmt::format("expected {}, got {}", text(exact), text(got));
  if (IsInteger(expected.dtype) || expected.dtype == DType::kBool) return both;
  return fmt::format("{}, {:.3g} ulp off, {:.3g} of the bound", both, static_cast<double>(error.ulps), static_cast<double>(error.of_bound));
}

Comparison Compare(const Host& expected, std::span<const unsigned char> elements, const Limits& limits) {
  Comparison result;
  const size_t size = SizeOf(expected.dtype);
  const int64_t count = static_cast<int64_t>(elements.size() / size);
  if (limits.partial ? expected.size() > count : expected.size() != count) {
    result.problem = fmt::format("the oracle left {} elements of {}", expected.size(), count);
    return result;
  }
  result.elements = expected.size();
  for (int64_t i = 0; i < expected.size(); ++i) {
    const Error error = ErrorOf(expected, i, DecodeNumber(expected.dtype, elements.data() + i * size), limits);
    if (result.largest < 0 || error.ulps > result.error.ulps) {
      result.largest = i;
      result.error = error;
    }
    result.of_bound = std::fmax(result.of_bound, error.of_bound);
    if (error.close) continue;
    if (result.wrong++ == 0) result.first_wrong = i;
  }
  return result;
}

}  // namespace anyacl::harness
