// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/loss/chamfer.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::loss {
namespace {

// What `count` points with their nearest ones among `others` points give to the gradients of both, in the order of the points.
void AddTerms(const float* points, const float* others, const int64_t* index, const float* grad, int64_t count, int64_t other_count, float* out,
              float* other_out) {
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= other_count) continue;
    for (int64_t axis = 0; axis < 2; ++axis) {
      const float term = 2 * grad[i] * (points[2 * i + axis] - others[2 * index[i] + axis]);
      out[2 * i + axis] += term;
      other_out[2 * index[i] + axis] -= term;
    }
  }
}

template <class T>
auto At(T* array, int64_t offset) {
  return static_cast<std::conditional_t<std::is_const_v<T>, const float*, float*>>(array) + offset;
}

void Run(const ChamferParams& p) {
  cpu::ParallelFor(p.batch, [&](int64_t b) {
    const float* const a = At(p.a, b * p.n * 2);
    const float* const other = At(p.b, b * p.m * 2);
    float* const out_a = At(p.out_a, b * p.n * 2);
    float* const out_b = At(p.out_b, b * p.m * 2);
    std::fill_n(out_a, p.n * 2, 0.0f);
    std::fill_n(out_b, p.m * 2, 0.0f);
    AddTerms(a, other, static_cast<const int64_t*>(p.index_a) + b * p.n, At(p.grad_a, b * p.n), p.n, p.m, out_a, out_b);
    AddTerms(other, a, static_cast<const int64_t*>(p.index_b) + b * p.m, At(p.grad_b, b * p.m), p.m, p.n, out_b, out_a);
  });
}

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> ChamferKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::ChamferParams, FitsAlways, loss::Run>("clouds")};
  return kernels;
}

}  // namespace anyacl::cpu
