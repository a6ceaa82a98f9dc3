// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Programs make the same call again and again, only with other memory. What phase 1 finds (the contract holds, this is
// the plan) depends on everything but the addresses, and on those only in whether an output meets another tensor. So
// every thread keeps the last plans whose outputs lie apart and that pack nothing, and takes such a plan again for
// the next call of the same description: a third of the time of rules and planning.
#ifndef ANYACL_PLAN_RECALL_H_
#define ANYACL_PLAN_RECALL_H_

#include <cstdint>
#include <vector>

#include "contract/value.h"
#include "core/product.h"
#include "plan/executor.h"

namespace anyacl {

// Everything of a call that phase 1 decides by, as words: no handles and no addresses.
class CallDescription {
 public:
  CallDescription(const Operator& op, contract::Values values, const Backend& backend,
                  Product product)
      : op_(op), values_(values), backend_(backend), product_(product) {}

  contract::Values values() const { return values_; }
  // Of the tensors and integers, which tell most calls apart.
  uint64_t Hash() const;
  // Empty for what is not worth it: dead handles, very long lists.
  std::vector<uint64_t> Words() const;

  // Gives the words to reader.Take(word), in order, until that is false; says whether it never was. Skips those of a
  // tensor that reader.Knows(tensor). How many words follow can be told from those before, so no two calls give
  // the same ones, and none the beginning of another's.
  template <class Reader>
  bool Read(Reader& reader) const;

 private:
  template <class Reader>
  static bool Read(contract::ArgKind kind, const contract::Value& value, Reader& reader);
  template <class Reader>
  static bool Read(const Tensor& tensor, Reader& reader);

  const Operator& op_;
  const contract::Values values_;
  const Backend& backend_;
  const Product product_;
};

// What phase 1 found for such a call.
class RememberedCall {
 public:
  RememberedCall(std::vector<uint64_t> words, contract::Values values, const Executor& executor);

  // True for a call with these words whose outputs meet no other tensor. Remembers its tensors: the next call has
  // often the same ones, and then nothing of them is compared.
  bool Is(const CallDescription& call);
  // True when no output meets another tensor, at the addresses of these values.
  bool IsApart(contract::Values values) const;
  // All but the handles and addresses of the tensors.
  void CopyTo(Executor* executor) const;

 private:
  // A tensor of the last call.
  struct Seen {
    int words;  // of its description
    uint64_t number;
    const void* data;
  };
  // Where a tensor lies from its data pointer on, in bytes.
  struct Reach {
    int arg;
    bool is_output;
    uintptr_t begin;
    uintptr_t end;
  };
  class Comparison;

  std::vector<uint64_t> words_;
  std::vector<Seen> seen_;      // of the tensors that are given
  std::vector<Reach> reaches_;  // of the tensors that have elements
  Plan plan_;
  std::vector<Executor::TensorRef> tensors_;
};

// The plan that this thread found for an equal call, or null.
const RememberedCall* Recall(const CallDescription& call);

// After a successful phase 1.
void Remember(const CallDescription& call, const Executor& executor) noexcept;

}  // namespace anyacl

#endif  // ANYACL_PLAN_RECALL_H_
