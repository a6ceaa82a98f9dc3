// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Contract tables that start from the public header: names, order and kinds of the arguments are there already.
#ifndef ANYACL_OPS_TABLE_H_
#define ANYACL_OPS_TABLE_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "plan/operator.h"

namespace anyacl {

// The arguments as the header declares them. `in_out`: outputs (or lists of them) that are read too; `optional`: those that
// may be null; `outputs`, `inputs`: tensors whose const in the header says the wrong thing.
struct ArgRoles {
  std::vector<const char*> in_out = {};
  std::vector<const char*> optional = {};
  std::vector<const char*> outputs = {};
  std::vector<const char*> inputs = {};
};
contract::Table TableOf(const Entry& entry, const char* stem, const char* summary, const ArgRoles& roles = {});

// A word about an argument for the documentation page.
void Describe(contract::Table* table, const char* arg, const char* meaning);

// Appends rules.
void Add(contract::Table* table, std::vector<contract::Rule> rules);

// One NotNull for every argument given by pointer that is not optional, in the order of the header or as listed first.
void AddNullRules(contract::Table* table, const std::vector<const char*>& first = {});

}  // namespace anyacl

#endif  // ANYACL_OPS_TABLE_H_
