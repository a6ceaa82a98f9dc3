// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A plan is what phase 1 decided: which kernels run, with which parameters, where their pointers come from,
// which views are packed and unpacked around them. It holds no addresses, so it may run many times.
#ifndef ANYACL_PLAN_PLAN_H_
#define ANYACL_PLAN_PLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "contract/value.h"
#include "core/inline_vector.h"
#include "core/status.h"
#include "core/view.h"
#include "plan/layout.h"
#include "runtime/backend.h"

namespace anyacl {

struct Operator;

inline constexpr size_t kMaxParams = 2048;  // bytes of one Params
inline constexpr uint64_t kScratchAlign = 64;

// What phase 1 knows of one tensor of a call, in ABI order; entries of a list follow each other. Absent ones keep
// their place.
struct TensorFacts {
  const char* name;
  uint16_t arg;       // of the call
  uint16_t item;      // of a list
  bool in_list;
  bool given;
  bool is_read;
  bool is_written;
  bool needs_memory;  // the plan touches it, so its address must not be null at run time
  uint8_t alignment;  // then its address must be a multiple of this power of two
};

// Immutable once it is built, and shared: executors and remembered calls hold it together.
class Plan {
 public:
  // Where one pointer member of Params comes from.
  struct Pointer {
    uint16_t member;  // its byte offset in Params
    uint16_t group;   // tensors of one group may be exactly each other; 0: none
    int32_t tensor;   // index of a tensor of the call, or -1: the workspace
    int64_t offset;   // bytes behind that base
    int64_t bytes;    // of the tensor, from there to the end of its last element
  };
  // One kernel and its parameters. Most operators have one; those over lists have one per entry.
  struct Step {
    const Kernel* kernel = nullptr;
    const char* stem = "";  // of the kernel's engine
    size_t params_size = 0;
    std::unique_ptr<unsigned char[]> params;
    std::vector<Pointer> pointers;
  };
  // A view copied into the workspace before the kernels, or out of it afterwards.
  struct Pack {
    int tensor;
    int64_t tensor_offset;   // bytes
    int64_t scratch_offset;  // bytes
    StridedCopy copy;        // pointers are filled in at run time
  };

  // An output whose shape a kernel leaves in the workspace.
  struct Found {
    int tensor;
    int64_t scratch_offset;  // bytes, of its FoundShape
  };

  bool follows_switch = false;  // it depends on more than the description of its call
  const Operator* op = nullptr;
  const Backend* backend = nullptr;
  uint64_t workspace_bytes = 0;
  uint64_t cost_bytes = 0;
  std::vector<Step> steps;  // none: nothing to compute
  std::vector<Pack> packs;
  std::vector<Pack> unpacks;
  std::vector<Found> found;  // if any, phase 2 waits for them
  std::vector<TensorFacts> tensors;

 private:
  friend class PlanRef;
  mutable std::atomic<uint32_t> users_{0};
};

// One of the owners of a plan.
class PlanRef {
 public:
  PlanRef() = default;
  explicit PlanRef(const Plan* plan) : plan_(plan) { Take(); }
  PlanRef(const PlanRef& other) : plan_(other.plan_) { Take(); }
  PlanRef(PlanRef&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
  PlanRef& operator=(PlanRef other) noexcept {
    std::swap(plan_, other.plan_);
    return *this;
  }
  ~PlanRef() {
    if (plan_ && plan_->users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete plan_;
  }
  explicit operator bool() const { return plan_ != nullptr; }
  const Plan& operator*() const { return *plan_; }
  const Plan* operator->() const { return plan_; }

 private:
  void Take() const {
    if (plan_) plan_->users_.fetch_add(1, std::memory_order_relaxed);
  }
  const Plan* plan_ = nullptr;
};

// What the last run found, once it has ended.
const FoundShape& FoundIn(const Plan::Found& found, const void* workspace);

// Runs a plan with the addresses of its tensors: packs, kernels, unpacks.
void RunPlan(const Plan& plan, void* const* addresses, void* workspace, const Launch& launch);

// What a step reads or writes: a tensor of the call, or one in its scratch memory. Several steps may use it; its dims and
// strides may be changed before it is bound (a transposed or broadcast view of the same elements).
struct Operand {
  int index = -1;      // of a tensor of the call; -1: scratch
  int64_t offset = 0;  // bytes, from the tensor's first element or from the start of the scratch memory
  int64_t bytes = 0;   // from there to the end of the last element
  DType dtype = DType::kUndefined;
  Dims dims;
  Dims strides;

  bool row_major() const;
};

// What an operator's plan function writes with.
class PlanBuilder {
 public:
  PlanBuilder(const Operator& op, contract::Values values, const Backend& backend, Plan* plan);

  const Operator& op() const { return op_; }

  // Begins a step: the Params of its kernel, zeroed, inside the plan. What is bound and booked until the next one
  // belongs to it.
  template <class Params>
  Params& MakeParams() {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxParams);
    return *new (NewStep(sizeof(Params))) Params{};
  }

  // A tensor argument, or an entry of a list, and the pointer member of Params that receives its address.
  struct Slot {
    Slot(int arg, const void*& member, int item = 0) : arg(arg), item(item), member(&member) {}
    Slot(int arg, void*& member, int item = 0) : arg(arg), item(item), member(&member) {}
    int arg;
    int item;
    const void* member;
  };

  // Binds tensors that the kernel reads and writes position by position. Views that share one dense memory
  // order are taken as they lie (the result is true); else those that are not row-major are packed. An
  // output may be exactly an input.
  bool BindElementwise(std::initializer_list<Slot> slots);

  // Binds one tensor that the kernel takes as dense row-major.
  void BindContiguous(Slot slot);

  // Binds one dense tensor as it lies, for kernels that know its layout.
  void BindAsIs(Slot slot);

  // Binds an output that the kernel writes in the dense memory order of `model`, a tensor of its shape. It
  // is written where it lies if `as_is`, and nothing else of the call is disturbed by that.
  void BindInOrderOf(const Tensor& model, Slot slot, bool as_is);

  // True when writing the output in place disturbs no other tensor of the call.
  bool CanWriteInPlace(int arg) const { return !OverlapsOthers(IndexOf(arg, 0), {}); }

  // Books scratch memory under a name and binds it to a pointer member.
  void Scratch(const char* name, int64_t bytes, void*& member);
  // The same piece of scratch for another step.
  struct Piece {
    int64_t offset;
  };
  Piece Book(const char* name, int64_t bytes);
  void BindScratch(Piece piece, const void*& member) { AddScratch(&member, piece.offset); }
  void BindScratch(Piece piece, void*& member) { AddScratch(&member, piece.offset); }

  // A tensor argument, or an entry of a list, as an operand of steps.
  Operand TensorOperand(int arg, int item = 0);
  // A dense tensor in scratch memory.
  Operand ScratchOperand(const char* name, DType dtype, const Dims& dims);
  // The pointer, or the view, of the present step that receives the operand.
  void Bind(const Operand& operand, const void*& member) { BindOperand(operand, &member); }
  void Bind(const Operand& operand, void*& member) { BindOperand(operand, &member); }
  void Bind(const Operand& operand, View& member);
  // An output whose data the kernel writes one behind the other from its first element on, and whose shape it leaves in
  // `shape` (a FoundShape). Returns how many elements there is room for.
  int64_t BindFound(int arg, void*& data, void*& shape);
  // True when some other tensor of the call shares memory with this one (with `exact_too` also when both are the same
  // elements): a step that still reads the other must not write it.
  bool Overlaps(const Operand& operand, bool exact_too) const;
  // The same of all tensors but `arg`, as long as that is exactly this one: what the output starts from.
  bool OverlapsAllBut(const Operand& operand, int arg) const;
  // Refuses an output that overlaps an input partly or itself: half of it would be read after it was written. Inputs that
  // are exactly the output are fine.
  void RequireApart(int arg, int item = 0);

  // First kernel of the backend that fits this step, or the one forced by name. The scratch it asks for, if any, is
  // booked and bound to `scratch`. Kernels are found by `stem`; the operator's own if it is null.
  Status ChooseKernel(const char* stem = nullptr);
  Status ChooseKernel(void*& scratch, const char* stem = nullptr);

  // For calls that have nothing to compute (empty tensors): drops the steps begun so far.
  void Nothing() { plan_.steps.clear(); }
  // Whether the program asked for deterministic results; for operators whose meaning it changes.
  bool Deterministic();

  const Tensor& TensorOf(int arg, int item = 0) const { return *TensorAt(IndexOf(arg, item)); }

 private:
  struct Bound {
    const Tensor* tensor;  // null: absent
    Span span;
  };
  void ListTensors();
  unsigned char* NewStep(size_t params_size);
  int IndexOf(int arg, int item) const { return first_[arg] + item; }
  const Tensor* TensorAt(int index) const { return bound_[index].tensor; }
  const char* NameOf(int index) const { return plan_.tensors[index].name; }
  bool OverlapsOthers(int index, std::span<const Slot> group) const;
  bool RequireAddressable(int index);
  bool CountBytes(int index);  // false: not addressable
  void BindDirect(const Slot& slot, uint16_t group = 0);
  void BindPacked(const Slot& slot, const Dims& dense);
  void BindOperand(const Operand& operand, const void* member);
  void AddPointer(const void* member, Plan::Pointer source);
  void AddScratch(const void* member, int64_t offset);
  int64_t Book(int64_t bytes);

  const Operator& op_;
  contract::Values values_;
  Plan& plan_;
  InlineVector<int, 32> first_;    // per argument: index of its first tensor
  InlineVector<Bound, 16> bound_;  // per tensor
  uint16_t groups_ = 0;
  Status problem_;  // first failure of the booking calls above; ChooseKernel reports it
};

// Forces a kernel by name as ANYACL_KERNEL does ("reference", "elu_backward=vector"); "" lifts it.
void ForceKernel(std::string name);
// What is in force: a different address for a different name.
const std::string* ForcedKernelName();

}  // namespace anyacl

#endif  // ANYACL_PLAN_PLAN_H_
