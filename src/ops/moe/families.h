// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The parts of the family.
#ifndef ANYACL_OPS_MOE_FAMILIES_H_
#define ANYACL_OPS_MOE_FAMILIES_H_

#include "ops/operators.h"

namespace anyacl::moe {

void DeclareGating(Declarations& declarations);
void DeclareRouting(Declarations& declarations);
void DeclareCombining(Declarations& declarations);

}  // namespace anyacl::moe

#endif  // ANYACL_OPS_MOE_FAMILIES_H_
