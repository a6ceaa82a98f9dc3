// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/moe/moe.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::moe {
namespace {

// ---- gating ----

// Whether (a, i) comes before (b, j): NaN first, then the larger number, then the lower place.
bool Before(float a, int64_t i, float b, int64_t j) {
  const bool a_nan = std::isnan(a), b_nan = std::isnan(b);
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a != b) return a > b;
  return i < j;
}

// Calls visit(place) for the `count` first of `values` in that order, of those that take part.
template <class TakesPart, class Visit>
void ForBest(const float* values, int64_t size, int64_t count, const TakesPart& takes_part, const Visit& visit) {
  int64_t last = -1;
  for (int64_t found = 0; found < count; ++found) {
    int64_t best = -1;
    for (int64_t i = 0; i < size; ++i) {
      if (!takes_part(i) || (last >= 0 && !Before(values[last], last, values[i], i))) continue;
      if (best < 0 || Before(values[i], i, values[best], best)) best = i;
    }
    if (best < 0) return;
    visit(best, found);
    last = best;
  }
}

// out may be x.
void Softmax(const float* x, int64_t count, float* out) {
  float most = x[0];
  for (int64_t i = 1; i < count; ++i) most = std::isnan(x[i]) ? x[i] : std::max(most, x[i]);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(x[i]) - static_cast<double>(most));
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(std::exp(static_cast<double>(x[i]) - static_cast<double>(most)) / sum);
}

void Scores(const GatingParams& p, const float* x, float* scores) {
  if (p.gating == Gating::kSoftmaxOfTop) {
    std::copy_n(x, p.experts, scores);
  } else if (!p.sigmoid) {
    Softmax(x, p.experts, scores);
  } else {
    for (int64_t i = 0; i < p.experts; ++i) scores[i] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x[i]))));
  }
}

// Numbers to choose by; those of experts in other groups than the best are left out by `group_scores`, which become 1 or 0.
const float* ChoiceOf(const GatingParams& p, int64_t row, const float* scores) {
  if (p.gating != Gating::kGrouped) return scores;
  float *by = p.chosen_by + row * p.experts, *groups = p.group_scores + row * p.groups;
  const int64_t size = p.experts / p.groups;
  const auto all = [](int64_t) { return true; };
  for (int64_t i = 0; i < p.experts; ++i) by[i] = p.bias ? scores[i] + p.bias[i] : scores[i];
  for (int64_t g = 0; g < p.groups; ++g) {
    groups[g] = 0;
    const float* const members = by + g * size;
    ForBest(members, size, p.sum_of_two ? 2 : 1, all, [&](int64_t i, int64_t) { groups[g] += members[i]; });
  }
  // The worst of the best groups is the limit.
  int64_t limit = 0;
  ForBest(groups, p.groups, p.best_groups, all, [&](int64_t g, int64_t) { limit = g; });
  const float limit_score = groups[limit];
  for (int64_t g = 0; g < p.groups; ++g) groups[g] = g == limit || Before(groups[g], g, limit_score, limit) ? 1 : 0;
  return by;
}

void GateRow(const GatingParams& p, int64_t row) {
  float* const scores = p.scores + row * p.experts;
  Scores(p, p.x + row * p.experts, scores);
  const float* const by = ChoiceOf(p, row, scores);
  float* const y = p.y + row * p.k;
  int32_t* const expert = p.expert + row * p.k;
  const bool grouped = p.gating == Gating::kGrouped;
  const float* const groups = grouped ? p.group_scores + row * p.groups : nullptr;
  const int64_t size = grouped ? p.experts / p.groups : 1;
  const auto takes_part = [&](int64_t i) { return !groups || groups[i / size] != 0; };
  ForBest(by, p.experts, p.k, takes_part, [&](int64_t i, int64_t at) {
    y[at] = scores[i];
    expert[at] = static_cast<int32_t>(i);
  });
  if (p.gating == Gating::kSoftmaxOfTop) Softmax(y, p.k, y);
  if (grouped) {
    double sum = static_cast<double>(p.epsilon);
    for (int64_t i = 0; i < p.k; ++i) sum += static_cast<double>(y[i]);
    const double factor = static_cast<double>(p.scale) / (p.sigmoid ? sum : 1.0);
    for (int64_t i = 0; i < p.k; ++i) y[i] = static_cast<float>(static_cast<double>(y[i]) * factor);
  }
  for (int64_t i = 0; i < p.k; ++i) {
    if (p.finished && p.finished[row]) expert[i] = static_cast<int32_t>(p.experts);
    if (p.place) p.place[row * p.k + i] = static_cast<int32_t>(i * p.rows + row);
  }
}

void Gate(const GatingParams& p) {
  const int64_t together = std::max<int64_t>(1, cpu::kTask / (16 * p.experts * p.k));
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) GateRow(p, row);
  });
}

// ---- routing ----

void CountIds(const RouteParams& p) {
  if (!p.counts) return;
  std::fill_n(p.counts, p.experts, 0);
  for (int64_t i = 0; i < p.places; ++i) {
    if (p.ids[i] >= 0 && p.ids[i] < p.experts) ++p.counts[p.ids[i]];
  }
  for (int64_t e = 1; p.cumulative && e < p.experts; ++e) p.counts[e] += p.counts[e - 1];
}

void RouteByCapacity(const RouteParams& p) {
  int64_t expert = -1, taken = 0;
  for (int64_t i = 0; i < p.places; ++i) {
    const int64_t place = p.order[i], id = p.ids[place];
    taken = id == expert ? taken + 1 : 0;
    expert = id;
    const bool fits = id >= 0 && id < p.experts && taken < p.capacity;
    const int64_t to = id * p.capacity + taken;
    p.rank[place] = fits ? static_cast<int32_t>(to) : -1;
    if (fits) p.source[to] = place / p.k;
  }
}

void Route(const RouteParams& p) {
  CountIds(p);
  std::fill_n(p.source, p.kept, int64_t{-1});
  if (p.routing == Routing::kCapacity) return RouteByCapacity(p);
  if (p.routing == Routing::kByRowIds) std::fill_n(p.rank, p.places, -1);
  for (int64_t i = 0; i < p.places; ++i) {
    const int64_t place = p.order[i];
    const int64_t name = p.routing == Routing::kByRowIds ? p.row_ids[place] : place;
    if (p.sorted_ids) p.sorted_ids[i] = static_cast<int32_t>(p.ids[place]);
    if (name < 0 || name >= p.places) continue;
    p.rank[name] = static_cast<int32_t>(i);
    if (i < p.kept) p.source[i] = p.routing == Routing::kByRowIds ? name % p.rows : name / p.k;
  }
}

void TakeRows(const RowsParams& p) {
  const int64_t together = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(p.row_bytes, 1));
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) {
      auto* const to = static_cast<unsigned char*>(p.out) + row * p.row_bytes;
      if (p.source[row] < 0) {
        std::memset(to, 0, static_cast<size_t>(p.row_bytes));
      } else {
        std::memcpy(to, static_cast<const unsigned char*>(p.x) + p.source[row] * p.row_bytes, static_cast<size_t>(p.row_bytes));
      }
    }
  });
}

// ---- back ----

constexpr int64_t kColumns = 256;  // of a row, worked on at a time

void CombineBlock(const CombineParams& p, pointwise::RunConversion load, int64_t token, int64_t begin, int64_t width) {
  float sums[kColumns], row[kColumns];
  for (int64_t i = 0; i < width; ++i) {
    const int64_t at = token * p.width + begin + i;
    sums[i] = (p.x1 ? p.x1[at] : 0) + (p.x2 ? p.x2[at] : 0);
  }
  for (int64_t c = 0; c < p.k; ++c) {
    const int64_t place = token * p.k + c, index = p.index[p.by_columns ? c * p.tokens + token : place];
    const float scale = p.scales ? p.scales[place] : 1;
    if (index >= 0 && index < p.row_count) {
      load(static_cast<const unsigned char*>(p.rows) + (index * p.width + begin) * static_cast<int64_t>(SizeOf(p.dtype)), 1, row, 1, width);
    } else if (p.bias) {
      std::fill_n(row, width, 0.0f);
    } else {
      continue;
    }
    const int64_t expert = p.bias ? p.expert[place] : -1;
    const float* const bias = expert >= 0 && expert < p.experts ? p.bias + expert * p.width + begin : nullptr;
    for (int64_t i = 0; i < width; ++i) sums[i] += scale * (bias ? row[i] + bias[i] : row[i]);
  }
  std::copy_n(sums, width, p.out + token * p.width + begin);
}

void Combine(const CombineParams& p) {
  const pointwise::RunConversion load = pointwise::LoadConversion(p.dtype, pointwise::Compute::kFloat);
  const int64_t blocks = cpu::CeilDiv(p.width, kColumns);
  cpu::ParallelFor(p.tokens * blocks, [&](int64_t task) {
    const int64_t begin = task % blocks * kColumns;
    CombineBlock(p, load, task / blocks, begin, std::min(kColumns, p.width - begin));
  });
}

void CombineGrad(const CombineGradParams& p) {
  const int64_t places = p.tokens * p.k;
  const auto is_row = [&](int64_t place) { return p.index[place] >= 0 && p.index[place] < p.row_count; };
  // Columns are apart even where two places have one row.
  cpu::ParallelFor(cpu::CeilDiv(p.width, kColumns), [&](int64_t block) {
    const int64_t begin = block * kColumns, width = std::min(kColumns, p.width - begin);
    for (int64_t row = 0; row < p.row_count; ++row) std::fill_n(p.rows_grad + row * p.width + begin, width, 0.0f);
    for (int64_t place = 0; place < places; ++place) {
      if (!is_row(place)) continue;
      const float* const grad = p.grad + place / p.k * p.width + begin;
      const float scale = p.probs ? p.probs[place] : 1;
      for (int64_t i = 0; i < width; ++i) p.rows_grad[p.index[place] * p.width + begin + i] = scale * grad[i];
    }
  });
  if (!p.probs_grad) return;
  cpu::ParallelFor(places, [&](int64_t place) {
    double sum = 0;
    const float* const grad = p.grad + place / p.k * p.width;
    const float* const row = p.rows + (is_row(place) ? p.index[place] : 0) * p.width;
    for (int64_t i = 0; is_row(place) && i < p.width; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(grad[i]);
    p.probs_grad[place] = static_cast<float>(sum);
  });
}

}  // namespace
}  // namespace anyacl::moe

namespace anyacl::cpu {

std::span<const Kernel> MoeGatingKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<moe::GatingParams, FitsAlways<moe::GatingParams>, moe::Gate>("rows")};
  return kernels;
}
std::span<const Kernel> MoeRouteKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<moe::RouteParams, FitsAlways<moe::RouteParams>, moe::Route>("plain")};
  return kernels;
}
std::span<const Kernel> MoeRowsKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<moe::RowsParams, FitsAlways<moe::RowsParams>, moe::TakeRows>("rows")};
  return kernels;
}
std::span<const Kernel> MoeCombineKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<moe::CombineParams, FitsAlways<moe::CombineParams>, moe::Combine>("rows")};
  return kernels;
}
std::span<const Kernel> MoeCombineGradKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<moe::CombineGradParams, FitsAlways<moe::CombineGradParams>, moe::CombineGrad>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
