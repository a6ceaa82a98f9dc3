// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/pointwise/any.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::pointwise {
namespace {

void RunAny(const AnyParams& p) {
  const auto* const in = static_cast<const unsigned char*>(p.in);
  constexpr int64_t kTask = 1 << 18;  // bytes; memchr is fast
  std::atomic<bool> found{false};
  cpu::ParallelFor(cpu::CeilDiv(p.count, kTask), [&](int64_t task) {
    const int64_t begin = task * kTask;
    const size_t size = static_cast<size_t>(std::min(kTask, p.count - begin));
    if (!found.load(std::memory_order_relaxed) && std::memchr(in + begin, 1, size)) found.store(true, std::memory_order_relaxed);
  });
  *static_cast<unsigned char*>(p.out) = found.load() != p.invert;
}

}  // namespace
}  // namespace anyacl::pointwise

namespace anyacl::cpu {

std::span<const Kernel> AnyKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<pointwise::AnyParams, FitsAlways<pointwise::AnyParams>, pointwise::RunAny>("memchr")};
  return kernels;
}

}  // namespace anyacl::cpu
