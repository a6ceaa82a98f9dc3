// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/creation/series.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::creation {
namespace {

using pointwise::Compute;

constexpr int64_t kBlock = 256;

bool IsComplexSeries(const SeriesParams& p) { return IsComplex(p.dtype) || p.dtype == DType::kC32; }

Compute ComputeOfSeries(const SeriesParams& p) {
  if (p.kind == SeriesParams::kWholeSteps) return Compute::kInt;
  return IsComplexSeries(p) ? Compute::kDoubleComplex : Compute::kDouble;
}

std::complex<double> Between(const SeriesParams& p, int64_t i) {
  const bool first_half = i < p.count / 2;
  const double steps = static_cast<double>(first_half ? i : p.count - 1 - i);
  const auto part = [&](int k) {
    // The step times a number of steps, and one rounding of the sum.
    return first_half ? std::fma(steps, p.step[k], p.start[k]) : std::fma(-steps, p.step[k], p.end[k]);
  };
  return {part(0), part(1)};
}

void RunRange(const SeriesParams& p, int64_t begin, int64_t end) {
  const pointwise::RunConversion store = pointwise::StoreConversion(ComputeOfSeries(p), p.dtype);
  const bool complex_numbers = IsComplexSeries(p);
  alignas(64) int64_t whole[kBlock];
  alignas(64) double real[2 * kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t i = at + j;
      if (p.kind == SeriesParams::kWholeSteps) {
        whole[j] = static_cast<int64_t>(static_cast<uint64_t>(p.whole) + static_cast<uint64_t>(i) * static_cast<uint64_t>(p.whole_step));
        continue;
      }
      std::complex<double> value;
      if (p.kind == SeriesParams::kSteps) value = p.start[0] + static_cast<double>(i) * p.step[0];
      else value = Between(p, i);
      if (p.kind == SeriesParams::kPowers) value = complex_numbers ? std::pow(std::complex<double>(p.base), value) : std::pow(p.base, value.real());
      if (complex_numbers) {
        real[2 * j] = value.real();
        real[2 * j + 1] = value.imag();
      } else {
        real[j] = value.real();
      }
    }
    const void* const block = p.kind == SeriesParams::kWholeSteps ? static_cast<const void*>(whole) : real;
    store(block, 1, static_cast<unsigned char*>(p.out) + at * static_cast<int64_t>(SizeOf(p.dtype)), 1, count);
  }
}

bool Fits(const SeriesParams& p) { return pointwise::StoreConversion(ComputeOfSeries(p), p.dtype) != nullptr; }

void Run(const SeriesParams& p) {
  cpu::ParallelFor(cpu::CeilDiv(p.count, cpu::kTask),
                   [&](int64_t task) { RunRange(p, task * cpu::kTask, std::min(p.count, (task + 1) * cpu::kTask)); });
}

}  // namespace
}  // namespace anyacl::creation

namespace anyacl::cpu {

std::span<const Kernel> SeriesKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<creation::SeriesParams, creation::Fits, creation::Run>("series")};
  return kernels;
}

}  // namespace anyacl::cpu
