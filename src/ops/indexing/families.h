// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The parts of the family.
#ifndef ANYACL_OPS_INDEXING_FAMILIES_H_
#define ANYACL_OPS_INDEXING_FAMILIES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "ops/indexing/steps.h"
#include "ops/movement/common.h"

namespace anyacl::indexing {

void DeclareAdvanced(Declarations& declarations);
void DeclareEmbeddings(Declarations& declarations);
void DeclareMasked(Declarations& declarations);
void DeclareReads(Declarations& declarations);
void DeclareRepeats(Declarations& declarations);
void DeclareStretches(Declarations& declarations);
void DeclareUnpools(Declarations& declarations);
void DeclareWrites(Declarations& declarations);

}  // namespace anyacl::indexing

#endif  // ANYACL_OPS_INDEXING_FAMILIES_H_
