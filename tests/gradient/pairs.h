// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Operators that are gradients of others, as data: whoever adds such an operator adds a row.
#ifndef ANYACL_TESTS_GRADIENT_PAIRS_H_
#define ANYACL_TESTS_GRADIENT_PAIRS_H_

#include <utility>
#include <vector>

#include "harness/family.h"

namespace anyacl {

// Arguments of the backward operator have the values of forward arguments of the same name, unless a link names another one.
struct Pair {
  struct Link {
    const char* backward;
    const char* forward;
  };
  const char* forward;
  const char* backward;
  std::vector<harness::TestArg> call;  // of the forward operator
  std::vector<Link> grads;             // what comes in: gradients of forward results
  std::vector<Link> results;           // what goes out: gradients of forward inputs
  std::vector<Link> same = {};         // inputs that have another name there
  std::vector<std::pair<const char*, harness::TestArg>> others = {};  // that the forward operator has not
};

const std::vector<Pair>& GradientPairs();

}  // namespace anyacl

#endif  // ANYACL_TESTS_GRADIENT_PAIRS_H_
