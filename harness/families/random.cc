// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Random numbers have an exact value for every seed, offset and place: the oracles compute it word by word, one element at a
// time. That the numbers are random is another question: tests/random.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "harness/family.h"
#include "harness/philox.h"

namespace anyacl::harness {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};

// --- the generator ---------------------------------------------------------------------------------

// The numbers of one (seed, offset), as the maps are defined: FLOAT where that is said.
struct Sequence {
  uint64_t seed, offset;

  uint32_t Word(uint64_t j) const { return PhiloxWord(seed, offset, j); }
  uint64_t Wide(uint64_t i) const { return Word(2 * i) | static_cast<uint64_t>(Word(2 * i + 1)) << 32; }
  float Open(uint64_t i) const { return static_cast<float>(Word(i)) * 0x1p-32f + 0x1p-33f; }
  Real Unit(uint64_t i, bool wide) const {
    return wide ? std::ldexp(static_cast<Real>(Wide(i) >> 11), -53) : std::ldexp(static_cast<Real>(Word(i) & 0x7fffff), -23);
  }
  Real Normal(uint64_t i, bool wide) const {
    const Real a = std::max(Unit(i & ~uint64_t{1}, wide), wide ? 0x1p-53L : static_cast<Real>(1e-7f)), b = Unit(i | 1, wide);
    const Real r = std::sqrt(-2 * std::log(a)), angle = 2 * 3.14159265358979323846264338327950288L * b;
    const Real n = r * (i & 1 ? std::cos(angle) : std::sin(angle));
    return wide ? n : static_cast<Real>(static_cast<float>(n));
  }
  Real Exponential(uint64_t i, float rate) const {
    const float u = Open(i), log = u >= 1 - 0x1p-24f ? -0x1p-24f : static_cast<float>(std::log(static_cast<Real>(u)));
    return (-1 / rate) * log;
  }
  bool Keeps(uint64_t i, double probability) const { return Open(i) < static_cast<float>(1 - probability); }
};

Sequence SequenceOf(HostCall& call) {
  if (!call.HasArg("seedTensor")) return {static_cast<uint64_t>(call.Int("seed")), static_cast<uint64_t>(call.Int("offset"))};
  const auto word = [&](const char* arg) {
    const Real x = call.In(arg).real(0);
    return x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
  };
  return {word("seedTensor"), word("offsetTensor") + static_cast<uint64_t>(call.Int("offset"))};
}

// The arguments that say which sequence, for operators with a seed of their own and those with tensors.
std::vector<TestArg> Source(const Calls& calls, int64_t seed, int64_t offset, DType t = DType::kI64) {
  bool from_tensors = false;
  for (const contract::Arg& arg : calls.op().contract.args()) from_tensors = from_tensors || std::string_view(arg.name) == "seedTensor";
  if (!from_tensors) return {Int(seed), Int(offset)};
  const Real sign = t == DType::kU64 ? std::fabs(static_cast<Real>(seed)) : static_cast<Real>(seed);
  return {In(t, {}, Given({sign})), In(t, {1}, Given({3})), Int(offset)};
}

std::vector<TestArg> With(std::vector<TestArg> args, std::vector<TestArg> more, std::vector<TestArg> last = {}) {
  for (TestArg& arg : more) args.push_back(std::move(arg));
  for (TestArg& arg : last) args.push_back(std::move(arg));
  return args;
}

bool IsWide(DType t) { return t == DType::kF64 || t == DType::kC128; }
bool HasParts(DType t) { return IsComplex(t); }

// Seeds as tensors: both dtypes, shapes, views.
void SampleSources(Calls& calls, const std::function<void(std::vector<TestArg>)>& add) {
  add(Source(calls, 42, 8));
  if (calls.op().contract.ArgIndex("seedTensor") < 0) return;
  add(Source(calls, 7, 4, DType::kU64));
  std::vector<TestArg> strided = Source(calls, -5, 1);
  strided[0] = In(DType::kI64, {1}, Given({-5})).Layout("sliced");
  strided[1] = In(DType::kI64, {1}, Given({1000})).Layout("sliced");
  add(strided);
}

// --- uniform, normal, exponential ------------------------------------------------------------------

void SampleUniform(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add(With({Out(t, {3, 5}), RealArg(-2.5), RealArg(9)}, Source(calls, 42, 8)));
    calls.Add(With({Out(t, {2000}), RealArg(0), RealArg(1)}, Source(calls, -1, -4)));
  }
  const DType f = DType::kF32;
  calls.Add(With({Out(f, {}), RealArg(0), RealArg(1)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {0, 3}), RealArg(0), RealArg(1)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {4}), RealArg(2), RealArg(2)}, Source(calls, 0, 0)));
  calls.Add(With({Out(DType::kI32, {300}), RealArg(0.5), RealArg(0.9)}, Source(calls, 0, 0)));
  calls.Add(With({Out(DType::kF64, {100}), RealArg(1e300), RealArg(1.1e300)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {150, 201}), RealArg(0), RealArg(1)}, Source(calls, INT64_MIN, INT64_MAX)));
  SampleSources(calls, [&](std::vector<TestArg> source) { calls.Add(With({Out(f, {7}), RealArg(1), RealArg(2)}, std::move(source))); });
}
void OracleUniform(HostCall& call) {
  Host& out = call.Out("selfRef");
  const Sequence x = SequenceOf(call);
  const bool wide = IsWide(out.dtype);
  const double from = wide ? call.Real("from") : static_cast<float>(call.Real("from")), to = wide ? call.Real("to") : static_cast<float>(call.Real("to"));
  const DType part = HasParts(out.dtype) ? (wide ? DType::kF64 : DType::kF32) : out.dtype;
  const auto draw = [&](int64_t i) -> Real {
    const Real unit = x.Unit(static_cast<uint64_t>(i), wide);
    double y;
    if (wide) {
      y = static_cast<double>(unit) * (to - from);
      y += from;
    } else {
      float z = static_cast<float>(unit) * static_cast<float>(to - from);
      z += static_cast<float>(from);
      y = z;
    }
    // In [from, to), as the dtype has its numbers.
    return from < to && Rounded(part, y) == Rounded(part, to) ? Rounded(part, from).real() : static_cast<Real>(y);
  };
  for (int64_t i = 0; i < out.size(); ++i) out[i] = HasParts(out.dtype) ? Number(draw(2 * i), draw(2 * i + 1)) : Number(draw(i));
}

void SampleNormal(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add(With({Out(t, {3, 5}), RealArg(1), RealArg(3)}, Source(calls, 42, 8)));
    calls.Add(With({Out(t, {2001}), RealArg(0), RealArg(1)}, Source(calls, -1, -4)));
  }
  const DType f = DType::kF32;
  calls.Add(With({Out(f, {}), RealArg(0), RealArg(1)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {0, 3}), RealArg(0), RealArg(1)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {4}), RealArg(2), RealArg(0)}, Source(calls, 0, 0)));
  calls.Add(With({Out(f, {100, 201}), RealArg(0.25), RealArg(1.5)}, Source(calls, 1, 1)));
  SampleSources(calls, [&](std::vector<TestArg> source) { calls.Add(With({Out(f, {7}), RealArg(1), RealArg(2)}, std::move(source))); });
}
// mean + std * n of FLOAT numbers, or of DOUBLE ones; the roundings of both steps count.
Real Shifted(Real n, Real mean, Real std, bool wide) {
  if (wide) return static_cast<Real>(static_cast<double>(n * std)) + mean;
  const float scaled = static_cast<float>(n) * static_cast<float>(std);
  return scaled + static_cast<float>(mean);
}
// Sine and logarithm may be off by a digit where they are rounded to FLOAT, or in DOUBLE by a few.
Real NormalSlack(Real y, Real mean, Real std, bool wide) {
  return (wide ? 16 : 1) * UlpOf(wide ? DType::kF64 : DType::kF32, std::fabs(y) + std::fabs(mean) + std::fabs(std));
}
void OracleNormal(HostCall& call) {
  Host& out = call.Out("selfRef");
  const Sequence x = SequenceOf(call);
  const bool wide = IsWide(out.dtype);
  const Real mean = static_cast<float>(call.Real("mean"));
  Real std = call.Real("std");
  if (HasParts(out.dtype)) std *= std::sqrt(0.5L);
  if (!wide) std = static_cast<float>(std);
  const auto draw = [&](int64_t i) { return Shifted(x.Normal(static_cast<uint64_t>(i), wide), mean, std, wide); };
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = HasParts(out.dtype) ? Number(draw(2 * i), draw(2 * i + 1)) : Number(draw(i));
    if (wide) out.slack.push_back(NormalSlack(std::abs(out[i]), mean, std, wide));
  }
}

void SampleExponential(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({Out(t, {3, 5}), Int(15), RealArg(1), Int(42), Int(8)});
    calls.Add({Out(t, {2001}), Int(2001), RealArg(0.3), Int(-42), Int(1)});
  }
  calls.Add({Out(DType::kF32, {}), Int(1), RealArg(2), Int(0), Int(0)});
  calls.Add({Out(DType::kF32, {0, 2}), Int(0), RealArg(2), Int(0), Int(0)});
  calls.Add({Out(DType::kF32, {200, 101}), Int(20200), RealArg(1e-3), Int(5), Int(5)});
  calls.Add({Out(DType::kF32, {3}), Int(3), RealArg(HUGE_VAL), Int(5), Int(5)});
}
void OracleExponential(HostCall& call) {
  Host& out = call.Out("selfRef");
  const Sequence x = SequenceOf(call);
  for (int64_t i = 0; i < out.size(); ++i) out[i] = x.Exponential(static_cast<uint64_t>(i), static_cast<float>(call.Real("lambda")));
}

void SampleNormalOut(Calls& calls) {
  const contract::Contract& contract = calls.op().contract;
  const bool mean = contract.args()[0].is_tensor(), std = contract.args()[1].is_tensor();
  const auto add = [&](DType m, DType s, DType o, const Dims& m_dims, const Dims& s_dims, const Dims& dims) {
    calls.Add({mean ? In(m, m_dims) : RealArg(0.75), std ? In(s, s_dims, Between(0, 3)) : RealArg(1.5), Int(42), Int(8), Out(o, dims)});
  };
  for (DType t : kFloats) {
    add(t, t, t, {3, 5}, {3, 5}, {3, 5});
    add(t, DType::kF32, DType::kF32, {7}, {7}, {7});
    add(DType::kF32, t, DType::kF16, {7}, {7}, {7});
    add(DType::kF32, DType::kF32, t, {333}, {333}, {333});
  }
  if (mean) add(DType::kF32, DType::kF32, DType::kF32, {5}, {3, 5}, {3, 5});
  if (mean) add(DType::kF16, DType::kBF16, DType::kF64, {3, 1}, {3, 5}, {3, 5});
  if (mean && std) add(DType::kF32, DType::kF32, DType::kF32, {3, 1}, {1, 5}, {3, 5});
  add(DType::kF32, DType::kF32, DType::kF32, {}, {}, {});
  add(DType::kF32, DType::kF32, DType::kF32, {0, 2}, mean ? Dims{0, 2} : Dims{1}, {0, 2});
  add(DType::kF32, DType::kF32, DType::kF32, {100, 151}, {100, 151}, {100, 151});
  if (!std) calls.Add({mean ? In(DType::kF32, {4}) : RealArg(0.75), RealArg(-1), Int(42), Int(8), Out(DType::kF32, {4})});
}
void OracleNormalOut(HostCall& call) {
  Host& out = call.Out("out");
  const Sequence x = SequenceOf(call);
  const bool mean = call.KindOf("mean") == contract::ArgKind::kInput, std = call.KindOf("std") == contract::ArgKind::kInput;
  const bool wide = IsWide(out.dtype) || (mean && IsWide(call.In("mean").dtype)) || (std && IsWide(call.In("std").dtype));
  for (int64_t i = 0; i < out.size(); ++i) {
    const Real m = mean ? call.In("mean").Broadcast(out.dims, i).real() : static_cast<float>(call.Real("mean"));
    const Real s = std ? call.In("std").Broadcast(out.dims, i).real() : static_cast<float>(call.Real("std"));
    out[i] = Shifted(x.Normal(static_cast<uint64_t>(i), wide), m, s, wide);
    out.slack.push_back(wide ? NormalSlack(out.real(i), m, s, wide) : 0);
  }
}

// --- whole numbers ---------------------------------------------------------------------------------

void SampleRandom(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add(With({Out(t, {3, 5}), Int(0), Int(100)}, Source(calls, 42, 8)));
    calls.Add(With({Out(t, {500}), Int(-3), Int(1 << 20)}, Source(calls, -1, -4)));
  }
  const auto add = [&](DType t, int64_t from, int64_t to) { calls.Add(With({Out(t, {40, 50}), Int(from), Int(to)}, Source(calls, 3, 5))); };
  add(DType::kI64, INT64_MIN, INT64_MAX);
  add(DType::kI64, 0, int64_t{1} << 28);
  add(DType::kI64, 0, (int64_t{1} << 28) - 1);
  add(DType::kI64, 5, 6);
  add(DType::kU64, INT64_MAX - 5, INT64_MAX);
  add(DType::kF64, 0, (int64_t{1} << 53) + 1);
  add(DType::kF32, -(1 << 24) - 7, (1 << 24) + 1);
  add(DType::kF32, (1 << 26) + 1, (1 << 27) + 1);
  add(DType::kF16, -2100, 2051);
  add(DType::kBF16, 513, 1023);
  add(DType::kBF16, -1023, -513);
  calls.Add(With({Out(DType::kI32, {}), Int(0), Int(10)}, Source(calls, 0, 0)));
  calls.Add(With({Out(DType::kI32, {2, 0}), Int(0), Int(10)}, Source(calls, 0, 0)));
  SampleSources(calls, [&](std::vector<TestArg> source) { calls.Add(With({Out(DType::kI64, {7}), Int(0), Int(9)}, std::move(source))); });
}
Real DigitsIn(DType t) { return t == DType::kF16 ? 11 : t == DType::kBF16 ? 8 : t == DType::kF32 ? 24 : 53; }
Real StepAt(DType t, Real x) { return std::exp2(std::max<Real>(0, std::floor(std::log2(std::fabs(x))) - DigitsIn(t) + 1)); }
void DrawWhole(const Sequence& x, Real from, Real to, Host& out) {
  const uint64_t range = static_cast<uint64_t>(to - from);
  for (int64_t i = 0; i < out.size(); ++i) {
    const uint64_t at = static_cast<uint64_t>(i), drawn = range < uint64_t{1} << 28 ? x.Word(at) % range : x.Wide(at) % range;
    out[i] = from + static_cast<Real>(drawn);
  }
}
void OracleRandom(HostCall& call) {
  Host& out = call.Out("selfRef");
  Real from = static_cast<Real>(call.Int("from")), to = static_cast<Real>(call.Int("to"));
  if (IsFloating(out.dtype)) {
    const Real above = Rounded(out.dtype, from + 1).real(), below = Rounded(out.dtype, to - 1).real();
    if (above < from) from = above + StepAt(out.dtype, from + 1);
    if (std::isfinite(below) && below >= to) to = below - StepAt(out.dtype, to - 1);
  }
  DrawWhole(SequenceOf(call), from, to, out);
}

void SampleRandomWithoutEnds(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add(With({Out(t, {3, 5})}, Source(calls, 42, 8)));
    calls.Add(With({Out(t, {600})}, Source(calls, -1, -4)));
  }
  calls.Add(With({Out(DType::kI64, {0})}, Source(calls, 0, 0)));
  SampleSources(calls, [&](std::vector<TestArg> source) { calls.Add(With({Out(DType::kI64, {7})}, std::move(source))); });
}
void OracleRandomWithoutEnds(HostCall& call) {
  Host& out = call.Out("selfRef");
  Real most = 1;
  if (IsFloating(out.dtype)) most = std::exp2(DigitsIn(out.dtype));
  else if (out.dtype != DType::kBool) most = std::exp2(static_cast<Real>(8 * SizeOf(out.dtype)) - (out.dtype == DType::kU8 ? 0 : 1)) - 1;
  DrawWhole(SequenceOf(call), 0, most + 1, out);
}

// --- Bernoulli -------------------------------------------------------------------------------------

const char* OutOf(HostCall& call) { return call.HasArg("out") ? "out" : "selfRef"; }

void AddBernoulli(Calls& calls, DType t, const Dims& dims, TestArg prob, int64_t seed = 42, int64_t offset = 8) {
  const bool in_place = calls.op().contract.ArgIndex("out") < 0;
  std::vector<TestArg> args = {In(t, dims), std::move(prob), Int(seed), Int(offset)};
  if (!in_place) args.push_back(Out(t, dims));
  calls.Add(std::move(args));
}
void SampleBernoulli(Calls& calls) {
  const char* const self = calls.op().contract.ArgIndex("self") >= 0 ? "self" : "selfRef";
  for (DType t : calls.TypesOf(self)) AddBernoulli(calls, t, {3, 5}, Num(DType::kF64, 0.3L));
  for (DType t : kFloats) AddBernoulli(calls, DType::kF32, {700}, Num(t, 0.7L), -3, 1);
  AddBernoulli(calls, DType::kI64, {40}, Num(DType::kF32, 0));
  AddBernoulli(calls, DType::kI64, {40}, Num(DType::kF32, 1));
  AddBernoulli(calls, DType::kF32, {}, Num(DType::kF32, 0.5L));
  AddBernoulli(calls, DType::kF32, {0, 3}, Num(DType::kF32, 0.5L));
  AddBernoulli(calls, DType::kF32, {130, 201}, Num(DType::kF32, 0.25L));
}
void OracleBernoulli(HostCall& call) {
  Host& out = call.Out(OutOf(call));
  const Sequence x = SequenceOf(call);
  const float prob = static_cast<float>(call.Scalar("prob").real());
  for (int64_t i = 0; i < out.size(); ++i) out[i] = x.Open(static_cast<uint64_t>(i)) <= prob ? 1 : 0;
}

void SampleBernoulliTensor(Calls& calls) {
  const char* const self = calls.op().contract.ArgIndex("self") >= 0 ? "self" : "selfRef";
  const auto add = [&](DType t, const Dims& dims, DType p, const Dims& prob) { AddBernoulli(calls, t, dims, In(p, prob, Between(0, 1))); };
  for (DType t : calls.TypesOf(self)) add(t, {3, 5}, DType::kF32, {3, 5});
  for (DType t : calls.TypesOf(self)) add(t, {3, 5}, DType::kF32, {4});
  for (DType p : kFloats) add(DType::kF32, {3, 5}, p, {3, 5});
  for (DType p : kFloats) add(DType::kF32, {3, 5}, p, {2, 3});
  add(DType::kF32, {3, 5}, DType::kF32, {});
  add(DType::kF32, {3, 5}, DType::kF32, {1, 1, 1, 1});
  add(DType::kF32, {3, 5}, DType::kF32, {3, 1});
  add(DType::kF32, {3, 5}, DType::kF16, {5});
  add(DType::kF32, {3}, DType::kF32, {7});
  add(DType::kF32, {3}, DType::kF32, {0});
  add(DType::kF32, {0}, DType::kF32, {3});
  add(DType::kF32, {90, 301}, DType::kF32, {90, 301});
  add(DType::kF32, {90, 301}, DType::kF32, {2, 301});
}
bool Broadcasts(const Dims& from, const Dims& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t size = from[from.rank() - 1 - i];
    if (size != 1 && size != to[to.rank() - 1 - i]) return false;
  }
  return true;
}
void OracleBernoulliTensor(HostCall& call) {
  Host& out = call.Out(OutOf(call));
  out.values = call.In(OutOf(call)).values;
  const Host& prob = call.In("prob");
  const Sequence x = SequenceOf(call);
  for (int64_t i = 0; i < out.size() && prob.size() > 0; ++i) {
    Real p;
    if (prob.size() == 1) p = prob.real(0);
    else if (Broadcasts(prob.dims, out.dims)) p = prob.Broadcast(out.dims, i).real();
    else if (i < prob.size()) p = prob.real(i);
    else break;
    out[i] = x.Open(static_cast<uint64_t>(i)) <= static_cast<float>(p) ? 1 : 0;
  }
}

// --- dropout ---------------------------------------------------------------------------------------

int64_t BytesFor(int64_t elements) { return (elements + 127) / 128 * 16; }

// A mask of random bytes.
TestArg MaskFor(int64_t elements) { return In(DType::kU8, {BytesFor(elements)}, Whole(0, 255)); }

void SampleGenMask(Calls& calls) {
  const bool v2 = calls.op().contract.ArgIndex("probDataType") >= 0;
  const auto add = [&](Checked<int64_t> shape, double prob, std::vector<TestArg> source, DType t = DType::kF32) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<TestArg> args = With({Ints(std::move(shape)), RealArg(prob)}, std::move(source));
    if (v2) args.push_back(Int(static_cast<int64_t>(t)));
    calls.Add(With(std::move(args), {Out(DType::kU8, {BytesFor(count)})}));
  };
  for (double p : {0.1, 0.5, 0.0, 1.0, 1e-16}) add({3, 37}, p, Source(calls, 42, 8));
  for (DType t : kFloats) add({1111}, 0.25, Source(calls, -1, -4), t);
  add({0, 4}, 0.5, Source(calls, 0, 0));
  add({}, 0.5, Source(calls, 0, 0));
  add({300, 401}, 0.3, Source(calls, 0, 0));
  SampleSources(calls, [&](std::vector<TestArg> source) { add({17}, 0.5, std::move(source)); });
}
void FillMask(const Sequence& x, int64_t elements, double probability, Host& mask) {
  for (Number& byte : mask.values) byte = probability < 2e-16 ? 255 : 0;
  for (int64_t i = 0; i < elements && probability >= 2e-16; ++i) {
    if (x.Keeps(static_cast<uint64_t>(i), probability)) mask[i / 8] += static_cast<Real>(1 << (i % 8));
  }
}
void OracleGenMask(HostCall& call) {
  int64_t count = 1;
  for (int64_t size : call.Ints("shape")) count *= size;
  FillMask(SequenceOf(call), count, call.Real("prob"), call.Out("out"));
}

bool Bit(const Host& mask, int64_t i) { return static_cast<int>(mask.real(i / 8)) >> (i % 8) & 1; }
// bit ? x * scale : 0, the product rounded to FLOAT or DOUBLE.
void ApplyMask(const Host& x, const Host& mask, double scale, Host& out) {
  for (int64_t i = 0; i < out.size(); ++i) {
    const Real kept = x.dtype == DType::kF64 ? static_cast<Real>(static_cast<double>(x.real(i)) * scale)
                                             : static_cast<Real>(static_cast<float>(x.real(i)) * static_cast<float>(scale));
    out[i] = Bit(mask, i) ? kept : 0;
  }
}
void ApplyDropout(const Host& x, const Host& mask, double probability, Host& out) {
  if (probability < 2e-16) out.values = x.values;
  else if (probability > 1 - 2e-16) std::fill(out.values.begin(), out.values.end(), 0);
  else ApplyMask(x, mask, x.dtype == DType::kF64 ? 1 / (1 - probability) : static_cast<double>(1 / static_cast<float>(1 - probability)), out);
}

void SampleDropout(Calls& calls) {
  const bool v3 = calls.op().contract.ArgIndex("optionalNoiseShape") >= 0;
  const auto add = [&](DType x, DType out, const Dims& dims, double p, bool train = true, Values values = {}) {
    const TestArg option = v3 ? Null() : RealArg(p), second = v3 ? RealArg(p) : Flag(train);
    calls.Add({In(x, dims, std::move(values)), option, second, Int(42), Int(8), Out(out, dims), Out(DType::kU8, {BytesFor(Numel(dims))})});
  };
  for (DType t : calls.TypesOf("input")) {
    for (double p : {0.1, 0.5, 0.0, 1.0}) add(t, t, {3, 37}, p);
    add(t, DType::kF64, {200}, 0.3);
    add(t, DType::kF32, {3, 50}, 0.3, true, Hostile());
    add(t, t, {3, 5}, 0.5, false);
  }
  add(DType::kF32, DType::kC64, {20}, 0.5);
  add(DType::kF32, DType::kF32, {0, 3}, 0.5);
  add(DType::kF32, DType::kF32, {}, 0.5);
  add(DType::kF32, DType::kF32, {200, 301}, 0.1);
  add(DType::kF16, DType::kF16, {64}, 0.1);
  // NaN and infinity become 0 where they are dropped.
}
void OracleDropout(HostCall& call) {
  Host &out = call.Out("out"), &mask = call.Out("maskOut");
  const Host& x = call.In("input");
  const double p = call.HasArg("train") && !call.Flag("train") ? 0 : call.Real("p");
  const bool untouched = call.HasArg("train") && (p < 2e-16 || p > 1 - 2e-16);
  if (untouched || x.size() == 0) mask.values = call.HasArg("train") ? call.In("maskOut").values : mask.values;
  else FillMask(SequenceOf(call), x.size(), p, mask);
  ApplyDropout(x, mask, p, out);
}

void SampleDoMask(Calls& calls) {
  const bool backward = calls.op().contract.ArgIndex("scale") >= 0, exact = calls.op().contract.ArgIndex("prob") < 0;
  const char* const x_name = calls.op().contract.args()[0].name;
  const auto add = [&](DType x, DType out, const Dims& dims, double p, Values values = {}) {
    const double scale = p == 1 ? 0 : 1 / (1 - p);
    calls.Add({In(x, dims, std::move(values)), MaskFor(Numel(dims)), RealArg(backward ? scale : p), Out(out, dims)});
  };
  for (DType t : calls.TypesOf(x_name)) {
    for (double p : {0.1, 0.5, 0.0, 1.0}) add(t, t, {3, 37}, p);
    add(t, DType::kF64, {200}, 0.3);
    add(t, DType::kF32, {3, 50}, 0.3, Hostile());
  }
  add(DType::kF32, DType::kC64, {20}, 0.5);
  add(DType::kF32, DType::kF32, {0, 3}, 0.5);
  add(DType::kF32, DType::kF32, {}, 0.5);
  add(DType::kF32, DType::kF32, {200, 301}, 0.1);
  TestCall& same = calls.Add({In(DType::kF32, {200, 301}), MaskFor(200 * 301), RealArg(backward ? 4 : 0.75), Out(DType::kF32, {200, 301})});
  same.same = {{3, 0}};
  if (!exact) calls.Add({In(DType::kF32, {5}), In(DType::kU8, {48}, Whole(0, 255)), RealArg(0.5), Out(DType::kF32, {5})});
}
void OracleDoMask(HostCall& call) {
  Host& out = call.Out(call.HasArg("gradX") ? "gradX" : "out");
  const Host &x = call.In(call.op().contract.args()[0].name), &mask = call.In("mask");
  if (call.HasArg("gradX")) return ApplyMask(x, mask, call.Real("scale"), out);
  if (call.HasArg("prob")) return ApplyDropout(x, mask, call.Real("prob"), out);
  const double scale = call.Real("scale");
  ApplyDropout(x, mask, scale == 0 ? 1 : 1 - 1 / scale, out);
}

// --- draws and permutations ---------------------------------------------------------------------------

void SampleMultinomial(Calls& calls) {
  const auto add = [&](DType t, const Dims& self, int64_t samples, bool replacement, std::vector<TestArg> source, Values values = Between(0, 3)) {
    Dims out = self;
    out[out.rank() - 1] = samples;
    calls.Add(With({In(t, self, std::move(values)), Int(samples), Flag(replacement)}, std::move(source), {Out(DType::kI64, out)}));
  };
  for (DType t : kFloats) {
    add(t, {3, 7}, 5, false, Source(calls, 42, 8));
    add(t, {3, 7}, 20, true, Source(calls, 42, 8));
    add(t, {7}, 1, true, Source(calls, -42, 8));
  }
  for (bool replacement : {false, true}) {
    add(DType::kF32, {6}, 6, replacement, Source(calls, 1, 1), Given({0, 2, 0, -1, 5, 0}));
    add(DType::kF32, {2, 4}, 3, replacement, Source(calls, 1, 1), Given({0, 0, 0, 0, 1, 2, 3, 4}));
    add(DType::kF32, {4}, 3, replacement, Source(calls, 1, 1), Given({NAN, 2, 1e-38L, 3}));
    add(DType::kF64, {3}, 2, replacement, Source(calls, 1, 1), Given({5e-324L, 0, 5e-324L}));
  }
  add(DType::kF32, {40, 1000}, 30, true, Source(calls, 1, 1));
  add(DType::kF32, {4, 3000}, 2000, false, Source(calls, 1, 1));
  calls.Add(With({In(DType::kF32, {0, 3}), Int(2), Flag(true)}, Source(calls, 1, 1), {Out(DType::kI64, {0, 2})}));
  SampleSources(calls, [&](std::vector<TestArg> source) { add(DType::kF32, {9}, 4, true, std::move(source)); });
}
void OracleMultinomial(HostCall& call) {
  Host& out = call.Out("out");
  const Host& self = call.In("self");
  if (self.size() == 0) return;
  const Sequence x = SequenceOf(call);
  const int64_t categories = self.dims[self.dims.rank() - 1], samples = call.Int("numsamples");
  for (int64_t row = 0; row < self.size() / categories; ++row) {
    const auto weight = [&](int64_t k) {
      const double w = static_cast<double>(self.real(row * categories + k));
      return w > 0 ? w : 0;
    };
    if (call.Flag("replacement") && samples > 1) {
      double whole = 0;
      for (int64_t k = 0; k < categories; ++k) whole += weight(k);
      for (int64_t s = 0; s < samples; ++s) {
        const double place = x.Open(static_cast<uint64_t>(row * samples + s)) * whole;
        double sum = 0;
        int64_t k = 0;
        for (; k < categories - 1; ++k) {
          sum += weight(k);
          if (sum >= place && sum > 0) break;
        }
        out[row * samples + s] = whole > 0 ? static_cast<Real>(k) : 0;
      }
      continue;
    }
    std::vector<std::pair<double, int64_t>> order;
    for (int64_t k = 0; k < categories; ++k) {
      const double e = static_cast<double>(x.Exponential(static_cast<uint64_t>(row * categories + k), 1));
      order.push_back({weight(k) > 0 ? -weight(k) / e : 0, k});
    }
    std::sort(order.begin(), order.end());
    for (int64_t s = 0; s < samples; ++s) out[row * samples + s] = static_cast<Real>(order[static_cast<size_t>(s)].second);
  }
}

void SampleRandperm(Calls& calls) {
  for (DType t : calls.TypesOf("out")) calls.Add({Int(20), Int(42), Int(8), Out(t, {20})});
  calls.Add({Int(300), Int(42), Int(8), Out(DType::kI8, {300})});
  calls.Add({Int(5000), Int(-42), Int(-8), Out(DType::kBF16, {5000})});
  calls.Add({Int(1), Int(0), Int(0), Out(DType::kI64, {1})});
  calls.Add({Int(0), Int(0), Int(0), Out(DType::kI64, {0})});
  calls.Add({Int(40000), Int(7), Int(0), Out(DType::kI64, {40000})});
}
void OracleRandperm(HostCall& call) {
  Host& out = call.Out("out");
  const Sequence x = SequenceOf(call);
  std::vector<std::pair<uint64_t, int64_t>> order;
  for (int64_t i = 0; i < out.size(); ++i) order.push_back({x.Wide(static_cast<uint64_t>(i)), i});
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < out.size(); ++i) out[i] = static_cast<Real>(order[static_cast<size_t>(i)].second);
}

}  // namespace

std::span<const Subject> RandomSubjects() {
  constexpr Limits kExact = {.ulps = 0};
  // A logarithm or a sine that lies in the middle between two numbers of FLOAT may be rounded to either.
  constexpr Limits kNormal = {.ulps = 1.5};
  static const Subject subjects[] = {
      {"aclnnBernoulli", SampleBernoulli, OracleBernoulli, kExact},
      {"aclnnBernoulliTensor", SampleBernoulliTensor, OracleBernoulliTensor, kExact},
      {"aclnnDropout", SampleDropout, OracleDropout, kExact},
      {"aclnnDropoutBackward", SampleDoMask, OracleDoMask, kExact},
      {"aclnnDropoutDoMask", SampleDoMask, OracleDoMask, kExact},
      {"aclnnDropoutGenMask", SampleGenMask, OracleGenMask, kExact},
      {"aclnnDropoutGenMaskV2", SampleGenMask, OracleGenMask, kExact},
      {"aclnnDropoutGenMaskV2Tensor", SampleGenMask, OracleGenMask, kExact},
      {"aclnnDropoutV3", SampleDropout, OracleDropout, kExact},
      {"aclnnDropoutV3Grad", SampleDoMask, OracleDoMask, kExact},
      {"aclnnInplaceBernoulli", SampleBernoulli, OracleBernoulli, kExact},
      {"aclnnInplaceBernoulliTensor", SampleBernoulliTensor, OracleBernoulliTensor, kExact},
      {"aclnnInplaceNormal", SampleNormal, OracleNormal, kNormal},
      {"aclnnInplaceNormalTensor", SampleNormal, OracleNormal, kNormal},
      {"aclnnInplaceRandom", SampleRandom, OracleRandom, kExact},
      {"aclnnInplaceRandomTensor", SampleRandom, OracleRandom, kExact},
      {"aclnnInplaceRandomWithoutFromTo", SampleRandomWithoutEnds, OracleRandomWithoutEnds, kExact},
      {"aclnnInplaceRandomWithoutFromToTensor", SampleRandomWithoutEnds, OracleRandomWithoutEnds, kExact},
      {"aclnnInplaceUniform", SampleUniform, OracleUniform, kExact},
      {"aclnnInplaceUniformTensor", SampleUniform, OracleUniform, kExact},
      {"aclnnMultinomial", SampleMultinomial, OracleMultinomial, kExact},
      {"aclnnMultinomialTensor", SampleMultinomial, OracleMultinomial, kExact},
      {"aclnnNormalFloatFloat", SampleNormalOut, OracleNormalOut, kNormal},
      {"aclnnNormalFloatTensor", SampleNormalOut, OracleNormalOut, kNormal},
      {"aclnnNormalTensorFloat", SampleNormalOut, OracleNormalOut, kNormal},
      {"aclnnNormalTensorTensor", SampleNormalOut, OracleNormalOut, kNormal},
      {"aclnnRandperm", SampleRandperm, OracleRandperm, kExact},
      {"aclnnSimThreadExponential", SampleExponential, OracleExponential, kExact},
  };
  return subjects;
}

}  // namespace anyacl::harness
