// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every operator, found by its C functions. Families say what they have; an operator's table is built when it is
// first asked for.
#ifndef ANYACL_OPS_OPERATORS_H_
#define ANYACL_OPS_OPERATORS_H_

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/operator.h"

namespace anyacl {

// What families declare their operators with, once per process.
class Declarations {
 public:
  // Builds the operator from what its header says. Runs inside the C border, at first use.
  using Maker = std::function<Operator(const Entry& entry)>;
  void Add(std::string op, Maker maker) { makers_.emplace(std::move(op), std::move(maker)); }

  const Maker* Find(std::string_view op) const {
    const auto found = makers_.find(op);
    return found == makers_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> Names() const;

 private:
  std::map<std::string, Maker, std::less<>> makers_;
};

// Of all families (ops/families.inc).
const Declarations& DeclaredOperators();

// The operator of Entries()[entry]. Throws when no family declares it, which the build does not let pass.
const Operator& OperatorAt(size_t entry);

// Every operator, in the order of Entries().
std::span<const Operator* const> Operators();

}  // namespace anyacl

#endif  // ANYACL_OPS_OPERATORS_H_
