// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/search.h"

#include <algorithm>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::order {
namespace {

using pointwise::Compute;

// How the halves are chosen decides what NaN and unsorted sequences give: in both, as PyTorch does.
template <class T>
int64_t Bisect(const SearchParams& p, const T* sequence, const int64_t* sorter, T x) {
  int64_t begin = 0, end = p.length;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const int64_t place = sorter ? std::clamp<int64_t>(sorter[middle], 0, p.length - 1) : middle;
    const T here = sequence[place];
    const bool before = p.right ? here > x : here >= x;
    if (before) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

template <class T>
void Search(const SearchParams& p) {
  T number;
  std::memcpy(&number, p.number, sizeof(T));
  const int64_t total = p.rows * p.count;
  constexpr int64_t kPerTask = cpu::kTask / 8;
  cpu::ParallelFor(cpu::CeilDiv(total, kPerTask), [&](int64_t task) {
    for (int64_t i = task * kPerTask; i < std::min(total, (task + 1) * kPerTask); ++i) {
      const int64_t row = i / p.count;
      const int64_t* const sorter = p.sorter ? static_cast<const int64_t*>(p.sorter) + row * p.length : nullptr;
      const T x = p.in ? static_cast<const T*>(p.in)[i] : number;
      static_cast<int64_t*>(p.out)[i] = Bisect(p, static_cast<const T*>(p.sequence) + row * p.length, sorter, x);
    }
  });
}

bool Fits(const SearchParams& p) { return p.compute != Compute::kComplex && p.compute != Compute::kDoubleComplex; }

void Run(const SearchParams& p) {
  switch (p.compute) {
    case Compute::kFloat:
      return Search<float>(p);
    case Compute::kDouble:
      return Search<double>(p);
    case Compute::kInt:
      return Search<int64_t>(p);
    case Compute::kUnsigned:
      return Search<uint64_t>(p);
    default:
      return;
  }
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

std::span<const Kernel> SearchKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<order::SearchParams, order::Fits, order::Run>("bisection")};
  return kernels;
}

}  // namespace anyacl::cpu
