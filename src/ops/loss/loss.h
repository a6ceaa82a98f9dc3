// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the losses share.
#ifndef ANYACL_OPS_LOSS_LOSS_H_
#define ANYACL_OPS_LOSS_LOSS_H_

#include "contract/contract.h"
#include "ops/loss/reductions.h"
#include "ops/operators.h"

namespace anyacl::loss {

inline constexpr contract::Products kFive =
    contract::Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining});

}  // namespace anyacl::loss

namespace anyacl {

// Parts of the family; DeclareLoss calls them all.
void DeclareClassLosses(Declarations& declarations);
void DeclareCtc(Declarations& declarations);
void DeclareChamfer(Declarations& declarations);
void DeclareLabelMargin(Declarations& declarations);
void DeclareVocabularyLosses(Declarations& declarations);

}  // namespace anyacl

#endif  // ANYACL_OPS_LOSS_LOSS_H_
