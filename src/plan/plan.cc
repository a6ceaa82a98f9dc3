// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "core/codes.h"
#include "core/env.h"
#include "core/log.h"
#include "plan/layout.h"
#include "plan/operator.h"

namespace anyacl {
namespace {

// Every name that was ever in force is kept: another thread may be reading it.
const std::string* Keep(std::string name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*names->insert(std::move(name)).first;
}

std::atomic<const std::string*>& ForcedKernel() {
  static std::atomic<const std::string*> name{Keep(env::Get(env::Var::ANYACL_KERNEL))};
  return name;
}

// The kernel name forced for this operator, or empty.
std::string_view ForcedFor(std::string_view stem) {
  const std::string_view forced = *ForcedKernelName();
  const size_t equals = forced.find('=');
  if (equals == std::string_view::npos) return forced;
  return forced.substr(0, equals) == stem ? forced.substr(equals + 1) : std::string_view();
}

}  // namespace

void ForceKernel(std::string name) {
  ForcedKernel().store(Keep(std::move(name)), std::memory_order_release);
}

const std::string* ForcedKernelName() { return ForcedKernel().load(std::memory_order_acquire); }

void Plan::CopyFrom(const Plan& other) {
  op = other.op;
  backend = other.backend;
  kernel = other.kernel;
  workspace_bytes = other.workspace_bytes;
  cost_bytes = other.cost_bytes;
  params_size = other.params_size;
  pointer_count = other.pointer_count;
  std::copy_n(other.pointers, other.pointer_count, pointers);
  std::memcpy(params, other.params, other.params_size);
}

PlanBuilder::PlanBuilder(const Operator& op, contract::Values values, const Backend& backend,
                         Plan* plan)
    : op_(op), values_(values), plan_(*plan) {
  plan_.op = &op;
  plan_.backend = &backend;
  plan_.kernel = nullptr;
  plan_.workspace_bytes = 0;
  plan_.cost_bytes = 0;
  plan_.params_size = 0;
  plan_.pointer_count = 0;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const bool tensor = op.contract.args()[i].is_tensor() && values[i].given();
    spans_[i] = tensor ? SpanOf(TensorOf(i)) : Span();
  }
}

bool PlanBuilder::IsOutput(int arg) const {
  return op_.contract.args()[arg].kind == contract::ArgKind::kOutput;
}

void PlanBuilder::AddPointer(const void* member, Plan::Pointer source) {
  source.member = static_cast<uint16_t>(static_cast<const unsigned char*>(member) - plan_.params);
  plan_.pointers[plan_.pointer_count++] = source;
}

void PlanBuilder::AddScratch(const void* member, int64_t offset) {
  AddPointer(member, {.member = 0, .tensor = -1, .group = 0, .offset = offset, .bytes = 0});
}

int64_t PlanBuilder::Book(int64_t bytes) {
  // The caller's workspace may lie anywhere; one extra line lets RunPlan align it.
  if (plan_.workspace_bytes == 0) plan_.workspace_bytes = kScratchAlign;
  const int64_t offset = static_cast<int64_t>(plan_.workspace_bytes - kScratchAlign);
  uint64_t end;
  if (bytes < 0 || bytes > INT64_MAX - static_cast<int64_t>(kScratchAlign) ||
      __builtin_add_overflow(plan_.workspace_bytes,
                             (static_cast<uint64_t>(bytes) + kScratchAlign - 1) & -kScratchAlign,
                             &end) ||
      end > INT64_MAX) {
    problem_ = Status(code::kInvalid,
                      fmt::format("{}: the call needs more scratch memory than 2^63 bytes", op_.contract.op()));
    return 0;
  }
  plan_.workspace_bytes = end;
  return offset;
}

void PlanBuilder::Scratch(const char* name, int64_t bytes, void*& member) {
  if (log::Enabled(log::Level::kDebug)) {
    log::Write(log::Level::kDebug,
               fmt::format("{}: scratch {} {} bytes", op_.contract.op(), name, bytes));
  }
  AddScratch(&member, Book(bytes));
}

void PlanBuilder::BindDirect(const Slot& slot, uint16_t group) {
  const Tensor& t = TensorOf(slot.arg);
  AddPointer(slot.member, {.member = 0,
                           .tensor = static_cast<int16_t>(op_.contract.TensorIndex(slot.arg)),
                           .group = group,
                           .offset = t.offset * static_cast<int64_t>(SizeOf(t.dtype)),
                           .bytes = spans_[slot.arg].bytes});
}

// `dense`: strides in the workspace.
void PlanBuilder::BindPacked(const Slot& slot, const Dims& dense) {
  const Tensor& t = TensorOf(slot.arg);
  const int64_t size = static_cast<int64_t>(SizeOf(t.dtype));
  const int64_t scratch = Book(spans_[slot.arg].bytes);
  AddScratch(slot.member, scratch);
  Plan::Pack pack{op_.contract.TensorIndex(slot.arg), t.offset * size, scratch, {}};
  pack.copy.dims = t.dims;
  pack.copy.element_size = static_cast<int>(size);
  const bool output = IsOutput(slot.arg);
  pack.copy.from_strides = output ? dense : t.strides;
  pack.copy.to_strides = output ? t.strides : dense;
  pack.copy.serial = output && OverlapsItself(t);
  (output ? plan_.unpacks : plan_.packs).push_back(std::move(pack));
  CountBytes(slot.arg);
}

// True when writing this output in place could change what the kernel still has to read or another
// output. Exactly the same elements as a tensor of its element-wise group are harmless.
bool PlanBuilder::OverlapsOthers(int arg, std::span<const Slot> group) const {
  const Tensor& output = TensorOf(arg);
  for (int other = 0; other < static_cast<int>(values_.size()); ++other) {
    if (other == arg || !spans_[arg].Meets(spans_[other])) continue;
    bool harmless = false;
    for (const Slot& slot : group) {
      harmless = harmless || (slot.arg == other && !IsOutput(other) &&
                              SameElements(output, TensorOf(other)));
    }
    if (!harmless) return true;
  }
  return false;
}

bool PlanBuilder::BindElementwise(std::initializer_list<Slot> slots) {
  const std::span<const Slot> group(slots.begin(), slots.size());
  const Tensor* tensors[kMaxTensors];
  int count = 0;
  for (const Slot& slot : group) {
    if (!CountBytes(slot.arg)) return false;
    tensors[count++] = &TensorOf(slot.arg);
  }
  const auto safe = [&](const Slot& slot) {
    return !IsOutput(slot.arg) || !OverlapsOthers(slot.arg, group);
  };
  // A packed tensor is row-major, so one unsafe output makes all tensors of the group row-major.
  bool one_order = ShareDenseOrder({tensors, static_cast<size_t>(count)});
  for (const Slot& slot : group) one_order = one_order && safe(slot);
  ++groups_;
  for (const Slot& slot : group) {
    const Tensor& t = TensorOf(slot.arg);
    one_order || (spans_[slot.arg].row_major && safe(slot))
        ? BindDirect(slot, groups_)
        : BindPacked(slot, ContiguousStrides(t.dims));
  }
  return one_order;
}

// No table speaks of views beyond 63 bits, and no kernel could index them.
bool PlanBuilder::RequireAddressable(int arg) {
  if (!spans_[arg].overflow) [[likely]] return true;
  const Tensor& t = TensorOf(arg);
  problem_ = Status(code::kInvalid,
                    fmt::format("{}: {} must span fewer than 2^63 bytes, got shape {} with strides {}",
                                op_.contract.op(), op_.contract.args()[arg].name, ToString(t.dims),
                                ToString(t.strides)));
  return false;
}

bool PlanBuilder::CountBytes(int arg) {
  if (!RequireAddressable(arg)) return false;
  plan_.cost_bytes += static_cast<uint64_t>(spans_[arg].bytes);
  return true;
}

void PlanBuilder::BindAsIs(Slot slot) {
  if (CountBytes(slot.arg)) BindDirect(slot);
}

void PlanBuilder::BindContiguous(Slot slot) {
  if (!CountBytes(slot.arg)) return;
  const Tensor& t = TensorOf(slot.arg);
  const bool safe = !IsOutput(slot.arg) || CanWriteInPlace(slot.arg);
  spans_[slot.arg].row_major && safe ? BindDirect(slot) : BindPacked(slot, ContiguousStrides(t.dims));
}

void PlanBuilder::BindInOrderOf(const Tensor& model, Slot slot, bool as_is) {
  if (!CountBytes(slot.arg)) return;
  as_is && CanWriteInPlace(slot.arg) ? BindDirect(slot) : BindPacked(slot, model.strides);
}

Status PlanBuilder::ChooseKernel(void*& scratch) {
  ANYACL_RETURN_IF_ERROR(ChooseKernel());
  const int64_t bytes = plan_.kernel->scratch_bytes ? plan_.kernel->scratch_bytes(plan_.params) : 0;
  if (bytes > 0) Scratch(plan_.kernel->name, bytes, scratch);
  return std::move(problem_);
}

Status PlanBuilder::ChooseKernel() {
  // Also those that no pointer is bound to: only an output that is not wanted may be anything.
  for (int i = 0; i < static_cast<int>(values_.size()); ++i) {
    if (!IsOutput(i)) RequireAddressable(i);
  }
  if (!problem_.ok()) return std::move(problem_);
  const char* stem = op_.contract.table().stem;
  const std::string_view forced = ForcedFor(stem);
  for (const Kernel& kernel : plan_.backend->Kernels(stem)) {
    if (!forced.empty() && forced != kernel.name) continue;
    if (!kernel.fits(plan_.params)) continue;
    plan_.kernel = &kernel;
    if (log::Enabled(log::Level::kDebug)) [[unlikely]] {
      log::Write(log::Level::kDebug,
                 fmt::format("{}: kernel {} on {}, workspace {} bytes, {} packs, {} unpacks",
                             op_.contract.op(), kernel.name, plan_.backend->name(),
                             plan_.workspace_bytes, plan_.packs.size(), plan_.unpacks.size()));
    }
    return {};
  }
  return Status(code::kNoKernel,
                fmt::format("{}: no kernel{}{} for this call on backend {}", op_.contract.op(),
                            forced.empty() ? "" : " named ", forced, plan_.backend->name()));
}

void RunPlan(const Plan& plan, void* const* addresses, void* workspace, const Launch& launch) {
  if (!plan.kernel) return;
  const auto base = (reinterpret_cast<uintptr_t>(workspace) + kScratchAlign - 1) & -kScratchAlign;
  const auto scratch = reinterpret_cast<unsigned char*>(base);
  alignas(16) unsigned char params[kMaxParams];
  std::memcpy(params, plan.params, plan.params_size);
  for (int i = 0; i < plan.pointer_count; ++i) {
    const Plan::Pointer& p = plan.pointers[i];
    unsigned char* from = p.tensor < 0 ? scratch : static_cast<unsigned char*>(addresses[p.tensor]);
    unsigned char* address = from + p.offset;
    std::memcpy(params + p.member, &address, sizeof(address));
  }
  for (const Plan::Pack& pack : plan.packs) {
    StridedCopy copy = pack.copy;
    copy.from = static_cast<unsigned char*>(addresses[pack.tensor]) + pack.tensor_offset;
    copy.to = scratch + pack.scratch_offset;
    plan.backend->Copy(copy, launch);
  }
  plan.kernel->run(params, launch);
  for (const Plan::Pack& pack : plan.unpacks) {
    StridedCopy copy = pack.copy;
    copy.from = scratch + pack.scratch_offset;
    copy.to = static_cast<unsigned char*>(addresses[pack.tensor]) + pack.tensor_offset;
    plan.backend->Copy(copy, launch);
  }
}

}  // namespace anyacl
