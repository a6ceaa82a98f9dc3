// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The arguments of a call as data: for tests that make calls up, and for tools that watch a program's.
#ifndef ANYACL_CONTRACT_CALL_SPEC_H_
#define ANYACL_CONTRACT_CALL_SPEC_H_

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
  std::vector<Tensor> tensors;  // of a list; an absent one has dtype UNDEFINED
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
  // A copy of all that the values point to, of a call without dead handles.
  static CallSpec Of(const Contract& contract, Values values);
  // Views of this object: valid while it lives and is not changed.
  BoundCall Bind(const Contract& contract) const;
};

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_CALL_SPEC_H_
