// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Where a call came from: what a thread remembers of its last calls must not be taken for another place.
#include "watch/site.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace anyacl::watch {
namespace {

// volatile: calls are neither joined nor made the last thing a function does.
volatile int sink;

[[gnu::noinline]] Site Leaf() {
  Site site = Site::Here();
  sink = site.count;
  return site;
}

// The same leaf from the same depth of the stack, by two ways.
[[gnu::noinline]] Site Fork(bool left) {
  if (left) {
    Site site = Leaf();
    sink = 1;
    return site;
  }
  Site site = Leaf();
  sink = 2;
  return site;
}
[[gnu::noinline]] Site Over(bool left, bool lower) {
  Site site = lower ? Fork(left) : Leaf();
  sink = 3;
  return site;
}

[[gnu::noinline]] Site Deeper(int depth) {
  Site site = depth == 0 ? Leaf() : Deeper(depth - 1);
  sink = depth;
  return site;
}

TEST(SiteTest, TheSamePlaceIsTheSame) {
  std::vector<Site> sites;
  for (int i = 0; i < 3; ++i) sites.push_back(Fork(true));
  EXPECT_TRUE(sites[0] == sites[1] && sites[1] == sites[2]);
  EXPECT_GT(sites[0].count, 3);
}

TEST(SiteTest, AnotherWayIsAnotherPlace) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Site> sites;
    for (const bool lower : {false, true}) {
      for (const bool left : {false, true}) sites.push_back(Over(left, lower));
    }
    EXPECT_TRUE(sites[0] == sites[1]);  // the fork is not on its way
    EXPECT_FALSE(sites[1] == sites[2]);
    EXPECT_FALSE(sites[2] == sites[3]);
  }
}

// More than a thread remembers, and deeper than a site is.
TEST(SiteTest, ManyPlaces) {
  std::vector<Site> rounds[2];
  for (auto& round : rounds) {
    for (int depth = 0; depth < 300; ++depth) round.push_back(Deeper(depth));
  }
  const std::vector<Site>& first = rounds[0];
  for (int depth = 0; depth < 300; ++depth) {
    EXPECT_TRUE(rounds[1][depth] == first[depth]) << depth;
    if (depth == 0 || depth > 8) continue;
    EXPECT_FALSE(first[depth] == first[depth - 1]) << depth;
  }
  EXPECT_EQ(first.back().count, int{Site::kMostFrames});
}

TEST(SiteTest, ThreadsHaveTheirOwn) {
  const Site here = Fork(false);
  for (int i = 0; i < 3; ++i) {
    Site there;
    std::thread([&] {
      for (int k = 0; k < 2; ++k) {
        const Site before = there;
        there = Fork(false);
        EXPECT_TRUE(k == 0 || there == before);
      }
    }).join();
    EXPECT_FALSE(there == here);
  }
}

}  // namespace
}  // namespace anyacl::watch
