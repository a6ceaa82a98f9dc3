// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A call whose description may be anything, also what no program means: wherever a tensor of it can have memory it has a
// block of its own on the heap that ends where the tensor ends. What the library writes beside it is found here, what it
// reads beside it by a sanitizer.
#ifndef ANYACL_HARNESS_LOOSE_CALL_H_
#define ANYACL_HARNESS_LOOSE_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "contract/violations.h"
#include "plan/operator.h"

namespace anyacl::harness {

class LooseCall {
 public:
  enum class Fill { kZeros, kSmall, kOnes, kRandom };  // kSmall: whole numbers, mostly good as indices

  LooseCall(const Operator& op, const contract::CallSpec& spec, Fill fill);
  ~LooseCall();
  LooseCall(const LooseCall&) = delete;
  LooseCall& operator=(const LooseCall&) = delete;

  // Both phases, the second one where every tensor has memory. The first code that is not 0, and whether it ran at all.
  int32_t Execute(void* stream);
  bool ran() const { return ran_; }
  // Empty, or what was written beside a tensor or the workspace.
  std::string CheckMemory() const;

 private:
  struct Block {
    std::unique_ptr<unsigned char[]> cells;
    size_t bytes;
  };

  void MakeHandle(size_t arg);
  aclTensor* MakeTensor(const Tensor& tensor);
  void* BlockOf(const Tensor& tensor);
  unsigned char* NewBlock(size_t bytes);

  const Operator& op_;
  contract::CallSpec spec_;
  Fill fill_;
  bool has_memory_ = true;
  bool ran_ = false;
  std::vector<RawArg> raw_;
  std::vector<Block> blocks_;
  std::vector<void (*)(const void*)> destroy_;
};

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_LOOSE_CALL_H_
