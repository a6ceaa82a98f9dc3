// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The floor of the benchmarks: reads some arrays and writes others, 16 bytes of each per thread, and computes nothing.
#include <cstdint>

#include "cuda/transfers.h"

namespace anyacl::cuda {
namespace {

constexpr int kThreads = 256;

// One pass over arrays of one length. No streaming hints: they cost on this access pattern.
template <int kReads, int kWrites>
__global__ void Move(const __grid_constant__ MovePass pass) {
  const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pass.bytes / sizeof(uint4)) return;
  uint4 v{};
#pragma unroll
  for (int r = 0; r < kReads; ++r) {
    const uint4 next = __ldg(static_cast<const uint4*>(pass.reads[r]) + i);
    v = {v.x | next.x, v.y | next.y, v.z | next.z, v.w | next.w};
  }
#pragma unroll
  for (int w = 0; w < kWrites; ++w) static_cast<uint4*>(pass.writes[w])[i] = v;
}

template <int kReads>
void Launch(const MovePass& pass, cudaStream_t stream) {
  const auto threads = pass.bytes / sizeof(uint4);
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  switch (pass.write_count) {
    case 1:
      return Move<kReads, 1><<<blocks, kThreads, 0, stream>>>(pass);
    case 2:
      return Move<kReads, 2><<<blocks, kThreads, 0, stream>>>(pass);
    case 3:
      return Move<kReads, 3><<<blocks, kThreads, 0, stream>>>(pass);
    default:
      return Move<kReads, 4><<<blocks, kThreads, 0, stream>>>(pass);
  }
}

}  // namespace

void MoveBytes(const MovePass& pass, cudaStream_t stream) {
  if (pass.bytes == 0) return;
  switch (pass.read_count) {
    case 1:
      return Launch<1>(pass, stream);
    case 2:
      return Launch<2>(pass, stream);
    case 3:
      return Launch<3>(pass, stream);
    default:
      return Launch<4>(pass, stream);
  }
}

}  // namespace anyacl::cuda
