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
                  Product product);

  // False for what is not worth it: dead handles, very long lists.
  bool complete() const { return complete_; }
  uint64_t hash() const;
  bool operator==(const std::vector<uint64_t>& words) const;
  std::vector<uint64_t> words() const { return {words_, words_ + count_}; }

 private:
  static constexpr int kMaxWords = 192;

  void Add(uint64_t word) {
    if (count_ == kMaxWords) [[unlikely]] {
      complete_ = false;
      return;
    }
    words_[count_++] = word;
  }
  void Add(contract::ArgKind kind, const contract::Value& value);
  void Add(const Tensor& tensor);

  bool complete_ = true;
  int count_ = 0;
  uint64_t words_[kMaxWords];  // only the first count_ are ever read
};

// What phase 1 found for such a call.
class RememberedCall {
 public:
  RememberedCall(const CallDescription& description, contract::Values values,
                 const Executor& executor);

  bool Is(const CallDescription& description) const { return description == words_; }
  // True when no output meets another tensor, at the addresses of these values.
  bool IsApart(contract::Values values) const;
  // All but the handles and addresses of the tensors.
  void CopyTo(Executor* executor) const;

 private:
  // Where a tensor lies from its data pointer on, in bytes.
  struct Reach {
    int arg;
    bool is_output;
    uintptr_t begin;
    uintptr_t end;
  };

  std::vector<uint64_t> words_;
  std::vector<Reach> reaches_;  // of the tensors that have elements
  Plan plan_;
  std::vector<Executor::TensorRef> tensors_;
};

// The plan that this thread found for an equal call, or null.
const RememberedCall* Recall(const CallDescription& description, contract::Values values);

// After a successful phase 1.
void Remember(const CallDescription& description, contract::Values values,
              const Executor& executor) noexcept;

}  // namespace anyacl

#endif  // ANYACL_PLAN_RECALL_H_
