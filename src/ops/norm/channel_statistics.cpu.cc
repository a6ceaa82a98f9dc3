// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/norm/channel_statistics.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::norm {
namespace {

struct Statistics {
  double mean;
  double variance;
  double count;
};

template <class T>
Statistics Of(const ChannelStatisticsParams& p, int64_t channel) {
  if (p.kind == ChannelStatisticsParams::kMoments) {
    const double* const moments = static_cast<const double*>(p.first) + 2 * channel;
    return {moments[0], moments[1], static_cast<double>(p.count)};
  }
  const T* const first = static_cast<const T*>(p.first) + channel;
  const T* const second = static_cast<const T*>(p.second) + channel;
  double n = 0;
  double sum = 0;
  double squares = 0;
  if (p.kind == ChannelStatisticsParams::kSums) {
    for (int64_t k = 0; k < p.ranks; ++k) {
      n += static_cast<const int32_t*>(p.counts)[k];
      sum += static_cast<double>(first[k * p.channels]);
      squares += static_cast<double>(second[k * p.channels]);
    }
    const double mean = sum / n;
    const double variance = squares / n - mean * mean;
    return {mean, variance < 0 ? 0 : variance, n};
  }
  const T* const counts = static_cast<const T*>(p.counts);
  for (int64_t k = 0; k < p.ranks; ++k) {
    n += static_cast<double>(counts[k]);
    sum += static_cast<double>(counts[k]) * static_cast<double>(first[k * p.channels]);
  }
  const double mean = sum / n;
  for (int64_t k = 0; k < p.ranks; ++k) {
    const double rstd = static_cast<double>(second[k * p.channels]);
    const double away = static_cast<double>(first[k * p.channels]) - mean;
    squares += static_cast<double>(counts[k]) * (1 / (rstd * rstd) - p.eps + away * away);
  }
  return {mean, squares / n, n};
}

template <class T>
void Put(void* vector, int64_t i, double value) {
  if (vector) static_cast<T*>(vector)[i] = static_cast<T>(value);
}

template <class T>
void OneChannel(const ChannelStatisticsParams& p, int64_t channel) {
  const Statistics s = Of<T>(p, channel);
  Put<T>(p.mean, channel, s.mean);
  Put<T>(p.rstd, channel, 1 / std::sqrt(s.variance + p.eps));
  if (!p.new_running_mean && !p.new_running_variance) return;
  const double unbiased = s.count == 1 && !p.one_is_none ? s.variance : s.variance * s.count / (s.count - 1);
  const auto update = [&](const void* before, void* after, double value) {
    if (!before || !after) return;
    Put<T>(after, channel, (1 - p.momentum) * static_cast<double>(static_cast<const T*>(before)[channel]) + p.momentum * value);
  };
  update(p.running_mean, p.new_running_mean, s.mean);
  update(p.running_variance, p.new_running_variance, unbiased);
}

void Run(const ChannelStatisticsParams& p) {
  constexpr int64_t kTogether = 1024;
  cpu::ParallelFor(cpu::CeilDiv(p.channels, kTogether), [&](int64_t task) {
    for (int64_t c = task * kTogether; c < std::min(p.channels, (task + 1) * kTogether); ++c) {
      p.wide ? OneChannel<double>(p, c) : OneChannel<float>(p, c);
    }
  });
}

}  // namespace
}  // namespace anyacl::norm

namespace anyacl::cpu {

std::span<const Kernel> ChannelStatisticsKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<norm::ChannelStatisticsParams, FitsAlways, norm::Run>("channels")};
  return kernels;
}

}  // namespace anyacl::cpu
