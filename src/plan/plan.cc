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
#include "core/locks.h"
#include "core/log.h"
#include "core/once.h"
#include "plan/layout.h"
#include "plan/operator.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

// Every name that was ever in force is kept: another thread may be reading it.
const std::string* Keep(std::string name) {
  auto& names = TheOne<std::set<std::string>>();
  const std::lock_guard lock(LockOf(Lock::kKernelNames));
  return &*names.insert(std::move(name)).first;
}

struct ForcedName {
  std::atomic<const std::string*> name{Keep(env::Get(env::Var::ANYACL_KERNEL))};
};

std::atomic<const std::string*>& ForcedKernel() { return TheOne<ForcedName>().name; }

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

PlanBuilder::PlanBuilder(const Operator& op, contract::Values values, const Backend& backend,
                         Plan* plan)
    : op_(op), values_(values), plan_(*plan) {
  plan_.op = &op;
  plan_.backend = &backend;
  ListTensors();
}

void PlanBuilder::ListTensors() {
  // A GPU faults on elements that are not aligned, and a fault takes the device away from the process.
  const bool aligned = plan_.backend->launches();
  plan_.tensors.reserve(values_.size());
  const auto add = [&](const contract::Arg& arg, size_t i, size_t item, const Tensor* t) {
    bound_.push_back({t, t ? SpanOf(*t) : Span()});
    plan_.tensors.push_back({
        .name = arg.name,
        .arg = static_cast<uint16_t>(i),
        .item = static_cast<uint16_t>(item),
        .in_list = arg.is_list(),
        .given = t != nullptr,
        .is_read = arg.is_read(),
        .is_written = arg.is_written(),
        .needs_memory = false,
        .alignment = static_cast<uint8_t>(aligned && t ? SizeOf(t->dtype) : 1),
    });
  };
  for (size_t i = 0; i < values_.size(); ++i) {
    const contract::Arg& arg = op_.contract.args()[i];
    first_.push_back(static_cast<int>(bound_.size()));
    if (arg.is_tensor()) add(arg, i, 0, values_[i].given() ? values_[i].tensor : nullptr);
    if (!arg.is_tensor_list() || !values_[i].given()) continue;
    const auto& tensors = values_[i].tensors->tensors;
    for (size_t item = 0; item < tensors.size(); ++item) add(arg, i, item, tensors[item]);
  }
}

unsigned char* PlanBuilder::NewStep(size_t params_size) {
  Plan::Step& step = plan_.steps.emplace_back();
  step.params_size = params_size;
  step.params.reset(new unsigned char[params_size]);
  step.pointers.reserve(8);
  return step.params.get();
}

void PlanBuilder::AddPointer(const void* member, Plan::Pointer source) {
  Plan::Step& step = plan_.steps.back();
  source.member = static_cast<uint16_t>(static_cast<const unsigned char*>(member) - step.params.get());
  step.pointers.push_back(source);
}

void PlanBuilder::AddScratch(const void* member, int64_t offset) {
  AddPointer(member, {.member = 0, .group = 0, .tensor = -1, .offset = offset, .bytes = 0});
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

PlanBuilder::Piece PlanBuilder::Book(const char* name, int64_t bytes) {
  if (log::Enabled(log::Level::kDebug)) {
    log::Write(log::Level::kDebug,
               fmt::format("{}: scratch {} {} bytes", op_.contract.op(), name, bytes));
  }
  return {Book(bytes)};
}

void PlanBuilder::Scratch(const char* name, int64_t bytes, void*& member) {
  BindScratch(Book(name, bytes), member);
}

void PlanBuilder::BindDirect(const Slot& slot, uint16_t group) {
  const int index = IndexOf(slot.arg, slot.item);
  const Tensor& t = *TensorAt(index);
  AddPointer(slot.member, {.member = 0,
                           .group = group,
                           .tensor = index,
                           .offset = t.offset * static_cast<int64_t>(SizeOf(t.dtype)),
                           .bytes = bound_[index].span.reach});
  plan_.tensors[index].needs_memory |= !t.empty();  // elements of none may lie at null
}

// `dense`: strides in the workspace.
void PlanBuilder::BindPacked(const Slot& slot, const Dims& dense) {
  const int index = IndexOf(slot.arg, slot.item);
  const Tensor& t = *TensorAt(index);
  const int64_t size = static_cast<int64_t>(SizeOf(t.dtype));
  const int64_t scratch = Book(bound_[index].span.bytes);
  AddScratch(slot.member, scratch);
  const auto pack = [&](bool output) {
    Plan::Pack pack{index, t.offset * size, scratch, {}};
    pack.copy.dims = t.dims;
    pack.copy.element_size = static_cast<int>(size);
    pack.copy.from_strides = output ? dense : t.strides;
    pack.copy.to_strides = output ? t.strides : dense;
    pack.copy.serial = output && OverlapsItself(t);
    (output ? plan_.unpacks : plan_.packs).push_back(std::move(pack));
    CountBytes(index);
  };
  if (plan_.tensors[index].is_read) pack(false);
  if (plan_.tensors[index].is_written) pack(true);
  plan_.tensors[index].needs_memory |= !t.empty();  // elements of none may lie at null
}

// True when writing this output in place could change what the kernel still has to read or another
// output. Exactly the same elements as a tensor of its element-wise group are harmless.
bool PlanBuilder::OverlapsOthers(int index, std::span<const Slot> group) const {
  const Tensor& output = *TensorAt(index);
  for (int other = 0; other < static_cast<int>(bound_.size()); ++other) {
    if (other == index || !bound_[index].span.Meets(bound_[other].span)) continue;
    bool harmless = false;
    for (const Slot& slot : group) {
      harmless = harmless || (IndexOf(slot.arg, slot.item) == other && !plan_.tensors[other].is_written &&
                              SameElements(output, *TensorAt(other)));
    }
    if (!harmless) return true;
  }
  return false;
}

bool PlanBuilder::BindElementwise(std::initializer_list<Slot> slots) {
  const std::span<const Slot> group(slots.begin(), slots.size());
  InlineVector<const Tensor*, 16> tensors;
  for (const Slot& slot : group) {
    if (!CountBytes(IndexOf(slot.arg, slot.item))) return false;
    tensors.push_back(&TensorOf(slot.arg, slot.item));
  }
  const auto safe = [&](const Slot& slot) {
    const int index = IndexOf(slot.arg, slot.item);
    return !plan_.tensors[index].is_written || !OverlapsOthers(index, group);
  };
  // A packed tensor is row-major, so one unsafe output makes all tensors of the group row-major.
  bool one_order = ShareDenseOrder(tensors);
  for (const Slot& slot : group) one_order = one_order && safe(slot);
  ++groups_;
  for (const Slot& slot : group) {
    const Tensor& t = TensorOf(slot.arg, slot.item);
    one_order || (bound_[IndexOf(slot.arg, slot.item)].span.row_major && safe(slot))
        ? BindDirect(slot, groups_)
        : BindPacked(slot, ContiguousStrides(t.dims));
  }
  return one_order;
}

// No table speaks of views beyond 63 bits, and no kernel could index them.
bool PlanBuilder::RequireAddressable(int index) {
  if (!bound_[index].span.overflow) [[likely]] return true;
  const Tensor& t = *TensorAt(index);
  problem_ = Status(code::kInvalid,
                    fmt::format("{}: {} must span fewer than 2^63 bytes, got shape {} with strides {}",
                                op_.contract.op(), NameOf(index), ToString(t.dims),
                                ToString(t.strides)));
  return false;
}

bool PlanBuilder::CountBytes(int index) {
  if (!RequireAddressable(index)) return false;
  plan_.cost_bytes += static_cast<uint64_t>(bound_[index].span.bytes);
  return true;
}

bool Operand::row_major() const {
  uint64_t count = 1;  // wraps: what has no elements may have any dims
  for (int i = dims.rank() - 1; i >= 0; --i) {
    if (dims[i] != 1 && static_cast<uint64_t>(strides[i]) != count) return false;
    count *= static_cast<uint64_t>(dims[i]);
  }
  return true;
}

Operand PlanBuilder::TensorOperand(int arg, int item) {
  const int index = IndexOf(arg, item);
  const Tensor& t = *TensorAt(index);
  CountBytes(index);
  return {index, 0, bound_[index].span.reach, t.dtype, t.dims, t.strides};
}

Operand PlanBuilder::ScratchOperand(const char* name, DType dtype, const Dims& dims) {
  const int64_t count = Numel(dims);
  int64_t bytes;
  if (count == kOverflow || __builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(dtype)), &bytes)) bytes = -1;
  return {-1, Book(name, bytes).offset, bytes, dtype, dims, ContiguousStrides(dims)};
}

void PlanBuilder::BindOperand(const Operand& operand, const void* member) {
  if (operand.index < 0) return AddScratch(member, operand.offset);
  const Tensor& t = *TensorAt(operand.index);
  // Wraps where the view was refused already (RequireAddressable).
  const uint64_t offset = static_cast<uint64_t>(t.offset) * SizeOf(t.dtype) + static_cast<uint64_t>(operand.offset);
  AddPointer(member, {.member = 0,
                      .group = 0,
                      .tensor = operand.index,
                      .offset = static_cast<int64_t>(offset),
                      .bytes = operand.bytes});
  plan_.tensors[operand.index].needs_memory |= !t.empty();  // elements of none may lie at null
}

void PlanBuilder::Bind(const Operand& operand, View& member) {
  member.dtype = operand.dtype;
  member.rank = operand.dims.rank();
  if (member.rank > kMaxAxes) {
    problem_ = Status(code::kInvalid, fmt::format("{}: tensors must have at most {} dims, got shape {}", op_.contract.op(),
                                                  kMaxAxes, ToString(operand.dims)));
    member.rank = 0;
    return;
  }
  for (int i = 0; i < member.rank; ++i) {
    member.dims[i] = operand.dims[i];
    member.strides[i] = operand.strides[i];
  }
  BindOperand(operand, &member.data);
}

int64_t PlanBuilder::BindFound(int arg, void*& data, void*& shape) {
  const Operand operand = TensorOperand(arg);
  const Piece piece = Book("shape of a result", sizeof(FoundShape));
  BindScratch(piece, shape);
  plan_.found.push_back({operand.index, piece.offset});
  if (Numel(operand.dims) == 0) return 0;
  Bind(operand, data);
  // Views that repeat elements reach less far than they have elements.
  return std::min(Numel(operand.dims), operand.bytes / static_cast<int64_t>(SizeOf(operand.dtype)));
}

bool PlanBuilder::Overlaps(const Operand& operand, bool exact_too) const {
  if (operand.index < 0) return false;
  for (int other = 0; other < static_cast<int>(bound_.size()); ++other) {
    if (other == operand.index || !bound_[operand.index].span.Meets(bound_[other].span)) continue;
    if (exact_too || !SameElements(*TensorAt(operand.index), *TensorAt(other))) return true;
  }
  return false;
}

bool PlanBuilder::OverlapsAllBut(const Operand& operand, int arg) const {
  if (operand.index < 0) return false;
  for (int other = 0; other < static_cast<int>(bound_.size()); ++other) {
    if (other == operand.index || !bound_[operand.index].span.Meets(bound_[other].span)) continue;
    if (other != IndexOf(arg, 0) || !SameElements(*TensorAt(operand.index), *TensorAt(other))) return true;
  }
  return false;
}

void PlanBuilder::RequireApart(int arg, int item) {
  const int output = IndexOf(arg, item);
  const Tensor& t = *TensorAt(output);
  const auto refuse = [&](const std::string& rule) {
    problem_ = Status(code::kInvalid, fmt::format("{}: {} {}", op_.contract.op(), NameOf(output), rule));
  };
  if (OverlapsItself(t)) {
    refuse(fmt::format("must not overlap itself, got shape {} with strides {}", ToString(t.dims), ToString(t.strides)));
  }
  for (int other = 0; other < static_cast<int>(bound_.size()); ++other) {
    if (other == output || !bound_[output].span.Meets(bound_[other].span)) continue;
    if (!plan_.tensors[other].is_written && InsideElements(*TensorAt(other), t)) continue;
    if (!ShareBytes(t, *TensorAt(other))) continue;
    refuse(fmt::format("must be {} itself or lie apart from it, got views that overlap partly", NameOf(other)));
  }
}

void PlanBuilder::BindAsIs(Slot slot) {
  if (CountBytes(IndexOf(slot.arg, slot.item))) BindDirect(slot);
}

void PlanBuilder::BindContiguous(Slot slot) {
  const int index = IndexOf(slot.arg, slot.item);
  if (!CountBytes(index)) return;
  const bool safe = !plan_.tensors[index].is_written || !OverlapsOthers(index, {});
  bound_[index].span.row_major && safe ? BindDirect(slot)
                                       : BindPacked(slot, ContiguousStrides(TensorAt(index)->dims));
}

void PlanBuilder::BindInOrderOf(const Tensor& model, Slot slot, bool as_is) {
  const int index = IndexOf(slot.arg, slot.item);
  if (!CountBytes(index)) return;
  as_is && !OverlapsOthers(index, {}) ? BindDirect(slot) : BindPacked(slot, model.strides);
}

bool PlanBuilder::Deterministic() {
  plan_.follows_switch = true;
  return runtime::Determinism() != 0;
}

Status PlanBuilder::ChooseKernel(void*& scratch, const char* stem) {
  ANYACL_RETURN_IF_ERROR(ChooseKernel(stem));
  const Plan::Step& step = plan_.steps.back();
  const int64_t bytes = step.kernel->scratch_bytes ? step.kernel->scratch_bytes(step.params.get()) : 0;
  if (bytes > 0) Scratch(step.kernel->name, bytes, scratch);
  return std::move(problem_);
}

Status PlanBuilder::ChooseKernel(const char* stem) {
  // Also those that no pointer is bound to: only an output that is not wanted may be anything.
  for (int i = 0; i < static_cast<int>(bound_.size()); ++i) {
    if (!plan_.tensors[i].is_written) RequireAddressable(i);
  }
  if (!problem_.ok()) return std::move(problem_);
  if (!stem) stem = op_.contract.table().stem;
  Plan::Step& step = plan_.steps.back();
  const std::string_view forced = ForcedFor(stem);
  for (const Kernel& kernel : plan_.backend->Kernels(stem)) {
    if (!forced.empty() && forced != kernel.name) continue;
    if (!kernel.fits(step.params.get())) continue;
    step.kernel = &kernel;
    step.stem = stem;
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

namespace {

void RunStep(const Plan::Step& step, void* const* addresses, unsigned char* scratch, const Launch& launch) {
  alignas(16) unsigned char params[kMaxParams];
  std::memcpy(params, step.params.get(), step.params_size);
  for (const Plan::Pointer& p : step.pointers) {
    unsigned char* from = p.tensor < 0 ? scratch : static_cast<unsigned char*>(addresses[p.tensor]);
    unsigned char* address = from + p.offset;
    std::memcpy(params + p.member, &address, sizeof(address));
  }
  step.kernel->run(params, launch);
}

}  // namespace

static unsigned char* ScratchIn(const void* workspace) {
  return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(workspace) + kScratchAlign - 1) & -kScratchAlign);
}

const FoundShape& FoundIn(const Plan::Found& found, const void* workspace) {
  return *reinterpret_cast<const FoundShape*>(ScratchIn(workspace) + found.scratch_offset);
}

void RunPlan(const Plan& plan, void* const* addresses, void* workspace, const Launch& launch) {
  unsigned char* const scratch = ScratchIn(workspace);
  for (const Plan::Pack& pack : plan.packs) {
    StridedCopy copy = pack.copy;
    copy.from = static_cast<unsigned char*>(addresses[pack.tensor]) + pack.tensor_offset;
    copy.to = scratch + pack.scratch_offset;
    plan.backend->Copy(copy, launch);
  }
  for (const Plan::Step& step : plan.steps) RunStep(step, addresses, scratch, launch);
  for (const Plan::Pack& pack : plan.unpacks) {
    StridedCopy copy = pack.copy;
    copy.from = scratch + pack.scratch_offset;
    copy.to = static_cast<unsigned char*>(addresses[pack.tensor]) + pack.tensor_offset;
    plan.backend->Copy(copy, launch);
  }
}

}  // namespace anyacl
