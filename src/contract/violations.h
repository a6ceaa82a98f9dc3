// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Negative tests from the table: for every rule, a small change of a valid call that breaks it first.
#ifndef ANYACL_CONTRACT_VIOLATIONS_H_
#define ANYACL_CONTRACT_VIOLATIONS_H_

#include <string>
#include <vector>

#include "contract/call_spec.h"
#include "contract/contract.h"

namespace anyacl::contract {

struct Violation {
  int rule;
  std::string change;  // "dtype of gradOutput, selfOrResult -> INT32"
  CallSpec call;
};

// One violation for each rule that can be broken on this product, starting from `valid`. Rules no change of
// the pool reaches are listed in `unreached`.
std::vector<Violation> FindViolations(const Contract& contract, const CallSpec& valid, Product product,
                                      std::vector<int>* unreached);

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_VIOLATIONS_H_
