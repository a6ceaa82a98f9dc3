// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The numbers of the C interface: how large an element is, what can be reduced, and how things are called in texts.
#ifndef ANYACL_HCCL_ELEMENTS_H_
#define ANYACL_HCCL_ELEMENTS_H_

#include <cstddef>
#include <cstring>

#include "core/dtype.h"
#include "hccl/hccl_types.h"

namespace anyacl::hccl {

// The number a C caller passed as an enumerator, which may be none of the type's own: reading it as the enum would be
// undefined.
template <class Enum>
int Number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

DType ElementType(int dtype);    // kUndefined: no such type of ours
size_t ElementSize(int dtype);  // 0: no such type
const char* TypeName(int dtype);
bool CanReduce(int dtype);
const char* ReduceName(int op);  // null: no such operation

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_ELEMENTS_H_
