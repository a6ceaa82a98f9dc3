// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_UNDO_H_
#define ANYACL_CORE_UNDO_H_

#include <utility>

namespace anyacl {

// Calls `undo` at the end of the scope, unless all went well and Keep was called.
template <class F>
class Undo {
 public:
  explicit Undo(F undo) : undo_(std::move(undo)) {}
  ~Undo() {
    if (armed_) undo_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void Keep() { armed_ = false; }

 private:
  F undo_;
  bool armed_ = true;
};

}  // namespace anyacl

#endif  // ANYACL_CORE_UNDO_H_
