// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/dots.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl {
namespace {

template <class T>
void Dots(const DotsParams& p) {
  const int64_t lines = p.batch * p.lines, together = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(p.k, 1));
  cpu::ParallelFor(cpu::CeilDiv(lines, together), [&](int64_t task) {
    for (int64_t line = task * together; line < std::min(lines, (task + 1) * together); ++line) {
      const T* const x = static_cast<const T*>(p.x) + line / p.lines * p.k;
      const T* const y = static_cast<const T*>(p.y) + line * p.k;
      T sum = 0;
      for (int64_t i = 0; i < p.k; ++i) sum += x[i] * y[i];
      static_cast<T*>(p.out)[line] = sum;
    }
  });
}

void Run(const DotsParams& p) { p.whole ? Dots<int64_t>(p) : Dots<double>(p); }

}  // namespace

namespace cpu {

std::span<const Kernel> DotsKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<DotsParams, FitsAlways<DotsParams>, Run>("rows")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
