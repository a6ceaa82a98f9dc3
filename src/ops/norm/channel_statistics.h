// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Statistics of channels: joined from several ranks, and carried along from batch to batch. Pointers are to dense arrays of
// float, or double with `wide`; null where there is none. One number per channel unless it says more.
//
//   running_mean = (1 - momentum) * running_mean + momentum * mean
//   running_variance likewise, with variance * n / (n - 1)
#ifndef ANYACL_OPS_NORM_CHANNEL_STATISTICS_H_
#define ANYACL_OPS_NORM_CHANNEL_STATISTICS_H_

#include <cstdint>

namespace anyacl::norm {

struct ChannelStatisticsParams {
  enum Kind : uint8_t {
    kMoments,  // first: pairs of mean and variance, always double, over `count` numbers
    kRanks,    // first: mean [ranks, C], second: reciprocal deviation [ranks, C], counts [ranks]
    kSums,     // first: sum [ranks, C], second: sum of squares [ranks, C], counts [ranks], always int32
  };
  Kind kind = kMoments;
  bool wide = false;
  bool one_is_none = true;  // with n = 1, running_variance becomes NaN; else variance counts as it is
  int64_t ranks = 0;
  int64_t channels = 0;
  int64_t count = 0;
  double momentum = 0;
  double eps = 0;
  const void* first = nullptr;
  const void* second = nullptr;
  const void* counts = nullptr;
  const void* running_mean = nullptr;
  const void* running_variance = nullptr;
  void* new_running_mean = nullptr;
  void* new_running_variance = nullptr;
  void* mean = nullptr;
  void* rstd = nullptr;
};

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_CHANNEL_STATISTICS_H_
