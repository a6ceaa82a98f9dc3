// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Connectionist temporal classification with probabilities themselves: long double has the exponents for it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

Real UnitOf(DType t) { return std::ldexp(Real{1}, t == DType::kF64 ? -52 : -23); }

// One sample of a call: probabilities of its classes at its times, and its states.
struct Chain {
  int64_t steps = 0, classes = 0;
  Checked<int64_t> states = {};
  Checked<Real> p = {};      // [steps, classes]
  Checked<Real> alpha = {};  // [steps, states]
  Checked<Real> beta = {};

  int64_t count() const { return static_cast<int64_t>(states.size()); }
  Real Of(int64_t t, int64_t s) const { return states[s] >= 0 && states[s] < classes ? p[t * classes + states[s]] : 0; }
  // Whether a way leads from state s - back to s in one step.
  bool Leads(int64_t s, int64_t back, int64_t blank) const {
    if (s - back < 0) return false;
    return back < 2 || (states[s] != blank && states[s] != states[s - 2]);
  }
  Real Likelihood() const {
    if (steps == 0) return count() == 1 ? 1 : 0;
    const Real* const last = &alpha[steps * count() - 1];
    return count() > 1 ? last[0] + last[-1] : last[0];
  }
};

struct Batch {
  Batch(HostCall& call, const Host& x) : blank(call.Int("blank")) {
    const int rank = x.dims.rank();
    samples = rank == 3 ? x.dims[1] : 1;
    steps = x.dims[0];
    classes = x.dims[rank - 1];
    const Host& targets = call.In("targets");
    int64_t next = 0;
    for (int64_t n = 0; n < samples; ++n) {
      const int64_t labels = call.Ints("targetLengths")[n];
      if (targets.dims.rank() == 2) next = n * targets.dims[1];
      chains.push_back(Make(x, targets, n, call.Ints("inputLengths")[n], next, labels));
      next += labels;
    }
  }

  Chain Make(const Host& x, const Host& targets, int64_t n, int64_t times, int64_t first, int64_t labels) const {
    Chain chain{times, classes, {}, {}, {}, {}};
    for (int64_t i = 0; i < labels; ++i) {
      chain.states.push_back(blank);
      chain.states.push_back(static_cast<int64_t>(targets.real(first + i)));
    }
    chain.states.push_back(blank);
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t c = 0; c < classes; ++c) chain.p.push_back(std::exp(x.real((t * samples + n) * classes + c)));
    }
    const int64_t count = chain.count();
    chain.alpha.assign(times * count, 0);
    chain.beta.assign(times * count, 0);
    for (int64_t t = 0; t < times; ++t) {
      for (int64_t s = 0; s < count; ++s) {
        Real from = t == 0 && s < 2 ? 1 : 0;
        for (int64_t back = 0; t > 0 && back < 3; ++back) from += chain.Leads(s, back, blank) ? chain.alpha[(t - 1) * count + s - back] : 0;
        chain.alpha[t * count + s] = from * chain.Of(t, s);
      }
    }
    for (int64_t t = times - 1; t >= 0; --t) {
      for (int64_t s = 0; s < count; ++s) {
        Real to = t == times - 1 && s >= count - 2 ? 1 : 0;
        for (int64_t on = 0; t < times - 1 && on < 3; ++on) {
          to += s + on < count && chain.Leads(s + on, on, blank) ? chain.beta[(t + 1) * count + s + on] : 0;
        }
        chain.beta[t * count + s] = to * chain.Of(t, s);
      }
    }
    return chain;
  }

  int64_t blank, samples = 0, steps = 0, classes = 0;
  Checked<Chain> chains = {};
};

// ---- calls ----------------------------------------------------------------------------------------------------------

struct Case {
  int64_t steps, classes, blank;
  Checked<int64_t> times;
  Checked<int64_t> labels;
  Checked<Number> targets;  // by rows of the longest, or one behind the other
  bool rows;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {5, 4, 0, {5, 4}, {2, 1}, {1, 2, 3, 0}, true},
      {6, 3, 2, {6, 3, 4}, {3, 1, 0}, {1, 1, 0, 0}, false},                 // a label twice; no labels at all
      {4, 3, 0, {2, 3, 0, 0, 4}, {2, 3, 1, 0, 1}, {1, 1, 1, 2, 1, 2, 2}, false},  // too short a time; none
      {3, 4, 1, {3}, {2}, {0, 9}, true},                                  // a label that is no class
      {3, 4, 1, {3}, {2}, {2, 1}, true},                                  // ... and one that is the blank
      {40, 6, 0, {40, 33}, {9, 5}, {1, 2, 3, 3, 4, 5, 1, 1, 2, 5, 4, 5, 4, 1, 0, 0, 0, 0}, true},
      {2, 3, 0, {2, 1}, {0, 0}, {}, false},
  };
  return cases;
}

int64_t MostOf(const Case& c) { return *std::max_element(c.labels.begin(), c.labels.end()); }
TestArg TargetsOf(const Case& c, DType t) {
  const int64_t samples = static_cast<int64_t>(c.times.size()), all = std::accumulate(c.labels.begin(), c.labels.end(), int64_t{0});
  const Dims dims = c.rows ? Dims{samples, MostOf(c)} : Dims{all};
  return Numel(dims) == 0 ? In(t, dims) : In(t, dims, Given(c.targets));
}

void SampleCtc(Calls& calls) {
  const auto add = [&](const Case& c, DType t, DType label, bool zero_infinity, bool rounded, bool single) {
    const int64_t samples = static_cast<int64_t>(c.times.size()), states = 2 * MostOf(c) + 1;
    const Dims x = single ? Dims{c.steps, c.classes} : Dims{c.steps, samples, c.classes};
    calls.Add({In(t, x, Between(-4, 0)), TargetsOf(c, label), Ints(c.times), Ints(c.labels), Int(c.blank), Flag(zero_infinity),
               Out(t, single ? Dims() : Dims{samples}), Out(t, {samples, c.steps, rounded ? (states + 7) / 8 * 8 : states})});
  };
  for (DType t : calls.TypesOf("logProbs")) {
    for (const Case& c : Cases()) {
      for (const bool zero_infinity : {false, true}) add(c, t, zero_infinity ? DType::kI32 : DType::kI64, zero_infinity, zero_infinity, false);
    }
    add(Cases()[4], t, DType::kI64, false, false, true);
  }
  for (DType label : calls.TypesOf("targets")) add(Cases()[1], DType::kF32, label, false, true, false);
  const Case many = {3, 3, 0, Checked<int64_t>(300, 3), Checked<int64_t>(300, 1), {1, 2}, false};
  add(many, DType::kF32, DType::kI64, false, false, false);
  calls.Add({In(DType::kF32, {3, 0, 4}), In(DType::kI64, {0}), Ints({}), Ints({}), Int(0), Flag(false), Out(DType::kF32, {0}), Out(DType::kF32, {0, 3, 1})});
}

void OracleCtc(HostCall& call) {
  const Host& x = call.In("logProbs");
  Host &nll = call.Out("negLogLikelihoodOut"), &alpha = call.Out("logAlphaOut");
  if (x.size() == 0) return;
  const Batch batch(call, x);
  const int64_t width = alpha.dims[2];
  const Real unit = UnitOf(x.dtype);
  alpha.slack.assign(alpha.size(), 0);
  for (int64_t n = 0; n < batch.samples; ++n) {
    const Chain& chain = batch.chains[n];
    // A step adds a few roundings of what it gives; sums of exponentials take over the errors of what went in.
    const auto slack = [&](int64_t t, Real value) { return std::isfinite(value) ? 4 * static_cast<Real>(t + 1) * unit * (1 + std::fabs(value)) : 0; };
    for (int64_t t = 0; t < batch.steps; ++t) {
      for (int64_t s = 0; s < width; ++s) {
        const int64_t at = (n * batch.steps + t) * width + s;
        alpha[at] = t < chain.steps && s < chain.count() ? std::log(chain.alpha[t * chain.count() + s]) : -kInf;
        alpha.slack[at] = slack(t, alpha.real(at));
      }
    }
    const Real value = -std::log(chain.Likelihood());
    nll[n] = call.Flag("zeroInfinity") && value == kInf ? 0 : value;
    nll.slack.push_back(slack(chain.steps, nll.real(n)));
  }
}

void SampleCtcBackward(Calls& calls) {
  const auto add = [&](const Case& c, DType t, DType label, bool zero_infinity, const Values& nll, int64_t extra) {
    const int64_t samples = static_cast<int64_t>(c.times.size());
    const Dims x = {c.steps, samples, c.classes};
    calls.Add({In(t, {samples}), In(t, x, Between(-4, 0)), TargetsOf(c, label), Ints(c.times), Ints(c.labels), In(t, {samples}, nll),
               In(t, {samples, c.steps, 2 * MostOf(c) + 1 + extra}), Int(c.blank), Flag(zero_infinity), Out(t, x)});
  };
  for (DType t : calls.TypesOf("logProbs")) {
    for (const Case& c : Cases()) {
      for (const bool zero_infinity : {false, true}) {
        // About what the forward operator gives.
        add(c, t, zero_infinity ? DType::kI32 : DType::kI64, zero_infinity, Between(c.steps - 1, c.steps + 2), zero_infinity ? 3 : 0);
      }
    }
    add(Cases()[0], t, DType::kI64, false, Given({kInf, 2}), 0);
    add(Cases()[0], t, DType::kI64, true, Given({kInf, 2}), 0);
  }
  for (DType label : calls.TypesOf("targets")) add(Cases()[1], DType::kF32, label, false, Between(4, 6), 0);
  const Case many = {3, 3, 0, Checked<int64_t>(300, 3), Checked<int64_t>(300, 1), {1, 2}, false};
  add(many, DType::kF32, DType::kI64, false, Between(1, 3), 0);
  const DType t = DType::kF32;
  calls.Add({In(t, {0}), In(t, {3, 0, 4}), In(DType::kI64, {0}), Ints({}), Ints({}), In(t, {0}), In(t, {0, 3, 1}), Int(0), Flag(false), Out(t, {3, 0, 4})});
}

void OracleCtcBackward(HostCall& call) {
  const Host &x = call.In("logProbs"), &g = call.In("gradOut"), &nll = call.In("negLogLikelihood");
  Host& out = call.Out("out");
  if (x.size() == 0) return;
  const Batch batch(call, x);
  const Real unit = UnitOf(x.dtype);
  out.slack.assign(out.size(), 0);
  out.computed = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  for (int64_t n = 0; n < batch.samples; ++n) {
    const Chain& chain = batch.chains[n];
    const bool infinite = chain.Likelihood() == 0 || std::isinf(nll.real(n));
    const Real size = std::fabs(nll.real(n)) + 2 * std::fabs(std::log(chain.Likelihood())) + 8 * static_cast<Real>(batch.steps);  // of the logarithms
    for (int64_t t = 0; t < batch.steps; ++t) {
      for (int64_t c = 0; c < batch.classes; ++c) {
        const int64_t at = (t * batch.samples + n) * batch.classes + c;
        if (t >= chain.steps || (infinite && call.Flag("zeroInfinity"))) continue;
        if (infinite) {
          out[at] = kNan;
          continue;
        }
        Real found = 0;
        const Real p = chain.p[t * batch.classes + c];
        for (int64_t s = 0; s < chain.count(); ++s) {
          if (chain.states[s] == c) found += chain.alpha[t * chain.count() + s] * chain.beta[t * chain.count() + s];
        }
        found *= std::exp(nll.real(n)) / p;
        out[at] = g.real(n) * (p - found);
        out.slack[at] = std::fabs(g.real(n)) * unit * (4 * p + 8 * static_cast<Real>(batch.steps + 2) * (1 + size) * found);
      }
    }
  }
}

}  // namespace

std::span<const Subject> CtcSubjects() {
  static const Subject subjects[] = {
      {"aclnnCtcLoss", SampleCtc, OracleCtc, {.ulps = 2}},
      {"aclnnCtcLossBackward", SampleCtcBackward, OracleCtcBackward, {.ulps = 2}},
  };
  return subjects;
}

}  // namespace anyacl::harness
