// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements read and written at positions that tensors name.
#include "ops/indexing/families.h"

namespace anyacl {

void DeclareIndexing(Declarations& declarations) {
  indexing::DeclareAdvanced(declarations);
  indexing::DeclareEmbeddings(declarations);
  indexing::DeclareMasked(declarations);
  indexing::DeclareReads(declarations);
  indexing::DeclareRepeats(declarations);
  indexing::DeclareStretches(declarations);
  indexing::DeclareUnpools(declarations);
  indexing::DeclareWrites(declarations);
}

}  // namespace anyacl
