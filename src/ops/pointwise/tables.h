// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The tables of rows, and the sets of dtypes that several of them use.
#ifndef ANYACL_OPS_POINTWISE_TABLES_H_
#define ANYACL_OPS_POINTWISE_TABLES_H_

#include "ops/pointwise/rows.h"

namespace anyacl::pointwise {

void DeclareArithmetic(Declarations* declarations);
void DeclareComparisons(Declarations* declarations);
void DeclareFunctions(Declarations* declarations);
void DeclareSelections(Declarations* declarations);

inline constexpr DTypeSet kFloats = types::kFloat3 | types::kDouble;
inline constexpr DTypeSet kReals = kFloats | types::kInt5Bool;
inline constexpr DTypeSet kNumbers = kReals | types::kComplex;
inline constexpr DTypeSet kLargeUnsigned = {DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypeSet kEverything = kNumbers | kLargeUnsigned;

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_TABLES_H_
