// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/executor.h"

#include <fmt/format.h>

#include <cstring>

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

Status ResolveAddresses(const char* op, const Executor& executor, FollowTensor follow, Run* run) {
  for (int i = 0; i < executor.tensor_count; ++i) {
    const Executor::TensorRef& t = executor.tensors[i];
    void* address = t.address;
    if (t.given) follow(t.handle, t.repointed, &address);
    if (t.needs_memory && !address) {
      return Status(code::kNull, fmt::format("{}: {} has elements but its data pointer is null", op, t.name));
    }
    if (t.needs_memory && (reinterpret_cast<uintptr_t>(address) & (t.alignment - 1)) != 0) {
      return Status(code::kInvalid, fmt::format("{}: {} must lie at a multiple of {} bytes on this backend, got {}",
                                                op, t.name, t.alignment, fmt::ptr(address)));
    }
    run->addresses[i] = address;
  }
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
