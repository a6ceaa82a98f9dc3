// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The operators of the pointwise family, by page of rows.
#include "ops/pointwise/tables.h"

namespace anyacl {

void DeclarePointwise(Declarations& declarations) {
  pointwise::DeclareArithmetic(&declarations);
  pointwise::DeclareComparisons(&declarations);
  pointwise::DeclareFunctions(&declarations);
  pointwise::DeclareSelections(&declarations);
}

}  // namespace anyacl
