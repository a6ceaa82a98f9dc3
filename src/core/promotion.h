// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which dtype several operands are computed in: the documents' deduction tables.
#ifndef ANYACL_CORE_PROMOTION_H_
#define ANYACL_CORE_PROMOTION_H_

#include "core/dtype.h"

namespace anyacl {

// Of two tensors; kUndefined where the table has no answer. Symmetric.
DType Promote(DType a, DType b);

// Of a tensor with dims and one without, as PyTorch: the 0-dim one decides only by its category
// (BOOL < integer < floating < complex).
DType PromoteZeroDim(DType tensor, DType zero_dim);

// Of a tensor and a scalar. `out` is asked where the operands leave the precision open: an integer tensor with a
// floating scalar is FLOAT, but DOUBLE for a DOUBLE result.
DType PromoteScalar(DType tensor, DType scalar, DType out = DType::kUndefined);

}  // namespace anyacl

#endif  // ANYACL_CORE_PROMOTION_H_
