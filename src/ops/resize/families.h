// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Parts of the family that are declared together.
#ifndef ANYACL_OPS_RESIZE_FAMILIES_H_
#define ANYACL_OPS_RESIZE_FAMILIES_H_

#include "ops/operators.h"

namespace anyacl::resize {

void DeclareGridSample(Declarations& declarations);

}  // namespace anyacl::resize

#endif  // ANYACL_OPS_RESIZE_FAMILIES_H_
