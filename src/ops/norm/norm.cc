// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/operators.h"

namespace anyacl {

Operator MakeBatchNormElemtBackward(const Entry& entry);
Operator MakeGroupNormBackward(const Entry& entry);
Operator MakeRmsNormGrad(const Entry& entry);
void DeclareAdaLayerNorm(Declarations& declarations);
void DeclareAddLayerNorm(Declarations& declarations);
void DeclareBatchNorm(Declarations& declarations);
void DeclareGroupNorm(Declarations& declarations);
void DeclareLayerNorm(Declarations& declarations);
void DeclareRmsNorm(Declarations& declarations);
void DeclareSyncBatchNorm(Declarations& declarations);
void DeclareVectorNorm(Declarations& declarations);

void DeclareNorm(Declarations& declarations) {
  declarations.Add("aclnnBatchNormElemtBackward", MakeBatchNormElemtBackward);
  declarations.Add("aclnnGroupNormBackward", MakeGroupNormBackward);
  declarations.Add("aclnnRmsNormGrad", MakeRmsNormGrad);
  DeclareAdaLayerNorm(declarations);
  DeclareAddLayerNorm(declarations);
  DeclareBatchNorm(declarations);
  DeclareGroupNorm(declarations);
  DeclareLayerNorm(declarations);
  DeclareRmsNorm(declarations);
  DeclareSyncBatchNorm(declarations);
  DeclareVectorNorm(declarations);
}

}  // namespace anyacl
