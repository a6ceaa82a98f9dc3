// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/executor.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "core/codes.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/undo.h"
#include "runtime/submit.h"
#include "trace/switches.h"
#include "watch/watch.h"

namespace anyacl {
namespace {

// What a queued run carries: by value, because the caller may destroy tensors and re-point addresses as
// soon as phase 2 has returned.
struct Run {
  Executor* executor;
  void* workspace;
  void** room;  // of the executor, when there are more addresses than fit here; else null
  watch::OperatorRun* watched;  // null: nobody looks on
  void* addresses[Executor::kInlineTensors];

  void** Addresses() { return room ? room : addresses; }
};
static_assert(sizeof(Run) <= Work::kPayload);

Run& RunOf(Work& work) { return *reinterpret_cast<Run*>(work.payload); }

// Apart, so that runs that nobody looks at have nothing of it.
[[gnu::noinline]] int32_t RunWatched(Run& run, const Launch& launch) {
  watch::Around watched(*run.watched, launch);
  RunPlan(*run.executor->plan, run.Addresses(), run.workspace, launch);
  watched.Done();
  return 0;
}

int32_t DoRun(Work& work, const Launch& launch) {
  Run& run = RunOf(work);
  if (run.watched) [[unlikely]]
    return RunWatched(run, launch);
  RunPlan(*run.executor->plan, run.Addresses(), run.workspace, launch);
  return 0;
}

void ReleaseRun(Work& work) {
  Run& run = RunOf(work);
  delete run.watched;
  if (run.room) run.executor->ReturnRoom(run.room);
  Executors().Release(run.executor);
}

// Takes one pin for a run: a single-use executor gives up its owner's, a repeatable one gets another.
Executor* Acquire(void* handle) {
  const Executor* executor = Executors().Get(handle);
  if (!executor) return nullptr;
  const bool repeatable = executor->repeatable.load(std::memory_order_acquire);
  return repeatable ? Executors().Pin(handle) : Executors().Retire(handle);
}

std::string NameOf(const TensorFacts& facts) {
  return facts.in_list ? fmt::format("{}[{}]", facts.name, facts.item) : facts.name;
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
bool MayWriteBeside(const Plan::Pointer& output, const Plan::Pointer& other, bool other_is_written,
                    void* const* addresses) {
  const auto begin_of = [&](const Plan::Pointer& p) {
    return reinterpret_cast<uintptr_t>(addresses[p.tensor]) + static_cast<uintptr_t>(p.offset);
  };
  const uintptr_t written = begin_of(output);
  const uintptr_t touched = begin_of(other);
  if (written + output.bytes <= touched || touched + other.bytes <= written) return true;
  return output.group != 0 && output.group == other.group && !other_is_written &&
         written == touched && output.bytes == other.bytes;
}

// For addresses that phase 1 has not seen: it would have packed an output that meets another tensor.
Status CheckApart(const char* op, const Plan& plan, void* const* addresses) {
  const auto for_each = [&](auto&& visit) -> Status {
    for (const Plan::Step& step : plan.steps) {
      for (const Plan::Pointer& pointer : step.pointers) {
        if (pointer.tensor >= 0) ANYACL_RETURN_IF_ERROR(visit(pointer));
      }
    }
    return {};
  };
  return for_each([&](const Plan::Pointer& output) -> Status {
    if (!plan.tensors[output.tensor].is_written) return {};
    return for_each([&](const Plan::Pointer& other) -> Status {
      if (other.tensor == output.tensor ||
          MayWriteBeside(output, other, plan.tensors[other.tensor].is_written, addresses)) {
        return {};
      }
      return Status(code::kInvalid,
                    fmt::format("{}: {} must not overlap {} at addresses set after phase 1, got {} and {}; a new "
                                "phase 1 with these addresses allows it",
                                op, plan.tensors[output.tensor].name, plan.tensors[other.tensor].name,
                                fmt::ptr(addresses[output.tensor]), fmt::ptr(addresses[other.tensor])));
    });
  });
}

Status ResolveAddresses(const char* op, const Executor& executor, FollowTensor follow, Run* run) {
  bool repointed = executor.repointed;
  void** const addresses = run->Addresses();
  for (size_t i = 0; i < executor.tensors.size(); ++i) {
    const Executor::TensorRef& t = executor.tensors[i];
    const TensorFacts& facts = executor.plan->tensors[i];
    void* address = t.address;
    if (facts.given && follow(t.handle, t.repointed, &address)) repointed = true;
    if (facts.needs_memory && !address) {
      return Status(code::kNull, fmt::format("{}: {} has elements but its data pointer is null", op, NameOf(facts)));
    }
    if (facts.needs_memory && (reinterpret_cast<uintptr_t>(address) & (facts.alignment - 1)) != 0) {
      return Status(code::kInvalid, fmt::format("{}: {} must lie at a multiple of {} bytes on this backend, got {}",
                                                op, NameOf(facts), facts.alignment, fmt::ptr(address)));
    }
    addresses[i] = address;
  }
  if (repointed) [[unlikely]] return CheckApart(op, *executor.plan, addresses);
  return {};
}

watch::TensorUse UseOf(const Operator& op, const TensorFacts& facts, const contract::CallSpec& call, const void* handle, void* address) {
  const contract::ArgSpec& arg = call.args[facts.arg];
  watch::TensorUse use{
      .name = facts.name,
      .arg = facts.arg,
      .item = facts.item,
      .in_list = facts.in_list,
      .is_read = facts.is_read,
      .is_written = facts.is_written,
      .is_touched = facts.needs_memory,
      .handle = handle,
      .tensor = facts.in_list ? arg.tensors[facts.item] : arg.tensor,
      .span = {},
  };
  use.tensor.data = address;
  if (op.relabel && facts.arg == 0) op.relabel(&use.tensor);  // the run leaves it so
  use.span = SpanOf(use.tensor);
  return use;
}

bool IsKnown(Run& run, int stream) {
  const Executor& executor = *run.executor;
  InlineVector<const void*, Executor::kInlineTensors> handles, addresses;
  for (size_t i = 0; i < executor.tensors.size(); ++i) {
    if (!executor.plan->tensors[i].given) continue;
    handles.push_back(executor.tensors[i].handle);
    addresses.push_back(run.Addresses()[i]);
  }
  return watch::IsKnown({.call = executor.watched->call,
                         .family = executor.plan->op->family,
                         .workspace = run.workspace,
                         .stream = stream,
                         .handles = handles,
                         .addresses = addresses});
}

// Shows the run to watchers, unless there were none in phase 1 or the stream will refuse it.
[[gnu::noinline]] void Watch(Run& run, uint64_t workspace_given, void* stream_handle) {
  const Executor& executor = *run.executor;
  const runtime::StreamFacts stream = runtime::FactsOf(stream_handle);
  if (!executor.watched || stream.id < 0) return;
  const Plan& plan = *executor.plan;
  if (!stream.is_captured && IsKnown(run, stream.id)) return;
  run.watched = new watch::OperatorRun{
      .op = plan.op,
      .name = plan.op->contract.op(),
      .family = plan.op->family,
      .call = executor.watched->call,
      .caller = executor.watched->caller,
      .tensors = {},
      .workspace = static_cast<unsigned char*>(run.workspace),
      .workspace_bytes = plan.workspace_bytes,
      .workspace_given = workspace_given,
      .backend = plan.backend,
      .stream = stream.id,
      .device = stream.device,
      .is_captured = stream.is_captured,
      .site = {},
  };
  run.watched->tensors.reserve(plan.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!plan.tensors[i].given) continue;
    run.watched->tensors.push_back(
        UseOf(*plan.op, plan.tensors[i], *executor.watched->call, executor.tensors[i].handle, run.Addresses()[i]));
  }
  watch::Call(*run.watched);
}

// Of the outputs whose shapes a run finds; taken before it, because the executor may end with it.
struct Finds {
  Finds(const Executor& executor, const void* workspace) : plan(executor.plan), workspace(workspace) {
    for (const Plan::Found& found : plan->found) handles.push_back(executor.tensors[found.tensor].handle);
  }
  Status GiveShapes(const char* op, GiveShape give_shape) const {
    for (const Plan::Found& found : plan->found) {
      const FoundShape& shape = FoundIn(found, workspace);
      if (shape.rank >= 0) continue;
      return Status(code::kInvalid, fmt::format("{}: {} must have room for the {} elements of the result", op,
                                                plan->tensors[found.tensor].name, shape.dims[0]));
    }
    for (size_t i = 0; i < handles.size(); ++i) {
      const FoundShape& shape = FoundIn(plan->found[i], workspace);
      give_shape(handles[i], Dims(std::span(shape.dims, static_cast<size_t>(shape.rank))));
    }
    return {};
  }

  PlanRef plan;
  const void* workspace;
  InlineVector<const void*, 4> handles;
};

}  // namespace

void Executor::ReserveRoom() {
  if (tensors.size() <= kInlineTensors) return;
  if (!rooms_) rooms_ = std::make_unique<Rooms>();
  rooms_->free.reserve(rooms_->all.size() + 1);
  rooms_->all.push_back(std::make_unique<void*[]>(tensors.size()));
  rooms_->free.push_back(rooms_->all.back().get());
}

void** Executor::TakeRoom() {
  if (tensors.size() <= kInlineTensors) return nullptr;
  const std::lock_guard lock(LockOf(Lock::kExecutors, this));
  if (rooms_->free.empty()) ReserveRoom();
  void** const room = rooms_->free.back();
  rooms_->free.pop_back();
  return room;
}

void Executor::ReturnRoom(void** room) {
  const std::lock_guard lock(LockOf(Lock::kExecutors, this));
  rooms_->free.push_back(room);  // there is room: ReserveRoom saw to it
}

ExecutorTable& Executors() { return TheOne<ExecutorTable>(); }

Status RunExecutor(const Operator& op, void* workspace, uint64_t workspace_size, void* handle,
                   void* stream, FollowTensor follow, GiveShape give_shape) {
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
  work.cost_bytes = executor->plan->cost_bytes;
  Run& run = *new (work.payload) Run;
  run.executor = executor;
  run.workspace = workspace;
  run.room = nullptr;
  run.watched = nullptr;
  Undo refused([&] { ReleaseRun(work); });  // until the stream owns it
  run.room = executor->TakeRoom();
  Status status = CheckOperator(op, *executor->plan);
  if (status.ok()) status = CheckWorkspace(name, *executor->plan, workspace, workspace_size);
  if (status.ok()) status = ResolveAddresses(name, *executor, follow, &run);
  if (status.ok() && watch::On()) [[unlikely]]
    Watch(run, workspace_size, stream);
  if (status.ok()) {
    bool submitted = false;
    const Undo taken([&] {
      if (submitted) refused.Keep();
    });
    if (!executor->plan->found.empty()) {
      const Finds finds(*executor, workspace);
      status = runtime::SubmitAndWait(stream, work, &submitted);
      if (status.ok()) return finds.GiveShapes(name, give_shape);
      if (submitted) return status;
    } else if (trace::IsOn(trace::kBlocking)) [[unlikely]] {
      status = runtime::SubmitBlocking(stream, work, &submitted);
      if (status.ok()) return status;
    } else {
      status = runtime::Submit(stream, work);
      if (status.ok()) {
        refused.Keep();
        return status;
      }
    }
    status = Status(code::kRuntime, status.message());  // which begins with the label
  }
  return status;
}

}  // namespace anyacl
