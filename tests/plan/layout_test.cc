// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How views lie in memory: the questions on which direct access, and so correctness in place,
// depends.
#include "plan/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace anyacl {
namespace {

alignas(64) unsigned char memory[4096];

Tensor View(Dims dims, Dims strides, int64_t offset = 0, void* data = memory,
            DType dtype = DType::kF32) {
  Tensor t;
  t.dtype = dtype;
  t.dims = dims;
  t.strides = strides;
  t.offset = offset;
  t.storage = dims;
  t.data = data;
  return t;
}

bool Share(const Tensor& a, const Tensor& b) {
  const Tensor* const both[] = {&a, &b};
  return ShareDenseOrder(both);
}

TEST(Layout, RowMajorTensorsShareTheirOrder) {
  EXPECT_TRUE(Share(View({2, 3}, {3, 1}), View({2, 3}, {3, 1}, 7)));
  EXPECT_TRUE(
      Share(View({2, 1, 3}, {3, 99, 1}), View({2, 1, 3}, {3, 0, 1})));  // size 1 does not matter
  EXPECT_TRUE(Share(View({}, {}), View({}, {})));
  EXPECT_TRUE(Share(View({0, 3}, {5, 5}), View({0, 3}, {1, 1})));
}

TEST(Layout, AnyCommonOrderIsAsGood) {
  EXPECT_TRUE(Share(View({2, 3}, {1, 2}), View({2, 3}, {1, 2})));
  EXPECT_TRUE(Share(View({2, 5, 3, 4}, {60, 1, 20, 5}), View({2, 5, 3, 4}, {60, 1, 20, 5})));
}

TEST(Layout, OtherOrdersGapsAndBroadcastsDoNot) {
  EXPECT_FALSE(Share(View({2, 3}, {1, 2}), View({2, 3}, {3, 1})));
  EXPECT_FALSE(Share(View({2, 3}, {3, 1}), View({2, 3}, {1, 2})));
  EXPECT_FALSE(Share(View({2, 3}, {6, 2}), View({2, 3}, {6, 2})));
  EXPECT_FALSE(Share(View({2, 3}, {0, 1}), View({2, 3}, {0, 1})));
  EXPECT_FALSE(Share(View({2, 3}, {4, 1}), View({2, 3}, {4, 1})));
}

TEST(Layout, ComponentsOfComplexNumbersLieInsideThem) {
  const Tensor whole = View({2, 3}, {3, 1}, 0, memory, DType::kC64);
  EXPECT_TRUE(InsideElements(View({2, 3}, {6, 2}), whole));
  EXPECT_TRUE(InsideElements(View({2, 3}, {6, 2}, 1), whole));
  EXPECT_TRUE(InsideElements(whole, whole));
  EXPECT_FALSE(InsideElements(View({2, 3}, {6, 2}, 2), whole));
  EXPECT_FALSE(InsideElements(View({2, 3}, {3, 1}), whole));
  EXPECT_FALSE(InsideElements(whole, View({2, 3}, {6, 2})));
  EXPECT_FALSE(SameElements(View({2, 3}, {6, 2}), whole));
}

// STRING and unknown dtypes: no bytes, and nothing to divide by.
TEST(Layout, ElementsWithoutSizeShareNothing) {
  const Tensor whole = View({2, 3}, {3, 1});
  for (const DType dtype : {DType::kString, DType::kUndefined, static_cast<DType>(99)}) {
    const Tensor nothing = View({2, 3}, {3, 1}, 0, memory + 5, dtype);
    EXPECT_FALSE(ShareBytes(nothing, whole));
    EXPECT_FALSE(ShareBytes(whole, nothing));
  }
}

// Against the definition: does any element appear twice?
TEST(Layout, OverlapsItselfNeverMissesAnOverlap) {
  for (int64_t s0 = 0; s0 < 9; ++s0) {
    for (int64_t s1 = 0; s1 < 9; ++s1) {
      for (int64_t n0 = 1; n0 < 4; ++n0) {
        for (int64_t n1 = 1; n1 < 4; ++n1) {
          std::set<int64_t> places;
          for (int64_t i = 0; i < n0; ++i) {
            for (int64_t j = 0; j < n1; ++j) places.insert(i * s0 + j * s1);
          }
          const bool overlaps = static_cast<int64_t>(places.size()) < n0 * n1;
          const bool answer = OverlapsItself(View({n0, n1}, {s0, s1}));
          EXPECT_TRUE(answer || !overlaps) << n0 << "x" << n1 << " strides " << s0 << "," << s1;
          EXPECT_FALSE(answer && IsContiguous(View({n0, n1}, {s0, s1})));
        }
      }
    }
  }
  EXPECT_FALSE(OverlapsItself(View({4, 5}, {10, 2})));
  EXPECT_FALSE(OverlapsItself(View({int64_t{1} << 40, int64_t{1} << 40}, {int64_t{1} << 40, 1})));  // longer than addresses
}

bool MayOverlap(const Tensor& a, const Tensor& b) { return SpanOf(a).Meets(SpanOf(b)); }

TEST(Layout, RangesAreOfBytes) {
  const Tensor a = View({8}, {1});
  EXPECT_TRUE(MayOverlap(a, a));
  EXPECT_TRUE(MayOverlap(a, View({8}, {1}, 7)));
  EXPECT_FALSE(MayOverlap(a, View({8}, {1}, 8)));
  EXPECT_FALSE(MayOverlap(View({8}, {1}, 8), a));
  EXPECT_TRUE(
      MayOverlap(a, View({8}, {1}, 15, memory, DType::kF16)));  // bytes 30 to 46 against 0 to 32
  EXPECT_FALSE(MayOverlap(a, View({8}, {1}, 16, memory, DType::kF16)));  // bytes 32 to 48
  EXPECT_FALSE(MayOverlap(a, View({8}, {1}, 0, memory + 32)));
  EXPECT_TRUE(MayOverlap(a, View({8}, {1}, 0, memory + 31)));
  EXPECT_FALSE(MayOverlap(a, View({0}, {1})));
  EXPECT_FALSE(MayOverlap(a, View({8}, {1}, 0, nullptr)));
  EXPECT_TRUE(MayOverlap(View({2}, {100}), View({1}, {1}, 50)));  // between two elements: may
}

// The largest distances that phase 1 lets through, at an address: no sum may wrap.
TEST(Layout, FarViewsDoNotWrap) {
  const Tensor far = View({2}, {INT64_MAX / 4 - 1});
  EXPECT_TRUE(MayOverlap(View({8}, {1}), far));
  EXPECT_TRUE(MayOverlap(far, View({8}, {1}, 4)));
  EXPECT_FALSE(MayOverlap(View({8}, {1}, 0, memory), View({2}, {INT64_MAX / 4 - 100}, 64)));
}

TEST(Layout, SameElements) {
  const Tensor a = View({2, 3}, {3, 1}, 4);
  EXPECT_TRUE(SameElements(a, a));
  EXPECT_TRUE(SameElements(a, View({2, 3}, {3, 1}, 0, memory + 16)));
  EXPECT_TRUE(SameElements(View({2, 1}, {1, 5}), View({2, 1}, {1, 9})));
  EXPECT_FALSE(SameElements(a, View({2, 3}, {3, 1}, 5)));
  EXPECT_FALSE(SameElements(a, View({2, 3}, {1, 2}, 4)));
  EXPECT_FALSE(SameElements(a, View({3, 2}, {2, 1}, 4)));
  EXPECT_FALSE(
      SameElements(a, View({2, 3}, {3, 1}, 8, memory, DType::kF16)));  // same start, other size
}

}  // namespace
}  // namespace anyacl
