// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "abi/calls.h"

#include <fmt/format.h>

#include <span>

#include "abi/objects.h"
#include "core/border.h"
#include "core/codes.h"
#include "core/product.h"
#include "plan/executor.h"
#include "plan/recall.h"
#include "runtime/submit.h"

namespace anyacl::abi {
namespace {

using contract::ArgKind;
using contract::Value;

// Arrays have their values on the heap, and another thread may destroy them in the middle of a call.
class ArrayPins {
 public:
  ArrayPins() = default;
  ~ArrayPins() {
    for (const Pin& pin : std::span(pins_, count_)) pin.release(pin.array);
  }
  ArrayPins(const ArrayPins&) = delete;
  ArrayPins& operator=(const ArrayPins&) = delete;

  template <class T, HandleKind kind>
  const T* Add(HandleTable<T, kind>& table, const void* handle) {
    T* const array = table.Pin(handle);
    if (!array) return nullptr;
    pins_[count_++] = {array, [](void* pinned) {
                         LeakedTable<HandleTable<T, kind>>().Release(static_cast<T*>(pinned));
                       }};
    return array;
  }

 private:
  struct Pin {
    void* array;
    void (*release)(void*);
  };
  size_t count_ = 0;
  Pin pins_[kMaxArgs];  // only the first count_ are ever read
};

template <class T>
void BindObject(const void* handle, const T* found, const T** object, Value* value) {
  *object = found;
  if (!found) value->state = handle ? Value::State::kDead : Value::State::kNull;
}

void Bind(ArgKind kind, const RawArg& arg, ArrayPins* pins, Value* value) {
  value->state = Value::State::kGiven;
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
      return BindObject(arg.handle, Tensors().Get(arg.handle), &value->tensor, value);
    case ArgKind::kScalar:
      return BindObject(arg.handle, Scalars().Get(arg.handle), &value->scalar, value);
    case ArgKind::kBoolArray:
      return BindObject(arg.handle, pins->Add(BoolArrays(), arg.handle), &value->bools, value);
    case ArgKind::kIntArray:
      return BindObject(arg.handle, pins->Add(IntArrays(), arg.handle), &value->ints, value);
    case ArgKind::kInt:
      value->integer = arg.integer;
      return;
    case ArgKind::kReal:
      value->real = arg.real;
      return;
    case ArgKind::kBool:
      value->flag = arg.flag;
      return;
  }
}

Status CheckResultPointers(const char* op, const uint64_t* size, aclOpExecutor* const* executor) {
  const char* missing = !executor ? "executor" : !size ? "workspaceSize" : nullptr;
  if (!missing) return {};
  return Status(code::kNull, fmt::format("{}GetWorkspaceSize: {} must not be null", op, missing));
}

void ListTensors(const Operator& op, contract::Values values, const CallArg* args,
                 Executor* executor) {
  // A GPU faults on elements that are not aligned, and a fault takes the device away from the process.
  const bool aligned = executor->plan.backend->launches();
  for (size_t i = 0; i < values.size(); ++i) {
    const contract::Arg& arg = op.contract.args()[i];
    if (!arg.is_tensor()) continue;
    const bool given = values[i].given();
    executor->tensors[executor->tensor_count++] = {
        .name = arg.name,
        .handle = args[i].handle,
        .address = given ? values[i].tensor->data : nullptr,
        .given = given,
        .is_output = arg.kind == ArgKind::kOutput,
        .repointed = given ? values[i].tensor->repointed : 0,
        .needs_memory = false,
        .alignment = static_cast<uint8_t>(aligned && given ? SizeOf(values[i].tensor->dtype) : 1),
    };
  }
  // Only tensors the plan touches need memory: a masked-out output may stay without.
  const auto touch = [&](int tensor) {
    if (tensor >= 0) executor->tensors[tensor].needs_memory = true;
  };
  const Plan& plan = executor->plan;
  if (!plan.kernel) return;
  for (int i = 0; i < plan.pointer_count; ++i) touch(plan.pointers[i].tensor);
  for (const Plan::Pack& pack : plan.packs) touch(pack.tensor);
  for (const Plan::Pack& pack : plan.unpacks) touch(pack.tensor);
}

Status NewExecutor(const char* op, Executor** executor, void** handle) {
  *handle = Executors().Create(executor);
  if (*handle) [[likely]] return {};
  return Status(code::kInner, fmt::format("{}: too many executors are alive", op));
}

Status MakeExecutor(const Operator& op, contract::Values values, const CallArg* args,
                    const Backend& backend, Executor** executor, void** handle) {
  ANYACL_RETURN_IF_ERROR(NewExecutor(op.contract.op(), executor, handle));
  PlanBuilder builder(op, values, backend, &(*executor)->plan);
  Status status = op.plan(values, builder);
  if (status.ok()) {
    ListTensors(op, values, args, *executor);
  } else {
    Executors().Destroy(*handle);
  }
  return status;
}

// An executor for a call like an earlier one.
Status RepeatExecutor(const Operator& op, const RememberedCall& known, contract::Values values,
                      const CallArg* args, Executor** executor, void** handle) {
  ANYACL_RETURN_IF_ERROR(NewExecutor(op.contract.op(), executor, handle));
  known.CopyTo(*executor);
  Executor::TensorRef* tensor = (*executor)->tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!op.contract.args()[i].is_tensor()) continue;
    tensor->handle = args[i].handle;
    tensor->address = tensor->given ? values[i].tensor->data : nullptr;
    tensor->repointed = tensor->given ? values[i].tensor->repointed : 0;
    ++tensor;
  }
  return {};
}

Status Phase1(const Operator& op, std::initializer_list<CallArg> args, uint64_t* workspace_size,
              aclOpExecutor** result) {
  const contract::Contract& contract = op.contract;
  const bool results_first =
      contract.table().result_pointers == contract::ResultPointers::kFirst;
  if (results_first) {
    ANYACL_RETURN_IF_ERROR(CheckResultPointers(contract.op(), workspace_size, result));
  }
  Value values[kMaxArgs];
  ArrayPins pins;
  for (size_t i = 0; i < args.size(); ++i) {
    Bind(contract.args()[i].kind, args.begin()[i], &pins, &values[i]);
  }
  const contract::Values bound(values, args.size());
  const Backend& backend = runtime::CurrentBackend();
  const Product product = CurrentProduct();
  const CallDescription description(op, bound, backend, product);
  Executor* executor = nullptr;
  void* handle = nullptr;
  const RememberedCall* const known =
      workspace_size && result ? Recall(description) : nullptr;
  if (known) {
    ANYACL_RETURN_IF_ERROR(RepeatExecutor(op, *known, bound, args.begin(), &executor, &handle));
  } else {
    ANYACL_RETURN_IF_ERROR(contract.CheckNulls(bound));
    if (!results_first) {
      ANYACL_RETURN_IF_ERROR(CheckResultPointers(contract.op(), workspace_size, result));
    }
    ANYACL_RETURN_IF_ERROR(contract.CheckRest(bound, product));
    ANYACL_RETURN_IF_ERROR(MakeExecutor(op, bound, args.begin(), backend, &executor, &handle));
    Remember(description, *executor);
  }
  *workspace_size = executor->plan.workspace_bytes;
  *result = static_cast<aclOpExecutor*>(handle);
  return {};
}

bool FollowTensor(const void* handle, uint32_t repointed, void** address) {
  const Tensor* tensor = Tensors().Get(handle);
  if (!tensor || tensor->repointed == repointed) return false;
  *address = tensor->data;
  return true;
}

}  // namespace

aclnnStatus GetWorkspaceSize(const Operator& op, std::initializer_list<CallArg> args,
                             uint64_t* workspace_size, aclOpExecutor** executor) noexcept {
  // Samples pass uninitialised variables here and use them whatever the result: leave them harmless.
  if (workspace_size) *workspace_size = 0;
  if (executor) *executor = nullptr;
  return Border(op.contract.op(), kAclnnBorder,
                [&] { return Phase1(op, args, workspace_size, executor); });
}

aclnnStatus Run(const Operator& op, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                void* stream) noexcept {
  return Border(op.contract.op(), kAclnnBorder, [&] {
    return RunExecutor(op, workspace, workspace_size, executor, stream, FollowTensor);
  });
}

}  // namespace anyacl::abi
