// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Programs make the same call again and again, only with other memory. What phase 1 finds (the contract holds, this is
// the plan) depends on everything but the addresses, and on those only in how outputs meet other tensors. So every
// thread keeps the last plans whose outputs lie apart from all tensors but those that they exactly are (an operation in
// place), and takes such a plan again for the next call of the same description: a third of the time of rules and planning.
#ifndef ANYACL_PLAN_RECALL_H_
#define ANYACL_PLAN_RECALL_H_

#include <cstdint>
#include <memory>
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
  // Inlined: of calls on few elements, comparing descriptions is a good part.
  template <class Reader>
  [[gnu::always_inline]] static inline bool Read(contract::ArgKind kind, const contract::Value& value, Reader& reader);
  template <class Reader>
  static bool Read(const Tensor& tensor, Reader& reader);
  template <class Reader>
  [[gnu::always_inline]] static inline bool Read(const Scalar& scalar, Reader& reader);

  const Operator& op_;
  const contract::Values values_;
  const Backend& backend_;
  const Product product_;
};

// What phase 1 found for such a call.
class RememberedCall {
 public:
  RememberedCall(std::vector<uint64_t> words, contract::Values values, const PlanRef& plan);

  // True for a call with these words whose outputs meet other tensors as they did. Remembers its tensors: the next call
  // has often the same ones, and then nothing of them is compared.
  bool Is(const CallDescription& call);
  // True when every output is exactly the tensors that it was, and lies apart from the others.
  bool MeetsAsBefore(contract::Values values) const;
  const PlanRef& plan() const { return plan_; }
  // The arguments of a call that it is, for watchers; made once, so that addresses may be those of another one.
  const std::shared_ptr<const contract::CallSpec>& spec(contract::Values values) const;

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
    int item;
    bool is_written;
    uintptr_t begin;
    uintptr_t end;
    int same_as;  // an output: the first reach that it exactly is, or -1; else -1
  };
  class Comparison;

  const Tensor& TensorOf(const Reach& reach, contract::Values values) const;
  bool FindSame(contract::Values values);

  std::vector<uint64_t> words_;
  std::vector<Seen> seen_;      // of the tensors that are given
  std::vector<Reach> reaches_;  // of the tensors that have elements
  bool repeats_ = true;         // outputs meet others only as what they are
  PlanRef plan_;
  mutable std::shared_ptr<const contract::CallSpec> spec_;  // when it was asked for

  friend void Remember(const CallDescription& call, const PlanRef& plan) noexcept;
};

// The plan that this thread found for an equal call, or null.
const RememberedCall* Recall(const CallDescription& call);

// After a successful phase 1.
void Remember(const CallDescription& call, const PlanRef& plan) noexcept;

}  // namespace anyacl

#endif  // ANYACL_PLAN_RECALL_H_
