// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Negative tests from the table: for every rule, a small change of a valid call that breaks it first.
#ifndef ANYACL_CONTRACT_VIOLATIONS_H_
#define ANYACL_CONTRACT_VIOLATIONS_H_

#include <deque>
#include <string>
#include <vector>

#include "contract/contract.h"

namespace anyacl::contract {

// A call as data: one entry per argument, owning what Values only points to.
struct ArgSpec {
  bool null = false;
  Tensor tensor;
  Scalar scalar;
  BoolArray bools;
  IntArray ints;
  FloatArray floats;
  std::vector<Tensor> tensors;  // of a list
  std::vector<Scalar> scalars;
  std::string text;
  int64_t integer = 0;
  double real = 0;
  bool flag = false;
};

// The arguments of a CallSpec as a contract takes them.
class BoundCall {
 public:
  BoundCall() = default;
  BoundCall(BoundCall&&) = default;  // a copy would point into the original
  BoundCall& operator=(BoundCall&&) = default;

  operator Values() const { return values_; }  // NOLINT: it is one

 private:
  friend struct CallSpec;
  struct List {
    std::vector<const Tensor*> tensors;
    std::vector<const Scalar*> scalars;
    TensorSpan tensor_span;
    ScalarSpan scalar_span;
  };
  std::vector<Value> values_;
  std::deque<List> lists_;  // addresses stay
};

struct CallSpec {
  std::vector<ArgSpec> args;
  // Views of this object: valid while it lives and is not changed.
  BoundCall Bind(const Contract& contract) const;
};

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
