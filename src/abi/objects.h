// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What is behind the object handles of aclnn/acl_meta.h.
//
// The tables are never destroyed: programs destroy their objects from static destructors, after
// ours would have run.
#ifndef ANYACL_ABI_OBJECTS_H_
#define ANYACL_ABI_OBJECTS_H_

#include <vector>

#include "contract/value.h"
#include "core/handle_table.h"
#include "core/once.h"
#include "core/tensor.h"

namespace anyacl {

// A list owns its members. It holds handles, not addresses: a member may be null, and one that the
// program destroyed all the same is found to be dead.
struct TensorList {
  std::vector<const void*> handles;
};
struct ScalarList {
  std::vector<const void*> handles;
};

using TensorTable = HandleTable<Tensor, HandleKind::kTensor>;
using ScalarTable = HandleTable<Scalar, HandleKind::kScalar>;
using IntArrayTable = HandleTable<IntArray, HandleKind::kIntArray>;
using FloatArrayTable = HandleTable<FloatArray, HandleKind::kFloatArray>;
using BoolArrayTable = HandleTable<BoolArray, HandleKind::kBoolArray>;
using TensorListTable = HandleTable<TensorList, HandleKind::kTensorList>;
using ScalarListTable = HandleTable<ScalarList, HandleKind::kScalarList>;

inline TensorTable& Tensors() { return TheOne<TensorTable>(); }
inline ScalarTable& Scalars() { return TheOne<ScalarTable>(); }
inline IntArrayTable& IntArrays() { return TheOne<IntArrayTable>(); }
inline FloatArrayTable& FloatArrays() { return TheOne<FloatArrayTable>(); }
inline BoolArrayTable& BoolArrays() { return TheOne<BoolArrayTable>(); }
inline TensorListTable& TensorLists() { return TheOne<TensorListTable>(); }
inline ScalarListTable& ScalarLists() { return TheOne<ScalarListTable>(); }

}  // namespace anyacl

#endif  // ANYACL_ABI_OBJECTS_H_
