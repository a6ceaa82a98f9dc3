// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "numeric/references.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "harness/data.h"
#include "numeric/norm_references.h"
#include "ops/activation/elu_backward.h"

namespace anyacl::numeric {
namespace {

using harness::Call;

constexpr double kFloatUnit = 0x1p-24;
constexpr double kFloatStep = 0x1p-149;

double RoundTo(std::initializer_list<DType> stored, double value) {
  for (DType dtype : stored) {
    unsigned char element[16];
    harness::Encode(dtype, value, element);
    value = harness::Decode(dtype, element);
  }
  return value;
}

bool SameNumber(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// EluBackward
// -----------------------------------------------------------------------------------------

enum { kGradOutput, kAlpha, kScale, kInputScale, kIsResult, kSelfOrResult, kGradInput };

// x > 0 and results from the forward result take one order of float operations: those are exact.
// From the forward input: g*is, *negcoef and *exp are 3 roundings; the argument of exp is one
// rounded product, whose error comes through |x*is| times; exp itself is 1.2 ulp (2.4), for FLOAT16
// 2^-23 and for BF16 2^-18 with two more roundings of the argument on its way to a power of two. k
// counts in units of 2^-24.
double EluRoundings(DType dtype, double argument) {
  const double function = dtype == DType::kBF16 ? 64 : dtype == DType::kF16 ? 3 : 2.4;
  const double per_argument = dtype == DType::kF32 ? 1 : 3;
  return 3 + function +
         per_argument * std::min(std::fabs(argument), 104.0);  // beyond, exp is 0 or infinity
}

struct EluScalars {
  explicit EluScalars(const Call& call)
      : is_result(call.spec().args[kIsResult].flag),
        scale(call.spec().args[kScale].scalar.AsFloat()),
        input_scale(call.spec().args[kInputScale].scalar.AsFloat()),
        negcoef(call.spec().args[kAlpha].scalar.AsFloat() * scale) {}
  bool is_result;
  float scale;
  float input_scale;
  float negcoef;
};

Expected EluExpected(const EluScalars& s, double g, double x, DType in, DType out) {
  const bool below = x <= 0;
  const double argument = x * s.input_scale;
  const double value =
      reference::EluBackward<double>(g, x, s.is_result, s.negcoef, s.scale, s.input_scale);
  // The promise is about FLOAT32: where an intermediate overflows there, infinity and NaN are
  // right.
  const float in_float = reference::EluBackward<float>(
      static_cast<float>(g), static_cast<float>(x), s.is_result, s.negcoef, s.scale, s.input_scale);
  if (s.is_result || !below || !std::isfinite(in_float)) return Exactly(in_float, {in, out});
  // Intermediates that underflow lose up to one step; the factors that follow them enlarge it.
  const double inner = std::fabs(g * s.input_scale);
  const double growth = std::exp(std::min(argument, 89.0));
  const double floor =
      kFloatStep * (1 + growth * (1 + std::fabs(s.negcoef)) + inner * std::fabs(s.negcoef));
  return Between(value, Tolerance(value, EluRoundings(in, argument), floor), {in, out});
}

std::vector<std::vector<Expected>> EluBackwardReference(const Call& call) {
  const EluScalars scalars(call);
  const DType in = call.spec().args[kGradOutput].tensor.dtype;
  const DType out = call.spec().args[kGradInput].tensor.dtype;
  const std::vector<double>& g = call.Operand(kGradOutput);
  const std::vector<double>& x = call.Operand(kSelfOrResult);
  std::vector<Expected> expected(g.size());
  for (size_t i = 0; i < g.size(); ++i) expected[i] = EluExpected(scalars, g[i], x[i], in, out);
  return {std::move(expected)};
}

struct Entry {
  const char* op;
  Reference reference;
};
constexpr Entry kReferences[] = {
    {"aclnnEluBackward", EluBackwardReference},
    {"aclnnGroupNormBackward", GroupNormBackwardReference},
    {"aclnnBatchNormElemtBackward", BatchNormElemtBackwardReference},
    {"aclnnRmsNormGrad", RmsNormGradReference},
};

}  // namespace

double Tolerance(double reference, double k, double floor) {
  return std::fabs(reference) * k * kFloatUnit * (1 + 0x1p-10) +
         floor;  // second-order terms in the factor
}

Expected Between(double reference, double tolerance, std::initializer_list<DType> stored) {
  return {RoundTo(stored, reference - tolerance), RoundTo(stored, reference + tolerance)};
}

Expected Exactly(double value, std::initializer_list<DType> stored) {
  const double rounded = RoundTo(stored, value);
  return {rounded, rounded, true};
}

Expected OneOf(const Possible& values, DType stored) {
  return {.low = RoundTo({stored}, values.low()),
          .high = RoundTo({stored}, values.high()),
          .nan = values.nan()};
}

bool Matches(double got, const Expected& e) {
  if (e.exact) return SameNumber(got, e.low);
  return std::isnan(got) ? e.nan : got >= e.low && got <= e.high;
}

Reference ReferenceOf(const char* op) {
  for (const Entry& entry : kReferences) {
    if (std::strcmp(entry.op, op) == 0) return entry.reference;
  }
  throw std::out_of_range(std::string("no reference for ") + op);
}

}  // namespace anyacl::numeric
