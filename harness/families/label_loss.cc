// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Margins of labels, Chamfer distances, cross entropies in parts: by their definitions.
#include <cmath>
#include <limits>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kUnit = 0x1p-23L;
enum { kNone, kMean, kSum };

// ---- margins --------------------------------------------------------------------------------------------------------

void SampleMargin(Calls& calls) {
  const auto add = [&](DType t, DType label, const Dims& dims, int reduction, Values scores, Checked<Number> labels) {
    const bool per_row = reduction == kNone && dims.rank() == 2;
    const Dims out = per_row ? Dims{dims[0]} : reduction == kSum ? Dims{1} : Dims{};
    calls.Add({In(t, dims, std::move(scores)), In(label, dims, Given(std::move(labels))), Int(reduction), Out(t, out), Out(t, dims)});
  };
  for (DType t : calls.TypesOf("self")) {
    for (DType label : calls.TypesOf("target")) {
      for (int reduction : {kNone, kMean, kSum}) {
        add(t, label, {3, 4}, reduction, {}, {3, 0, -1, 1, -1, 1, 2, 3, 0, 1, 2, 3});
        add(t, label, {2, 5}, reduction, {}, {2, 2, -1, 0, 1, 7, -3, 1, -1, 0});  // one twice; some that do not exist
        add(t, label, {4}, reduction, Given({0.1L, 0.2L, 0.4L, 0.8L}), {3, 0, -1, 1});
        add(t, label, {}, reduction, {}, {0});
        calls.Add({In(t, {0, 4}), In(label, {0, 4}), Int(reduction), Out(t, reduction == kNone ? Dims{0} : Dims{}), Out(t, {0})});
      }
    }
  }
  add(DType::kF32, DType::kI64, {2, 3}, kNone, Given({1, kNan, 0, 1, 2, 3}), {0, -1, 0, 1, 2, -1});
  add(DType::kF32, DType::kI32, {700, 90}, kMean, {}, {4, 80, 3, 7, 88, 5, -1});
}

void OracleMargin(HostCall& call) {
  const Host &x = call.In("self"), &target = call.In("target");
  Host &out = call.Out("out"), &marks = call.Out("isTarget");
  const int64_t reduction = call.Int("reduction"), classes = x.dims.rank() == 0 ? 1 : x.dims[x.dims.rank() - 1];
  const int64_t rows = x.dims.rank() == 2 ? x.dims[0] : 1;
  const Real unit = x.dtype == DType::kF64 ? 0x1p-52L : kUnit;
  if (x.size() == 0) {
    if (reduction != kNone) out[0] = reduction == kMean ? kNan : 0;
    return;
  }
  Real all = 0, most = 0, largest = 8;
  for (int64_t n = 0; n < rows; ++n) {
    Checked<int64_t> labels;
    for (int64_t k = 0; k < classes && target.real(n * classes + k) != -1; ++k) {
      const auto label = static_cast<int64_t>(target.real(n * classes + k));
      if (label < 0 || label >= classes) continue;
      labels.push_back(label);
      marks[n * classes + label] = 1;
    }
    Real sum = 0;
    for (const int64_t j : labels) {
      for (int64_t i = 0; i < classes; ++i) {
        const Real margin = 1 - (x.real(n * classes + j) - x.real(n * classes + i));
        if (marks.real(n * classes + i) == 0 && margin > 0) sum += margin;
        if (std::isfinite(margin)) largest = std::fmax(largest, std::fabs(margin));
      }
    }
    const Real slack = largest * unit * static_cast<Real>(labels.size());
    all += sum / static_cast<Real>(classes);
    most += slack;
    if (reduction != kNone) continue;
    out[n] = sum / static_cast<Real>(classes);
    out.slack.push_back(slack);
  }
  if (reduction == kNone) return;
  const Real divisor = reduction == kMean ? static_cast<Real>(rows) : 1;
  out[0] = all / divisor;
  out.slack.push_back(most / divisor);
}

// ---- Chamfer distances ----------------------------------------------------------------------------------------------

void SampleChamfer(Calls& calls) {
  const DType kOthers[] = {DType::kF32, DType::kF16};
  for (DType t : kOthers) {
    for (DType other : kOthers) {
      for (const Dims& sizes : {Dims{2, 5, 7}, Dims{1, 1, 1}, Dims{3, 40, 9}, Dims{2, 3, 0}, Dims{0, 3, 4}, Dims{2, 0, 0}}) {
        const int64_t b = sizes[0], n = sizes[1], m = sizes[2];
        calls.Add({In(t, {b, n, 2}), In(other, {b, m, 2}), In(DType::kI32, {b, n}, Whole(-1, m)), In(DType::kI32, {b, m}, Whole(-1, n)), In(other, {b, n}),
                   In(t, {b, m}), Out(other, {b, n, 2}), Out(t, {b, m, 2})});
      }
    }
  }
}

void OracleChamfer(HostCall& call) {
  const char* const kPoints[] = {"xyz1", "xyz2"};
  const char* const kIndices[] = {"idx1", "idx2"};
  const char* const kGrads[] = {"gradDist1", "gradDist2"};
  const char* const kOuts[] = {"gradXyz1", "gradXyz2"};
  for (const int own : {0, 1}) {
    const Host &a = call.In(kPoints[own]), &b = call.In(kPoints[1 - own]);
    const int64_t n = a.dims[1], m = b.dims[1];
    Host& out = call.Out(kOuts[own]);
    for (int64_t at = 0; at < out.size(); ++at) {
      const int64_t batch = at / (2 * n), i = at / 2 % n, axis = at % 2;
      const auto other = [&](int64_t j) { return b.real((batch * m + j) * 2 + axis); };
      Real sum = 0, size = 0, terms = 0;
      const auto add = [&](Real term) {
        sum += term;
        size += std::fabs(term);
        terms += 1;
      };
      const auto nearest = static_cast<int64_t>(call.In(kIndices[own]).real(batch * n + i));
      if (nearest >= 0 && nearest < m) add(2 * call.In(kGrads[own]).real(batch * n + i) * (a.real(at) - other(nearest)));
      for (int64_t j = 0; j < m; ++j) {
        if (call.In(kIndices[1 - own]).real(batch * m + j) != static_cast<Real>(i)) continue;
        add(-2 * call.In(kGrads[1 - own]).real(batch * m + j) * (other(j) - a.real(at)));
      }
      out[at] = sum;
      out.slack.push_back((terms + 3) * kUnit * size);
    }
  }
}

// ---- cross entropies in parts ---------------------------------------------------------------------------------------

void SampleSums(Calls& calls) {
  const DType f = DType::kF32, whole = DType::kI32;
  for (DType t : calls.TypesOf("vocabParallelLogits")) {
    for (const Dims& rows : {Dims{5}, Dims{3, 4}, Dims{1}, Dims{0}}) {
      for (const int64_t words : {1, 7, 300}) {
        Dims all = rows;
        all.push_back(words);
        calls.Add({In(t, all), In(whole, rows, Whole(8, 10 + words + 2)), In(t, rows, Between(1, 3)), Int(10), Int(10 + words), Out(f, rows), Out(f, rows),
                   Out(f, all), Out(whole, rows), Out(whole, rows)});
      }
    }
  }
  calls.Add({In(f, {2, 0}), In(whole, {2}), In(f, {2}), Int(3), Int(3), Out(f, {2}), Out(f, {2}), Out(f, {2, 0}), Out(whole, {2}), Out(whole, {2})});
}

// How far the exponential of a difference is off that was rounded, too.
Real RoundedExp(Real difference) {
  const Real exp = std::exp(difference);
  return exp > 0 && std::isfinite(exp) ? std::fmax(8, std::fabs(difference)) * kUnit * exp : 0;
}

void OracleSums(HostCall& call) {
  const Host &x = call.In("vocabParallelLogits"), &target = call.In("target"), &most = call.In("globalLogitsMax");
  Host &predicted = call.Out("predictedLogitsOut"), &sum = call.Out("sumExpLogitsOut"), &exp = call.Out("expLogitsOut");
  Host &offset = call.Out("targetOffsetOut"), &mask = call.Out("targetMaskOut");
  const int64_t start = call.Int("vocabStartIndex"), words = call.Int("vocabEndIndex") - start;
  for (int64_t row = 0; row < target.size(); ++row) {
    Real slack = 0;
    for (int64_t k = 0; k < words; ++k) {
      const Real difference = x.real(row * words + k) - most.real(row);
      exp[row * words + k] = std::exp(difference);
      exp.slack.push_back(RoundedExp(difference));
      sum[row] += exp[row * words + k];
      slack += exp.slack.back();
    }
    sum.slack.push_back(slack);
    const int64_t place = static_cast<int64_t>(target.real(row)) - start;
    const bool here = place >= 0 && place < words;
    offset[row] = here ? static_cast<Real>(place) : 0;
    mask[row] = here ? 0 : 1;
    predicted[row] = here ? x.real(row * words + place) - most.real(row) : 0;
  }
}

void SampleFused(Calls& calls) {
  const DType f = DType::kF32;
  for (DType t : calls.TypesOf("vocabParallelLogitsOptional")) {
    for (const Dims& words : {Dims{5, 7}, Dims{3, 300}, Dims{1, 1}, Dims{0, 4}, Dims{2, 0}}) {
      const Dims rows = {words[0]};
      calls.Add({In(f, rows, Between(1, 3)), In(f, rows, Between(0.5L, 9)), In(f, rows), RealArg(0), Null(), Null(), In(t, words), Out(f, rows), Out(f, words)});
    }
  }
  calls.Add({In(f, {4}), In(f, {4}, Given({0, 1, 2, kNan})), In(f, {4}), RealArg(0), In(f, {2, 3}), In(f, {2}), Null(), Out(f, {4}), Null()});
}

void OracleFused(HostCall& call) {
  const Host &most = call.In("logitsMax"), &sum = call.In("sumExpLogits"), &predicted = call.In("predictedLogits");
  Host& loss = call.Out("lossOut");
  for (int64_t row = 0; row < loss.size(); ++row) {
    const Real log = std::log(sum.real(row));
    loss[row] = log - predicted.real(row);
    loss.slack.push_back(std::isfinite(log) ? 2 * kUnit * (std::fabs(log) + std::fabs(predicted.real(row))) : 0);
  }
  if (!call.Has("vocabParallelLogitsOptional")) return;
  const Host& x = call.In("vocabParallelLogitsOptional");
  Host& out = call.Out("softMaxOutOptional");
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t row = i / x.dims[1];
    out[i] = std::exp(x.real(i) - most.real(row)) / sum.real(row);
    out.slack.push_back(RoundedExp(x.real(i) - most.real(row)) / std::fabs(sum.real(row)));
  }
}

}  // namespace

std::span<const Subject> LabelLossSubjects() {
  static const Subject subjects[] = {
      {"aclnnMultilabelMarginLoss", SampleMargin, OracleMargin},
      {"aclnnChamferDistanceBackward", SampleChamfer, OracleChamfer},
      {"aclnnCrossEntropySumExpAndIndexLogit", SampleSums, OracleSums},
      {"aclnnFusedCrossEntropyLossWithMaxSum", SampleFused, OracleFused},
  };
  return subjects;
}

}  // namespace anyacl::harness
