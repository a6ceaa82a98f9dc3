// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "abi/calls.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "abi/objects.h"
#include "abi/verify.h"
#include "abi/watched_calls.h"
#include "core/border.h"
#include "core/codes.h"
#include "core/inline_vector.h"
#include "core/log.h"
#include "core/product.h"
#include "ops/operators.h"
#include "plan/executor.h"
#include "plan/recall.h"
#include "runtime/submit.h"
#include "trace/switches.h"
#include "watch/watch.h"

namespace anyacl::abi {
namespace {

using contract::ArgKind;
using contract::Value;

// Arrays have their values on the heap, and another thread may destroy them in the middle of a call.
class ArrayPins {
 public:
  ArrayPins() = default;
  ~ArrayPins() {
    for (const Pin& pin : pins_) pin.release(pin.array);
  }
  ArrayPins(const ArrayPins&) = delete;
  ArrayPins& operator=(const ArrayPins&) = delete;

  template <class T, HandleKind kind>
  const T* Add(HandleTable<T, kind>& table, const void* handle) {
    T* const array = table.Pin(handle);
    if (!array) return nullptr;
    pins_.push_back({array, [](void* pinned) {
                       TheOne<HandleTable<T, kind>>().Release(static_cast<T*>(pinned));
                     }});
    return array;
  }

 private:
  struct Pin {
    void* array;
    void (*release)(void*);
  };
  InlineVector<Pin, 16> pins_;
};

// The lists of one call, looked up.
struct BoundLists {
  InlineVector<const Tensor*, 64> tensors;  // of all lists
  InlineVector<const Scalar*, 8> scalars;
  InlineVector<TensorSpan, 4> tensor_lists;
  InlineVector<ScalarSpan, 2> scalar_lists;
};

// The arguments of one call, looked up: what Values point to lives here.
struct BoundArgs {
  InlineVector<Value, 32> values;
  ArrayPins pins;
  std::optional<BoundLists> lists;  // few operators have any

  BoundLists& Lists() { return lists ? *lists : lists.emplace(); }
};

template <class T>
void BindObject(const void* handle, const T* found, const T** object, Value* value) {
  *object = found;
  if (!found) value->state = handle ? Value::State::kDead : Value::State::kNull;
}

// Looks the members of a list up, one behind the other in `all`.
template <class T, class List, class Table, class All>
int FindMembers(const List& list, const Table& table, All& all) {
  int dead = -1;
  for (size_t i = 0; i < list.handles.size(); ++i) {
    const void* const handle = list.handles[i];
    const T* const found = handle ? table.Get(handle) : nullptr;
    if (handle && !found && dead < 0) dead = static_cast<int>(i);
    all.push_back(found);
  }
  return dead;
}

void BindTensorList(const void* handle, BoundArgs* bound, Value* value) {
  const TensorList* const list = bound->pins.Add(TensorLists(), handle);
  if (!list) return BindObject(handle, static_cast<const TensorSpan*>(nullptr), &value->tensors, value);
  BoundLists& lists = bound->Lists();
  const int dead = FindMembers<Tensor>(*list, Tensors(), lists.tensors);
  lists.tensor_lists.push_back({{static_cast<const Tensor* const*>(nullptr), list->handles.size()}, dead});
}

void BindScalarList(const void* handle, BoundArgs* bound, Value* value) {
  const ScalarList* const list = bound->pins.Add(ScalarLists(), handle);
  if (!list) return BindObject(handle, static_cast<const ScalarSpan*>(nullptr), &value->scalars, value);
  BoundLists& lists = bound->Lists();
  const int dead = FindMembers<Scalar>(*list, Scalars(), lists.scalars);
  lists.scalar_lists.push_back({{static_cast<const Scalar* const*>(nullptr), list->handles.size()}, dead});
}

// Lists are pointed to once all are there: until then the arrays behind them may move.
void PlaceLists(std::span<const contract::Arg> args, BoundArgs* bound) {
  if (!bound->lists) return;
  BoundLists& lists = *bound->lists;
  size_t tensor_list = 0, scalar_list = 0;
  const Tensor* const* tensor = lists.tensors.data();
  const Scalar* const* scalar = lists.scalars.data();
  for (size_t i = 0; i < args.size(); ++i) {
    Value& value = bound->values[i];
    if (!args[i].is_list() || !value.given()) continue;
    if (args[i].kind == ArgKind::kScalarList) {
      ScalarSpan& list = lists.scalar_lists[scalar_list++];
      list.scalars = {scalar, list.scalars.size()};
      scalar += list.scalars.size();
      value.scalars = &list;
    } else {
      TensorSpan& list = lists.tensor_lists[tensor_list++];
      list.tensors = {tensor, list.tensors.size()};
      tensor += list.tensors.size();
      value.tensors = &list;
    }
  }
}

void Bind(ArgKind kind, const RawArg& arg, BoundArgs* bound, Value* value) {
  ArrayPins* const pins = &bound->pins;
  value->state = Value::State::kGiven;
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
    case ArgKind::kInOut:
      return BindObject(arg.handle, Tensors().Get(arg.handle), &value->tensor, value);
    case ArgKind::kInputList:
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      return BindTensorList(arg.handle, bound, value);
    case ArgKind::kScalarList:
      return BindScalarList(arg.handle, bound, value);
    case ArgKind::kScalar:
      return BindObject(arg.handle, Scalars().Get(arg.handle), &value->scalar, value);
    case ArgKind::kBoolArray:
      return BindObject(arg.handle, pins->Add(BoolArrays(), arg.handle), &value->bools, value);
    case ArgKind::kIntArray:
      return BindObject(arg.handle, pins->Add(IntArrays(), arg.handle), &value->ints, value);
    case ArgKind::kFloatArray:
      return BindObject(arg.handle, pins->Add(FloatArrays(), arg.handle), &value->floats, value);
    case ArgKind::kString:
      value->text = static_cast<const char*>(arg.handle);
      if (!arg.handle) value->state = Value::State::kNull;
      return;
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

// The handle and the address of every tensor of the call, in the order of Plan::tensors.
void TakeTensors(const Operator& op, contract::Values values, std::span<const CallArg> args,
                 Executor* executor) {
  const auto add = [&](const void* handle, const Tensor* t) {
    executor->tensors.push_back({handle, t ? t->data : nullptr, t ? t->repointed : 0});
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const contract::Arg& arg = op.contract.args()[i];
    if (arg.is_tensor()) add(args[i].handle, values[i].given() ? values[i].tensor : nullptr);
    if (!arg.is_tensor_list() || !values[i].given()) continue;
    const TensorList* const list = TensorLists().Get(args[i].handle);  // pinned by the call
    for (size_t item = 0; item < values[i].tensors->tensors.size(); ++item) {
      add(list ? list->handles[item] : nullptr, values[i].tensors->tensors[item]);
    }
  }
  executor->ReserveRoom();
}

Status MakePlan(const Operator& op, contract::Values values, const Backend& backend, PlanRef* result) {
  Plan* const plan = new Plan;
  *result = PlanRef(plan);
  PlanBuilder builder(op, values, backend, plan);
  return op.plan(values, builder);
}

void Relabel(const Operator& op, const void* handle) {
  Tensor* const tensor = Tensors().Get(handle);
  if (!tensor) return;
  op.relabel(tensor);
  tensor->Identify();
}

// The rules in their order, then the plan: what phase 1 computes, in the mode that results are promised in.
Status CheckAndPlan(const Operator& op, contract::Values values, const Backend& backend, Product product,
                    const Status& result_pointers, PlanRef* plan) {
  const DefaultFloatMode mode;
  const contract::Contract& contract = op.contract;
  ANYACL_RETURN_IF_ERROR(contract.CheckNulls(values));
  if (!result_pointers.ok()) return Status(result_pointers.code(), result_pointers.message());
  ANYACL_RETURN_IF_ERROR(contract.CheckRest(values, product));
  return MakePlan(op, values, backend, plan);
}

Status MakeExecutor(const Operator& op, std::span<const CallArg> args, uint64_t* workspace_size,
              aclOpExecutor** result) {
  const contract::Contract& contract = op.contract;
  Status result_pointers = CheckResultPointers(contract.op(), workspace_size, result);
  if (contract.table().result_pointers == contract::ResultPointers::kFirst && !result_pointers.ok()) {
    return result_pointers;
  }
  BoundArgs bound;
  bound.values.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    Bind(contract.args()[i].kind, args[i], &bound, &bound.values[i]);
  }
  PlaceLists(contract.args(), &bound);
  const contract::Values values(bound.values);
  const Backend& backend = runtime::CurrentBackend();
  const Product product = CurrentProduct();
  const CallDescription description(op, values, backend, product);
  PlanRef plan;
  const RememberedCall* const known = result_pointers.ok() ? Recall(description) : nullptr;
  if (known) {
    plan = known->plan();
  } else {
    ANYACL_RETURN_IF_ERROR(CheckAndPlan(op, values, backend, product, result_pointers, &plan));
    Remember(description, plan);
  }
  ExecutorTable::Created executor(Executors());
  if (!executor) return Status(code::kInner, fmt::format("{}: too many executors are alive", contract.op()));
  executor->plan = std::move(plan);
  if (watch::On()) [[unlikely]] {
    StartVerify();
    executor->watched = std::make_unique<Executor::Watched>(
        known ? known->spec(values) : std::make_shared<const contract::CallSpec>(contract::CallSpec::Of(contract, values)),
        watch::CallerNow());
  }
  TakeTensors(op, values, args, executor.get());
  *workspace_size = executor->plan->workspace_bytes;
  *result = static_cast<aclOpExecutor*>(executor.Keep());
  if (op.relabel) Relabel(op, args[0].handle);
  return {};
}

bool FollowTensor(const void* handle, uint32_t repointed, void** address) {
  const Tensor* tensor = Tensors().Get(handle);
  if (!tensor || tensor->repointed == repointed) return false;
  *address = tensor->data;
  return true;
}

void GiveShape(const void* handle, const Dims& dims) {
  Tensor* const tensor = Tensors().Get(handle);
  if (!tensor) return;
  tensor->dims = dims;
  tensor->strides = ContiguousStrides(dims);
  tensor->Identify();
}

// What an unwatched call is: here, where nothing more is called for it, and in Watch.
[[gnu::always_inline]] inline aclnnStatus CallPhase1(size_t entry, std::span<const CallArg> args,
                                                     uint64_t* workspace_size, aclOpExecutor** executor) {
  // Samples pass uninitialised variables here and use them whatever the result: leave them harmless.
  if (workspace_size) *workspace_size = 0;
  if (executor) *executor = nullptr;
  return AclnnBorder<AnyFloatMode>(Entries()[entry].op, [&] {
    if (log::Enabled(log::Level::kDebug)) [[unlikely]] {
      log::Write(log::Level::kDebug, std::string(Entries()[entry].op) + ": called");
    }
    return MakeExecutor(OperatorAt(entry), args, workspace_size, executor);
  });
}

[[gnu::always_inline]] inline aclnnStatus CallPhase2(size_t entry, void* workspace, uint64_t workspace_size,
                                                     aclOpExecutor* executor, void* stream) {
  return AclnnBorder(Entries()[entry].op, [&] {
    return RunExecutor(OperatorAt(entry), workspace, workspace_size, executor, stream, FollowTensor, GiveShape);
  });
}

}  // namespace

aclnnStatus GetWorkspaceSize(size_t entry, std::span<const CallArg> args, uint64_t* workspace_size,
                             aclOpExecutor** executor) noexcept {
  if (trace::AllOff()) [[likely]]
    return CallPhase1(entry, args, workspace_size, executor);
  return Watch(CallPhase1, entry, args, workspace_size, executor);
}

aclnnStatus Run(size_t entry, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                void* stream) noexcept {
  if (trace::AllOff()) [[likely]]
    return CallPhase2(entry, workspace, workspace_size, executor, stream);
  return Watch(CallPhase2, entry, workspace, workspace_size, executor, stream);
}

}  // namespace anyacl::abi
