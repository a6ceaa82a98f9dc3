// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_RUN_TESTS_H_
#define ANYACL_TESTS_RUN_TESTS_H_

#include <string>

namespace anyacl {

// --family=NAME: only operators of this folder of src/ops; empty: all.
inline std::string chosen_family;

// Takes --family=NAME from the command line that Google Test has left.
void TakeArguments(int argc, char** argv);

// RUN_ALL_TESTS, or status 77, which ctest takes for "skipped", where the backend asked for is not here.
int RunTests();

}  // namespace anyacl

#endif  // ANYACL_TESTS_RUN_TESTS_H_
