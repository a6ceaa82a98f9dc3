// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The parts of the family.
#ifndef ANYACL_OPS_CONV_FAMILIES_H_
#define ANYACL_OPS_CONV_FAMILIES_H_

#include "ops/operators.h"

namespace anyacl::conv {

void DeclareTbc(Declarations& declarations);

}  // namespace anyacl::conv

#endif  // ANYACL_OPS_CONV_FAMILIES_H_
