// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// An executor is a plan, the addresses of its tensors and its life cycle: single use unless made repeatable.
#ifndef ANYACL_PLAN_EXECUTOR_H_
#define ANYACL_PLAN_EXECUTOR_H_

#include <atomic>
#include <cstdint>

#include "core/handle_table.h"
#include "core/status.h"
#include "plan/operator.h"
#include "plan/plan.h"

namespace anyacl {

struct Executor {
  // One tensor argument of the call, in ABI order; null optionals keep their place in the index.
  struct TensorRef {
    const char* name;
    const void* handle;
    void* address;
    bool given;
    bool is_output;
    uint32_t repointed;  // Tensor::repointed when `address` was taken
    bool needs_memory;  // has elements, so its address must not be null at run time
    uint8_t alignment;  // then its address must be a multiple of this power of two
  };

  Executor() {}

  Plan plan;
  TensorRef tensors[kMaxTensors];
  int tensor_count = 0;
  bool repointed = false;  // an address was set here since phase 1
  std::atomic<bool> repeatable{false};
};

// The owner (the caller before phase 2, the queued run after it) and every queued run hold a pin each.
using ExecutorTable = HandleTable<Executor, HandleKind::kExecutor>;
ExecutorTable& Executors();

// Takes a tensor's present address if the tensor itself was given another one since, and says so; a destroyed tensor
// keeps the one of phase 1. The room of handles provides it, because plans know no handles.
using FollowTensor = bool (*)(const void* tensor_handle, uint32_t repointed, void** address);

// Phase 2: checks what protects memory, consumes the executor unless it is repeatable, enqueues the plan.
Status RunExecutor(const Operator& op, void* workspace, uint64_t workspace_size, void* executor,
                   void* stream, FollowTensor follow);

}  // namespace anyacl

#endif  // ANYACL_PLAN_EXECUTOR_H_
