// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_PLAN_OPERATOR_H_
#define ANYACL_PLAN_OPERATOR_H_

#include <cstdint>
#include <span>

#include "contract/contract.h"
#include "plan/plan.h"

namespace anyacl {

// One argument for a call through Operator::get_workspace_size; the member used follows from the kind.
struct RawArg {
  const void* handle = nullptr;
  int64_t integer = 0;
  double real = 0;
  bool flag = false;
};

// Everything the library knows of one operator. Tables, listings, tests and benchmarks iterate over these.
struct Operator {
  contract::Contract contract;
  // Fills the plan of a call that passed the contract.
  Status (*plan)(contract::Values values, PlanBuilder& plan);

  // The two C functions, callable with arguments from data (tests, fuzzing, bench).
  int32_t (*get_workspace_size)(const RawArg* args, uint64_t* size, void** executor);
  int32_t (*run)(void* workspace, uint64_t size, void* executor, void* stream);
  // Kinds of the C function's parameters, for the test that compares them with the table.
  std::span<const contract::ArgKind> abi_kinds;
};

}  // namespace anyacl

#endif  // ANYACL_PLAN_OPERATOR_H_
