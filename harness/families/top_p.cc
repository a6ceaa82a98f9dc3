// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The likeliest tokens by counting: how many are better, and how much probability lies on which side of each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I32 = DType::kI32, I64 = DType::kI64;
constexpr Real kOut = -std::numeric_limits<Real>::infinity();

Checked<Real> RowOf(const Host& x, int64_t row) {
  Checked<Real> values;
  for (int64_t i = 0; i < x.dims[1]; ++i) values.push_back(x.real(row * x.dims[1] + i));
  return values;
}

void OracleApply(HostCall& call) {
  const Host& x = call.In("logits");
  Host& out = call.Out("out");
  const int64_t count = x.dims[1];
  for (int64_t row = 0; row < x.dims[0]; ++row) {
    Checked<Real> values = RowOf(x, row), sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const int64_t k = call.Has("k") ? static_cast<int64_t>(call.In("k").real(row)) : 0;
    if (k > 0 && k < count) {
      const Real least = sorted[count - k];
      for (Real& v : values) v = v < least ? kOut : v;
    }
    const Checked<Real> kept = values;
    const Real p = call.Has("p") ? call.In("p").real(row) : 0, most = sorted.back();
    Real sum = 0;
    for (const Real v : kept) sum += std::exp(v - most);
    for (int64_t i = 0; i < count && call.Has("p"); ++i) {
      // What comes no later than i in the order, which of equals the first one leads.
      Real before = 0;
      int64_t behind = 0;
      for (int64_t j = 0; j < count; ++j) {
        const bool first = kept[j] < kept[i] || (kept[j] == kept[i] && x.real(row * count + j) < x.real(row * count + i)) ||
                           (x.real(row * count + j) == x.real(row * count + i) && j <= i);
        before += first ? static_cast<Real>(static_cast<float>(std::exp(kept[j] - most) / sum)) : 0;
        behind += first ? 0 : 1;
      }
      if (before <= 1 - p && behind > 0) values[i] = kOut;
    }
    for (int64_t i = 0; i < count; ++i) out[row * count + i] = values[i];
  }
}

void SampleApply(Calls& calls) {
  const auto k = [](const Checked<Number>& values) { return In(I32, {static_cast<int64_t>(values.size())}, Given(values)); };
  for (const DType t : {F32, F16, BF16}) {
    const auto p = [&](const Checked<Number>& values) { return In(t, {static_cast<int64_t>(values.size())}, Given(values)); };
    calls.Add({In(t, {4, 9}), p({0.75, 0.25, 1, 0}), k({5, 0, 9, 100}), Out(t, {4, 9})});
    calls.Add({In(t, {3, 8}, Whole(-2, 2)), p({0.6, 0.9, 0.3}), Null(), Out(t, {3, 8})});
    calls.Add({In(t, {3, 8}, Whole(-2, 2)), Null(), k({1, 3, -1}), Out(t, {3, 8})});
    calls.Add({In(t, {2, 4}, Given({1, 2, 3, 4, 2, 4, 4, 4})), Null(), k({3, 2}), Out(t, {2, 4})});
    calls.Add({In(t, {1, 4}, Given({1, 2, 3, 4})), p({0.8}), Null(), Out(t, {1, 4})});
    calls.Add({In(t, {1, 6}, Given({0, 200, -200, 3, 199, 0})), p({1}), Null(), Out(t, {1, 6})});
    calls.Add({In(t, {3, 1}), p({0.5, 0, 1}), k({1, 2, 0}), Out(t, {3, 1})});
    calls.Add({In(t, {0, 5}), In(t, {0}), Null(), Out(t, {0, 5})});
  }
}

void OracleSample(HostCall& call) {
  const Host &x = call.In("logits"), &top = call.In("topK"), &sums = call.In("topP");
  Host& drawn = call.Out("logitsSelectIdx");
  Host* const select = call.Flag("isNeedLogits") ? &call.Out("logitsTopKPSelect") : nullptr;
  if (!select) call.Out("logitsTopKPSelect").values = call.In("logitsTopKPSelect").values;
  const int64_t count = x.dims[1];
  for (int64_t row = 0; row < x.dims[0]; ++row) {
    const Checked<Real> values = RowOf(x, row);
    Checked<int64_t> order(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto k = static_cast<int64_t>(top.real(row));
    const Real p = sums.real(row);
    const bool cuts = k >= 1 && k <= std::min<int64_t>(count, 1024), limits = p > 0 && p < 1;
    if (cuts || limits) std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] > values[b]; });
    if (cuts) order.resize(k);
    const auto total = [&] {
      Real sum = 0;
      for (const int64_t i : order) sum += std::exp(values[i]);
      return sum;
    };
    if (limits) {
      const Real all = total();
      Real sum = 0;
      size_t stay = 0;
      while (stay < order.size() && sum <= p * all) sum += std::exp(values[order[stay++]]);
      order.resize(stay);
    }
    const Real all = total();
    Real best = -1;
    for (size_t j = 0; j < order.size(); ++j) {
      Real score = std::exp(values[order[j]]) / all;
      if (call.Has("q")) score /= std::fabs(call.In("q").real(row * count + static_cast<int64_t>(j))) + static_cast<Real>(call.Real("eps"));
      if (score > best) drawn[row] = static_cast<Real>(order[j]);
      best = std::max(best, score);
    }
    if (!select) continue;
    for (int64_t i = 0; i < count; ++i) (*select)[row * count + i] = kOut;
    for (const int64_t i : order) (*select)[row * count + i] = values[i];
  }
}

void SampleSample(Calls& calls) {
  for (const DType t : {F16, BF16}) {
    const auto add = [&](const Dims& dims, Values x, Checked<Number> k, Checked<Number> p, bool q, bool select, Values divisors = Between(0.1, 3)) {
      calls.Add({In(t, dims, std::move(x)), In(I32, {dims[0]}, Given(std::move(k))), In(t, {dims[0]}, Given(std::move(p))),
                 q ? In(F32, dims, std::move(divisors)) : Null(), RealArg(1e-8), Flag(select), Int(32), Out(I64, {dims[0]}), In(F32, dims)});
    };
    add({4, 9}, {}, {5, 0, 9, 100}, {0.75, 0.25, 1, 0}, true, true);
    add({4, 9}, {}, {5, -3, 9, 100}, {0.75, 0.25, 1, 0}, false, false);
    add({3, 8}, Whole(-2, 2), {3, 8, 0}, {0, 0.5, 2}, false, true);
    add({1, 4}, Given({2, 1, 0.5, 3}), {3}, {0.8}, true, true, Given({1, 0.2, 5, 7}));
    add({2, 1200}, {}, {1100, 700}, {0, 0.5}, true, true);
    add({0, 5}, {}, {}, {}, true, true);
  }
}

}  // namespace

std::span<const Subject> TopPSubjects() {
  static const Subject subjects[] = {{"aclnnApplyTopKTopP", SampleApply, OracleApply, {.ulps = 0}},
                                     {"aclnnTopKTopPSample", SampleSample, OracleSample, {.ulps = 0}}};
  return subjects;
}

}  // namespace anyacl::harness
