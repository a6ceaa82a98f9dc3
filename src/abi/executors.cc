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

// The index-th tensor argument of a role; kAny counts the inputs first, then the outputs.
Executor::TensorRef* FindTensor(Executor& executor, Role role, size_t index) {
  const auto nth = [&](bool outputs, size_t* left) -> Executor::TensorRef* {
    for (int i = 0; i < executor.tensor_count; ++i) {
      if (executor.tensors[i].is_output == outputs && (*left)-- == 0) return &executor.tensors[i];
    }
    return nullptr;
  };
  if (role == Role::kOutput) return nth(true, &index);
  Executor::TensorRef* found = nth(false, &index);
  return found || role == Role::kInput ? found : nth(true, &index);
}

aclnnStatus SetAddress(const char* function, Role role, aclOpExecutor* handle, size_t index,
                       aclTensor* tensor_handle, void* address) noexcept {
  return Border(function, kAclnnBorder, [&]() -> Status {
    PinnedExecutor executor;
    ANYACL_RETURN_IF_ERROR(FindExecutor(function, handle, &executor));
    if (!tensor_handle) {
      return Status(code::kInnerNull, fmt::format("{}: tensor must not be null", function));
    }
    Tensor* tensor = Tensors().Get(tensor_handle);
    if (!tensor) {
      return Status(code::kInvalid, fmt::format("{}: tensor is not a live aclTensor", function));
    }
    Executor::TensorRef* ref = FindTensor(*executor.get(), role, index);
    if (!ref) {
      return Status(code::kInvalid, fmt::format("{}: index must name a tensor argument of {}, got {}",
                                                function, executor->plan.op->contract.op(), index));
    }
    if (!ref->given) {
      return Status(code::kInvalid,
                    fmt::format("{}: {} (index {}) was null in phase 1", function, ref->name, index));
    }
    ref->handle = tensor_handle;
    ref->address = address;
    ref->repointed = tensor->repointed;
    executor->repointed = true;
    tensor->data = address;
    return {};
  });
}

// No operator here takes a tensor list yet, so every index is out of range; null arguments come first.
aclnnStatus SetDynamicAddress(const char* function, aclOpExecutor* handle, size_t index,
                              const aclTensorList* tensors) noexcept {
  return Border(function, kAclnnBorder, [&]() -> Status {
    PinnedExecutor executor;
    ANYACL_RETURN_IF_ERROR(FindExecutor(function, handle, &executor));
    if (!tensors) {
      return Status(code::kInnerNull, fmt::format("{}: tensors must not be null", function));
    }
    return Status(code::kInvalid, fmt::format("{}: irIndex must name a tensor list of {}, got {}", function,
                                              executor->plan.op->contract.op(), index));
  });
}

aclnnStatus DestroyExecutor(const char* function, aclOpExecutor* handle) noexcept {
  return Border(function, kAclnnBorder, [&]() -> Status {
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
  return anyacl::Border(kName, anyacl::kAclnnBorder, [&]() -> anyacl::Status {
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

#define ANYACL_SET_DYNAMIC_ADDRESS(name)                                                          \
  aclnnStatus acl##name(aclOpExecutor* executor, size_t irIndex, const size_t,                    \
                        aclTensorList* tensors, void*) {                                          \
    return SetDynamicAddress("acl" #name, executor, irIndex, tensors);                            \
  }                                                                                               \
  aclnnStatus Acl##name(aclOpExecutor* executor, size_t irIndex, const size_t,                    \
                        aclTensorList* tensors, void*) {                                          \
    return SetDynamicAddress("Acl" #name, executor, irIndex, tensors);                            \
  }
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicInputTensorAddr)
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicOutputTensorAddr)
ANYACL_SET_DYNAMIC_ADDRESS(SetDynamicTensorAddr)
#undef ANYACL_SET_DYNAMIC_ADDRESS
