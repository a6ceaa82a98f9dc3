// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/indexing/repeat.h"

#include <algorithm>

#include "cpu/kernels.h"

namespace anyacl::indexing {
namespace {

void RunRepeat(const RepeatParams& p) {
  const int64_t* const counts = static_cast<const int64_t*>(p.counts);
  int64_t* const out = static_cast<int64_t*>(p.out);
  int64_t done = 0;
  for (int64_t i = 0; i < p.items && done < p.size; ++i) {
    const int64_t count = std::clamp<int64_t>(counts[p.one_count ? 0 : i], 0, p.size - done);
    std::fill_n(out + done, count, i);
    done += count;
  }
  std::fill(out + done, out + p.size, p.rest);
}

}  // namespace
}  // namespace anyacl::indexing

namespace anyacl::cpu {

std::span<const Kernel> RepeatKernels() {
  using indexing::RepeatParams;
  static constexpr Kernel kernels[] = {MakeKernel<RepeatParams, FitsAlways<RepeatParams>, indexing::RunRepeat>("repeat")};
  return kernels;
}

}  // namespace anyacl::cpu
