// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The executor functions of aclnn/acl_meta.h: life cycle and re-pointed addresses.
#include <fmt/format.h>

#include "abi/objects.h"
#include "aclnn/acl_meta.h"
#include "core/border.h"
#include "core/codes.h"
#include "plan/executor.h"

namespace anyacl::abi {
namespace {

Status NoExecutor(const char* function, const aclOpExecutor* handle) {
  if (!handle) return Status(code::kInnerNull, fmt::format("{}: executor must not be null", function));
  if (!ExecutorTable::IsKind(handle)) {
    return Status(code::kInner, fmt::format("{}: executor must be one of phase 1, got {}", function,
                                            static_cast<const void*>(handle)));
  }
  return Status(code::kInnerNull, fmt::format("{}: executor was already run or destroyed", function));
}

using PinnedExecutor = ExecutorTable::Pinned;  // another thread may run or destroy it meanwhile

Status FindExecutor(const char* function, const aclOpExecutor* handle, PinnedExecutor* executor) {
  *executor = PinnedExecutor(Executors(), handle);
  return *executor ? Status() : NoExecutor(function, handle);
}

enum class Role { kInput, kOutput, kAny };

// The index-th argument of a role that is a tensor (or a tensor list), as the index of its first tensor, or -1;
// kAny counts what is only read first.
int FindTensor(const Executor& executor, Role role, bool list, size_t index, size_t item) {
  const std::vector<TensorFacts>& tensors = executor.plan->tensors;
  const auto nth = [&](bool written, size_t* left) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorFacts& t = tensors[i];
      const bool begins = t.item == 0 && t.is_written == written && t.in_list == list;
      if (!begins || (*left)-- != 0) continue;
      const size_t found = i + item;
      return found < tensors.size() && tensors[found].arg == t.arg ? static_cast<int>(found) : -1;
    }
    return -1;
  };
  if (role == Role::kOutput) return nth(true, &index);
  const int found = nth(false, &index);
  return found >= 0 || role == Role::kInput ? found : nth(true, &index);
}

Status Repoint(const char* function, Executor& executor, int found, const void* handle, Tensor* tensor,
               size_t index, void* address) {
  if (found < 0) {
    return Status(code::kInvalid, fmt::format("{}: index must name a tensor argument of {}, got {}", function,
                                              executor.plan->op->contract.op(), index));
  }
  const TensorFacts& facts = executor.plan->tensors[found];
  if (!facts.given) {
    return Status(code::kInvalid,
                  fmt::format("{}: {} (index {}) was null in phase 1", function, facts.name, index));
  }
  executor.tensors[found] = {handle, address, tensor->repointed};
  executor.repointed = true;
  tensor->data = address;
  return {};
}

aclnnStatus SetAddress(const char* function, Role role, aclOpExecutor* handle, size_t index,
                       aclTensor* tensor_handle, void* address) noexcept {
  return AclnnBorder(function, [&]() -> Status {
    PinnedExecutor executor;
    ANYACL_RETURN_IF_ERROR(FindExecutor(function, handle, &executor));
    if (!tensor_handle) {
      return Status(code::kInnerNull, fmt::format("{}: tensor must not be null", function));
    }
    Tensor* tensor = Tensors().Get(tensor_handle);
    if (!tensor) {
      return Status(code::kInvalid, fmt::format("{}: tensor is not a live aclTensor", function));
    }
    const int found = FindTensor(*executor.get(), role, false, index, 0);
    return Repoint(function, *executor.get(), found, tensor_handle, tensor, index, address);
  });
}

aclnnStatus SetDynamicAddress(const char* function, Role role, aclOpExecutor* handle, size_t index, size_t item,
                              aclTensorList* tensors, void* address) noexcept {
  return AclnnBorder(function, [&]() -> Status {
    PinnedExecutor executor;
    ANYACL_RETURN_IF_ERROR(FindExecutor(function, handle, &executor));
    if (!tensors) {
      return Status(code::kInnerNull, fmt::format("{}: tensors must not be null", function));
    }
    const int found = FindTensor(*executor.get(), role, true, index, item);
    if (found < 0) {
      return Status(code::kInvalid,
                    fmt::format("{}: irIndex and relativeIndex must name an entry of a tensor list of {}, got {} and {}",
                                function, executor->plan->op->contract.op(), index, item));
    }
    const TensorListTable::Pinned list(TensorLists(), tensors);
    const void* const member = list && item < list->handles.size() ? list->handles[item] : nullptr;
    Tensor* const tensor = member ? Tensors().Get(member) : nullptr;
    if (!tensor) {
      return Status(code::kInvalid, fmt::format("{}: tensors must be a live list with a tensor at {}", function, item));
    }
    return Repoint(function, *executor.get(), found, member, tensor, index, address);
  });
}

aclnnStatus DestroyExecutor(const char* function, aclOpExecutor* handle) noexcept {
  return AclnnBorder(function, [&]() -> Status {
    Executor* const executor = handle ? Executors().Retire(handle) : nullptr;
    if (!executor) return NoExecutor(function, handle);
    Executors().Release(executor);
    return {};
  });
}

}  // namespace
}  // namespace anyacl::abi

using anyacl::abi::Role;
using anyacl::abi::SetAddress;
using anyacl::abi::SetDynamicAddress;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  constexpr const char* kName = "aclSetAclOpExecutorRepeatable";
  return anyacl::AclnnBorder(kName, [&]() -> anyacl::Status {
    anyacl::abi::PinnedExecutor found;
    ANYACL_RETURN_IF_ERROR(anyacl::abi::FindExecutor(kName, executor, &found));
    found->repeatable.store(true, std::memory_order_release);
    return {};
  });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return anyacl::abi::DestroyExecutor("aclDestroyAclOpExecutor", executor);
}

aclnnStatus aclDestroyOpExecutor(aclOpExecutor* executor) {
  return anyacl::abi::DestroyExecutor("aclDestroyOpExecutor", executor);
}

// Every address function exists under two spellings.
#define ANYACL_SET_ADDRESS(name, role)                                                            \
  aclnnStatus acl##name(aclOpExecutor* executor, const size_t index, aclTensor* tensor,           \
                        void* addr) {                                                             \
    return SetAddress("acl" #name, role, executor, index, tensor, addr);                          \
  }                                                                                               \
  aclnnStatus Acl##name(aclOpExecutor* executor, const size_t index, aclTensor* tensor,           \
                        void* addr) {                                                             \
    return SetAddress("Acl" #name, role, executor, index, tensor, addr);                          \
  }
ANYACL_SET_ADDRESS(SetInputTensorAddr, Role::kInput)
ANYACL_SET_ADDRESS(SetOutputTensorAddr, Role::kOutput)
ANYACL_SET_ADDRESS(SetTensorAddr, Role::kAny)
#undef ANYACL_SET_ADDRESS

#define ANYACL_SET_DYNAMIC_ADDRESS(name, role)                                                    \
  aclnnStatus acl##name(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,      \
                        aclTensorList* tensors, void* addr) {                                     \
    return SetDynamicAddress("acl" #name, role, executor, irIndex, relativeIndex, tensors, addr); \
  }                                                                                               \
  aclnnStatus Acl##name(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,      \
                        aclTensorList* tensors, void* addr) {                                     \
    return SetDynamicAddress("Acl" #name, role, executor, irIndex, relativeIndex, tensors, addr); \
  }
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicInputTensorAddr, Role::kInput)
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicOutputTensorAddr, Role::kOutput)
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicTensorAddr, Role::kAny)
#undef ANYACL_SET_DYNAMIC_ADDRESS
