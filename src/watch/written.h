// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which bytes of a block were ever written: one bit each.
#ifndef ANYACL_WATCH_WRITTEN_H_
#define ANYACL_WATCH_WRITTEN_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace anyacl::watch {

class Written {
 public:
  explicit Written(size_t bytes) : bytes_(bytes) {}

  void MarkAll() {
    all_ = true;
    words_ = {};
  }
  void Mark(size_t begin, size_t bytes) {
    if (all_) return;
    if (begin == 0 && bytes >= bytes_) return MarkAll();
    any_ = true;
    ForWords(begin, bytes, [](uint64_t& word, uint64_t mask) { word |= mask; });
  }
  bool none() const { return !all_ && !any_; }

  struct Gap {
    size_t bytes = 0;  // that were never written
    size_t first = 0;
  };
  void Find(size_t begin, size_t bytes, Gap* gap) {
    if (all_) return;
    ForWords(begin, bytes, [&](const uint64_t& word, uint64_t mask) {
      const uint64_t missing = ~word & mask;
      if (missing == 0) return;
      if (gap->bytes == 0) {
        gap->first = static_cast<size_t>(&word - words_.data()) * 64 +
                     static_cast<size_t>(std::countr_zero(missing));
      }
      gap->bytes += static_cast<size_t>(std::popcount(missing));
    });
  }

 private:
  // visit(word, mask of the bits that are meant)
  template <class Visit>
  void ForWords(size_t begin, size_t bytes, Visit&& visit) {
    if (begin >= bytes_) return;
    if (words_.empty()) words_.resize(bytes_ / 64 + 1);
    const size_t end = begin + std::min(bytes, bytes_ - begin);
    for (size_t at = begin; at < end;) {
      const size_t low = at % 64, high = std::min(end - at + low, size_t{64});
      const uint64_t below_high = high == 64 ? ~uint64_t{0} : (uint64_t{1} << high) - 1;
      visit(words_[at / 64], below_high & ~uint64_t{0} << low);
      at += high - low;
    }
  }

  size_t bytes_;
  bool all_ = false;
  bool any_ = false;
  std::vector<uint64_t> words_;  // made when they are needed
};

// Calls visit(offset, bytes) for the pieces of memory that a view consists of; offsets are bytes from its data pointer.
template <class Visit>
void ForEachPiece(const Tensor& t, Visit&& visit) {
  if (t.empty()) return;
  int axes[kMaxRank];
  int count = 0;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.dims[i] > 1 && t.strides[i] != 0) axes[count++] = i;
  }
  std::sort(axes, axes + count, [&](int a, int b) { return t.strides[a] < t.strides[b]; });
  int64_t piece = 1;  // elements one behind the other, over the innermost axes
  int inside = 0;
  for (; inside < count && t.strides[axes[inside]] == piece; ++inside)
    piece *= t.dims[axes[inside]];
  int64_t at[kMaxRank] = {};
  int64_t element = t.offset;
  const auto size = static_cast<int64_t>(SizeOf(t.dtype));
  while (true) {
    visit(element * size, piece * size);
    int axis = inside;
    for (; axis < count; ++axis) {
      element += t.strides[axes[axis]];
      if (++at[axis] < t.dims[axes[axis]]) break;
      element -= t.strides[axes[axis]] * at[axis];
      at[axis] = 0;
    }
    if (axis == count) return;
  }
}

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_WRITTEN_H_
