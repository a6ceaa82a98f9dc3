// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One call made real through the public C API: device memory with guard cells, numbers, handles,
// both phases. Owns and frees everything. Needs a Session (or any initialised device) around it.
//
//   const CaseCall c = MakeCall(op.contract, cases, row, types);
//   Call call(op, c, {.data = Data::kRandom});
//   ASSERT_EQ(call.Execute(stream), 0);
//   std::vector<double> dx = call.Values(6);
//   EXPECT_EQ(call.CheckMemory(), "");
#ifndef ANYACL_HARNESS_CALL_H_
#define ANYACL_HARNESS_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "plan/operator.h"

namespace anyacl::harness {

// Device memory between two guard zones, and what it held when it was last written from here.
class GuardedMemory {
 public:
  static constexpr size_t kGuard = 512;  // keeps the alignment of aclrtMalloc
  static constexpr unsigned char kPoison = 0xa5;

  // `shift` moves the payload off its alignment. Without guards the payload is the allocation
  // itself.
  GuardedMemory(size_t bytes, bool guards, size_t shift = 0);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;

  unsigned char* payload() const { return base_ + front_; }
  size_t bytes() const { return bytes_; }
  void Write(std::span<const unsigned char> payload);  // as long as bytes()
  std::vector<unsigned char> Read() const;
  std::string CheckGuards() const;  // empty: untouched

 private:
  void ForbidGuards(bool forbidden) const;

  unsigned char* base_ = nullptr;
  size_t front_;
  size_t bytes_;
  size_t back_;
};

struct CallOptions {
  Data data = Data::kRandom;
  uint64_t seed = 1;
  // Off for benches: no guard zones, nothing poisoned, outputs filled too, tensors repeat a short
  // sequence.
  bool guards = true;
  size_t shift = 0;  // bytes that every tensor's memory starts off its alignment
  uint64_t max_bytes = uint64_t{4} << 30;  // a longer (or absurd) tensor gets a null address
};

class Call {
 public:
  Call(const Operator& op, CaseCall call, const CallOptions& options = {});
  Call(const Operator& op, contract::CallSpec spec, const CallOptions& options = {});
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Phase 1. An executor that was never run is destroyed first.
  int32_t Plan();
  // Phase 1 and aclSetAclOpExecutorRepeatable: Run may then be called many times.
  int32_t PlanRepeatable();
  // Phase 2, without waiting for the result.
  int32_t Run(aclrtStream stream);
  // Plan, Run and synchronise; the first code that is not 0.
  int32_t Execute(aclrtStream stream);
  void DropExecutor();

  const Operator& op() const { return op_; }
  const contract::CallSpec& spec() const { return spec_; }
  std::span<const RawArg> raw() const { return raw_; }
  uint64_t workspace_size() const { return workspace_size_; }
  void* workspace() const { return workspace_ ? workspace_->payload() : nullptr; }
  aclOpExecutor* executor() const { return executor_; }
  bool IsOutput(int arg) const {
    return op_.contract.args()[arg].kind == contract::ArgKind::kOutput;
  }
  unsigned char* address(int arg) const { return MemoryOf(arg).cells.payload(); }
  std::vector<int> Outputs() const;
  std::vector<int> Inputs() const;

  // The elements of a tensor argument in row-major order of its shape, as they are now.
  std::vector<double> Values(int arg) const;
  std::vector<unsigned char> Elements(int arg) const;  // raw, dense
  // What the generator (or SetInput) gave, rounded to the dtype: the operands of a reference, also
  // when the result was written over them.
  const std::vector<double>& Operand(int arg) const { return operands_[arg]; }
  // Replaces the numbers of an input; as many as the tensor has elements.
  void SetInput(int arg, std::span<const double> values);
  // Outputs back to poison and inputs back to their numbers, for another run.
  void Refill();

  // Empty when guards are whole, gaps between strides untouched and inputs unchanged; else what was
  // hit.
  std::string CheckMemory() const;

 private:
  struct Memory {
    GuardedMemory cells;
    std::vector<unsigned char> image;  // what it must hold but for the elements of outputs
    std::vector<bool> is_result;       // per byte: an output may write it
  };

  void MakeMemory(int arg, const CallOptions& options);
  void FillQuickly(int arg, const CallOptions& options);
  void MakeHandle(int arg);
  void DestroyHandle(int arg);
  void PutOperand(int arg);
  void MarkResult(int arg);
  void MakeWorkspace();
  bool HasMemory(int arg) const { return memory_[memory_of_[arg]].has_value(); }
  Memory& MemoryOf(int arg) { return *memory_[memory_of_[arg]]; }
  const Memory& MemoryOf(int arg) const { return *memory_[memory_of_[arg]]; }

  const Operator& op_;
  contract::CallSpec spec_;
  std::vector<int> memory_of_;
  bool guards_;
  std::vector<std::optional<Memory>> memory_;  // per argument; only where memory_of_ is itself
  std::vector<std::vector<double>> operands_;
  std::vector<RawArg> raw_;
  std::optional<GuardedMemory> workspace_;
  uint64_t workspace_size_ = 0;
  aclOpExecutor* executor_ = nullptr;
  bool repeatable_ = false;
};

// Offsets, in elements from the start of the storage, of a view's elements in row-major order.
std::vector<int64_t> ElementOffsets(const Tensor& tensor);

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_CALL_H_
