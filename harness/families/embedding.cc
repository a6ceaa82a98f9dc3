// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tables of rows: gradients, bags, norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
DType WorkOf(DType t) { return t == DType::kF64 ? DType::kF64 : DType::kF32; }

// --- EmbeddingDenseBackward ----------------------------------------------------------------------

void SampleDense(Calls& calls) {
  const auto add = [&](DType grad, DType index, const Dims& places, int64_t weights, int64_t padding, bool scale, DType out, Values names, int64_t width = 3) {
    Dims rows = places;
    rows.push_back(width);
    calls.Add({In(grad, rows), In(index, places, names), Int(weights), Int(padding), Flag(scale), Out(out, {weights, width})});
  };
  for (DType t : calls.TypesOf("grad")) {
    add(t, DType::kI64, {6}, 4, -1, false, t, Whole(-1, 4));
    add(t, DType::kI32, {2, 3}, 4, 1, true, t, Whole(0, 3));
    if (t != DType::kF64) add(t, DType::kI64, {7}, 4, 0, false, DType::kF32, Whole(0, 3));
  }
  for (DType index : calls.TypesOf("indices")) add(DType::kF32, index, {5}, 3, -1, true, DType::kF16, index == DType::kBool ? Whole(0, 1) : Whole(0, 2));
  const DType f = DType::kF32;
  add(f, DType::kF32, {3}, 3, -1, false, f, Given({0.9L, 1.9L, 2.5L}));
  add(f, DType::kI64, {0}, 3, -1, false, f, {});
  add(f, DType::kI64, {4}, 3, 7, false, f, Whole(0, 2), 0);
  add(DType::kF16, DType::kI64, {3000}, 2, -1, false, DType::kF16, Whole(0, 0), 1);
  add(f, DType::kI64, {900}, 70, 3, true, f, Whole(0, 69), 260);
}
void OracleDense(HostCall& call) {
  const Host &grad = call.In("grad"), &indices = call.In("indices");
  Host& out = call.Out("out");
  const int64_t width = out.dims[1];
  Checked<Real> hits(static_cast<size_t>(out.dims[0])), magnitude(static_cast<size_t>(out.size()));
  out.values.assign(static_cast<size_t>(out.size()), 0);
  for (int64_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<int64_t>(std::trunc(indices.real(i)));
    if (row < 0 || row >= out.dims[0] || row == call.Int("paddingIdx")) continue;
    ++hits[static_cast<size_t>(row)];
    for (int64_t j = 0; j < width; ++j) {
      out[row * width + j] += grad[i * width + j];
      magnitude[static_cast<size_t>(row * width + j)] += std::abs(grad[i * width + j]);
    }
  }
  for (int64_t i = 0; i < out.size(); ++i) {
    const Real count = hits[static_cast<size_t>(i / width)];
    if (call.Flag("scaleGradByFreq") && count > 0) out[i] /= count;
    out.slack.push_back(count * UlpOf(WorkOf(grad.dtype), magnitude[static_cast<size_t>(i)]));
  }
}

// --- EmbeddingBag --------------------------------------------------------------------------------

struct Bag {
  DType t = DType::kF32;
  DType index = DType::kI64;
  DType offset = DType::kI64;
  Checked<Number> offsets = {0, 2, 2, 5};
  int64_t mode = 0;
  int64_t padding = -1;
  bool scales = false;
  bool last = false;
  bool wants_bags = true;
  Dims indices = {7};
  Dims weight = {4, 3};
  DType report = DType::kI64;  // of offset2bag, bagSize, maxIndices
  Values names = Whole(0, 3);
};
void AddBag(Calls& calls, const Bag& b) {
  const int64_t count = Numel(b.indices), offsets = static_cast<int64_t>(b.offsets.size()), bags = offsets - (b.last ? 1 : 0);
  const Dims out = {bags, b.weight[1]};
  TestArg scales = b.scales ? In(b.t, {count}) : Null();
  TestArg starts = In(b.offset, {offsets}, Given(b.offsets));
  calls.Add({In(b.t, b.weight), In(b.index, b.indices, b.names), starts, Flag(false), Int(b.mode), Flag(false), scales, Flag(b.last), Int(b.padding),
             Out(b.t, out), Out(b.report, {b.wants_bags ? count : 0}), Out(b.report, {offsets}), Out(b.report, b.mode > 1 ? out : Dims{0})});
}
void SampleBag(Calls& calls) {
  for (DType t : calls.TypesOf("weight")) {
    for (const int64_t mode : {0, 1, 2}) {
      AddBag(calls, {.t = t, .mode = mode, .padding = 1, .scales = mode == 0});
      AddBag(calls, {.t = t, .index = DType::kI32, .offsets = {0, 2, 2, 5, 7}, .mode = mode, .last = true, .report = DType::kI32});
    }
    AddBag(calls, {.t = t, .mode = 1, .scales = true, .wants_bags = false});
  }
  for (DType index : calls.TypesOf("indices")) AddBag(calls, {.index = index, .mode = 2});
  for (DType offset : calls.TypesOf("offsets")) AddBag(calls, {.offset = offset, .mode = 1});
  AddBag(calls, {.mode = 1, .names = Whole(-2, 6)});
  AddBag(calls, {.offsets = {1, 3, 90, -5}, .mode = 0});
  AddBag(calls, {.offsets = {0, 0}, .mode = 2, .indices = {0}});
  AddBag(calls, {.offsets = {}, .mode = 0});
  AddBag(calls, {.mode = 0, .indices = {7, 1}});
  AddBag(calls, {.offsets = {0, 3}, .mode = 0, .weight = {4, 0}});
  AddBag(calls, {.offsets = {0, 100, 101}, .mode = 1, .indices = {400}, .weight = {50, 700}, .names = Whole(0, 49)});
  AddBag(calls, {.offsets = {0, 100, 101}, .mode = 2, .indices = {400}, .weight = {50, 700}, .names = Whole(0, 49)});
}
void OracleBag(HostCall& call) {
  const Host &weight = call.In("weight"), &indices = call.In("indices"), &offsets = call.In("offsets");
  Host &out = call.Out("output"), &bag_of = call.Out("offset2bag"), &sizes = call.Out("bagSize");
  const int64_t width = weight.dims[1], mode = call.Int("mode"), count = indices.size();
  for (Host* host : {&out, &bag_of, &sizes}) host->values.assign(static_cast<size_t>(host->size()), 0);
  Host* const places = mode > 1 ? &call.Out("maxIndices") : nullptr;
  if (places) places->values.assign(static_cast<size_t>(out.size()), -1);
  out.slack.assign(static_cast<size_t>(out.size()), 0);
  const auto offset = [&](int64_t b) { return std::clamp<int64_t>(static_cast<int64_t>(offsets.real(b)), 0, count); };
  for (int64_t b = 0; b < out.dims[0]; ++b) {
    const int64_t end = b + 1 < offsets.size() ? offset(b + 1) : count;
    Real counted = 0;
    for (int64_t i = offset(b); i < end; ++i) {
      if (bag_of.size() > 0) bag_of[i] = static_cast<Real>(b);
      const auto row = static_cast<int64_t>(indices.real(i));
      if (call.Int("paddingIdx") >= 0 && row == call.Int("paddingIdx")) continue;
      const Real scale = call.Has("perSampleWeights") ? call.In("perSampleWeights").real(i) : 1;
      for (int64_t j = 0; j < width; ++j) {
        const bool inside = row >= 0 && row < weight.dims[0];
        const Real x = inside ? weight.real(row * width + j) : 0;
        Number& target = out[b * width + j];
        if (!places) {
          target += scale * x;
          out.slack[static_cast<size_t>(b * width + j)] += 2 * UlpOf(WorkOf(out.dtype), 2 * static_cast<Real>(count));
        } else if (counted == 0 || x > target.real()) {
          target = x;
          (*places)[b * width + j] = static_cast<Real>(row);
        }
      }
      ++counted;
    }
    sizes[b] = counted;
    if (mode != 1 || counted == 0) continue;
    for (int64_t j = 0; j < width; ++j) out[b * width + j] /= counted;
  }
}

// --- EmbeddingRenorm -----------------------------------------------------------------------------

void SampleRenorm(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    for (const double p : {2.0, 1.0, 0.0, 3.0, -1.5, static_cast<double>(kInfinity), -static_cast<double>(kInfinity)}) {
      calls.Add({In(t, {4, 3}, Between(0.5L, 2)), In(DType::kI64, {5}, Whole(-1, 4)), RealArg(1.25), RealArg(p)});
    }
    calls.Add({In(t, {4, 3}), In(DType::kI32, {2, 2}, Whole(0, 3)), RealArg(100), RealArg(2)});
  }
  calls.Add({In(DType::kF32, {4, 3}), In(DType::kI64, {0}), RealArg(1), RealArg(2)});
  calls.Add({In(DType::kF32, {4, 3}), In(DType::kI64, {2}, Whole(0, 3)), RealArg(std::nan("")), RealArg(2)});
  calls.Add({In(DType::kF32, {90, 700}), In(DType::kI64, {200}, Whole(0, 89)), RealArg(3), RealArg(2)});
}
void OracleRenorm(HostCall& call) {
  Host& out = call.Out("selfRef");
  const Host& indices = call.In("indices");
  const int64_t width = out.dims[1];
  const Real p = call.Real("normType"), limit = call.Real("maxNorm");
  std::set<int64_t> rows;
  for (int64_t i = 0; i < indices.size(); ++i) rows.insert(static_cast<int64_t>(indices.real(i)));
  out.slack.assign(static_cast<size_t>(out.size()), 0);
  for (const int64_t row : rows) {
    if (row < 0 || row >= out.dims[0]) continue;
    Real sum = p == -kInfinity ? kInfinity : 0;
    for (int64_t j = 0; j < width; ++j) {
      const Real m = std::fabs(out.real(row * width + j));
      if (std::isinf(p)) sum = p > 0 ? std::max(sum, m) : std::min(sum, m);
      else sum += p == 0 ? (m != 0 ? 1 : 0) : std::pow(m, p);
    }
    const Real norm = std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / p);
    if (!(norm > limit)) continue;
    for (int64_t j = 0; j < width; ++j) {
      out[row * width + j] *= limit / (norm + 1e-7L);
      out.slack[static_cast<size_t>(row * width + j)] = 4 * UlpOf(WorkOf(out.dtype), std::abs(out[row * width + j]));
    }
  }
}

}  // namespace

std::span<const Subject> EmbeddingSubjects() {
  static const Subject subjects[] = {
      {"aclnnEmbeddingBag", SampleBag, OracleBag, {.ulps = 0}},
      {"aclnnEmbeddingDenseBackward", SampleDense, OracleDense, {.ulps = 0}},
      {"aclnnEmbeddingRenorm", SampleRenorm, OracleRenorm, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
