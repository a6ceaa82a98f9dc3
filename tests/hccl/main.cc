// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <gtest/gtest.h>

#include "ranks.h"
#include "run_tests.h"

int main(int argc, char** argv) {
  int result = 0;
  if (anyacl::hccl_test::PlayedRank(argc, argv, &result)) return result;
  testing::InitGoogleTest(&argc, argv);
  anyacl::TakeArguments(argc, argv);
  return anyacl::RunTests();
}
