// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "cpu/parallel.h"
#include "runtime/backends.h"

namespace anyacl::cpu {
namespace {

using Bytes = std::vector<unsigned char>;

// The definition: element by element in row-major order.
void CopyNaively(const StridedCopy& copy) {
  const int64_t count = Numel(copy.dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t from = 0;
    int64_t to = 0;
    for (int axis = copy.dims.rank() - 1; axis >= 0; --axis) {
      const int64_t coordinate = rest % copy.dims[axis];
      rest /= copy.dims[axis];
      from += coordinate * copy.from_strides[axis];
      to += coordinate * copy.to_strides[axis];
    }
    std::memcpy(static_cast<char*>(copy.to) + to * copy.element_size,
                static_cast<const char*>(copy.from) + from * copy.element_size, copy.element_size);
  }
}

struct Span {
  int64_t least = 0;
  int64_t most = 0;  // elements
};

Span SpanOf(const Dims& dims, const Dims& strides) {
  Span span;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] == 0) return {};
    (strides[i] < 0 ? span.least : span.most) += (dims[i] - 1) * strides[i];
  }
  return span;
}

// Both sides in buffers that just fit (ASan sees a step outside), odd start addresses, all bytes
// compared.
void ExpectLikeNaive(StridedCopy copy) {
  const Span from = SpanOf(copy.dims, copy.from_strides);
  const Span to = SpanOf(copy.dims, copy.to_strides);
  Bytes source((from.most - from.least + 1) * copy.element_size + 1);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<unsigned char>(i * 131 + i / 251);
  copy.from = source.data() + 1 - from.least * copy.element_size;
  Bytes expected((to.most - to.least + 1) * copy.element_size + 1, 0xee);
  Bytes got = expected;
  copy.to = expected.data() + 1 - to.least * copy.element_size;
  CopyNaively(copy);
  copy.to = got.data() + 1 - to.least * copy.element_size;
  CpuBackend().Copy(copy, Launch{});
  EXPECT_TRUE(got == expected) << "dims " << ToString(copy.dims) << " from "
                               << ToString(copy.from_strides) << " to " << ToString(copy.to_strides)
                               << " of " << copy.element_size << (copy.serial ? " serial" : "");
}

class RandomCopies {
 public:
  explicit RandomCopies(int seed) : random_(seed) {}

  StridedCopy Next(int rank) {
    StridedCopy copy;
    copy.element_size = kSizes[Below(std::size(kSizes))];
    const int64_t most = rank <= 2 ? 150 : rank <= 4 ? 14 : 5;
    for (int i = 0; i < rank; ++i) copy.dims.push_back(Below(40) == 0 ? 0 : 1 + Below(most));
    copy.to_strides = Strides(copy.dims, false);
    copy.from_strides = Strides(copy.dims, true);
    if (Below(2)) std::swap(copy.from_strides, copy.to_strides);
    // A side that reads one element twice is fine as a source only, unless the order is defined.
    copy.serial = Below(4) == 0;
    if (!copy.serial && Overlaps(copy.to_strides)) std::swap(copy.from_strides, copy.to_strides);
    return copy;
  }

 private:
  static constexpr int kSizes[] = {1, 2, 3, 4, 8, 16, 24};

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % n); }

  bool Overlaps(const Dims& strides) const {
    return std::find(strides.begin(), strides.end(), 0) != strides.end();
  }

  // Strides of a dense or padded array whose axes lie in any order; `wild`: also zero and negative
  // ones.
  Dims Strides(const Dims& dims, bool wild) {
    std::vector<int> order(dims.rank());
    std::iota(order.begin(), order.end(), 0);
    if (Below(2)) std::shuffle(order.begin(), order.end(), random_);
    Dims strides;
    strides.resize(dims.rank());
    int64_t next = Below(3) == 0 ? 2 : 1;
    for (int i = dims.rank() - 1; i >= 0; --i) {
      strides[order[i]] = next;
      next *= std::max<int64_t>(dims[order[i]], 1);
      if (Below(4) == 0) next += Below(3);
    }
    for (int i = 0; wild && i < dims.rank(); ++i) {
      if (Below(6) == 0) strides[i] = Below(2) ? 0 : -strides[i];
    }
    return strides;
  }

  std::mt19937 random_;
};

TEST(StridedCopy, RandomViewsOfAllRanks) {
  for (const int threads : {1, 3}) {
    SetMaxThreads(threads);
    RandomCopies copies(threads);
    for (int rank = 0; rank <= 8; ++rank) {
      for (int round = 0; round < 150; ++round) ExpectLikeNaive(copies.Next(rank));
    }
  }
  SetMaxThreads(0);
}

StridedCopy Make(Dims dims, Dims from, Dims to, int element_size, bool serial = false) {
  return {.dims = dims,
          .from_strides = from,
          .to_strides = to,
          .element_size = element_size,
          .serial = serial};
}

TEST(StridedCopy, LargeViews) {
  for (const int threads : {1, 2, 3}) {
    SetMaxThreads(threads);
    ExpectLikeNaive(Make({1000003}, {1}, {1}, 4));               // one long run
    ExpectLikeNaive(Make({1000003}, {2}, {1}, 2));               // every other element
    ExpectLikeNaive(Make({777, 1001}, {1, 777}, {1001, 1}, 4));  // transposed
    ExpectLikeNaive(Make({777, 1001}, {1001, 1}, {1, 777}, 8));  // and back
    ExpectLikeNaive(
        Make({4, 65, 30, 33}, {64350, 1, 2145, 65}, {64350, 990, 33, 1}, 2));  // NHWC to NCHW
    ExpectLikeNaive(Make({300, 1000}, {0, 1}, {1000, 1}, 4));                  // broadcast rows
    ExpectLikeNaive(Make({1000, 300}, {1, 0}, {300, 1}, 4));                   // broadcast columns
  }
  SetMaxThreads(0);
}

TEST(StridedCopy, SerialHasTheLastWriterWin) {
  ExpectLikeNaive(Make({100, 1000}, {1000, 1}, {0, 1}, 4, true));
  ExpectLikeNaive(Make({1000, 100}, {100, 1}, {1, 0}, 4, true));
  ExpectLikeNaive(Make({500, 600}, {600, 1}, {1, 1}, 4, true));
}

TEST(StridedCopy, ScalarAndEmpty) {
  ExpectLikeNaive(Make({}, {}, {}, 4));
  ExpectLikeNaive(Make({0}, {1}, {1}, 4));
  ExpectLikeNaive(Make({3, 0, 5}, {0, 5, 1}, {0, 5, 1}, 8));
  ExpectLikeNaive(Make({1, 1, 1}, {7, 9, 0}, {0, 3, -5}, 16));
}

}  // namespace
}  // namespace anyacl::cpu
