// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_PLAN_OPERATOR_H_
#define ANYACL_PLAN_OPERATOR_H_

#include <cstdint>
#include <memory>
#include <span>

#include "contract/contract.h"
#include "plan/plan.h"

namespace anyacl {

// One argument as it crosses the border; the member used follows from the kind.
struct RawArg {
  const void* handle = nullptr;
  int64_t integer = 0;
  double real = 0;
  bool flag = false;
};

// What a public header says of an operator: cmake/entry_points.py writes one for each, with its two C functions.
struct Entry {
  struct Arg {
    const char* name;
    contract::ArgKind kind;  // a tensor that is not const counts as an output
  };
  const char* op;      // "aclnnAdd"
  const char* header;  // "aclnnop/aclnn_add.h"
  std::span<const Arg> args;
  // The two C functions, callable with arguments from data (tests, fuzzing, bench).
  int32_t (*get_workspace_size)(const RawArg* args, uint64_t* size, void** executor);
  int32_t (*run)(void* workspace, uint64_t size, void* executor, void* stream);
};
std::span<const Entry> Entries();  // sorted by name

// Everything the library knows of one operator. Listings, tests and benchmarks iterate over these.
struct Operator {
  contract::Contract contract;
  // Fills the plan of a call that passed the contract.
  Status (*plan)(contract::Values values, PlanBuilder& plan);
  const char* family;                       // folder of src/ops
  std::shared_ptr<const void> row = {};     // what its family declared it with
  const Entry* entry = nullptr;             // its C functions
  // What phase 1, when it succeeds, makes of the description of the first argument, for operators that promise it.
  void (*relabel)(Tensor* first) = nullptr;

  template <class Row>
  const Row& As() const {
    return *static_cast<const Row*>(row.get());
  }
};

}  // namespace anyacl

#endif  // ANYACL_PLAN_OPERATOR_H_
