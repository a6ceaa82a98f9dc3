// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "ranks.h"
#include "run_tests.h"

int main(int argc, char** argv) {
  int result = 0;
  if (anyacl::hccl_test::PlayedRank(argc, argv, &result)) return result;
  testing::InitGoogleTest(&argc, argv);
  anyacl::hccl_test::with_slow_ones =
      std::find(argv, argv + argc, std::string_view("--slow")) != argv + argc;
  anyacl::TakeArguments(argc, argv);
  return anyacl::RunTests();
}
