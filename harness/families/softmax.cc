// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <cmath>
#include <functional>
#include <limits>

#include "harness/families/softmax_formulas.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;

using softmax::Reals;

Real UnitOf(bool wide) { return wide ? 0x1p-53L : 0x1p-24L; }

// Calls visit(indices) for every line of elements along an axis.
void ForLines(const Host& host, int64_t dim, const std::function<void(const Checked<int64_t>&)>& visit) {
  const int axis = static_cast<int>(dim < 0 ? dim + host.dims.rank() : dim);
  int64_t count = 1, inner = 1;
  if (host.dims.rank() > 0) count = host.dims[axis];
  for (int i = axis + 1; i < host.dims.rank(); ++i) inner *= host.dims[i];
  if (host.size() == 0) return;
  for (int64_t line = 0; line < host.size() / count; ++line) {
    Checked<int64_t> indices;
    for (int64_t k = 0; k < count; ++k) indices.push_back(line / inner * count * inner + k * inner + line % inner);
    visit(indices);
  }
}
Reals LineOf(const Host& host, const Checked<int64_t>& indices) {
  Reals line;
  for (int64_t i : indices) line.push_back(host.real(i));
  return line;
}
Real Finite(Real x) { return std::isfinite(x) ? x : 0; }

void SampleForward(Calls& calls) {
  const auto add = [&](DType t, DType out, const Dims& dims, int64_t dim, Values values = {}) {
    return &calls.Add({In(t, dims, values), Int(dim), Out(out, dims)});
  };
  const Real inf = std::numeric_limits<Real>::infinity();
  for (DType t : {F32, F16, BF16, F64}) {
    add(t, t, {3, 37}, 1);
    add(t, t, {3, 5, 4}, 1, Between(-20, 20));
    add(t, t, {9, 5}, -2);
    add(t, t, {}, -1);
    add(t, t, {1}, 0);
    add(t, t, {0, 3}, 1);
    add(t, t, {3, 0}, 1);
    add(t, t, {7, 40}, 1, Hostile());
    add(t, t, {2, 3}, 1, Given({Number(-inf)}));
    add(t, t, {2, 3}, 1, Given({Number(1), Number(-inf), Number(2)}));
    add(t, t, {2, 3}, 1, Given({Number(1), Number(inf), Number(2)}));
    for (DType out : {F32, F16, F64}) add(t, out, {4, 65}, -1, Between(-60, 60));
  }
  add(F32, F32, {900, 40}, 1);
  for (DType t : {F32, F16, BF16}) add(t, t, {3, 40000}, 1);
  add(F32, F32, {4, 33}, 1)->same = {{2, 0}};
}

void OracleForward(HostCall& call, bool log) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const bool wide = self.dtype == F64 || out.dtype == F64;
  out.slack.assign(out.size(), 0);
  ForLines(self, call.Int("dim"), [&](const Checked<int64_t>& at) {
    const Reals x = LineOf(self, at);
    const Reals p = softmax::Softmax(x), logs = softmax::LogSoftmax(x);
    for (size_t k = 0; k < at.size(); ++k) {
      out[at[k]] = log ? logs[k] : p[k];
      const Real away = std::fabs(logs[k]);
      out.slack[at[k]] = Finite(UnitOf(wide) * (log ? 4 * (1 + away) : (8 + 2 * away + (wide ? static_cast<Real>(at.size()) : 0)) * p[k]));
    }
  });
  if (log && wide) {
    for (Real& slack : out.slack) slack *= 1 + static_cast<Real>(self.size()) / 8;
  }
  if (!wide && !log) {  // what is left of the smallest exponentials
    for (Real& slack : out.slack) slack += 0x1p-149L;
  }
}

void SampleBackward(Calls& calls) {
  const auto add = [&](DType t, DType out, const Dims& dims, int64_t dim) {
    return &calls.Add({In(t, dims), In(t, dims, Between(-2, 1)), Int(dim), Out(out, dims)});
  };
  for (DType t : {F32, F16, BF16, F64}) {
    add(t, t, {3, 37}, 1);
    add(t, t, {3, 5, 4}, 1);
    add(t, t, {}, 0);
    add(t, t, {0, 3}, 1);
    for (DType out : {F32, F16, F64, DType::kC64}) add(t, out, {4, 65}, -2);
  }
  add(F32, F32, {900, 40}, 1);
  for (DType t : {F32, F16, BF16}) add(t, t, {3, 40000}, 1);
  add(F32, F32, {4, 33}, 1)->same = {{3, 0}};
  add(F32, F32, {4, 33}, 1)->same = {{3, 1}};
}

void OracleBackward(HostCall& call, bool log) {
  const Host &grad = call.In("gradOutput"), &output = call.In("output");
  Host& out = call.Out("out");
  const bool wide = grad.dtype == F64;
  out.slack.assign(out.size(), 0);
  ForLines(grad, call.Int("dim"), [&](const Checked<int64_t>& at) {
    const Reals g = LineOf(grad, at), y = LineOf(output, at);
    const Reals d = log ? softmax::LogSoftmaxBackward(g, y) : softmax::SoftmaxBackward(g, y);
    Real size = 0;
    for (size_t k = 0; k < at.size(); ++k) size += std::fabs(log ? g[k] : g[k] * y[k]);
    for (size_t k = 0; k < at.size(); ++k) {
      out[at[k]] = d[k];
      const Real factor = log ? std::exp(y[k]) * (3 + std::fabs(y[k])) : std::fabs(y[k]);
      out.slack[at[k]] = UnitOf(wide) * (4 + (wide ? static_cast<Real>(at.size()) : 0)) * (factor * (size + std::fabs(g[k])) + std::fabs(g[k]));
    }
  });
}

void SampleCrossEntropy(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const Dims& dims : {Dims{3, 37}, Dims{50, 10}, Dims{1, 1}, Dims{0, 4}}) {
      calls.Add({In(t, dims, Between(-5, 5)), In(t, dims, Between(0, 1)), Out(t, {dims[0]}), Out(t, dims)});
    }
    calls.Add({In(t, {4, 20}, Hostile()), In(t, {4, 20}, Whole(0, 1)), Out(t, {4}), Out(t, {4, 20})});
  }
  calls.Add({In(F32, {2, 40000}), In(F32, {2, 40000}, Between(0, 1)), Out(F32, {2}), Out(F32, {2, 40000})});
  calls.Add({In(F32, {3, 0}), In(F32, {3, 0}), Out(F32, {3}), Out(F32, {3, 0})});
}

void OracleCrossEntropy(HostCall& call) {
  const Host &features = call.In("features"), &labels = call.In("labels");
  Host &loss = call.Out("loss"), &backprop = call.Out("backprop");
  if (features.size() == 0) {
    loss.values.clear();  // stays as it was
    return;
  }
  ForLines(features, 1, [&](const Checked<int64_t>& at) {
    const Reals x = LineOf(features, at), l = LineOf(labels, at);
    const Reals p = softmax::Softmax(x), logs = softmax::LogSoftmax(x);
    Real total = 0, size = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      total -= l[k] * logs[k];
      size += std::fabs(l[k] * logs[k]) + std::fabs(l[k]);
      backprop[at[k]] = p[k] - l[k];
      backprop.slack.push_back(Finite(UnitOf(false) * ((8 + 2 * std::fabs(logs[k])) * p[k] + std::fabs(l[k])) + 0x1p-149L));
    }
    const int64_t row = at[0] / features.dims[1];
    loss[row] = total;
    loss.slack.push_back(Finite(UnitOf(false) * 8 * size));
  });
}

// ---- behind masks ----

// Soft-max of numbers that FLOAT computes, each off by some units of it.
void PutRows(const Host& x, const Reals& z, const Reals& units, Host& out) {
  out.slack.assign(out.size(), 0);
  ForLines(x, -1, [&](const Checked<int64_t>& at) {
    Reals line;
    Real off = 0;
    for (int64_t i : at) {
      line.push_back(z[i]);
      off = std::max(off, units[i]);
    }
    const Reals p = softmax::Softmax(line), logs = softmax::LogSoftmax(line);
    for (size_t k = 0; k < at.size(); ++k) {
      out[at[k]] = p[k];
      out.slack[at[k]] = Finite(UnitOf(false) * (8 + 2 * std::fabs(logs[k]) + 2 * off) * p[k]) + 0x1p-149L;
    }
  });
}

void SampleScaledMasked(Calls& calls) {
  const bool gradient = calls.op().contract.args().size() == 6;
  const auto add = [&](DType t, const Dims& dims, const Dims& mask, double scale, Values values = {Values::kBool, 0, 1, {}}) {
    std::vector<TestArg> args = {In(t, dims)};
    if (gradient) args.push_back(In(t, dims, Between(0, 1)));
    args.insert(args.end(), {In(DType::kBool, mask, values), RealArg(scale), Flag(false), Out(t, dims)});
    return &calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {2, 3, 4, 37}, {2, 3, 4, 37}, 0.125);
    add(t, {2, 3, 4, 5}, {2, 1, 4, 5}, -3);
    add(t, {2, 3, 4, 5}, {1, 1, 4, 5}, 1);
    add(t, {2, 3, 4, 5}, {1, 1, 1, 1}, 1, Whole(1, 1));  // masked everywhere: uniform
    add(t, {0, 3, 4, 5}, {1, 1, 4, 5}, 1);
  }
  add(F32, {2, 1, 3, 9000}, {2, 1, 3, 9000}, 0.5);
  add(F32, {2, 3, 4, 5}, {2, 3, 4, 5}, 2)->same = {{gradient ? 5 : 4, 0}};
}

void OracleScaledMasked(HostCall& call) {
  const Host &x = call.In("x"), &mask = call.In("mask");
  const Real scale = static_cast<float>(call.Real("scale"));
  Reals z, units;
  for (int64_t i = 0; i < x.size(); ++i) {
    z.push_back(mask.Broadcast(x.dims, i) != Number(0) ? -10000 : scale * x.real(i));
    units.push_back(std::fabs(z.back()));
  }
  PutRows(x, z, units, call.Out("y"));
}

void OracleScaledMaskedBackward(HostCall& call) {
  const Host &g = call.In("gradOutput"), &y = call.In("y"), &mask = call.In("mask");
  const Real scale = static_cast<float>(call.Real("scale"));
  Host& out = call.Out("out");
  out.slack.assign(out.size(), 0);
  ForLines(g, -1, [&](const Checked<int64_t>& at) {
    const Reals grads = LineOf(g, at), results = LineOf(y, at), d = softmax::SoftmaxBackward(grads, results);
    Real size = 0;
    for (size_t k = 0; k < at.size(); ++k) size += std::fabs(grads[k] * results[k]);
    for (size_t k = 0; k < at.size(); ++k) {
      const bool masked = mask.Broadcast(g.dims, at[k]) != Number(0);
      out[at[k]] = masked ? 0 : scale * d[k];
      out.slack[at[k]] = masked ? 0 : UnitOf(false) * 5 * std::fabs(scale * results[k]) * (size + std::fabs(grads[k]));
    }
  });
}

void SampleBiased(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, const Dims& mask, const Dims& bias, Values values = {}) {
    return &calls.Add({In(t, dims, values), mask.rank() ? In(t, mask, Between(-9, 0)) : Null(), In(t, bias), RealArg(0.25), Int(0), Out(t, dims)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {6, 2, 4, 37}, {3, 4, 37}, {2, 4, 37});
    add(t, {6, 2, 4, 5}, {2, 1, 4, 5}, {1, 2, 4, 5});
    add(t, {6, 2, 4, 5}, {1, 2, 1, 4, 5}, {1, 1, 2, 4, 5});
    add(t, {3, 2, 4, 5}, {}, {2, 4, 5});
    add(t, {2, 3, 2, 4, 5}, {3, 4, 5}, {2, 4, 5});
    add(t, {2, 3, 2, 4, 5}, {1, 3, 1, 4, 5}, {1, 1, 2, 4, 5});
    add(t, {2, 3, 2, 4, 5}, {}, {1, 2, 4, 5});
    add(t, {0, 2, 4, 5}, {}, {2, 4, 5});
  }
  add(F32, {3, 2, 4, 5}, {3, 4, 5}, {2, 4, 5})->same = {{5, 0}};
}

void OracleBiased(HostCall& call) {
  const Host &x = call.In("x"), &bias = call.In("relativePosBias");
  const bool masked = call.Has("attenMaskOptional");
  const Real scale = static_cast<float>(call.Real("scaleValue"));
  Reals z, units;
  if (x.size() == 0) return;
  const int rank = x.dims.rank();
  const int64_t square = x.dims[rank - 2] * x.dims[rank - 1], heads = x.dims[rank - 3];
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real one = scale * x.real(i), other = bias.real(i % (square * heads));
    const int64_t window = i / (square * heads);  // of all samples: masks repeat behind the last one
    const Real more = masked ? call.In("attenMaskOptional").real((window * square + i % square) % call.In("attenMaskOptional").size()) : 0;
    z.push_back(one + other + more);
    units.push_back(2 * (std::fabs(one) + std::fabs(other) + std::fabs(more)));
  }
  PutRows(x, z, units, call.Out("out"));
}

}  // namespace

std::span<const Subject> SoftmaxSubjects() {
  static const Subject subjects[] = {
      {"aclnnSoftmax", SampleForward, [](HostCall& call) { OracleForward(call, false); }},
      {"aclnnLogSoftmax", SampleForward, [](HostCall& call) { OracleForward(call, true); }},
      {"aclnnSoftmaxBackward", SampleBackward, [](HostCall& call) { OracleBackward(call, false); }},
      {"aclnnLogSoftmaxBackward", SampleBackward, [](HostCall& call) { OracleBackward(call, true); }},
      {"aclnnScaledMaskedSoftmax", SampleScaledMasked, OracleScaledMasked},
      {"aclnnScaledMaskedSoftmaxBackward", SampleScaledMasked, OracleScaledMaskedBackward},
      {"aclnnMaskedSoftmaxWithRelPosBias", SampleBiased, OracleBiased},
      {"aclnnSoftmaxCrossEntropyWithLogits", SampleCrossEntropy, OracleCrossEntropy, {.partial = true}},
  };
  return subjects;
}

}  // namespace anyacl::harness
