// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/count.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/kernels.h"

namespace anyacl::order {
namespace {

using pointwise::Compute;

void CountValues(const CountParams& p) {
  const int64_t* const in = static_cast<const int64_t*>(p.in);
  const double* const weights = static_cast<const double*>(p.weights);
  for (int64_t i = 0; i < p.count; ++i) {
    if (in[i] < 0 || in[i] >= p.bins) continue;
    if (weights) static_cast<double*>(p.out)[in[i]] += weights[i];
    else ++static_cast<int64_t*>(p.out)[in[i]];
  }
}

// Multiplied before it is divided, in the type of the elements: another way moves elements that lie on an edge.
template <class T>
int64_t BinOf(T x, T low, T high, int64_t bins) {
  int64_t bin;
  if constexpr (std::is_integral_v<T>) {
    using Wide = __int128;
    bin = static_cast<int64_t>((static_cast<Wide>(x) - low) * bins / (static_cast<Wide>(high) - low));
  } else {
    const T at = (x - low) * static_cast<T>(bins) / (high - low);
    bin = at < static_cast<T>(bins) ? static_cast<int64_t>(at) : bins - 1;  // also where the edges are too far apart
  }
  return std::min(bin, bins - 1);
}

template <class T>
void CountBetween(const CountParams& p) {
  constexpr bool kWhole = std::is_integral_v<T>;
  const T* const in = static_cast<const T*>(p.in);
  int64_t* const out = static_cast<int64_t*>(p.out);
  T low = kWhole ? static_cast<T>(p.whole_low) : static_cast<T>(p.low);
  T high = kWhole ? static_cast<T>(p.whole_high) : static_cast<T>(p.high);
  if (p.from_data) {
    low = high = in[0];
    for (int64_t i = 0; i < p.count; ++i) {
      if constexpr (!kWhole) {
        if (!std::isfinite(in[i])) return;  // such edges count nothing
      }
      low = std::min(low, in[i]);
      high = std::max(high, in[i]);
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
  }
  for (int64_t i = 0; i < p.count; ++i) {
    if (in[i] >= low && in[i] <= high) ++out[BinOf(in[i], low, high, p.bins)];
  }
}

bool Fits(const CountParams& p) {
  return p.compute == Compute::kFloat || p.compute == Compute::kDouble || p.compute == Compute::kInt;
}

void Run(const CountParams& p) {
  if (p.weights) std::fill_n(static_cast<double*>(p.out), p.bins, 0.0);
  else std::fill_n(static_cast<int64_t*>(p.out), p.bins, int64_t{0});
  if (p.count == 0) return;
  if (!p.between) return CountValues(p);
  switch (p.compute) {
    case Compute::kFloat:
      return CountBetween<float>(p);
    case Compute::kDouble:
      return CountBetween<double>(p);
    default:
      return CountBetween<int64_t>(p);
  }
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

std::span<const Kernel> CountKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<order::CountParams, order::Fits, order::Run>("serial")};
  return kernels;
}

}  // namespace anyacl::cpu
