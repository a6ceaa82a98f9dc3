// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/top_p.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/order/keys.h"

namespace anyacl::order {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();
constexpr int64_t kMostKept = 1024;  // a larger k keeps all

// Places of x from the smallest on, or from the largest; of equals the first one comes first.
void Sort(const float* x, int64_t count, bool descending, int64_t* order) {
  std::iota(order, order + count, int64_t{0});
  std::sort(order, order + count, [&](int64_t a, int64_t b) {
    const uint64_t ka = KeyOf(x[a]), kb = KeyOf(x[b]);
    return ka != kb ? (ka < kb) != descending : a < b;
  });
}

void MaskRow(const TopPParams& p, int64_t row) {
  const float* const x = p.logits + row * p.count;
  float* const out = p.out + row * p.count;
  int64_t* const order = p.order + row * p.count;
  const int64_t k = p.k ? p.k[row] : 0;
  Sort(x, p.count, false, order);
  const float least = k > 0 && k < p.count ? x[order[p.count - k]] : kOut;
  for (int64_t i = 0; i < p.count; ++i) out[i] = x[i] < least ? kOut : x[i];
  if (!p.p) return;
  const double most = static_cast<double>(out[order[p.count - 1]]);
  const auto weight = [&](int64_t i) { return std::exp(static_cast<double>(out[i]) - most); };
  double sum = 0, before = 0;
  for (int64_t j = 0; j < p.count; ++j) sum += weight(order[j]);
  for (int64_t j = 0; j + 1 < p.count; ++j) {
    before += static_cast<double>(static_cast<float>(weight(order[j]) / sum));  // what FLOAT cannot tell from 0 is 0
    if (before > 1 - static_cast<double>(p.p[row])) break;
    out[order[j]] = kOut;
  }
}

// exp(x - largest) of the first `count` places of an order, and their sum.
double Weights(const float* x, const int64_t* order, int64_t count, double* weights) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    weights[j] = std::exp(static_cast<double>(x[order[j]]) - static_cast<double>(x[order[0]]));
    sum += weights[j];
  }
  return sum;
}

// Up to the first one with which the sum is above `limit`.
int64_t UpTo(const double* weights, int64_t count, double limit) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    sum += weights[j];
    if (sum > limit) return j + 1;
  }
  return count;
}

void SampleRow(const TopPSampleParams& p, int64_t row) {
  const float *const x = p.logits + row * p.count, *const q = p.q ? p.q + row * p.count : nullptr;
  int64_t* const order = p.order + row * p.count;
  double* const weights = p.probability + row * p.count;
  const int64_t k = p.k[row];
  const double limit = static_cast<double>(p.p[row]);
  const bool cuts = k >= 1 && k <= std::min(p.count, kMostKept), sums = limit > 0 && limit < 1;
  Sort(x, p.count, true, order);
  if (!cuts && !sums) std::iota(order, order + p.count, int64_t{0});
  int64_t kept = cuts ? k : p.count;
  const double all = Weights(x, order, kept, weights);
  if (sums) kept = UpTo(weights, kept, limit * all);
  const double sum = std::accumulate(weights, weights + kept, 0.0);
  int64_t drawn = 0;
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < kept; ++j) {
    const double score = q ? weights[j] / sum / (std::fabs(static_cast<double>(q[j])) + p.epsilon) : weights[j] / sum;
    if (score > best) {
      best = score;
      drawn = j;
    }
  }
  p.drawn[row] = order[drawn];
  if (!p.select) return;
  float* const select = p.select + row * p.count;
  std::fill_n(select, p.count, kOut);
  for (int64_t j = 0; j < kept; ++j) select[order[j]] = x[order[j]];
}

void Mask(const TopPParams& p) {
  cpu::ParallelFor(p.rows, [&](int64_t row) { MaskRow(p, row); });
}
void Sample(const TopPSampleParams& p) {
  cpu::ParallelFor(p.rows, [&](int64_t row) { SampleRow(p, row); });
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

using order::TopPParams;
using order::TopPSampleParams;

std::span<const Kernel> TopPKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<TopPParams, FitsAlways<TopPParams>, order::Mask>("sort")};
  return kernels;
}
std::span<const Kernel> TopPSampleKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<TopPSampleParams, FitsAlways<TopPSampleParams>, order::Sample>("sort")};
  return kernels;
}

}  // namespace anyacl::cpu
