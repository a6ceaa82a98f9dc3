// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <cmath>
#include <functional>
#include <limits>

#include "harness/families/gated_formulas.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64, I64 = DType::kI64;

Real UnitOf(bool wide) { return wide ? 0x1p-53L : 0x1p-24L; }
Real Finite(Real x) { return std::isfinite(x) ? x : 0; }

Dims HalfOf(Dims dims, int axis) {
  dims[axis < 0 ? axis + dims.rank() : axis] /= 2;
  return dims;
}

// Where the numbers of a and b are.
struct Halves {
  Halves(const Dims& dims, int64_t dim, bool interleaved, bool swapped) : interleaved_(interleaved), swapped_(swapped) {
    const int axis = static_cast<int>(dim < 0 ? dim + dims.rank() : dim);
    for (int i = 0; i < dims.rank(); ++i) (i < axis ? rows : half) *= dims[i];
    half /= 2;
  }
  int64_t size() const { return rows * half; }
  int64_t Index(int64_t i, bool second) const {
    const int64_t row = i / half, inside = i % half;
    return 2 * row * half + (interleaved_ ? 2 * inside + second : inside + (second ? half : 0));
  }
  int64_t a(int64_t i) const { return Index(i, swapped_); }
  int64_t b(int64_t i) const { return Index(i, !swapped_); }

  int64_t rows = 1;
  int64_t half = 1;

 private:
  bool interleaved_;
  bool swapped_;
};

// The results for one pair of numbers, the i-th.
using Unit = std::function<gated::Pair(Real a, Real b, int64_t i)>;

void Forward(HostCall& call, const char* x_name, const Halves& at, bool wide, const Unit& unit, Host& out, Host* second,
             int64_t valid = std::numeric_limits<int64_t>::max()) {
  const Host& x = call.In(x_name);
  if (out.size() == 0) return;
  for (int64_t i = 0; i < at.size(); ++i) {
    const Real a = x.real(at.a(i)), b = x.real(at.b(i));
    const gated::Pair y = i / at.half < valid ? unit(a, b, i) : gated::Pair{0, 0, 0, 0};
    out[i] = y.first;
    // A factor may be subnormal, and what it is off by is multiplied: by b in a gate b * f(b), by a behind it.
    const Real subnormal = (1 + std::fabs(a)) * (1 + std::fabs(b)) * 0x1p-149L;
    out.slack.push_back(Finite(UnitOf(wide) * y.first_size + subnormal));
    if (!second) continue;
    (*second)[i] = y.second;
    second->slack.push_back(Finite(UnitOf(wide) * y.second_size + subnormal));
  }
}

void Backward(HostCall& call, const char* x_name, const Halves& at, bool wide, const Unit& unit, Host& out,
              int64_t valid = std::numeric_limits<int64_t>::max()) {
  const Host& x = call.In(x_name);
  if (out.size() == 0) return;
  out.slack.resize(out.size());
  for (int64_t i = 0; i < at.size(); ++i) {
    const gated::Pair d = i / at.half < valid ? unit(x.real(at.a(i)), x.real(at.b(i)), i) : gated::Pair{0, 0, 0, 0};
    out[at.a(i)] = d.first;
    out[at.b(i)] = d.second;
    out.slack[at.a(i)] = Finite(UnitOf(wide) * d.first_size);
    out.slack[at.b(i)] = Finite(UnitOf(wide) * d.second_size);
  }
}

struct Shape {
  Dims dims;
  int64_t dim;
};
const Shape kShapes[] = {{{3, 74}, 1}, {{2, 6, 5}, 1}, {{8}, 0}, {{4, 3}, -2}, {{0, 6}, 1}, {{3, 0}, 1}};
const Shape kLarge = {{150, 600}, -1};

// ---- Glu ----

void SampleGlu(Calls& calls) {
  for (DType t : {F32, F16, BF16, F64}) {
    for (const Shape& s : kShapes) calls.Add({In(t, s.dims, Between(-5, 5)), Int(s.dim), Out(t, HalfOf(s.dims, static_cast<int>(s.dim)))});
    calls.Add({In(t, {40}, Hostile()), Int(0), Out(t, {20})});
    for (DType out : {F32, BF16, F64}) calls.Add({In(t, {3, 8}, Between(-90, 90)), Int(1), Out(out, {3, 4})});
  }
  calls.Add({In(F32, kLarge.dims), Int(kLarge.dim), Out(F32, {150, 300})});
}
void OracleGlu(HostCall& call) {
  const Host& x = call.In("self");
  Forward(call, "self", Halves(x.dims, call.Int("dim"), false, false), x.dtype == F64 || call.Out("out").dtype == F64,
          [](Real a, Real b, int64_t) { return gated::Glu(a, b); }, call.Out("out"), nullptr);
}

void SampleGluBackward(Calls& calls) {
  for (DType t : {F32, F16, BF16, F64}) {
    for (const Shape& s : kShapes) {
      calls.Add({In(t, HalfOf(s.dims, static_cast<int>(s.dim))), In(t, s.dims, Between(-5, 5)), Int(s.dim), Out(t, s.dims)});
    }
  }
  calls.Add({In(F32, {150, 300}), In(F32, kLarge.dims), Int(kLarge.dim), Out(F32, kLarge.dims)});
  calls.Add({In(F32, {4, 8}), In(F32, {4, 16}), Int(1), Out(F32, {4, 16})}).same = {{3, 1}};
}
void OracleGluBackward(HostCall& call) {
  const Host &x = call.In("self"), &g = call.In("gradOut");
  Backward(call, "self", Halves(x.dims, call.Int("dim"), false, false), x.dtype == F64,
           [&](Real a, Real b, int64_t i) { return gated::GluBackward(a, b, g.real(i)); }, call.Out("out"));
}

// ---- GeGlu ----

void SampleGeGlu(Calls& calls) {
  const bool chooses = calls.op().contract.args().size() == 6;
  const auto add = [&](DType t, const Shape& s, bool tanh, bool left, Values values) {
    const Dims half = HalfOf(s.dims, static_cast<int>(s.dim));
    std::vector<TestArg> args = {In(t, s.dims, values), Int(s.dim), Int(tanh)};
    if (chooses) args.push_back(Flag(left));
    args.insert(args.end(), {Out(t, half), Out(t, half)});
    calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    for (bool tanh : {false, true}) {
      for (const Shape& s : kShapes) add(t, s, tanh, s.dims.rank() > 2, Between(-6, 6));
      add(t, {{40}, 0}, tanh, true, Hostile());
      add(t, {{40}, 0}, tanh, false, Between(-40, 40));
    }
  }
  add(F32, kLarge, true, false, Between(-3, 3));
}
void OracleGeGlu(HostCall& call) {
  const bool left = call.inputs.size() == 6 && call.Flag("activateLeft"), tanh = call.Int("approximate") == 1;
  Forward(call, "self", Halves(call.In("self").dims, call.Int("dim"), false, left), false,
          [&](Real a, Real b, int64_t) { return gated::GeGlu(a, b, tanh); }, call.Out("out"), &call.Out("outGelu"));
}

void SampleGeGluBackward(Calls& calls) {
  const bool chooses = calls.op().contract.args().size() == 7;
  const auto add = [&](DType t, const Shape& s, bool tanh, bool left, Values values = Between(-6, 6)) {
    const Dims half = HalfOf(s.dims, static_cast<int>(s.dim));
    std::vector<TestArg> args = {In(t, half), In(t, s.dims, values), In(t, half), Int(s.dim), Int(tanh)};
    if (chooses) args.push_back(Flag(left));
    args.push_back(Out(t, s.dims));
    calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    for (bool tanh : {false, true}) {
      for (const Shape& s : kShapes) add(t, s, tanh, s.dims.rank() > 2);
      add(t, {{40}, 0}, tanh, false, Between(-40, 40));
    }
  }
  add(F32, kLarge, true, true);
  for (bool tanh : {false, true}) add(F32, {{4}, 0}, tanh, false, Given({Number(1), Number(2), Number(1e25L), Number(-1e25L)}));
}
void OracleGeGluBackward(HostCall& call) {
  const bool left = call.inputs.size() == 7 && call.Flag("activateLeft"), tanh = call.Int("approximate") == 1;
  const Host &g = call.In("gradOutput"), &gelu = call.In("gelu");
  Backward(call, "self", Halves(call.In("self").dims, call.Int("dim"), false, left), false,
           [&](Real a, Real b, int64_t i) { return gated::GeGluBackward(a, b, g.real(i), gelu.real(i), tanh); }, call.Out("gradInput"));
}

// ---- SwiGlu ----

void SampleSwiGlu(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const Shape& s : kShapes) calls.Add({In(t, s.dims, Between(-9, 9)), Int(s.dim), Out(t, HalfOf(s.dims, static_cast<int>(s.dim)))});
    calls.Add({In(t, {40}, Hostile()), Int(0), Out(t, {20})});
  }
  calls.Add({In(F32, kLarge.dims), Int(kLarge.dim), Out(F32, {150, 300})});
}
void OracleSwiGlu(HostCall& call) {
  Forward(call, "x", Halves(call.In("x").dims, call.Int("dim"), false, false), false,
          [](Real a, Real b, int64_t) { return gated::SwiGlu(a, b); }, call.Out("out"), nullptr);
}

void SampleSwiGluGrad(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const Shape& s : kShapes) {
      calls.Add({In(t, HalfOf(s.dims, static_cast<int>(s.dim))), In(t, s.dims, Between(-9, 9)), Int(s.dim), Out(t, s.dims)});
    }
  }
  calls.Add({In(F32, {150, 300}), In(F32, kLarge.dims, Between(-60, 60)), Int(kLarge.dim), Out(F32, kLarge.dims)});
}
void OracleSwiGluGrad(HostCall& call) {
  const Host& g = call.In("yGrad");
  Backward(call, "x", Halves(call.In("x").dims, call.Int("dim"), false, false), false,
           [&](Real a, Real b, int64_t i) { return gated::SwiGluBackward(a, b, g.real(i)); }, call.Out("out"));
}

// ---- ClippedSwiglu ----

int64_t ValidRows(const HostCall& call) {
  if (!call.Has("groupIndexOptional")) return std::numeric_limits<int64_t>::max();
  Real sum = 0;
  const Host& groups = call.In("groupIndexOptional");
  for (int64_t i = 0; i < groups.size(); ++i) sum += groups.real(i);
  return static_cast<int64_t>(std::clamp<Real>(sum, 0, 1e15L));
}

void SampleClipped(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool gradient = op == "aclnnClippedSwigluGrad", has_mode = op == "aclnnClippedSwigluV2";
  const auto add = [&](DType t, const Dims& dims, int64_t dim, bool interleaved, int64_t mode, TestArg groups) {
    const Dims half = HalfOf(dims, static_cast<int>(dim));
    std::vector<TestArg> args;
    if (gradient) args.push_back(In(t, half));
    args.insert(args.end(), {In(t, dims, Between(-6, 6)), groups, Int(dim), RealArg(1.702), RealArg(2.5), RealArg(0.75), Flag(interleaved)});
    if (has_mode) args.push_back(Int(mode));
    args.push_back(Out(t, gradient ? dims : half));
    calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    for (bool interleaved : {false, true}) {
      add(t, {3, 74}, 1, interleaved, 0, Null());
      add(t, {4, 6, 5}, -2, interleaved, 1, Null());
      add(t, {6, 8}, 1, interleaved, 1, In(I64, {2}, Whole(1, 2)));
      add(t, {6, 3, 8}, 2, interleaved, 0, In(I64, {3}, Whole(0, 9)));
      add(t, {8}, 0, interleaved, 1, In(I64, {1}, Whole(-3, -1)));
    }
    add(t, {0, 6}, 1, false, 0, Null());
  }
  add(F32, {150, 600}, -1, true, 0, In(I64, {3}, Whole(20, 40)));
}
void OracleClipped(HostCall& call) {
  const bool silu = call.inputs.size() == 9 && call.Int("clampMode") == 1;
  const Halves at(call.In("x").dims, call.Int("dim"), call.Flag("interleaved"), false);
  const Real alpha = static_cast<float>(call.Real("alpha")), limit = static_cast<float>(call.Real("limit")),
             bias = static_cast<float>(call.Real("bias"));
  Forward(call, "x", at, false,
          [&](Real a, Real b, int64_t) { return silu ? gated::ClippedSilu(a, b, limit) : gated::Clipped(a, b, alpha, limit, bias); },
          call.Out("out"), nullptr, ValidRows(call));
}
void OracleClippedGrad(HostCall& call) {
  const Halves at(call.In("x").dims, call.Int("dim"), call.Flag("interleaved"), false);
  const Real alpha = static_cast<float>(call.Real("alpha")), limit = static_cast<float>(call.Real("limit")),
             bias = static_cast<float>(call.Real("bias"));
  const Host& g = call.In("gradY");
  Backward(call, "x", at, false,
           [&](Real a, Real b, int64_t i) { return gated::ClippedBackward(a, b, g.real(i), alpha, limit, bias); }, call.Out("gradXOut"),
           ValidRows(call));
}

// ---- SwigluGroup ----

void SampleSwigluGroup(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (double limit : {-1.0, 1.5}) {
      calls.Add({In(t, {3, 74}, Between(-4, 4)), Null(), Null(), RealArg(limit), Out(t, {3, 37})});
      calls.Add({In(t, {2, 3, 10}, Between(-4, 4)), In(F32, {6}), In(I64, {2}, Whole(1, 3)), RealArg(limit), Out(t, {2, 3, 5})});
      calls.Add({In(t, {4, 8}, Between(-4, 4)), In(F32, {4, 1}), Null(), RealArg(limit), Out(t, {4, 4})});
      calls.Add({In(t, {8}, Between(-4, 4)), Null(), In(I64, {1}, Whole(0, 1)), RealArg(limit), Out(t, {4})});
    }
  }
  calls.Add({In(F32, {150, 600}), In(F32, {150}), In(I64, {3}, Whole(20, 40)), RealArg(1), Out(F32, {150, 300})});
}
void OracleSwigluGroup(HostCall& call) {
  const Halves at(call.In("x").dims, -1, false, false);
  const Real limit = static_cast<float>(call.Real("clampLimit"));
  Forward(call, "x", at, false,
          [&](Real a, Real b, int64_t i) {
            const Real weight = call.Has("weightOptional") ? call.In("weightOptional").real(i / at.half) : 1;
            const Real x = limit == -1 ? a : std::min(a, limit), y = limit == -1 ? b : std::clamp(b, -limit, limit);
            gated::Pair pair = gated::SwiGlu(x, y);
            pair.first *= weight;
            pair.first_size *= 2 * std::fabs(weight);
            return pair;
          },
          call.Out("out"), nullptr, ValidRows(call));
}

// ---- SituGlu ----

void SampleSitu(Calls& calls) {
  const bool gradient = calls.op().contract.args().size() == 7;
  const auto add = [&](DType t, const Shape& s, double beta, double linear, bool left) {
    const Dims half = HalfOf(s.dims, static_cast<int>(s.dim));
    std::vector<TestArg> args;
    if (gradient) args.push_back(In(t, half));
    args.insert(args.end(), {In(t, s.dims, Between(-5, 5)), Int(s.dim), RealArg(beta), RealArg(linear), Flag(left), Out(t, gradient ? s.dims : half)});
    calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    for (const Shape& s : kShapes) {
      add(t, s, 1.5, 0, true);
      add(t, s, 0.75, 2, false);
    }
  }
  add(F32, kLarge, 1, 1, true);
}
void OracleSitu(HostCall& call) {
  const Real beta = static_cast<float>(call.Real("beta")), linear = static_cast<float>(call.Real("linearBeta"));
  const bool left = call.Flag("activateLeft"), gradient = call.inputs.size() == 7;
  const Halves at(call.In("x").dims, call.Int("dim"), false, !left);
  if (!gradient) {
    return Forward(call, "x", at, false, [&](Real a, Real b, int64_t) { return gated::Situ(a, b, beta, linear); }, call.Out("out"), nullptr);
  }
  const Host& g = call.In("gradY");
  Backward(call, "x", at, false, [&](Real a, Real b, int64_t i) { return gated::SituBackward(a, b, g.real(i), beta, linear); },
           call.Out("out"));
}

// ---- GeluMul, FatreluMul ----

void SampleGeluMul(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const TestArg& mode : {Null(), Text("none"), Text("tanh")}) {
      calls.Add({In(t, {3, 74}, Between(-6, 6)), mode, Out(t, {3, 37})});
      calls.Add({In(t, {2, 3, 4}, Hostile()), mode, Out(t, {2, 3, 2})});
    }
    calls.Add({In(t, {0, 6}), Null(), Out(t, {0, 3})});
    calls.Add({In(t, {3, 0}), Null(), Out(t, {3, 0})});
  }
  calls.Add({In(F32, {150, 600}), Null(), Out(F32, {150, 300})});
}
void OracleGeluMul(HostCall& call) {
  const bool tanh = call.Has("approximateOptional") && call.Text("approximateOptional") == "tanh";
  Forward(call, "input", Halves(call.In("input").dims, -1, false, true), false,
          [&](Real a, Real b, int64_t) { return gated::GeGlu(a, b, tanh); }, call.Out("out"), nullptr);
}

void SampleFatreluMul(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const Dims& one : {Dims{}, Dims{1}, Dims{1, 1}}) {
      calls.Add({In(t, {3, 74}), In(t, one), Out(t, {3, 37})});
      calls.Add({In(t, {2, 3, 4}, Hostile()), In(t, one), Out(t, {2, 3, 2})});
    }
    calls.Add({In(t, {2, 4}, Given({Number(0.5), Number(0.75)})), In(t, {1}, Given({Number(0.5)})), Out(t, {2, 2})});
    calls.Add({In(t, {0, 6}), In(t, {1}), Out(t, {0, 3})});
  }
  calls.Add({In(F32, {150, 600}), In(F32, {1}), Out(F32, {150, 300})});
}
void OracleFatreluMul(HostCall& call) {
  const Real threshold = call.In("threshold").real(0);
  Forward(call, "input", Halves(call.In("input").dims, -1, false, false), false,
          [&](Real a, Real b, int64_t) {
            const Real y = (a > threshold ? a : 0) * b;
            return gated::Pair{y, 0, std::fabs(y), 0};
          },
          call.Out("out"), nullptr);
}

}  // namespace

std::span<const Subject> GatedSubjects() {
  static const Subject subjects[] = {
      {"aclnnGlu", SampleGlu, OracleGlu},
      {"aclnnGluBackward", SampleGluBackward, OracleGluBackward},
      {"aclnnGeGlu", SampleGeGlu, OracleGeGlu, {.ulps = 2}},
      {"aclnnGeGluV3", SampleGeGlu, OracleGeGlu, {.ulps = 2}},
      {"aclnnGeGluBackward", SampleGeGluBackward, OracleGeGluBackward},
      {"aclnnGeGluV3Backward", SampleGeGluBackward, OracleGeGluBackward},
      {"aclnnSwiGlu", SampleSwiGlu, OracleSwiGlu},
      {"aclnnSwiGluGrad", SampleSwiGluGrad, OracleSwiGluGrad},
      {"aclnnClippedSwiglu", SampleClipped, OracleClipped},
      {"aclnnClippedSwigluV2", SampleClipped, OracleClipped},
      {"aclnnClippedSwigluGrad", SampleClipped, OracleClippedGrad},
      {"aclnnSwigluGroup", SampleSwigluGroup, OracleSwigluGroup},
      {"aclnnSituGlu", SampleSitu, OracleSitu},
      {"aclnnSituGluGrad", SampleSitu, OracleSitu},
      {"aclnnGeluMul", SampleGeluMul, OracleGeluMul},
      {"aclnnFatreluMul", SampleFatreluMul, OracleFatreluMul},
  };
  return subjects;
}

}  // namespace anyacl::harness
