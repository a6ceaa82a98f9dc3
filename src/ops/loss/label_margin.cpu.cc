// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/loss/label_margin.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::loss {
namespace {

template <class T>
double RowOf(const LabelMarginParams& p, int64_t row) {
  const T* const x = static_cast<const T*>(p.x) + row * p.classes;
  const int64_t* const target = static_cast<const int64_t*>(p.target) + row * p.classes;
  T* const marks = static_cast<T*>(p.marks) + row * p.classes;
  const int64_t labels = std::find(target, target + p.classes, -1) - target;
  const auto is_class = [&](int64_t label) { return label >= 0 && label < p.classes; };
  std::fill_n(marks, p.classes, T(0));
  for (int64_t k = 0; k < labels; ++k) {
    if (is_class(target[k])) marks[target[k]] = T(1);
  }
  double sum = 0;
  for (int64_t k = 0; k < labels; ++k) {
    if (!is_class(target[k])) continue;
    for (int64_t i = 0; i < p.classes; ++i) {
      const T margin = T(1) - (x[target[k]] - x[i]);
      if (marks[i] == T(0) && margin > T(0)) sum += static_cast<double>(margin);
    }
  }
  return sum / static_cast<double>(p.classes);
}

template <class T>
void Rows(const LabelMarginParams& p) {
  const int64_t together = std::max<int64_t>(1, cpu::kTask / p.classes / 8);
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) static_cast<double*>(p.out)[row] = RowOf<T>(p, row);
  });
}

void Run(const LabelMarginParams& p) { p.wide ? Rows<double>(p) : Rows<float>(p); }

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> LabelMarginKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::LabelMarginParams, FitsAlways, loss::Run>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
