// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>

#include "ops/loss/nll.h"
#include "ops/loss/reductions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/loss/cross_entropy_grad.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/pointwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace loss {
namespace HWY_NAMESPACE {

using V = pointwise::HWY_NAMESPACE::Lanes<float>;

// out[c] = exp(x[c]) * scale - b * w[c]; without weights w is 1.
void GradientRow(const float* x, const float* weight, float scale, float b, int64_t count, float* out) {
  const int64_t step = static_cast<int64_t>(V::Count());
  const auto of = [&](V number, V w) { return Exp(number) * V(scale) - V(b) * w; };
  int64_t i = 0;
  for (; i + step <= count; i += step) of(V::Load(x + i), weight ? V::Load(weight + i) : V(1.0f)).Store(out + i);
  if (i == count) return;
  float part[V::kMost] = {}, weights[V::kMost] = {};
  std::copy_n(x + i, count - i, part);
  if (weight) std::copy_n(weight + i, count - i, weights);
  else std::fill_n(weights, count - i, 1.0f);
  of(V::Load(part), V::Load(weights)).Store(part);
  std::copy_n(part, count - i, out + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace loss
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::loss {

HWY_EXPORT(GradientRow);

namespace {

// The class of a sample, or -1 where it does not count.
int64_t ClassOf(const CrossEntropyGradParams& p, int64_t sample) {
  const int64_t y = static_cast<const int64_t*>(p.target)[sample];
  return y == p.ignored || y < 0 || y >= p.classes ? -1 : y;
}

double WeightOf(const CrossEntropyGradParams& p, int64_t c) { return p.weight ? static_cast<double>(static_cast<const float*>(p.weight)[c]) : 1; }

void Run(const CrossEntropyGradParams& p) {
  const auto row_of = ANYACL_FAMILY_DISPATCH(GradientRow);
  double all = 0, counted = 0;
  for (int64_t c = 0; p.smoothing != 0 && c < p.classes; ++c) all += WeightOf(p, c);
  for (int64_t i = 0; p.reduction == kMean && i < p.samples; ++i) {
    if (const int64_t y = ClassOf(p, i); y >= 0) counted += WeightOf(p, y);
  }
  const int64_t together = std::max<int64_t>(1, cpu::kTask / p.classes);
  cpu::ParallelFor(cpu::CeilDiv(p.samples, together), [&](int64_t task) {
    for (int64_t i = task * together; i < std::min(p.samples, (task + 1) * together); ++i) {
      float* const out = static_cast<float*>(p.out) + i * p.classes;
      const int64_t y = ClassOf(p, i);
      if (y < 0) {
        std::fill_n(out, p.classes, 0.0f);
        continue;
      }
      const double g = static_cast<double>(static_cast<const float*>(p.gradient)[p.reduction == kNone ? i : 0]);
      const double scale = p.reduction == kMean ? g / counted : g;
      const double a = scale * (1 - p.smoothing) * WeightOf(p, y), b = scale * p.smoothing / static_cast<double>(p.classes);
      const float* const weight = static_cast<const float*>(p.weight);
      row_of(static_cast<const float*>(p.log_prob) + i * p.classes, weight, static_cast<float>(a + b * all), static_cast<float>(b), p.classes, out);
      out[y] -= static_cast<float>(a);
    }
  });
}

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> CrossEntropyGradKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::CrossEntropyGradParams, FitsAlways, loss::Run>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
