// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which bytes were written, against a plain list of them.
#include "watch/written.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace anyacl::watch {
namespace {

TEST(WrittenTest, RemembersEveryByte) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const size_t bytes = 1 + random() % 300;
    Written written(bytes);
    std::vector<bool> model(bytes);
    EXPECT_TRUE(written.none());
    for (int i = 0; i < 8; ++i) {
      const size_t begin = random() % bytes, count = random() % (round % 2 ? 200 : 30);
      written.Mark(begin, count);
      for (size_t k = begin; k < std::min(bytes, begin + count); ++k) model[k] = true;
      const size_t from = random() % bytes, asked = random() % 200,
                   to = std::min(bytes, from + asked);
      if (written.HasAll(from, to)) {
        for (size_t k = from; k < to; ++k) ASSERT_TRUE(model[k]) << bytes << " " << k;
      }
      Written::Gap gap;
      written.Find(from, asked, &gap);
      size_t missing = 0, first = 0;
      for (size_t k = from; k < std::min(bytes, from + asked); ++k) {
        if (model[k]) continue;
        if (missing++ == 0) first = k;
      }
      ASSERT_EQ(gap.bytes, missing) << bytes << " " << from << " " << asked;
      ASSERT_EQ(gap.first, first);
    }
  }
}

TEST(WrittenTest, AllIsAll) {
  Written written(100);
  written.MarkAll();
  Written::Gap gap;
  written.Find(0, 100, &gap);
  EXPECT_EQ(gap.bytes, 0u);
  EXPECT_FALSE(written.none());
}

Tensor View(Dims dims, Dims strides, int64_t offset = 0) {
  Tensor t;
  t.dtype = DType::kF16;
  t.dims = dims;
  t.strides = strides;
  t.offset = offset;
  return t;
}

std::set<int64_t> Elements(const Tensor& t, int* pieces) {
  std::set<int64_t> found;
  *pieces = 0;
  ForEachPiece(t, [&](int64_t offset, int64_t bytes) {
    ++*pieces;
    for (int64_t i = 0; i < bytes; i += 2) found.insert((offset + i) / 2);
  });
  return found;
}

TEST(PiecesTest, CoverTheElementsOfAView) {
  struct Row {
    Tensor view;
    int pieces;
    std::set<int64_t> elements;
  };
  const Row rows[] = {
      {View({2, 3}, {3, 1}, 4), 1, {4, 5, 6, 7, 8, 9}},
      {View({3, 2}, {1, 3}), 1, {0, 1, 2, 3, 4, 5}},  // transposed: still one piece
      {View({2, 2}, {4, 1}), 2, {0, 1, 4, 5}},        // rows of a larger matrix
      {View({2, 2, 1}, {8, 2, 7}), 4, {0, 2, 8, 10}},
      {View({5, 2}, {0, 1}), 1, {0, 1}},  // expanded
      {View({}, {}, 3), 1, {3}},
      {View({0, 2}, {2, 1}), 0, {}},
  };
  for (const Row& row : rows) {
    int pieces = 0;
    EXPECT_EQ(Elements(row.view, &pieces), row.elements) << ToString(row.view.dims);
    EXPECT_EQ(pieces, row.pieces) << ToString(row.view.dims);
  }
}

}  // namespace
}  // namespace anyacl::watch
