// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "run_tests.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/env.h"
#include "runtime/backends.h"

namespace anyacl {

void TakeArguments(int argc, char** argv) {
  const std::string flag = "--family=";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(flag)) chosen_family = argument.substr(flag.size());
  }
}

int RunTests() {
  std::string problem;
  if (std::string_view(env::Get(env::Var::ANYACL_BACKEND)) == "cuda" && !CudaBackend(&problem)) {
    std::printf("skipped: %s\n", problem.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}

}  // namespace anyacl
