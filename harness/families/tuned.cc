// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The operators that have kernels and rows of their own (harness/cases): random rows of theirs as samples, and oracles by the
// formulas of docs/numerics.md. How exact they really are is for tests/numeric to say, which know which numbers are possible.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/cases.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kUnit = 0x1p-24L;  // of FLOAT, in which they compute

Real Finite(Real slack) { return std::isfinite(slack) ? slack : 0; }

// What a sum of so many terms may be off, in units of the sum of their magnitudes; and the few operations behind it.
Real OfSum(int64_t terms) {
  const Real n = static_cast<Real>(terms);
  return kUnit * (std::fmin(n, 4 * std::sqrt(n)) + 8);
}

Values ValuesOf(std::string_view arg) {
  if (arg == "rstd" || arg == "invstd") return Between(0.5L, 2);
  return arg == "counter" ? Whole(1, 9) : Values{};
}

void SampleRows(Calls& calls) {
  const OperatorCases& cases = CasesOf(calls.op().contract.op());
  for (const TypeChoice& types : cases.types) {
    for (int i = 0; i < 6; ++i) {
      const contract::CallSpec spec = MakeRandomCall(cases, types, calls.random());
      std::vector<TestArg> args;
      for (size_t k = 0; k < spec.args.size(); ++k) args.push_back({.spec = spec.args[k], .values = {ValuesOf(calls.op().contract.args()[k].name)}});
      calls.Add(std::move(args));
    }
  }
}

// ---- ELU ------------------------------------------------------------------------------------------------------------

void OracleElu(HostCall& call) {
  const Host &dy = call.In("gradOutput"), &x = call.In("selfOrResult");
  Host& out = call.Out("gradInput");
  const auto rounded = [](Real value) { return Rounded(DType::kF32, value).real(); };
  const auto number = [&](const char* scalar) { return rounded(call.Scalar(scalar).real()); };
  const Real scale = number("scale"), input_scale = number("inputScale"), negative = rounded(number("alpha") * scale);
  const Real exp_error = dy.dtype == DType::kBF16 ? 0x1p-18L : 0x1p-22L;
  out.computed = DType::kF32;
  for (int64_t i = 0; i < out.size(); ++i) {
    const Real g = rounded(dy.real(i) * input_scale), z = rounded(x.real(i) * input_scale);
    Real value = dy.real(i) * scale, slack = 0;
    if (x.real(i) <= 0 && call.Flag("isResult")) {
      value = g * rounded(x.real(i) + negative);
    } else if (x.real(i) <= 0) {
      value = rounded(g * negative) * std::exp(z);
      slack = std::fabs(value) * exp_error + UlpOf(DType::kF32, 0) * (1 + std::fabs(rounded(g * negative)));
    }
    slack += std::fabs(value) * 4 * kUnit;
    if (out.dtype != dy.dtype) {  // rounded twice: near a tie the first may go the other way
      value = Rounded(dy.dtype, value).real();
      slack += UlpOf(dy.dtype, value);
    }
    out[i] = value;
    out.slack.push_back(Finite(slack));
  }
}

// ---- RMS norm -------------------------------------------------------------------------------------------------------

void OracleRms(HostCall& call) {
  const Host &dy = call.In("dy"), &x = call.In("x"), &rstd = call.In("rstd"), &gamma = call.In("gamma");
  Host &dx = call.Out("dxOut"), &dgamma = call.Out("dgammaOut");
  const int64_t columns = gamma.size(), rows = columns == 0 ? 0 : x.size() / columns;
  Checked<Real> sizes(columns, 0);
  for (int64_t i = 0; i < rows; ++i) {
    Real sum = 0, size = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const Real u = x.real(i * columns + j) * rstd.real(i), term = dy.real(i * columns + j) * u;
      sum += term * gamma.real(j);
      size += std::fabs(term * gamma.real(j));
      dgamma[j] += term;
      sizes[j] += std::fabs(term);
    }
    const Real m = sum / static_cast<Real>(columns), off = OfSum(columns) * size / static_cast<Real>(columns);
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t k = i * columns + j;
      const Real u = x.real(k) * rstd.real(i), first = dy.real(k) * gamma.real(j);
      dx[k] = (first - u * m) * rstd.real(i);
      dx.slack.push_back(Finite(std::fabs(rstd.real(i)) * (8 * kUnit * (std::fabs(first) + std::fabs(u * m)) + std::fabs(u) * off)));
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    if (rows == 0) dgamma[j] = std::nanl("");
    dgamma.slack.push_back(Finite(OfSum(rows) * sizes[j]));
  }
}

// ---- batch norm of several ranks ------------------------------------------------------------------------------------

void OracleElemt(HostCall& call) {
  const Host &dy = call.In("gradOut"), &x = call.In("input"), &counter = call.In("counter");
  Host& dx = call.Out("gradInput");
  Real count = 0;
  for (int64_t i = 0; i < counter.size(); ++i) count += counter.real(i);
  const int64_t channels = x.dims[1], inner = channels == 0 || x.dims[0] == 0 ? 1 : x.size() / x.dims[0] / channels;
  dx.computed = DType::kF32;
  for (int64_t i = 0; i < dx.size(); ++i) {
    const int64_t c = i / inner % channels;
    const auto at = [&](const char* arg) { return call.In(arg).real(c); };
    const Real invstd = at("invstd"), factor = invstd * (call.Has("weight") ? at("weight") : 1), mean_dy = at("sumDy") / count;
    const Real term = (x.real(i) - at("mean")) * (at("sumDyXmu") / count * invstd * invstd);
    dx[i] = ((dy.real(i) - mean_dy) - term) * factor;
    dx.slack.push_back(Finite(8 * kUnit * std::fabs(factor) * (std::fabs(dy.real(i)) + std::fabs(mean_dy) + std::fabs(term))));
  }
}

// ---- group norm -----------------------------------------------------------------------------------------------------

// A sum and that of the magnitudes.
struct Both {
  Real value = 0, size = 0;
  void operator+=(Real term) {
    value += term;
    size += std::fabs(term);
  }
};

void OracleGroup(HostCall& call) {
  const Host &dy = call.In("gradOut"), &x = call.In("input"), &mean = call.In("mean"), &rstd = call.In("rstd");
  const int64_t samples = call.Int("N"), channels = call.Int("C"), plane = call.Int("HxW"), groups = call.Int("group");
  const int64_t width = channels / groups, terms = width * plane;
  const Checked<bool> mask = call.Bools("outputMask");
  const auto gamma = [&](int64_t c) { return call.Has("gamma") ? call.In("gamma").real(c) : Real{1}; };
  Checked<Real> inputs, input_slack;
  Checked<Both> scales(channels), shifts(channels);
  for (int64_t n = 0; plane > 0 && n < samples; ++n) {
    for (int64_t g = 0; g < groups; ++g) {
      const Real r = rstd.real(n * groups + g), centre = mean.real(n * groups + g);
      const int64_t first = (n * channels + g * width) * plane;
      const auto xhat = [&](int64_t k) { return (x.real(first + k) - centre) * r; };
      Both one, two;
      for (int64_t k = 0; k < terms; ++k) {
        const int64_t c = g * width + k / plane;
        const Real d = dy.real(first + k);
        shifts[c] += d;
        scales[c] += d * xhat(k);
        one += gamma(c) * d;
        two += gamma(c) * d * xhat(k);
      }
      const Real m = static_cast<Real>(terms), c1 = one.value / m, c2 = two.value / m, off = OfSum(terms) / m;
      for (int64_t k = 0; k < terms; ++k) {
        const Real own = gamma(g * width + k / plane) * dy.real(first + k), h = xhat(k);
        inputs.push_back(r * (own - c1 - h * c2));
        input_slack.push_back(Finite(std::fabs(r) * (8 * kUnit * (std::fabs(own) + std::fabs(c1) + std::fabs(h * c2)) +
                                                     off * (one.size + std::fabs(h) * two.size))));
      }
    }
  }
  const char* const kOuts[] = {"gradInput", "gradGammaOut", "gradBetaOut"};
  for (int i = 0; i < 3; ++i) {
    if (!call.Has(kOuts[i])) continue;
    Host& out = call.Out(kOuts[i]);
    out.computed = DType::kF32;
    if (!mask[i]) {
      out.values.clear();  // stays as it was
    } else if (i == 0) {
      for (int64_t k = 0; k < out.size(); ++k) out[k] = inputs[k];
      out.slack = input_slack;
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        const Both& sum = i == 1 ? scales[c] : shifts[c];
        out[c] = sum.value;
        out.slack.push_back(Finite(OfSum(samples * plane) * sum.size));
      }
    }
  }
}

}  // namespace

std::span<const Subject> TunedActivationSubjects() {
  static const Subject subjects[] = {{"aclnnEluBackward", SampleRows, OracleElu, {.ulps = 2}}};
  return subjects;
}

std::span<const Subject> TunedNormSubjects() {
  static const Subject subjects[] = {
      {"aclnnRmsNormGrad", SampleRows, OracleRms, {.ulps = 2}},
      {"aclnnBatchNormElemtBackward", SampleRows, OracleElemt, {.ulps = 2}},
      {"aclnnGroupNormBackward", SampleRows, OracleGroup, {.ulps = 2, .same_layout_bits = false, .partial = true}},
  };
  return subjects;
}

}  // namespace anyacl::harness
