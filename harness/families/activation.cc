// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Oracles of activations and their gradients, as the operator page writes them.
#include <cmath>
#include <limits>

#include "harness/elementwise.h"
#include "harness/philox.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kPi = 3.141592653589793238462643383279502884L;
constexpr Real kScale = 1.0507009873554804934L;
constexpr Real kAlpha = 1.6732632423543772848L;

Real Sigma(Real x) { return 1 / (1 + std::exp(-x)); }

Real GeluSlope(Real x) { return std::sqrt(2 / kPi) * (x + Real{0.044715L} * x * x * x); }
Real GeluTanh(Real x) {
  if (x == -kInf) return kNan;
  return x / (1 + std::exp(-2 * GeluSlope(x)));
}
Real GeluErf(Real x) { return x == -kInf ? kNan : x * std::erfc(-x / std::sqrt(Real{2})) / 2; }
Real GeluTanhGradient(Real x) {
  if (std::isinf(x)) return kNan;
  if (std::fabs(x) > 100) return x > 0;
  const Real t = std::tanh(GeluSlope(x)), half = 1 / (1 + std::exp(-2 * GeluSlope(x)));
  return half + x * (1 - t * t) / 2 * std::sqrt(2 / kPi) * (1 + 3 * Real{0.044715L} * x * x);
}
Real GeluErfGradient(Real x) {
  if (std::isinf(x)) return kNan;
  return std::erfc(-x / std::sqrt(Real{2})) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
}
Real SwishGradient(Real z) { return Sigma(z) * (1 + z * (1 - Sigma(z))); }

Real Softplus(Real x) { return x > 50 ? x : std::log1p(std::exp(x)); }
Real Mish(Real x) { return x == kInf ? x : x * std::tanh(Softplus(x)); }
Real MishGradient(Real x) {
  if (std::isinf(x)) return kNan;
  const Real t = std::tanh(Softplus(x));
  return t + x * Sigma(x) * (1 - t * t);
}

// By bisection: what the error function inverts.
Real Erfinv(Real x) {
  if (std::isnan(x) || std::fabs(x) > 1) return kNan;
  if (std::fabs(x) == 1) return x * kInf;
  Real low = 0, high = 8;
  const Real a = std::fabs(x);
  for (int i = 0; i < 80; ++i) {
    const Real middle = (low + high) / 2;
    const bool below = a < 0.5 ? std::erf(middle) < a : std::erfc(middle) > 1 - a;
    (below ? low : high) = middle;
  }
  return a < Real{1e-12L} ? x * std::sqrt(kPi) / 2 : std::copysign(low, x);
}

Real Positive(Real x) { return std::isnan(x) ? x : std::fmax(x, Real{0}); }

// A unary function of the first operand, or g times a slope at the second.
#define OF(expression) [](const Point& p) { const Real x = p.re(0); (void)p; return Number(expression); }
#define SLOPE(expression) [](const Point& p) { const Real x = p.re(1), g = p.re(0); (void)g; return Number(expression); }

Real GradientSize(const Point& p) { return std::fabs(p.re(0)) * (1 + std::fabs(p.re(1))); }
Real OneSize(const Point&) { return 1; }
// The argument of an exponential is rounded: its relative error grows with it.
Real TailSize(const Point& p, Real result) {
  const Real x = p.re(0);
  return std::fabs(result) * (1 + std::fabs(x) + std::fabs(x * x * x) / 10);
}

std::vector<Elementwise> Forward() {
  const DType f32 = DType::kF32;
  const Checked<Real> plain = {0.01L, -0.5L, 2, 0};
  return {
      {.name = "Relu", .of = [](const Point& p) { return p.whole() ? Number(std::fmax(p.re(0), Real{0})) : Number(Positive(p.re(0))); },
       .ulps = 0},
      {.name = "LeakyRelu", .of = OF(x > 0 ? x : x * p.s[0].real()), .keep_scalars = true, .scalars = {"negativeSlope"},
       .numbers = plain, .round_result = true},
      {.name = "AddRelu", .of = [](const Point& p) {
         if (p.whole()) {
           const Real sum = Rounded(p.computed, p.Whole(p.i(0) + static_cast<__int128>(p.s[0].real()) * p.i(1))).real();
           return Number(sum > 0 ? sum : Real{0});
         }
         return Number(Positive(p.re(0) + p.s[0].real() * p.re(1)));
       }, .size = [](const Point& p) { return std::fabs(p.re(0)) + std::fabs(p.s[0].real() * p.re(1)); }, .scalars = {"alpha"},
       .round_result = true},
      {.name = "Elu", .of = OF(p.s[1].real() * (x > 0 ? x : p.s[0].real() * std::expm1(x * p.s[2].real()))), .ulps = 4,
       .keep_scalars = true, .scalars = {"alpha", "scale", "inputScale"}, .numbers = {1, 2, 0.5L, 1.5L}, .round_result = true},
      {.name = "Selu", .of = OF(kScale * (x > 0 ? x : kAlpha * std::expm1(x))), .ulps = 4, .whole = f32, .hostile = false},
      {.name = "Celu", .of = OF(Positive(x) + (std::isnan(x) ? x : std::fmin(Real{0}, p.s[0].real() * std::expm1(x / p.s[0].real())))),
       .ulps = 4, .keep_scalars = true, .scalars = {"alpha"}, .numbers = {1, 1.5L, -2, 0.5L}, .round_result = true},
      {.name = "Gelu", .of = OF(GeluTanh(x)), .low = -5, .high = 5, .ulps = 4,
       .size = [](const Point& p) { return TailSize(p, GeluTanh(p.re(0))); }},
      {.name = "GeluV2", .of = [](const Point& p) {
         return Number(p.call.Int("approximate") == 1 ? GeluTanh(p.re(0)) : GeluErf(p.re(0)));
       }, .low = -5, .high = 5, .ulps = 4, .size = [](const Point& p) { return TailSize(p, GeluErf(p.re(0))); },
       .attributes = {{Int(0)}, {Int(1)}, {Int(7)}}},
      {.name = "FastGelu", .of = OF(x / (1 + std::exp(Real{-1.702L} * x))), .low = -9, .high = 9, .ulps = 4,
       .size = [](const Point& p) { return TailSize(p, p.re(0) / (1 + std::exp(Real{-1.702L} * p.re(0)))); }},
      {.name = "Silu", .of = [](const Point& p) {
         return p.complex() ? p.x[0] / (Number(1) + std::exp(-p.x[0])) : Number(p.re(0) / (1 + std::exp(-p.re(0))));
       }, .low = -9, .high = 9, .ulps = 6},
      {.name = "Swish", .of = OF(x / (1 + std::exp(-p.s[0].real() * x))), .low = -9, .high = 9, .ulps = 4,
       .size = [](const Point& p) { return TailSize(p, p.re(0) / (1 + std::exp(-p.s[0].real() * p.re(0)))); },
       .keep_scalars = true, .scalars = {"betaOptional"}, .numbers = {1, 0.5L, 2}, .absent = {0, 1u << 31}},
      {.name = "Sigmoid", .of = [](const Point& p) {
         return p.complex() ? Number(1) / (Number(1) + std::exp(-p.x[0])) : Number(Sigma(p.re(0)));
       }, .low = -9, .high = 9, .ulps = 6, .whole_as_result = true, .round_result = true},
      {.name = "LogSigmoid", .of = OF(std::fmin(x, Real{0}) - std::log1p(std::exp(-std::fabs(x)))), .low = -9, .high = 9, .ulps = 4},
      {.name = "LogSigmoidForward", .of = OF(std::fmin(x, Real{0}) - std::log1p(std::exp(-std::fabs(x)))), .low = -9, .high = 9,
       .ulps = 4, .ignored = {"buffer"}},
      {.name = "Hardsigmoid", .of = [](const Point& p) {
         const Real t = p.re(0) * p.Single(Real{1} / 6) + 0.5L;
         return Number(t <= 0 ? 0 : p.Single(t) >= 1 ? 1 : t);
       }, .low = -5, .high = 5, .size = OneSize, .whole = f32},
      {.name = "Hardswish", .of = OF(x * (std::isnan(x) ? x : std::fmin(std::fmax(x + 3, Real{0}), Real{6})) / 6), .low = -5, .high = 5,
       .size = [](const Point& p) { return std::fabs(p.re(0)); }, .round_result = true},
      {.name = "Hardshrink", .of = OF(std::fabs(x) <= Positive(p.s[0].real()) ? Real{0} : x), .ulps = 0, .keep_scalars = true,
       .scalars = {"lambd"}, .numbers = {0.5L, 1, -1, 0}},
      {.name = "Softshrink", .of = OF(x > p.s[0].real() ? x - p.s[0].real() : x < -p.s[0].real() ? x + p.s[0].real()
                                      : std::isnan(x) ? x : Real{0}),
       .keep_scalars = true, .scalars = {"lambd"}, .numbers = {0.5L, 1, 0}, .round_result = true},
      {.name = "Shrink", .of = OF(x < -p.s[0].real() ? x + p.s[1].real() : x > p.s[0].real() ? x - p.s[1].real() : Real{0}),
       .size = OneSize, .keep_scalars = true, .scalars = {"lambd", "bias"}, .numbers = {0.5L, 0.25L, 1, 2}, .round_result = true},
      {.name = "Softplus", .of = OF(x * p.s[0].real() > p.s[1].real() ? x : Softplus(x * p.s[0].real()) / p.s[0].real()), .low = -5,
       .high = 5, .ulps = 4, .size = [](const Point& p) { return std::fabs(p.re(0)) * Softplus(p.s[0].real() * p.re(0)) * 2; },
       .keep_scalars = true, .scalars = {"beta", "threshold"}, .numbers = {2, 3, 0.5L, 20}, .hostile = false, .round_result = true},
      {.name = "Mish", .of = OF(Mish(x)), .low = -9, .high = 9, .ulps = 8},
      {.name = "Erfinv", .of = OF(Erfinv(x)), .low = -1.1L, .high = 1.1L, .whole = f32, .round_result = true},
      {.name = "Threshold", .of = OF(x <= p.s[0].real() ? p.s[1].real() : x), .ulps = 0, .scalars = {"threshold", "value"},
       .numbers = {0.5L, 3, -1, 7}, .round_result = true},
      {.name = "Heaviside", .of = OF(x < 0 ? Real{0} : x == 0 ? p.re(1) : Real(x > 0)), .ulps = 0},
      {.name = "SquaredRelu", .of = OF(Positive(x) * Positive(x)), .ulps = 1},
  };
}

std::vector<Elementwise> Backward() {
  return {
      {.name = "LeakyReluBackward", .of = SLOPE(x > 0 ? g : g * p.s[0].real()), .keep_scalars = true, .scalars = {"negativeSlope"},
       .numbers = {0.01L, 2, 0, 1}, .attributes = {{Flag(false)}, {Flag(true)}}, .round_result = true},
      {.name = "SeluBackward", .of = [](const Point& p) {
         const Real y = p.re(1) <= 0 ? p.re(0) * (p.re(1) + kScale * kAlpha) : p.re(0) * kScale;
         return Number(IsInteger(p.result) ? std::nearbyint(y) : y);
       }, .ulps = 4, .size = GradientSize, .whole = DType::kF32, .hostile = false},
      {.name = "GeluBackward", .of = SLOPE(g * GeluTanhGradient(x)), .low = -4, .high = 4, .ulps = 4, .size = GradientSize,
       .round_result = true},
      {.name = "GeluBackwardV2", .of = [](const Point& p) {
         return Number(p.re(0) * (p.call.Text("approximate") == "tanh" ? GeluTanhGradient(p.re(1)) : GeluErfGradient(p.re(1))));
       }, .low = -4, .high = 4, .ulps = 4, .size = GradientSize, .attributes = {{Text("none")}, {Text("tanh")}}},
      {.name = "FastGeluBackward", .of = SLOPE(g * SwishGradient(Real{1.702L} * x)), .low = -5, .high = 5, .ulps = 4, .size = GradientSize},
      {.name = "SiluBackward", .of = SLOPE(g * SwishGradient(x)), .low = -5, .high = 5, .ulps = 4, .size = GradientSize},
      {.name = "SwishBackward", .of = SLOPE(g * SwishGradient(p.s[0].real() * x)), .low = -5, .high = 5, .ulps = 4, .size = GradientSize,
       .keep_scalars = true, .scalars = {"betaOptional"}, .numbers = {1, 0.5L, 2}, .absent = {0, 1u << 31}},
      {.name = "SigmoidBackward", .of = [](const Point& p) {
         return p.complex() ? p.x[0] * std::conj((Number(1) - p.x[1]) * p.x[1]) : Number(p.re(0) * (1 - p.re(1)) * p.re(1));
       }, .ulps = 4, .size = [](const Point& p) { return std::abs(p.x[0]) * (1 + std::abs(p.x[1])) * std::abs(p.x[1]) * 2; }, .round_result = true},
      {.name = "LogSigmoidBackward", .of = SLOPE(g / (1 + std::exp(x))), .low = -9, .high = 9, .ulps = 6, .ignored = {"buffer"}},
      {.name = "HardsigmoidBackward", .of = SLOPE(-3 < x && x < 3 ? g / 6 : Real{0}), .low = -5, .high = 5, .round_result = true},
      {.name = "HardswishBackward", .of = SLOPE(g * (x < -3 ? 0 : x <= 3 ? x / 3 + Real{0.5L} : 1)), .low = -5, .high = 5,
       .size = GradientSize},
      {.name = "HardswishBackwardV2", .of = SLOPE(g * (x <= -3 ? 0 : x < 3 ? x / 3 + Real{0.5L} : 1)), .low = -5, .high = 5,
       .size = GradientSize},
      {.name = "HardtanhBackward", .of = SLOPE((p.s[0].real() < x && x < p.s[1].real()) || std::isnan(x) ? g : Real{0}), .ulps = 0,
       .keep_scalars = true, .scalars = {"min", "max"}, .numbers = {-1, 1, 0, 0.5L}},
      {.name = "HardshrinkBackward", .of = SLOPE(-p.s[0].real() <= x && x <= p.s[0].real() ? Real{0} : g), .ulps = 0,
       .keep_scalars = true, .scalars = {"lambd"}, .numbers = {0.5L, 0, 1, -1}, .round_result = true},
      {.name = "SoftshrinkBackward", .of = SLOPE(std::fabs(x) > p.s[0].real() || std::isnan(x) ? g : Real{0}), .ulps = 0,
       .keep_scalars = true, .scalars = {"lambda"}, .numbers = {0.5L, 0, 1}},
      {.name = "SoftplusBackward", .of = SLOPE(x * p.s[0].real() > p.s[1].real() ? g : g * Sigma(x * p.s[0].real())), .low = -5,
       .high = 5, .ulps = 6, .size = GradientSize, .keep_scalars = true, .scalars = {"beta", "threshold"},
       .numbers = {2, 3, 0.5L, 20}, .computed = [](const Point& p) {
         const DType g = p.call.In("gradOutput").dtype, x = p.call.In("self").dtype;
         return g == x && !IsInteger(g) ? g : DType::kF32;
       }, .hostile = false, .round_result = true},
      {.name = "MishBackward", .of = SLOPE(g * MishGradient(x)), .low = -9, .high = 9, .ulps = 6, .size = GradientSize,
       .round_result = true},
  };
}

// INT64 has no threshold but 0.
void SampleThresholdBackward(Calls& calls) {
  const auto of = [&](DType t, Real threshold, DType scalar, Values values) {
    calls.Add({In(t, {3, 1, 17}, values), In(t, {4, 17}, values), Num(scalar, threshold), Out(t, {3, 4, 17})});
  };
  for (const DType t : calls.TypesOf("self")) {
    const bool whole = IsInteger(t);
    const Values values = whole ? Whole(t == DType::kU8 ? 0 : -4, 4) : Between(-2, 2);
    of(t, 0, DType::kI64, values);
    of(t, Real{1e-8L}, DType::kF32, values);
    of(t, 0, DType::kF32, Hostile());
    if (t == DType::kI64) continue;
    for (const Real threshold : {Real{1.5L}, Real{-1.5L}, Real{3}, kInf, -kInf, kNan}) of(t, threshold, DType::kF64, values);
    of(t, 1, DType::kBool, values);
  }
}

void ThresholdBackwardOracle(HostCall& call) {
  const Host &g = call.In("gradOutput"), &x = call.In("self");
  Real threshold = call.Scalar("threshold").real();
  if (x.dtype != DType::kF64) threshold = static_cast<float>(threshold);
  if (std::fabs(threshold) < std::ldexp(Real{1}, -23)) threshold = 0;
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = x.Broadcast(out.dims, i).real() <= threshold ? Number(0) : g.Broadcast(out.dims, i);
  }
}

// ---- prelu ----------------------------------------------------------------------------------------------------------

// Shapes of self with those of slopes; the order of the slopes counts, not their shape.
const std::vector<std::pair<Dims, Dims>>& PreluShapes() {
  static const std::vector<std::pair<Dims, Dims>> shapes = {{{2, 6, 5}, {6}},  {{2, 6, 5}, {1, 6, 1}}, {{3, 6}, {2, 3}}, {{2, 6, 5}, {1}},
                                                            {{7}, {}},        {{}, {1, 1}},           {{0, 3, 2}, {3}}, {{2, 0, 3}, {0}},
                                                            {{70, 3, 300}, {3}}};
  return shapes;
}

Real SlopeAt(const Dims& self, const Host& weight, int64_t i) {
  if (weight.size() == 1) return weight.real(0);
  int64_t inner = 1;
  for (int axis = 2; axis < self.rank(); ++axis) inner *= self[axis];
  return weight.real(i / inner % self[1]);
}

void SamplePrelu(Calls& calls) {
  for (const auto& [self, weight] : PreluShapes()) {
    for (const DType t : calls.TypesOf("self")) {
      for (const DType w : calls.TypesOf("weight")) calls.Add({In(t, self), In(w, weight), Out(w == DType::kF16 ? DType::kF16 : t, self)});
      TestCall& call = calls.Add({In(t, self, Hostile()), In(t, weight), Out(t, self)});
      call.same = {{2, 0}};
    }
  }
}

void PreluOracle(HostCall& call) {
  const Host &x = call.In("self"), &weight = call.In("weight");
  Host& out = call.Out("out");
  const bool wide = x.dtype == DType::kF64 || weight.dtype == DType::kF64;
  const DType computed = wide ? DType::kF64 : x.dtype == weight.dtype ? x.dtype : DType::kF32;
  for (int64_t i = 0; i < out.size(); ++i) out[i] = Rounded(computed, x.real(i) > 0 ? x.real(i) : x.real(i) * SlopeAt(x.dims, weight, i));
  if (computed == DType::kF32 && out.dtype != computed) {  // rounded twice
    for (int64_t i = 0; i < out.size(); ++i) out.slack.push_back(UlpOf(DType::kF32, out.real(i)));
  }
}

void SamplePreluBackward(Calls& calls) {
  for (const auto& [self, weight] : PreluShapes()) {
    for (const DType t : calls.TypesOf("self")) {
      calls.Add({In(t, self), In(t, self), In(t, weight), Out(t, self), Out(t, weight)});
      const Dims sums = Numel(weight) == 1 ? weight : Dims{Numel(weight)};
      TestCall& call = calls.Add({In(t, self), In(t, self), In(t, weight), Out(t, self), Out(t, sums)});
      call.same = {{3, 1}};
      if (self.rank() > 0 && self[0] > 0) calls.Add({In(t, {}), In(t, self), In(t, weight), Out(t, self), Out(t, sums)});
    }
  }
}

void PreluBackwardOracle(HostCall& call) {
  const Host &g = call.In("gradOutput"), &x = call.In("self"), &weight = call.In("weight");
  Host &out = call.Out("gradInput"), &sums = call.Out("gradWeight");
  int64_t inner = 1;
  for (int axis = 2; axis < x.dims.rank(); ++axis) inner *= x.dims[axis];
  const DType unit = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Checked<Real> size(sums.size());
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real gradient = g.Broadcast(x.dims, i).real();
    out[i] = x.real(i) > 0 ? gradient : gradient * SlopeAt(x.dims, weight, i);
    if (x.real(i) > 0) continue;
    const int64_t channel = weight.size() == 1 ? 0 : i / inner % x.dims[1];
    sums[channel] += gradient * x.real(i);
    size[channel] += std::fabs(gradient * x.real(i));
  }
  for (const Real one : size) sums.slack.push_back(2 * UlpOf(unit, one));
}

// ---- rrelu ----

constexpr int64_t kSeed = 77, kOffset = -5;

void SampleRRelu(Calls& calls) {
  const bool in_place = calls.op().contract.ArgIndex("out") < 0;
  const auto add = [&](DType t, const Dims& self, const Dims& noise, bool training, TestArg low, TestArg high, Values values = {}) {
    std::vector<TestArg> args = {In(t, self, std::move(values)), In(t, noise), std::move(low), std::move(high), Flag(training), Int(kSeed), Int(kOffset)};
    if (!in_place) args.push_back(Out(t, self));
    calls.Add(std::move(args));
  };
  for (const DType t : calls.TypesOf("self")) {
    for (const bool training : {true, false}) {
      add(t, {7, 13}, {7, 13}, training, Num(DType::kF32, 0.125), Num(DType::kF64, 1.0 / 3));
      add(t, {3, 4, 5}, {3, 4, 5}, training, Num(DType::kI64, 0), Num(DType::kBool, 1), Whole(-1, 1));
      add(t, {6}, {2, 5}, training, Num(DType::kF16, -0.5), Num(DType::kBF16, 0.5), Hostile());
      add(t, {}, {1}, training, Num(DType::kF32, 0.25), Num(DType::kF32, 0.25));
    }
    add(t, {0, 3}, {2}, true, Num(DType::kF32, 0), Num(DType::kF32, 1));
  }
  add(DType::kF32, {1200}, {1300}, true, Num(DType::kF32, 0), Num(DType::kF32, 1));
}

void RReluOracle(HostCall& call) {
  const Host &x = call.In("self"), &before = call.In("noise");
  if (x.size() == 0) return;
  Host& out = call.Out(call.HasArg("out") ? "out" : "self");
  const bool wide = x.dtype == DType::kF64;
  const Real low = call.Scalar("lower").real(), high = call.Scalar("upper").real();
  const Real error = (std::fabs(low) + std::fabs(high)) * (wide ? 0x1p-51L : 0x1p-22L);
  const auto unit = [&](uint64_t i) {
    const auto word = [](uint64_t j) { return PhiloxWord(kSeed, static_cast<uint64_t>(kOffset), j); };
    if (!wide) return std::ldexp(static_cast<Real>(word(i) & 0x7fffff), -23);
    return std::ldexp(static_cast<Real>((word(2 * i) | static_cast<uint64_t>(word(2 * i + 1)) << 32) >> 11), -53);
  };
  Host* const noise = call.Flag("training") ? &call.Out("noise") : nullptr;
  if (noise) noise->slack.assign(noise->size(), 0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real slope = noise ? low + unit(static_cast<uint64_t>(i)) * (high - low) : (low + high) / 2, v = x.real(i);
    out[i] = v > 0 || std::isnan(v) ? v : v * slope;
    out.slack.push_back(v > 0 || !std::isfinite(v) ? 0 : std::fabs(v) * error);
    if (noise) (*noise)[i] = v <= 0 ? slope : 1;
    if (noise) noise->slack[i] = v <= 0 ? error : 0;
  }
  for (int64_t i = x.size(); noise && i < noise->size(); ++i) (*noise)[i] = before[i];
}

}  // namespace

std::span<const Subject> ActivationSubjects() {
  static auto* const subjects = [] {
    auto* const list = new std::vector<Subject>;
    static const std::vector<Elementwise> tables[] = {Forward(), Backward()};
    for (const auto& rows : tables) AddSubjects(list, rows);
    list->push_back({"aclnnPrelu", SamplePrelu, PreluOracle, {.ulps = 0.5}});
    list->push_back({"aclnnPreluBackward", SamplePreluBackward, PreluBackwardOracle, {.ulps = 0.5}});
    list->push_back({"aclnnRReluWithNoise", SampleRRelu, RReluOracle, {.ulps = 0.5}});
    list->push_back({"aclnnInplaceRReluWithNoise", SampleRRelu, RReluOracle, {.ulps = 0.5}});
    list->push_back({"aclnnThresholdBackward", SampleThresholdBackward, ThresholdBackwardOracle, {.ulps = 0}});
    return list;
  }();
  return *subjects;
}

}  // namespace anyacl::harness
