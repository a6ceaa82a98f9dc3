// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/requantise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl {
namespace {

constexpr int kOffsetBit = 37, kOffsetBits = 9;
constexpr uint32_t kScaleBits = ~uint32_t{0x1fff};  // the product units take no more of a scale

float ScaleOf(int64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }
float OffsetOf(int64_t word) {
  constexpr int kAbove = 64 - kOffsetBit - kOffsetBits;
  return static_cast<float>(static_cast<int64_t>(static_cast<uint64_t>(word) << kAbove) >> (64 - kOffsetBits));
}

void Requantise(const RequantiseParams& p) {
  const int64_t together = std::max<int64_t>(1, cpu::kTask / p.columns);
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together), [&](int64_t task) {
    for (int64_t row = task * together; row < std::min(p.rows, (task + 1) * together); ++row) {
      for (int64_t i = 0; i < p.columns; ++i) {
        const float value = std::nearbyint(p.y[row * p.columns + i] * ScaleOf(p.words[i])) + OffsetOf(p.words[i]);
        p.out[row * p.columns + i] = std::isnan(value) ? int8_t{0} : static_cast<int8_t>(std::clamp(value, -128.0f, 127.0f));
      }
    }
  });
}

void QuantWords(const QuantWordsParams& p) {
  for (int64_t i = 0; i < p.count; ++i) {
    const uint32_t scale = std::bit_cast<uint32_t>(p.scale[i * p.scale_step]) & kScaleBits;
    const float offset = p.offset ? std::nearbyint(p.offset[i * p.offset_step]) : 0.0f;
    const auto whole = static_cast<int64_t>(std::isnan(offset) ? 0.0f : std::clamp(offset, -256.0f, 255.0f));
    p.words[i] = static_cast<int64_t>(scale | (static_cast<uint64_t>(whole) & ((1u << kOffsetBits) - 1)) << kOffsetBit);
  }
}

}  // namespace

namespace cpu {

std::span<const Kernel> RequantiseKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<RequantiseParams, FitsAlways<RequantiseParams>, Requantise>("rows")};
  return kernels;
}
std::span<const Kernel> QuantWordsKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<QuantWordsParams, FitsAlways<QuantWordsParams>, QuantWords>("plain")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
