// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The axes of a strided copy, merged and sorted: what the copies of all backends start from. Header only, because the
// CUDA plug-in links nothing of ours.
#ifndef ANYACL_CORE_STRIDED_LAYOUT_H_
#define ANYACL_CORE_STRIDED_LAYOUT_H_

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "core/tensor.h"

namespace anyacl {

struct StridedAxis {
  int64_t size;
  int64_t from;  // strides in elements
  int64_t to;
};

struct StridedLayout {
  StridedAxis axes[kMaxRank + 1];
  int rank = 0;
  int64_t count = 1;
};

namespace internal {

// Walks to the inner axis first those that are written closest together. Stable, so equal strides keep
// order; by insertion, because std::stable_sort allocates and phase 2 must not.
inline void SortByWrites(StridedLayout& layout) {
  for (int i = 1; i < layout.rank; ++i) {
    for (int j = i; j > 0 && std::abs(layout.axes[j - 1].to) < std::abs(layout.axes[j].to); --j) {
      std::swap(layout.axes[j - 1], layout.axes[j]);
    }
  }
}

inline void MergeAxes(StridedLayout& layout) {
  int kept = 0;
  for (int i = 0; i < layout.rank; ++i) {
    const StridedAxis axis = layout.axes[i];
    StridedAxis* const outer = kept > 0 ? &layout.axes[kept - 1] : nullptr;
    if (outer && outer->from == axis.from * axis.size && outer->to == axis.to * axis.size) {
      *outer = {outer->size * axis.size, axis.from, axis.to};
    } else {
      layout.axes[kept++] = axis;
    }
  }
  layout.rank = kept;
}

}  // namespace internal

// At least one axis. With `keep_order` the elements stay in row-major order of the dims.
inline StridedLayout Simplify(const Dims& dims, const Dims& from, const Dims& to, bool keep_order) {
  StridedLayout layout;
  for (int i = 0; i < dims.rank(); ++i) {
    layout.count *= dims[i];
    if (dims[i] != 1) layout.axes[layout.rank++] = {dims[i], from[i], to[i]};
  }
  if (!keep_order) internal::SortByWrites(layout);
  internal::MergeAxes(layout);
  if (layout.rank == 0) layout.axes[layout.rank++] = {1, 1, 1};
  return layout;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_STRIDED_LAYOUT_H_
