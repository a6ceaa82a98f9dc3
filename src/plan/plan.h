// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A plan is what phase 1 decided: which kernel runs, with which parameters, where its pointers come from,
// which views are packed and unpacked around it. It holds no addresses, so it may run many times.
#ifndef ANYACL_PLAN_PLAN_H_
#define ANYACL_PLAN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "contract/value.h"
#include "core/status.h"
#include "plan/layout.h"
#include "runtime/backend.h"

namespace anyacl {

struct Operator;

inline constexpr int kMaxArgs = 32;          // arguments of one call
inline constexpr int kMaxTensors = 16;       // tensor arguments of one call
inline constexpr int kMaxPointers = 24;      // tensor and scratch pointers in one Params
inline constexpr size_t kMaxParams = 512;    // bytes of one Params
inline constexpr uint64_t kScratchAlign = 64;

struct Plan {
  // Where one pointer member of Params comes from.
  struct Pointer {
    uint16_t member;  // its byte offset in Params
    int16_t tensor;   // index of a tensor argument, or -1: the workspace
    uint16_t group;   // tensors of one group may be exactly each other; 0: none
    int64_t offset;   // bytes behind that base
    int64_t bytes;    // of the tensor, which lie densely there
  };
  // A view copied into the workspace before the kernel, or out of it afterwards.
  struct Pack {
    int tensor;
    int64_t tensor_offset;   // bytes
    int64_t scratch_offset;  // bytes
    StridedCopy copy;        // pointers are filled in at run time
  };

  Plan() {}  // members are set by PlanBuilder; zeroing half a KiB per call would show
  // Of a plan that packs nothing. Copies no more than that one uses.
  void CopyFrom(const Plan& other);

  const Operator* op;
  const Backend* backend;
  const Kernel* kernel;  // null: nothing to compute
  uint64_t workspace_bytes;
  uint64_t cost_bytes;
  size_t params_size;
  int pointer_count;
  Pointer pointers[kMaxPointers];
  alignas(16) unsigned char params[kMaxParams];
  std::vector<Pack> packs;
  std::vector<Pack> unpacks;
};

// Runs a plan with the addresses of its tensors: packs, kernel, unpacks.
void RunPlan(const Plan& plan, void* const* addresses, void* workspace, const Launch& launch);

// What an operator's plan function writes with.
class PlanBuilder {
 public:
  PlanBuilder(const Operator& op, contract::Values values, const Backend& backend, Plan* plan);

  // The Params of the kernel, zeroed, inside the plan. Call once, before anything else.
  template <class Params>
  Params& MakeParams() {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxParams);
    plan_.params_size = sizeof(Params);
    return *new (plan_.params) Params{};
  }

  // A tensor argument and the pointer member of Params that receives its address.
  struct Slot {
    Slot(int arg, const void*& member) : arg(arg), member(&member) {}
    Slot(int arg, void*& member) : arg(arg), member(&member) {}
    int arg;
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
  bool CanWriteInPlace(int arg) const { return !OverlapsOthers(arg, {}); }

  // Books scratch memory under a name and binds it to a pointer member.
  void Scratch(const char* name, int64_t bytes, void*& member);

  // First kernel of the backend that fits, or the one forced by name. The scratch it asks for, if any, is
  // booked and bound to `scratch`.
  Status ChooseKernel();
  Status ChooseKernel(void*& scratch);

  // For calls that have nothing to compute (empty tensors).
  void Nothing() { plan_.kernel = nullptr; }

 private:
  const Tensor& TensorOf(int arg) const { return *values_[arg].tensor; }
  bool IsOutput(int arg) const;
  bool OverlapsOthers(int arg, std::span<const Slot> group) const;
  bool RequireAddressable(int arg);
  bool CountBytes(int arg);  // false: not addressable
  void BindDirect(const Slot& slot, uint16_t group = 0);
  void BindPacked(const Slot& slot, const Dims& dense);
  void AddPointer(const void* member, Plan::Pointer source);
  void AddScratch(const void* member, int64_t offset);
  int64_t Book(int64_t bytes);

  const Operator& op_;
  contract::Values values_;
  Plan& plan_;
  Span spans_[kMaxArgs];  // per argument
  uint16_t groups_ = 0;
  Status problem_;  // first failure of the booking calls above; ChooseKernel reports it
};

// Forces a kernel by name as ANYACL_KERNEL does ("reference", "elu_backward=vector"); "" lifts it.
void ForceKernel(std::string name);
// What is in force: a different address for a different name.
const std::string* ForcedKernelName();

}  // namespace anyacl

#endif  // ANYACL_PLAN_PLAN_H_
