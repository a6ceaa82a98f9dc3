// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The parts of the family.
#ifndef ANYACL_OPS_MATMUL_FAMILIES_H_
#define ANYACL_OPS_MATMUL_FAMILIES_H_

#include "ops/operators.h"

namespace anyacl::matmul {

void DeclareWeights(Declarations& declarations);    // operators on weights in FRACTAL_NZ
void DeclareQuantised(Declarations& declarations);  // products with quantised weights
void DeclareQuantWords(Declarations& declarations);
void DeclareGrouped(Declarations& declarations);
void DeclareOthers(Declarations& declarations);     // Addmv, Gemm, Einsum, TransposeBatchMatMul

// Plans that other parts use too: out = a @ b, and out = beta * self + alpha * first @ second in Addmm's order of arguments.
Status PlanProduct(PlanBuilder& plan, int a, int b, int out);
Status PlanAddmm(contract::Values values, PlanBuilder& plan);
// The argument `out`, INT8, from dense FLOAT of as many columns as the argument `words` has elements.
Status AddRequantise(PlanBuilder& plan, const Operand& y, int words, int out);

}  // namespace anyacl::matmul

#endif  // ANYACL_OPS_MATMUL_FAMILIES_H_
