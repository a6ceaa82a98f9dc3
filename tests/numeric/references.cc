// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "numeric/references.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "harness/data.h"
#include "ops/activation/elu_backward.h"

namespace anyacl::numeric {
namespace {

using harness::Call;

constexpr double kFloatUnit = 0x1p-24;
constexpr double kFloatStep = 0x1p-149;

double RoundTo(DType dtype, double value) {
  unsigned char element[16];
  harness::Encode(dtype, value, element);
  return harness::Decode(dtype, element);
}

// EluBackward -----------------------------------------------------------------------------------------

enum { kGradOutput, kAlpha, kScale, kInputScale, kIsResult, kSelfOrResult, kGradInput };

// Roundings in FLOAT32, in units of 2^-24 relative to the result.
//   x > 0:         g*scale                                    1
//   from result:   g*is, x+negcoef (both exact operands), *   3
//   from input:    g*is, *negcoef, exp, *                     3 and those of exp
// exp: the argument is one rounded product, so |x*is| units; the function itself 2.4 (1.2 ulp), for a result
// in FLOAT16 2^-23 and in BF16 2^-18, of which |x*is| comes again with its factor log2(e).
double EluRoundings(DType dtype, bool is_result, bool below, double argument) {
  if (!below) return 1;
  if (is_result) return 3;
  const double function = dtype == DType::kBF16 ? 64 : dtype == DType::kF16 ? 3 : 2.4;
  const double factor = dtype == DType::kF32 ? 1 : 3;
  return 3 + function + factor * std::min(std::fabs(argument), 104.0);  // further out exp is 0 or infinity
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
  const double value = reference::EluBackward<double>(g, x, s.is_result, s.negcoef, s.scale, s.input_scale);
  // The promise is about FLOAT32: where an intermediate overflows there, infinity and NaN are right.
  const float in_float = reference::EluBackward<float>(static_cast<float>(g), static_cast<float>(x),
                                                       s.is_result, s.negcoef, s.scale, s.input_scale);
  Expected e;
  if (s.is_result || !below || !std::isfinite(in_float)) {
    e.exact = RoundTo(out, RoundTo(in, in_float));
    if (!std::isfinite(in_float)) return e;
  }
  // Intermediates that underflow lose up to one step; the factors that follow them enlarge it.
  const double inner = std::fabs(g * s.input_scale);
  double floor = kFloatStep;
  if (below && s.is_result) floor += kFloatStep * std::fabs(x + s.negcoef);
  if (below && !s.is_result) {
    const double growth = std::exp(std::min(argument, 89.0));
    floor += kFloatStep * (growth * (1 + std::fabs(s.negcoef)) + inner * std::fabs(s.negcoef));
  }
  e.value = value;
  e.tolerance = Tolerance(value, EluRoundings(in, s.is_result, below, argument), floor, {in, out});
  return e;
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
};

}  // namespace

Rounding RoundingOf(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {0x1p-11, 0x1p-25};
    case DType::kBF16: return {0x1p-8, 0x1p-134};
    case DType::kF32:
    case DType::kC64: return {kFloatUnit, kFloatStep / 2};
    default: return {0, 0};
  }
}

double Tolerance(double reference, double k, double floor, std::initializer_list<DType> stored) {
  double magnitude = std::fabs(reference);
  double error = magnitude * k * kFloatUnit * (1 + 0x1p-10) + floor;  // second-order terms in the factor
  for (DType dtype : stored) {
    // A float result is in FLOAT32 already: storing it as such rounds nothing.
    if (dtype == DType::kF32 || dtype == DType::kC64) continue;
    const Rounding r = RoundingOf(dtype);
    error += (magnitude + error) * r.unit + r.half_step;
  }
  return error;
}

Reference ReferenceOf(const char* op) {
  for (const Entry& entry : kReferences) {
    if (std::strcmp(entry.op, op) == 0) return entry.reference;
  }
  throw std::out_of_range(std::string("no reference for ") + op);
}

}  // namespace anyacl::numeric
