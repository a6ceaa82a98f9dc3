// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/pointwise/any.h"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

namespace anyacl::pointwise {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 16;  // bytes of a thread

__global__ void Begin(const __grid_constant__ AnyParams p) {
  cuda::BeginKernel();
  *static_cast<unsigned char*>(p.out) = p.invert;
}

// Whoever finds one says so; they all say the same.
__global__ void Find(const __grid_constant__ AnyParams p) {
  cuda::BeginKernel();
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (kThreads * kEach) + threadIdx.x;
  bool found = false;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t at = begin + i * kThreads;
    if (at < p.count) found |= static_cast<const unsigned char*>(p.in)[at] != 0;
  }
  if (__syncthreads_or(found) && threadIdx.x == 0) *static_cast<unsigned char*>(p.out) = !p.invert;
}

bool FitsAlways(const AnyParams&) { return true; }

void Run(const AnyParams& p, const Launch& launch) {
  cuda::LaunchKernel<Begin>(launch, {.blocks = 1, .threads = 1}, p);
  if (p.count > 0) cuda::LaunchKernel<Find>(launch, {.blocks = cuda::CeilDiv<int64_t>(p.count, kThreads * kEach), .threads = kThreads}, p);
}

}  // namespace
}  // namespace anyacl::pointwise

namespace anyacl::cuda {

std::span<const Kernel> AnyKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<pointwise::AnyParams, pointwise::FitsAlways, pointwise::Run>("simple")};
  return kernels;
}

}  // namespace anyacl::cuda
