// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <gtest/gtest.h>

#include "run_tests.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  anyacl::TakeArguments(argc, argv);
  return anyacl::RunTests();
}
