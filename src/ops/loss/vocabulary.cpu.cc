// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>

#include "ops/loss/vocabulary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/loss/vocabulary.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/pointwise/lanes-inl.h"
#include "ops/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace loss {
namespace HWY_NAMESPACE {

using V = pointwise::HWY_NAMESPACE::Lanes<float>;

// out = e^(x - most) / total; returns its sum.
double ExpRow(const float* x, float most, float total, int64_t count, float* out) {
  const int64_t step = static_cast<int64_t>(V::Count());
  const auto of = [&](V number) { return Exp(number - V(most)) / V(total); };
  int64_t i = 0;
  for (; i + step <= count; i += step) of(V::Load(x + i)).Store(out + i);
  if (i < count) {
    float part[V::kMost] = {};
    std::copy_n(x + i, count - i, part);
    of(V::Load(part)).Store(part);
    std::copy_n(part, count - i, out + i);
  }
  return anyacl::HWY_NAMESPACE::SumOf(count, [&](int64_t k) { return static_cast<double>(out[k]); });
}

}  // namespace HWY_NAMESPACE
}  // namespace loss
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::loss {

HWY_EXPORT(ExpRow);

namespace {

void TargetOf(const VocabularyParams& p, int64_t row) {
  const int64_t place = static_cast<const int32_t*>(p.target)[row] - p.start;
  const bool here = place >= 0 && place < p.count;
  static_cast<int32_t*>(p.offset)[row] = here ? static_cast<int32_t>(place) : 0;
  static_cast<int32_t*>(p.mask)[row] = here ? 0 : 1;
  static_cast<float*>(p.predicted)[row] = here ? static_cast<const float*>(p.x)[row * p.count + place] - static_cast<const float*>(p.most)[row] : 0.0f;
}

void Run(const VocabularyParams& p) {
  const auto row_of = ANYACL_FAMILY_DISPATCH(ExpRow);
  const int64_t together = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(1, p.count));
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) {
      const float total = p.total ? static_cast<const float*>(p.total)[row] : 1.0f;
      const int64_t at = row * p.count;
      const double sum = row_of(static_cast<const float*>(p.x) + at, static_cast<const float*>(p.most)[row], total, p.count, static_cast<float*>(p.exp) + at);
      if (!p.target) continue;
      static_cast<float*>(p.sum)[row] = static_cast<float>(sum);
      TargetOf(p, row);
    }
  });
}

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> VocabularyKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::VocabularyParams, FitsAlways, loss::Run>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
