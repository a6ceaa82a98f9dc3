// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What an operator's two C functions are made of.
#ifndef ANYACL_ABI_CALLS_H_
#define ANYACL_ABI_CALLS_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "aclnn/aclnn_base.h"
#include "plan/operator.h"

namespace anyacl::abi {

// One argument as it crosses the border; converts from every C parameter type.
struct CallArg : RawArg {
  template <class T>
  CallArg(T* h) {  // NOLINT: implicit on purpose, so that entry points list their arguments plainly
    handle = h;
  }
  CallArg(int64_t v) { integer = v; }  // NOLINT
  CallArg(double v) { real = v; }      // NOLINT
  CallArg(bool v) { flag = v; }        // NOLINT
};

aclnnStatus GetWorkspaceSize(const Operator& op, std::initializer_list<CallArg> args,
                             uint64_t* workspace_size, aclOpExecutor** executor) noexcept;

aclnnStatus Run(const Operator& op, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                void* stream) noexcept;

// Calls a phase 1 function with arguments from an array, and knows the kinds of its parameters.
template <auto function>
struct Generic;

template <class... Args, aclnnStatus (*function)(Args...)>
struct Generic<function> {
  static constexpr size_t kArgs = sizeof...(Args) - 2;  // without workspaceSize and executor

  template <class T>
  static constexpr contract::ArgKind KindOf() {
    using contract::ArgKind;
    if constexpr (std::is_same_v<T, const aclTensor*> || std::is_same_v<T, aclTensor*>) {
      // The original is loose with const on outputs, so an input is all that can be said here.
      return ArgKind::kInput;
    } else if constexpr (std::is_same_v<T, const aclScalar*>) {
      return ArgKind::kScalar;
    } else if constexpr (std::is_same_v<T, const aclBoolArray*>) {
      return ArgKind::kBoolArray;
    } else if constexpr (std::is_same_v<T, const aclIntArray*>) {
      return ArgKind::kIntArray;
    } else if constexpr (std::is_same_v<T, bool>) {
      return ArgKind::kBool;
    } else if constexpr (std::is_floating_point_v<T>) {
      return ArgKind::kReal;
    } else {
      static_assert(std::is_integral_v<T>);
      return ArgKind::kInt;
    }
  }

  template <class T>
  static T Take(const RawArg& arg) {
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(const_cast<void*>(arg.handle));
    } else if constexpr (std::is_same_v<T, bool>) {
      return arg.flag;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(arg.real);
    } else {
      return static_cast<T>(arg.integer);
    }
  }

  template <size_t... i>
  static int32_t Unpack(const RawArg* args, uint64_t* size, void** executor,
                        std::index_sequence<i...>) {
    using Tuple = std::tuple<Args...>;
    return function(Take<std::tuple_element_t<i, Tuple>>(args[i])..., size,
                    reinterpret_cast<aclOpExecutor**>(executor));
  }
  static int32_t Call(const RawArg* args, uint64_t* size, void** executor) {
    return Unpack(args, size, executor, std::make_index_sequence<kArgs>());
  }

  template <size_t... i>
  static constexpr std::array<contract::ArgKind, kArgs> Kinds(std::index_sequence<i...>) {
    return {KindOf<std::tuple_element_t<i, std::tuple<Args...>>>()...};
  }
  static constexpr std::array<contract::ArgKind, kArgs> kKinds =
      Kinds(std::make_index_sequence<kArgs>());
};

template <auto phase2>
int32_t GenericRun(void* workspace, uint64_t size, void* executor, void* stream) {
  return phase2(workspace, size, static_cast<aclOpExecutor*>(executor), stream);
}

}  // namespace anyacl::abi

#endif  // ANYACL_ABI_CALLS_H_
