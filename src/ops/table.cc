// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/table.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace anyacl {
namespace {

using contract::Arg;
using contract::ArgKind;

Arg& ArgNamed(contract::Table* table, const char* name) {
  for (Arg& arg : table->args) {
    if (std::strcmp(arg.name, name) == 0) return arg;
  }
  throw std::logic_error(std::string(table->op) + " has no argument " + name);
}

void SetKind(contract::Table* table, const std::vector<const char*>& names, ArgKind tensor, ArgKind list) {
  for (const char* name : names) {
    Arg& arg = ArgNamed(table, name);
    arg.kind = arg.is_tensor_list() ? list : tensor;
  }
}

}  // namespace

contract::Table TableOf(const Entry& entry, const char* stem, const char* summary, const ArgRoles& roles) {
  contract::Table table{.op = entry.op, .stem = stem, .summary = summary, .formulas = {}, .args = {}, .rules = {}};
  for (const Entry::Arg& arg : entry.args) table.args.push_back({arg.name, arg.kind});
  SetKind(&table, roles.in_out, ArgKind::kInOut, ArgKind::kInOutList);
  SetKind(&table, roles.outputs, ArgKind::kOutput, ArgKind::kOutputList);
  SetKind(&table, roles.inputs, ArgKind::kInput, ArgKind::kInputList);
  for (const char* name : roles.optional) ArgNamed(&table, name).optional = true;
  return table;
}

void Describe(contract::Table* table, const char* arg, const char* meaning) { ArgNamed(table, arg).meaning = meaning; }

void Add(contract::Table* table, std::vector<contract::Rule> rules) {
  for (contract::Rule& rule : rules) table->rules.push_back(std::move(rule));
}

void AddNullRules(contract::Table* table, const std::vector<const char*>& first) {
  std::vector<const char*> names = first;
  for (const Arg& arg : table->args) {
    const bool listed = std::any_of(names.begin(), names.end(),
                                    [&](const char* name) { return std::strcmp(name, arg.name) == 0; });
    if (arg.is_handle() && !arg.optional && !listed) names.push_back(arg.name);
  }
  for (const char* name : names) table->rules.push_back(contract::NotNull(name));
}

}  // namespace anyacl
