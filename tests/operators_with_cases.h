// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_OPERATORS_WITH_CASES_H_
#define ANYACL_TESTS_OPERATORS_WITH_CASES_H_

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases.h"
#include "ops/operators.h"
#include "run_tests.h"

namespace anyacl {

inline const Operator& OperatorNamed(std::string_view name) {
  for (const Operator* op : Operators()) {
    if (name == op->contract.op()) return *op;
  }
  throw std::out_of_range(std::string(name) + " is no operator");
}

// The operators that have rows of their own in harness/cases; families have their own driver.
inline std::vector<const Operator*> AllOperatorsWithCases() {
  std::vector<const Operator*> operators;
  for (const harness::OperatorCases* cases : harness::AllCases()) operators.push_back(&OperatorNamed(cases->op));
  return operators;
}

// Whether the test program was started for this operator.
inline bool IsChosen(const Operator& op) { return chosen_family.empty() || chosen_family == op.family; }

// Those of them that are chosen; never none.
inline std::vector<const Operator*> OperatorsWithCases() {
  std::vector<const Operator*> operators = AllOperatorsWithCases();
  std::erase_if(operators, [](const Operator* op) { return !IsChosen(*op); });
  if (operators.empty()) throw std::out_of_range("no operator of the family " + chosen_family + " has cases");
  return operators;
}

}  // namespace anyacl

#endif  // ANYACL_TESTS_OPERATORS_WITH_CASES_H_
