// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An executor is a plan, the addresses of its tensors and its life cycle: single use unless made repeatable.
#ifndef ANYACL_PLAN_EXECUTOR_H_
#define ANYACL_PLAN_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/call_spec.h"
#include "core/inline_vector.h"
#include "core/handle_table.h"
#include "core/status.h"
#include "plan/operator.h"
#include "plan/plan.h"

namespace anyacl {

struct Executor {
  // What may change of one tensor of the call; the rest is in Plan::tensors, by the same index.
  struct TensorRef {
    const void* handle;
    void* address;
    uint32_t repointed;  // Tensor::repointed when `address` was taken
  };
  static constexpr size_t kInlineTensors = 16;

  Executor() noexcept {}

  PlanRef plan;
  struct Watched {
    Watched(std::shared_ptr<const contract::CallSpec> call, std::string caller) : call(std::move(call)), caller(std::move(caller)) {}
    std::shared_ptr<const contract::CallSpec> call;
    std::string caller;  // the line of Python that phase 1 was called from
  };
  std::unique_ptr<Watched> watched;  // null when nobody looked on in phase 1
  InlineVector<TensorRef, kInlineTensors> tensors;
  bool repointed = false;  // an address was set here since phase 1
  std::atomic<bool> repeatable{false};

  // Room for the addresses of one run of a call with more tensors than a queued run carries itself. One is made in
  // phase 1; a repeatable executor makes another when it is run again before the last run has ended.
  void ReserveRoom();
  void** TakeRoom();
  void ReturnRoom(void** room);

 private:
  struct Rooms {
    std::vector<std::unique_ptr<void*[]>> all;
    std::vector<void**> free;
  };
  std::unique_ptr<Rooms> rooms_;  // null while no run needs any: most calls have few tensors
};

// The owner (the caller before phase 2, the queued run after it) and every queued run hold a pin each.
using ExecutorTable = HandleTable<Executor, HandleKind::kExecutor>;
ExecutorTable& Executors();

// Takes a tensor's present address if the tensor itself was given another one since, and says so; a destroyed tensor
// keeps the one of phase 1. The room of handles provides it, because plans know no handles.
using FollowTensor = bool (*)(const void* tensor_handle, uint32_t repointed, void** address);

// Gives a tensor the shape that was found for it, row-major; nothing when it was destroyed.
using GiveShape = void (*)(const void* tensor_handle, const Dims& dims);

// Phase 2: checks what protects memory, consumes the executor unless it is repeatable, enqueues the plan. Waits for it when the
// shapes of its outputs are to be found.
Status RunExecutor(const Operator& op, void* workspace, uint64_t workspace_size, void* executor,
                   void* stream, FollowTensor follow, GiveShape give_shape);

}  // namespace anyacl

#endif  // ANYACL_PLAN_EXECUTOR_H_
