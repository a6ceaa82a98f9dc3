// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/grouped.h"

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl {
namespace {

using pointwise::RunConversion;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Calls visit(range) for every range of this group, cut to what there is.
template <class Visit>
void ForRanges(const GroupedParams& p, int64_t limit, const Visit& visit) {
  if (p.kind == GroupList::kEnds) {
    const auto end_of = [&](int64_t group) { return group < 0 ? 0 : std::clamp<int64_t>(p.list[group], 0, limit); };
    const int64_t begin = end_of(p.group - 1);
    return visit(Range{begin, std::max(begin, end_of(p.group))});
  }
  int64_t begin = 0;
  for (int64_t i = 0; i < p.entries; ++i) {
    const int64_t group = p.kind == GroupList::kPairs ? p.list[2 * i] : i;
    const int64_t count = p.kind == GroupList::kPairs ? p.list[2 * i + 1] : p.list[i];
    if (p.kind == GroupList::kPairs && count <= 0) return;
    const int64_t end = begin + std::clamp<int64_t>(count, 0, limit - begin);
    if (group == p.group) visit(Range{begin, end});
    begin = end;
  }
}

void Skip(GemmOperand* operand, int axis, int64_t steps) {
  operand->data = static_cast<unsigned char*>(operand->data) + steps * operand->strides[axis] * static_cast<int64_t>(SizeOf(operand->dtype));
}

// y = sums + bias, rounded once.
void Store(const GroupedParams& p, const GemmParams& product, int64_t first_row) {
  const RunConversion store = pointwise::StoreConversion(pointwise::Compute::kFloat, p.y_type);
  const int64_t size = static_cast<int64_t>(SizeOf(p.y_type)), together = std::max<int64_t>(1, cpu::kTask / product.n);
  cpu::ParallelFor(cpu::CeilDiv(product.m, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(product.m, (task + 1) * together); ++row) {
      float* const sums = product.c + row * product.n;
      for (int64_t i = 0; p.bias && i < product.n; ++i) sums[i] += p.bias[i];
      store(sums, 1, static_cast<unsigned char*>(p.y) + (first_row + row) * p.y_row * size, p.y_column, product.n);
    }
  });
}

void Multiply(const GroupedParams& p, const GemmParams& product, int64_t first_row) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) {
    std::fill_n(product.c, product.m * product.n, 0.0f);
  } else {
    cpu::Gemm(product);
  }
  Store(p, product, first_row);
}

void RunGroup(const GroupedParams& p) {
  const int64_t limit = p.along_k ? p.product.k : p.product.m;
  ForRanges(p, limit, [&](Range range) {
    GemmParams product = p.product;
    // Axes of an operand: lines, k.
    if (p.along_k) {
      product.k = product.a.dims[1] = product.b.dims[1] = range.size();
      Skip(&product.a, 1, range.begin);
      Skip(&product.b, 1, range.begin);
    } else {
      product.m = product.a.dims[0] = range.size();
      Skip(&product.a, 0, range.begin);
    }
    Multiply(p, product, p.along_k ? 0 : range.begin);
  });
}

}  // namespace

namespace cpu {

std::span<const Kernel> GroupedKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<GroupedParams, FitsAlways<GroupedParams>, RunGroup>("panels")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
