// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/executor.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "core/codes.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

// What a queued run carries: by value, because the caller may destroy tensors and re-point addresses as
// soon as phase 2 has returned.
struct Run {
  Executor* executor;
  void* workspace;
  void* addresses[kMaxTensors];
};
static_assert(sizeof(Run) <= Work::kPayload);

Run& RunOf(Work& work) { return *reinterpret_cast<Run*>(work.payload); }

int32_t DoRun(Work& work, const Launch& launch) {
  Run& run = RunOf(work);
  RunPlan(run.executor->plan, run.addresses, run.workspace, launch);
  return 0;
}

void ReleaseRun(Work& work) { Executors().Release(RunOf(work).executor); }

// Takes one pin for a run: a single-use executor gives up its owner's, a repeatable one gets another.
Executor* Acquire(void* handle) {
  const Executor* executor = Executors().Get(handle);
  if (!executor) return nullptr;
  const bool repeatable = executor->repeatable.load(std::memory_order_acquire);
  return repeatable ? Executors().Pin(handle) : Executors().Retire(handle);
}

Status CheckOperator(const Operator& op, const Plan& plan) {
  if (plan.op == &op) [[likely]] return {};
  return Status(code::kInnerNull, fmt::format("{}: executor was made by {}GetWorkspaceSize",
                                              op.contract.op(), plan.op->contract.op()));
}

Status CheckWorkspace(const char* op, const Plan& plan, const void* workspace, uint64_t size) {
  if (size > 0 && !workspace) {
    return Status(code::kNull, fmt::format("{}: workspace must not be null when workspaceSize is {}",
                                           op, size));
  }
  if (size < plan.workspace_bytes) {
    return Status(code::kInvalid, fmt::format("{}: workspaceSize must be at least the {} bytes of "
                                              "phase 1, got {}",
                                              op, plan.workspace_bytes, size));
  }
  return {};
}

// True when the kernel may write the one while it reads the other: they lie apart, or an element-wise kernel takes
// both as one. Views of a group that were not packed have the same strides.
bool MayWriteBeside(const Plan::Pointer& output, const Plan::Pointer& other, bool other_is_output,
                    void* const* addresses) {
  const auto begin_of = [&](const Plan::Pointer& p) {
    return reinterpret_cast<uintptr_t>(addresses[p.tensor]) + static_cast<uintptr_t>(p.offset);
  };
  const uintptr_t written = begin_of(output);
  const uintptr_t touched = begin_of(other);
  if (written + output.bytes <= touched || touched + other.bytes <= written) return true;
  return output.group != 0 && output.group == other.group && !other_is_output &&
         written == touched && output.bytes == other.bytes;
}

// For addresses that phase 1 has not seen: it would have packed an output that meets another tensor.
Status CheckApart(const char* op, const Executor& executor, void* const* addresses) {
  const Executor::TensorRef* const tensors = executor.tensors;
  const std::span pointers(executor.plan.pointers, executor.plan.pointer_count);
  for (const Plan::Pointer& output : pointers) {
    if (output.tensor < 0 || !tensors[output.tensor].is_output) continue;
    for (const Plan::Pointer& other : pointers) {
      if (other.tensor < 0 || other.tensor == output.tensor) continue;
      if (MayWriteBeside(output, other, tensors[other.tensor].is_output, addresses)) continue;
      return Status(code::kInvalid,
                    fmt::format("{}: {} must not overlap {} at addresses set after phase 1, got {} and {}; a new "
                                "phase 1 with these addresses allows it",
                                op, tensors[output.tensor].name, tensors[other.tensor].name,
                                fmt::ptr(addresses[output.tensor]), fmt::ptr(addresses[other.tensor])));
    }
  }
  return {};
}

Status ResolveAddresses(const char* op, const Executor& executor, FollowTensor follow, Run* run) {
  bool repointed = executor.repointed;
  for (int i = 0; i < executor.tensor_count; ++i) {
    const Executor::TensorRef& t = executor.tensors[i];
    void* address = t.address;
    if (t.given && follow(t.handle, t.repointed, &address)) repointed = true;
    if (t.needs_memory && !address) {
      return Status(code::kNull, fmt::format("{}: {} has elements but its data pointer is null", op, t.name));
    }
    if (t.needs_memory && (reinterpret_cast<uintptr_t>(address) & (t.alignment - 1)) != 0) {
      return Status(code::kInvalid, fmt::format("{}: {} must lie at a multiple of {} bytes on this backend, got {}",
                                                op, t.name, t.alignment, fmt::ptr(address)));
    }
    run->addresses[i] = address;
  }
  if (repointed) [[unlikely]] return CheckApart(op, executor, run->addresses);
  return {};
}

}  // namespace

ExecutorTable& Executors() {
  static ExecutorTable* const table = new ExecutorTable;
  return *table;
}

Status RunExecutor(const Operator& op, void* workspace, uint64_t workspace_size, void* handle,
                   void* stream, FollowTensor follow) {
  const char* name = op.contract.op();
  if (!handle) return Status(code::kNull, fmt::format("{}: executor must not be null", name));
  Executor* executor = Acquire(handle);
  if (!executor) {
    return Status(code::kInnerNull,
                  fmt::format("{}: executor was already run, destroyed, or is no executor", name));
  }
  Work work;
  work.run = DoRun;
  work.release = ReleaseRun;
  work.label = name;
  work.cost_bytes = executor->plan.cost_bytes;
  Run& run = *new (work.payload) Run;
  run.executor = executor;
  run.workspace = workspace;
  Status status = CheckOperator(op, executor->plan);
  if (status.ok()) status = CheckWorkspace(name, executor->plan, workspace, workspace_size);
  if (status.ok()) status = ResolveAddresses(name, *executor, follow, &run);
  if (status.ok()) {
    status = runtime::Submit(stream, work);
    if (status.ok()) return status;
    status = Status(code::kRuntime, status.message());  // which begins with the label
  }
  Executors().Release(executor);
  return status;
}

}  // namespace anyacl
