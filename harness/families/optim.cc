// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Optimizers, element by element as their pages define a step.
#include <cmath>
#include <functional>
#include <string>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

// The states of one element, and what the step was made with.
struct State {
  Real var = 0, m = 0, v = 0, extra = 0, grad = 0;
};
struct Adam {
  Real lr = 0, beta1 = 0, beta2 = 0, eps = 0, decay = 0, l2 = 0, ema = 0;
  Real c1 = 1, c2 = 1;  // 1 - beta^t
  bool amsgrad = false, nesterov = false, root_first = false, has_ema = false;
};

State Stepped(const Adam& a, State s) {
  const Real g = s.grad + a.l2 * s.var;
  s.m = a.beta1 * s.m + (1 - a.beta1) * g;
  s.v = a.beta2 * s.v + (1 - a.beta2) * g * g;
  if (a.amsgrad) s.extra = std::isnan(s.extra) || s.extra > s.v ? s.extra : s.v;
  const Real u = a.amsgrad ? s.extra : s.v, n = a.nesterov ? a.beta1 * s.m + (1 - a.beta1) * g : s.m;
  const Real direction = a.root_first ? std::sqrt(a.c2) / a.c1 * n / (std::sqrt(u) + a.eps) : n / a.c1 / (std::sqrt(u / a.c2) + a.eps);
  s.var = s.var * (1 - a.lr * a.decay) - a.lr * direction;
  if (a.has_ema) s.extra = a.ema * s.extra + (1 - a.ema) * s.var;
  return s;
}

// Numbers of an argument that FLOAT calls round first.
Real Narrowed(Real x, bool wide) { return wide ? x : static_cast<float>(x); }

DType UnitOf(DType t) { return t == DType::kF64 ? DType::kF64 : DType::kF32; }

// Fills an output element that is the sum of numbers as large as `size`.
void Put(Host& out, Real value, Real size, DType unit) {
  out[static_cast<int64_t>(out.slack.size())] = value;
  out.computed = unit;
  out.slack.push_back(4 * UlpOf(unit, size));
}

void PutState(const State& before, const State& after, Real step_size, DType unit, Host* var, Host* m, Host* v, Host* extra) {
  Put(*var, after.var, std::fabs(before.var) + std::fabs(after.var) + step_size, unit);
  Put(*m, after.m, std::fabs(before.m) + std::fabs(before.grad) + std::fabs(before.var), unit);
  Put(*v, after.v, std::fabs(before.v) + before.grad * before.grad * 2 + before.var * before.var, unit);
  if (extra) Put(*extra, after.extra, std::fabs(before.extra) + std::fabs(after.extra) + std::fabs(before.var) + 1, unit);
}
// What divides the mean makes its error larger.
Real StepSize(const Adam& a, const State& before, const State& after) {
  const Real root = std::sqrt(after.v / a.c2) + a.eps;
  return 8 * a.lr * (std::fabs(before.m) + std::fabs(before.grad) + std::fabs(before.var)) / a.c1 / root;
}

const std::vector<Dims>& Shapes() {
  static const std::vector<Dims> shapes = {{3, 5}, {}, {0, 2}, {2, 3, 11}, {9001}};
  return shapes;
}
const std::vector<DType>& Floats() {
  static const std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  return types;
}

// ---- single tensors -------------------------------------------------------------------------------------------------

TestArg One(DType t, Real value) { return In(t, {1}, Given({value})); }
TestArg Positive(DType t, const Dims& dims) { return In(t, dims, Between(0.25L, 2)); }

void SampleApplyAdam(Calls& calls) {
  for (const DType t : calls.TypesOf("varRef")) {
    for (const Dims& dims : Shapes()) {
      for (const bool nesterov : {false, true}) {
        const DType f = DType::kF32;
        calls.Add({In(t, dims), In(t, dims), Positive(t, dims), One(f, 0.81L), In(f, {}, Given({0.998L})), One(f, 0.01L), One(f, 0.9L), One(f, 0.999L),
                   One(f, 1e-8L), In(t, dims), Flag(true), Flag(nesterov)});
      }
    }
  }
}
void OracleApplyAdam(HostCall& call) {
  const auto number = [&](const char* name) { return call.In(name).real(0); };
  Adam a{.lr = number("lr"), .beta1 = number("beta1"), .beta2 = number("beta2"), .eps = number("epsilon")};
  a.c1 = 1 - number("beta1Power");
  a.c2 = 1 - number("beta2Power");
  a.nesterov = call.Flag("useNesterov");
  a.root_first = true;
  const Host &var = call.In("varRef"), &m = call.In("m"), &v = call.In("v"), &grad = call.In("grad");
  for (int64_t i = 0; i < var.size(); ++i) {
    const State before{var.real(i), m.real(i), v.real(i), 0, grad.real(i)}, after = Stepped(a, before);
    PutState(before, after, StepSize(a, before, after), DType::kF32, &call.Out("varRef"), &call.Out("m"), &call.Out("v"), nullptr);
  }
}

void SampleApplyAdamW(Calls& calls) {
  for (const DType t : calls.TypesOf("varRef")) {
    for (const Dims& dims : Shapes()) {
      for (const bool amsgrad : {false, true}) {
        const auto one = [&](Real value) { return One(t, value); };
        calls.Add({In(t, dims), In(t, dims), Positive(t, dims), one(0.75L), one(0.875L), one(0.01L), one(0.1L), one(0.9L), one(0.98L), one(1e-6L),
                   In(t, dims), amsgrad ? Positive(t, dims) : dims.rank() == 1 ? In(t, dims) : Null(), Flag(amsgrad), Flag(dims.rank() == 2)});
      }
    }
  }
}
void OracleApplyAdamW(HostCall& call) {
  const auto number = [&](const char* name) { return call.In(name).real(0); };
  Adam a{.lr = number("lr"), .beta1 = number("beta1"), .beta2 = number("beta2"), .eps = number("eps"), .decay = number("weightDecay")};
  a.c1 = 1 - number("beta1Power") * a.beta1;
  a.c2 = 1 - number("beta2Power") * a.beta2;
  a.amsgrad = call.Flag("amsgrad");
  const Host &var = call.In("varRef"), &m = call.In("mRef"), &v = call.In("vRef"), &grad = call.In("grad");
  for (int64_t i = 0; i < var.size(); ++i) {
    const Real most = a.amsgrad ? call.In("maxGradNormOptional").real(i) : 0;
    const State before{var.real(i), m.real(i), v.real(i), most, call.Flag("maximize") ? -grad.real(i) : grad.real(i)};
    const State after = Stepped(a, before);
    PutState(before, after, StepSize(a, before, after), DType::kF32, &call.Out("varRef"), &call.Out("mRef"), &call.Out("vRef"), nullptr);
  }
}

void SampleApplyAdamWV2(Calls& calls) {
  const DType f = DType::kF32;
  const auto add = [&](DType var, DType m, DType v, DType most, DType grad, DType step, const Dims& dims, bool amsgrad) {
    calls.Add({In(var, dims), In(m, dims), Positive(v, dims), amsgrad || most == f ? Positive(most, dims) : Null(), In(grad, dims),
               In(step, dims.rank() == 1 ? Dims{1} : Dims{}, Given({9})), RealArg(0.01f), RealArg(0.9f), RealArg(0.999f), RealArg(0.1f), RealArg(1e-8f),
               Flag(amsgrad), Flag(dims.rank() == 2)});
  };
  for (const Dims& dims : Shapes()) {
    for (const DType t : Floats()) {
      for (const bool amsgrad : {false, true}) add(t, t, t, t, t, amsgrad ? DType::kI64 : f, dims, amsgrad);
      add(t, f, f, f, f, f, dims, true);
      add(f, t, f, f, f, f, dims, true);
      add(f, f, t, t, t, f, dims, true);
    }
  }
}
// The maximum is left as it is without amsgrad.
void OracleApplyAdamWV2(HostCall& call) {
  const Host &var = call.In("varRef"), &m = call.In("mRef"), &v = call.In("vRef"), &grad = call.In("grad");
  const char* const most = "maxGradNormOptionalRef";
  bool wide = false;
  for (const char* name : {"varRef", "mRef", "vRef", "grad", most}) {
    const bool used = std::string_view(name) != most || call.Flag("amsgrad");
    wide = wide || (used && call.Has(name) && call.In(name).dtype == DType::kF64);
  }
  const auto number = [&](const char* name) { return Narrowed(call.Real(name), wide); };
  Adam a{.lr = number("lr"), .beta1 = number("beta1"), .beta2 = number("beta2"), .eps = number("eps"), .decay = number("weightDecay")};
  const Real t = call.In("step").real(0) + 1;
  a.c1 = 1 - std::pow(a.beta1, t);
  a.c2 = 1 - std::pow(a.beta2, t);
  a.amsgrad = call.Flag("amsgrad");
  const DType unit = wide ? DType::kF64 : DType::kF32;
  for (int64_t i = 0; i < var.size(); ++i) {
    const State before{var.real(i), m.real(i), v.real(i), a.amsgrad ? call.In(most).real(i) : 0, call.Flag("maximize") ? -grad.real(i) : grad.real(i)};
    const State after = Stepped(a, before);
    PutState(before, after, StepSize(a, before, after), unit, &call.Out("varRef"), &call.Out("mRef"), &call.Out("vRef"),
             a.amsgrad ? &call.Out(most) : nullptr);
    if (call.Has(most) && !a.amsgrad) call.Out(most)[i] = call.In(most)[i];
  }
}

void SampleEmaAdam(Calls& calls) {
  for (const DType t : calls.TypesOf("grad")) {
    for (const Dims& dims : Shapes()) {
      for (const int mode : {0, 1}) {
        calls.Add({In(t, dims), In(t, dims), In(t, dims), Positive(t, dims), In(t, dims), In(DType::kI64, {1}, Given({2})), RealArg(0.01), RealArg(0.9),
                   RealArg(0.9), RealArg(0.999), RealArg(1e-8), Int(mode), Flag(dims.rank() != 1), RealArg(0.1)});
      }
    }
  }
}
void OracleEmaAdam(HostCall& call) {
  const auto number = [&](const char* name) { return Narrowed(call.Real(name), false); };
  Adam a{.lr = number("lr"), .beta1 = number("beta1"), .beta2 = number("beta2"), .eps = number("eps")};
  (call.Int("mode") == 0 ? a.l2 : a.decay) = number("weightDecay");
  a.ema = number("emaDecay");
  a.has_ema = true;
  const Real t = call.In("step").real(0);
  if (call.Flag("biasCorrection")) {
    a.c1 = 1 - std::pow(a.beta1, t);
    a.c2 = 1 - std::pow(a.beta2, t);
  }
  const Host &var = call.In("varRef"), &m = call.In("mRef"), &v = call.In("vRef"), &s = call.In("sRef"), &grad = call.In("grad");
  for (int64_t i = 0; i < var.size(); ++i) {
    const State before{var.real(i), m.real(i), v.real(i), s.real(i), grad.real(i)}, after = Stepped(a, before);
    PutState(before, after, StepSize(a, before, after), DType::kF32, &call.Out("varRef"), &call.Out("mRef"), &call.Out("vRef"), &call.Out("sRef"));
  }
}

// ---- lists ----------------------------------------------------------------------------------------------------------

TestArg ListOf(DType t, Values values = {}) {
  std::vector<TestArg> entries;
  for (const Dims& dims : Shapes()) entries.push_back(In(t, dims, values));
  return List(entries);
}
TestArg StepsOf(DType t) {
  std::vector<TestArg> entries;
  for (size_t i = 0; i < Shapes().size(); ++i) entries.push_back(In(t, i % 2 ? Dims{1} : Dims{}, Given({static_cast<Real>(3 * i)})));
  return List(entries);
}

void SampleFusedAdamw(Calls& calls) {
  for (const DType t : calls.TypesOf("paramsRef")) {
    for (const bool amsgrad : {false, true}) {
      for (const int found : {-1, 0, 1}) {
        const DType half = t == DType::kF64 ? DType::kF32 : t;
        calls.Add({ListOf(t), ListOf(t), ListOf(t), ListOf(t, Between(0.25L, 2)), amsgrad || found == 0 ? ListOf(t, Between(0.25L, 2)) : Null(),
                   StepsOf(found == 0 ? DType::kI64 : DType::kF32), found < 0 ? Null() : In(found == 0 ? half : t, {1}, Given({4})),
                   found < 0 ? Null() : In(found == 0 ? t : DType::kF32, {}, Given({static_cast<Real>(found)})), RealArg(0.01), RealArg(0.9),
                   RealArg(0.999), RealArg(0.1), RealArg(1e-8), Flag(amsgrad), Flag(found == 0)});
      }
    }
  }
}
void OracleFusedAdamw(HostCall& call) {
  const bool skipped = call.Has("foundInfOptional") && call.In("foundInfOptional").real(0) == 1;
  const bool wide = call.In("paramsRef").dtype == DType::kF64;
  const auto number = [&](const char* name) { return Narrowed(call.Real(name), wide); };
  Adam a{.lr = number("lr"), .beta1 = number("beta1"), .beta2 = number("beta2"), .eps = number("eps"), .decay = number("weightDecay")};
  a.amsgrad = call.Flag("amsgrad");
  const Real scale = call.Has("gradScaleOptional") ? call.In("gradScaleOptional").real(0) : 1;
  const char* const names[] = {"paramsRef", "expAvgsRef", "expAvgSqsRef", "maxExpAvgSqsRef"};
  for (int item = 0; item < call.Count("paramsRef"); ++item) {
    const Real t = call.In("stateSteps", item).real(0) + 1;
    a.c1 = 1 - std::pow(a.beta1, t);
    a.c2 = 1 - std::pow(a.beta2, t);
    const Host &var = call.In(names[0], item), &m = call.In(names[1], item), &v = call.In(names[2], item), &grad = call.In("grads", item);
    for (const char* name : names) {
      const bool unused = std::string_view(name) == names[3] && !a.amsgrad;
      if (call.Has(name) && (skipped || unused)) call.Out(name, item).values = call.In(name, item).values;
    }
    for (int64_t i = 0; i < var.size() && !skipped; ++i) {
      const Real g = grad.real(i) / scale, most = a.amsgrad ? call.In(names[3], item).real(i) : 0;
      const State before{var.real(i), m.real(i), v.real(i), most, call.Flag("maximize") ? -g : g}, after = Stepped(a, before);
      PutState(before, after, StepSize(a, before, after), UnitOf(var.dtype), &call.Out(names[0], item), &call.Out(names[1], item),
               &call.Out(names[2], item), a.amsgrad ? &call.Out(names[3], item) : nullptr);
    }
  }
}

void SampleFusedSgd(Calls& calls) {
  for (const DType t : calls.TypesOf("paramsRef")) {
    for (const bool momentum : {false, true}) {
      for (const int variant : {0, 1, 2}) {
        const TestArg scale = variant == 0 ? Null() : variant == 1 ? In(t, {}, Given({2})) : In(t, {0});
        calls.Add({ListOf(t), ListOf(t), momentum ? ListOf(t) : Null(), scale, RealArg(0.1f), RealArg(momentum ? 0.9f : 0.0f), RealArg(0.01f),
                   RealArg(momentum && variant == 1 ? 0.5f : 0.0f), Flag(momentum && variant == 0), Flag(variant == 1), Flag(variant == 2)});
      }
    }
  }
}
void OracleFusedSgd(HostCall& call) {
  const char* const buffers = "momentumBufferListOptionalRef";
  const bool wide = call.In("paramsRef").dtype == DType::kF64;
  const auto number = [&](const char* name) { return Narrowed(call.Real(name), wide); };
  const Real lr = number("lr"), momentum = number("momentum");
  const bool scales = call.Has("gradScaleOptional") && call.In("gradScaleOptional").size() > 0;
  const Real scale = scales ? call.In("gradScaleOptional").real(0) : 1;
  for (int item = 0; item < call.Count("paramsRef"); ++item) {
    const Host &param = call.In("paramsRef", item), &grad = call.In("gradsRef", item);
    const DType unit = UnitOf(param.dtype);
    for (int64_t i = 0; i < param.size(); ++i) {
      const Real g = grad.real(i) / scale;
      const Real h = (call.Flag("maximize") ? -g : g) + number("weightDecay") * param.real(i);
      Real d = h, size = std::fabs(g) + std::fabs(param.real(i));
      if (call.Has(buffers)) {
        const Real old = call.In(buffers, item).real(i);
        const Real buffer = call.Flag("isFirstStep") ? h : momentum * old + (1 - number("dampening")) * h;
        size += std::fabs(old);
        d = call.Flag("nesterov") ? h + momentum * buffer : buffer;
        Put(call.Out(buffers, item), buffer, size, unit);
      }
      Put(call.Out("gradsRef", item), g, 0, unit);
      Put(call.Out("paramsRef", item), param.real(i) - lr * d, std::fabs(param.real(i)) + lr * size, unit);
    }
  }
}

// ---- loss scale -----------------------------------------------------------------------------------------------------

void SampleAmp(Calls& calls) {
  for (const DType t : calls.TypesOf("currentScale")) {
    const Real large = t == DType::kF16 ? 60000 : 3e38L;
    for (const Real scale : {Real{1024}, Real{3}, large}) {
      for (const Real found : {Real{0}, Real{1}, std::numeric_limits<Real>::quiet_NaN()}) {
        for (const Real tracker : {Real{0}, Real{1}, Real{7}}) {
          const Dims dims = tracker == 0 ? Dims{} : Dims{1};
          TestCall& call = calls.Add({In(t, dims, Given({scale})), In(DType::kI32, dims, Given({tracker})), In(t, {1}, Given({found})), RealArg(2.5),
                                      RealArg(0.3), Int(2), Out(t, dims), Out(DType::kI32, dims)});
          if (tracker == 1) call.same = {{6, 0}, {7, 1}};
        }
      }
    }
  }
}
void OracleAmp(HostCall& call) {
  const Real scale = call.In("currentScale").real(0), found = call.In("foundInf").real(0), tracker = call.In("growthTracker").real(0);
  const bool shrinks = found != 0, grows = !shrinks && tracker + 1 == static_cast<Real>(call.Int("growthInterval"));
  const Real grown = scale * static_cast<Real>(call.Real("growthFactor"));
  Host& out = call.Out("updatedScale");
  out.computed = DType::kF32;
  out[0] = shrinks ? scale * static_cast<Real>(call.Real("backoffFactor")) : grows && std::isfinite(Rounded(DType::kF32, grown).real()) ? grown : scale;
  call.Out("updatedGrowthTracker")[0] = shrinks || grows ? 0 : tracker + 1;
}

}  // namespace

std::span<const Subject> OptimSubjects() {
  static const Subject subjects[] = {
      {"aclnnAmpUpdateScale", SampleAmp, OracleAmp},
      {"aclnnApplyAdam", SampleApplyAdam, OracleApplyAdam},
      {"aclnnApplyAdamW", SampleApplyAdamW, OracleApplyAdamW},
      {"aclnnApplyAdamWV2", SampleApplyAdamWV2, OracleApplyAdamWV2},
      {"aclnnApplyFusedEmaAdam", SampleEmaAdam, OracleEmaAdam},
      {"aclnnFusedAdamw", SampleFusedAdamw, OracleFusedAdamw},
      {"aclnnFusedSgd", SampleFusedSgd, OracleFusedSgd},
  };
  return subjects;
}

}  // namespace anyacl::harness
