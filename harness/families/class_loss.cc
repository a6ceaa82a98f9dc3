// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Losses of classes, sample by sample.
#include <cmath>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

enum { kNone, kMean, kSum };
constexpr int64_t kIgnored = -100;

// Classes of samples; some are ignored, some do not exist.
Values ClassesBelow(int64_t classes, bool hostile) {
  Checked<Number> given;
  for (int64_t i = 0; i < 13; ++i) given.push_back(static_cast<Real>((i * 7 + 3) % classes));
  given[4] = given[9] = 1;  // ignored where that is 1
  if (hostile) {
    given[2] = kIgnored;
    given[5] = static_cast<Real>(classes + 2);
    given[7] = -1;
  }
  return Given(given);
}

// What the shape of the scores says.
struct Samples {
  explicit Samples(const Dims& self) : axis(self.rank() == 1 ? 0 : 1), classes(self[axis]) {
    for (int i = 0; i < self.rank(); ++i) {
      if (i != axis) dims.push_back(self[i]);
      if (i > axis) inner *= self[i];
    }
  }
  // Where class c of a sample stands.
  int64_t At(int64_t sample, int64_t c) const { return sample / inner * inner * classes + c * inner + sample % inner; }

  int axis;
  int64_t classes;
  int64_t inner = 1;
  Dims dims;
};

int64_t ClassOf(const Host& target, int64_t sample, int64_t ignored, int64_t classes) {
  const auto y = static_cast<int64_t>(target.real(sample));
  return y == ignored || y < 0 || y >= classes ? -1 : y;
}

DType UnitOf(const Host& self) { return self.dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// ---- negative logarithms --------------------------------------------------------------------------------------------

const std::vector<Dims>& Shapes(std::string_view op) {
  static const std::vector<Dims> rows = {{7, 5}, {5}, {0, 5}, {5000, 3}}, planes = {{2, 4, 3, 5}, {1, 2, 1, 1}, {0, 4, 3, 5}, {2, 3, 50, 60}};
  return op.find("2d") != std::string_view::npos ? planes : rows;
}

void SampleNll(Calls& calls) {
  const DType result = DType::kF32;
  for (const Dims& shape : Shapes(calls.op().contract.op())) {
    const Samples s(shape);
    for (const DType t : calls.TypesOf("self")) {
      for (const DType y : calls.TypesOf("target")) {
        for (int reduction : {kNone, kMean, kSum}) {
          for (const int64_t ignored : {kIgnored, int64_t{1}}) {
            const Dims out = reduction == kNone ? s.dims : Dims{};
            if (s.dims.rank() > 1 && (y != DType::kI64) && ignored != 1) continue;
            calls.Add({In(t, shape), In(y, s.dims, ClassesBelow(s.classes, y == DType::kI64)), In(t, {s.classes}, Between(0.5L, 2)), Int(reduction),
                       Int(ignored), Out(y == DType::kI32 ? result : t, out), Out(t, ignored == 1 ? Dims{1} : Dims{})});
          }
        }
      }
    }
  }
  const Dims shape = Shapes(calls.op().contract.op())[0];  // nothing counts
  const Samples s(shape);
  calls.Add({In(DType::kF32, shape), In(DType::kI64, s.dims, Given({3})), In(DType::kF32, {s.classes}), Int(kMean), Int(3), Out(DType::kF32, {}),
             Out(DType::kF32, {})});
}

void OracleNll(HostCall& call) {
  const Host &x = call.In("self"), &target = call.In("target"), &weight = call.In("weight");
  Host &out = call.Out("out"), &total = call.Out("totalWeightOut");
  const Samples s(x.dims);
  const int64_t reduction = call.Int("reduction");
  out.computed = total.computed = UnitOf(x);
  Real sum = 0, weights = 0, size = 0;
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t y = ClassOf(target, i, call.Int("ignoreIndex"), s.classes);
    const Real loss = y < 0 ? 0 : -weight.real(y) * x.real(s.At(i, y));
    if (reduction == kNone) out[i] = loss;
    if (y >= 0) weights += weight.real(y);
    sum += loss;
    size += std::fabs(loss);
  }
  total[0] = reduction != kNone || x.dims.rank() == 1 ? weights : 0;
  if (reduction == kNone) return;
  const Real divisor = reduction == kMean ? weights : 1;
  out[0] = sum / divisor;
  out.slack = {divisor > 0 ? UlpOf(out.computed, size / divisor) : 0};
}

void SampleNllBackward(Calls& calls) {
  for (const Dims& shape : Shapes(calls.op().contract.op())) {
    const Samples s(shape);
    for (const DType t : calls.TypesOf("self")) {
      for (const DType y : calls.TypesOf("target")) {
        for (int reduction : {kNone, kMean, kSum}) {
          const Dims g = reduction == kNone ? s.dims : s.dims.rank() == 1 ? Dims{1} : Dims{};
          const bool other = y == DType::kI32 && s.dims.rank() < 2;
          calls.Add({In(t, g), In(t, shape), In(y, s.dims, ClassesBelow(s.classes, y == DType::kI64)), In(t, {s.classes}), Int(reduction),
                     Int(reduction == kSum ? 1 : kIgnored), In(t, {}, Given({3})), Out(other ? DType::kF32 : t, shape)});
        }
      }
    }
  }
}

void OracleNllBackward(HostCall& call) {
  const Host &g = call.In("gradOutput"), &x = call.In("self"), &target = call.In("target"), &weight = call.In("weight");
  Host& out = call.Out("out");
  const Samples s(x.dims);
  out.computed = UnitOf(x);
  const int64_t reduction = call.Int("reduction");
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t y = ClassOf(target, i, call.Int("ignoreIndex"), s.classes);
    if (y < 0) continue;
    const Real divisor = reduction == kMean ? call.In("totalWeight").real(0) : 1;
    out[s.At(i, y)] = -weight.real(y) * g.real(reduction == kNone ? i : 0) / divisor;
  }
}

// ---- cross entropy --------------------------------------------------------------------------------------------------

constexpr const char* kReductions[] = {"none", "mean", "sum"};

int64_t ReductionOf(HostCall& call) {
  if (!call.Has("reductionOptional")) return kMean;
  for (int reduction : {kNone, kMean, kSum}) {
    if (call.Text("reductionOptional") == kReductions[reduction]) return reduction;
  }
  return -1;
}

template <class Add>
void ForEachCrossEntropy(Calls& calls, const char* first, const Add& add) {
  for (const Dims& shape : {Dims{6, 5}, Dims{9, 300}, Dims{0, 3}, Dims{4500, 3}}) {
    for (const DType t : calls.TypesOf(first)) {
      if (shape[0] > 1000 && t != DType::kF32) continue;
      for (const DType y : calls.TypesOf("target")) {
        for (int reduction : {kNone, kMean, kSum}) {
          for (const bool plain : {true, false}) {
            const TestArg weight = plain ? Null() : In(DType::kF32, {shape[1]}, Between(0.5L, 2));
            const TestArg text = plain && reduction == kMean ? Null() : Text(kReductions[reduction]);
            const Dims loss = reduction == kNone ? Dims{shape[0]} : plain ? Dims{} : Dims{1};
            add(shape, t, In(y, {shape[0]}, ClassesBelow(shape[1], true)), weight, text, plain ? kIgnored : 1, plain ? 0.0 : 0.1, loss);
          }
        }
      }
    }
  }
}

void SampleCrossEntropy(Calls& calls) {
  ForEachCrossEntropy(calls, "input", [&](const Dims& shape, DType t, TestArg target, TestArg weight, TestArg text, int64_t ignored, double e,
                                          const Dims& loss) {
    calls.Add({In(t, shape, Between(-9, 9)), std::move(target), std::move(weight), std::move(text), Int(ignored), RealArg(e), RealArg(0.5), Flag(true),
               Out(t, loss), Out(t, shape), In(t, {0}), In(t, {2, 3})});
  });
}

Real WeightOf(HostCall& call, int64_t c) { return call.Has("weightOptional") ? call.In("weightOptional").real(c) : 1; }

void OracleCrossEntropy(HostCall& call) {
  const Host &x = call.In("input"), &target = call.In("target");
  Host &out = call.Out("lossOut"), &log_prob = call.Out("logProbOut");
  const int64_t reduction = ReductionOf(call), rows = x.dims[0], classes = x.dims[1];
  const Real e = call.Real("labelSmoothing");
  Real sum = 0, weights = 0, size = 0;
  for (int64_t i = 0; i < rows; ++i) {
    Real most = x.real(i * classes), total = 0, smooth = 0;
    for (int64_t c = 0; c < classes; ++c) most = std::fmax(most, x.real(i * classes + c));
    for (int64_t c = 0; c < classes; ++c) total += std::exp(x.real(i * classes + c) - most);
    const int64_t y = ClassOf(target, i, call.Int("ignoreIndex"), classes);
    Real own = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const Real lp = x.real(i * classes + c) - most - std::log(total);
      log_prob[i * classes + c] = lp;
      log_prob.slack.push_back(4 * UlpOf(DType::kF32, 18 + std::log(total)));
      if (y < 0) continue;
      smooth -= WeightOf(call, c) * lp;
      if (c == y) own = -WeightOf(call, c) * lp;
    }
    if (y >= 0) weights += WeightOf(call, y);
    const Real loss = (1 - e) * own + e / static_cast<Real>(classes) * smooth, spread = y < 0 ? 0 : 60;
    if (reduction == kNone) {
      out[i] = loss;
      out.slack.push_back(4 * UlpOf(DType::kF32, spread));
    }
    sum += loss;
    size += spread;
  }
  if (reduction == kNone) return;
  out[0] = reduction == kMean ? sum / weights : sum;
  out.slack = {rows == 0 ? 0 : 4 * UlpOf(DType::kF32, reduction == kMean ? size / weights : size)};
}

void SampleCrossEntropyGrad(Calls& calls) {
  ForEachCrossEntropy(calls, "gradLoss", [&](const Dims& shape, DType t, TestArg target, TestArg weight, TestArg text, int64_t ignored, double e,
                                             const Dims& loss) {
    calls.Add({In(t, loss), In(t, shape, Between(-9, -1)), std::move(target), std::move(weight), Null(), In(t, {2, 3}), std::move(text), Int(ignored),
               RealArg(e), RealArg(0.5), Out(t, shape)});
  });
  calls.Add({In(DType::kF32, {}), In(DType::kF32, {3, 4}, Between(-9, -1)), In(DType::kI64, {3}, Given({2})), Null(), In(DType::kF32, {1}), Null(),
             Text("mean"), Int(2), RealArg(0), RealArg(0), Out(DType::kF32, {3, 4})}, "all ignored");
}

void OracleCrossEntropyGrad(HostCall& call) {
  const Host &g = call.In("gradLoss"), &log_prob = call.In("logProb"), &target = call.In("target");
  Host& out = call.Out("out");
  const int64_t reduction = ReductionOf(call), rows = log_prob.dims[0], classes = log_prob.dims[1], ignored = call.Int("ignoreIndex");
  const Real e = call.Real("labelSmoothing");
  Real counted = 0, all = 0;
  for (int64_t c = 0; c < classes; ++c) all += WeightOf(call, c);
  for (int64_t i = 0; i < rows; ++i) {
    if (const int64_t y = ClassOf(target, i, ignored, classes); y >= 0) counted += WeightOf(call, y);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t y = ClassOf(target, i, ignored, classes);
    for (int64_t c = 0; c < classes; ++c) {
      if (y < 0) {
        out.slack.push_back(0);
        continue;
      }
      const Real scale = reduction == kNone ? g.real(i) : reduction == kMean ? g.real(0) / counted : g.real(0);
      const Real a = scale * (1 - e) * WeightOf(call, y), b = scale * e / static_cast<Real>(classes);
      const Real q = std::exp(log_prob.real(i * classes + c));
      out[i * classes + c] = q * (a + b * all) - (c == y ? a : 0) - b * WeightOf(call, c);
      out.slack.push_back(4 * UlpOf(DType::kF32, std::fabs(a) + std::fabs(b) * (2 + all)));
    }
  }
}

}  // namespace

std::span<const Subject> ClassLossSubjects() {
  static const Subject subjects[] = {
      {"aclnnNLLLoss", SampleNll, OracleNll, {.ulps = 2}},
      {"aclnnNLLLoss2d", SampleNll, OracleNll, {.ulps = 2}},
      {"aclnnNLLLossBackward", SampleNllBackward, OracleNllBackward, {.ulps = 2}},
      {"aclnnNLLLoss2dBackward", SampleNllBackward, OracleNllBackward, {.ulps = 2}},
      {"aclnnCrossEntropyLoss", SampleCrossEntropy, OracleCrossEntropy, {.ulps = 2}},
      {"aclnnCrossEntropyLossGrad", SampleCrossEntropyGrad, OracleCrossEntropyGrad, {.ulps = 4}},
  };
  return subjects;
}

}  // namespace anyacl::harness
