// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Channels of a tensor as rows of the engine of norms.
#ifndef ANYACL_OPS_NORM_CHANNELS_H_
#define ANYACL_OPS_NORM_CHANNELS_H_

#include "core/tensor.h"
#include "ops/dense.h"
#include "ops/norm/row_norm.h"

namespace anyacl::norm {

// Where the channels are and how the kernels get at them: as they lie in [samples, C, inner], or channel by channel where
// `inner` is too short for loops. The shape alone decides.
class Channels {
 public:
  Channels(const Tensor& tensor, int axis) : axis_(axis), channels_(tensor.dims[axis]) {
    int64_t samples = 1, inner = 1;
    for (int i = 0; i < axis; ++i) samples *= tensor.dims[i];
    for (int i = axis + 1; i < tensor.rank(); ++i) inner *= tensor.dims[i];
    count_ = samples * inner;
    channel_first_ = inner < kShortest && samples > 1;
    shape_ = channel_first_ ? ChannelRows(1, channels_, count_) : ChannelRows(samples, channels_, inner);
  }

  int64_t channels() const { return channels_; }
  int64_t count() const { return count_; }  // numbers of one channel
  const Rows& shape() const { return shape_; }
  // The operand in the order in which the rows count.
  Operand View(const Operand& operand) const { return channel_first_ ? AxisFirst(operand, axis_) : operand; }

 private:
  static constexpr int64_t kShortest = 16;
  int axis_;
  int64_t channels_;
  int64_t count_;
  bool channel_first_;
  Rows shape_;
};

}  // namespace anyacl::norm

#endif  // ANYACL_OPS_NORM_CHANNELS_H_
