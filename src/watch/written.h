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
    stretch_ = {0, bytes_};
    words_ = {};
  }
  void Mark(size_t begin, size_t bytes) {
    const size_t end = EndOf(begin, bytes);
    if (begin >= end || HasAll(begin, end)) return;
    const bool joins = none() || (begin <= stretch_.end && stretch_.begin <= end);
    if (!joins && words_.empty()) {
      words_.resize(bytes_ / 64 + 1);
      SetWords(stretch_.begin, stretch_.end);
    }
    if (!words_.empty()) SetWords(begin, end);
    if (joins && !none())
      stretch_ = {std::min(begin, stretch_.begin), std::max(end, stretch_.end)};
    else if (end - begin > stretch_.end - stretch_.begin)
      stretch_ = {begin, end};
    if (HasAll(0, bytes_)) MarkAll();
  }
  bool none() const { return stretch_.begin == stretch_.end; }
  // Looks at the longest stretch alone: false means nothing.
  bool HasAll(size_t begin, size_t end) const {
    return stretch_.begin <= begin && end <= stretch_.end;
  }

  struct Gap {
    size_t bytes = 0;  // that were never written
    size_t first = 0;
  };
  void Find(size_t begin, size_t bytes, Gap* gap) const {
    const size_t end = EndOf(begin, bytes);
    if (begin >= end || HasAll(begin, end)) return;
    const auto add = [&](size_t first, size_t count) {
      if (count == 0) return;
      if (gap->bytes == 0) gap->first = first;
      gap->bytes += count;
    };
    if (words_.empty()) {
      const size_t before = std::clamp(stretch_.begin, begin, end),
                   behind = std::clamp(stretch_.end, before, end);
      add(begin, before - begin);
      add(behind, end - behind);
      return;
    }
    ForWords(words_.data(), begin, end, [&](const uint64_t& word, uint64_t mask) {
      const uint64_t missing = ~word & mask;
      if (missing != 0) {
        add(static_cast<size_t>(&word - words_.data()) * 64 +
                static_cast<size_t>(std::countr_zero(missing)),
            static_cast<size_t>(std::popcount(missing)));
      }
    });
  }

 private:
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
  };

  size_t EndOf(size_t begin, size_t bytes) const {
    return begin + std::min(bytes, bytes_ - std::min(begin, bytes_));
  }

  void SetWords(size_t begin, size_t end) {
    ForWords(words_.data(), begin, end, [](uint64_t& word, uint64_t mask) { word |= mask; });
  }
  // visit(word, mask of the bits that are meant)
  template <class Word, class Visit>
  static void ForWords(Word* words, size_t begin, size_t end, Visit&& visit) {
    const uint64_t first = ~uint64_t{0} << begin % 64, last = ~uint64_t{0} >> (63 - (end - 1) % 64);
    Word *word = words + begin / 64, *const last_word = words + (end - 1) / 64;
    if (word == last_word) return visit(*word, first & last);
    visit(*word++, first);
    for (; word != last_word; ++word) visit(*word, ~uint64_t{0});
    visit(*word, last);
  }

  size_t bytes_;
  Stretch
      stretch_;  // without a gap, the longest that was seen: most memory is written in one piece
  std::vector<uint64_t> words_;  // of all bytes; none while only the stretch was written
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
