// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Matrix products as steps of a plan, for every family that needs one.
#ifndef ANYACL_OPS_MATMUL_PRODUCT_H_
#define ANYACL_OPS_MATMUL_PRODUCT_H_

#include "ops/matmul/gemm.h"
#include "plan/plan.h"

namespace anyacl::matmul {

// c = a @ b over the last two axes; the axes in front are those of c, broadcast. c is dense FLOAT [batch..., m, n]; a and b
// are any views. Over k = 0 the sum is 0.
Status AddProduct(PlanBuilder& plan, const Operand& a, const Operand& b, const Operand& c);

// The general form. a: [batch..., m..., k...], b: [batch..., n..., k...], each group with as many axes as told; c: dense FLOAT,
// [batch, m, n] in this order whatever its dims say.
struct Groups {
  int batch;
  int lines;
  int k;
};
Status AddContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c);

// The same inside the present step, for kernels that run it themselves (cpu::Gemm), several times with other rows: all of b stays
// packed.
void BindContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                     GemmParams* params);

// The operand with its last two axes exchanged.
Operand Transposed(Operand operand);
// With an axis of size 1 at `axis`.
Operand WithUnitAxis(const Operand& operand, int axis);

// to = alpha * product + beta * added, rounded once. beta = 0 does not look at `added` (which may be null), nor alpha = 0 at the
// product.
Status AddScaledSum(PlanBuilder& plan, const Operand& product, float alpha, const Operand* added, float beta, const Operand& to);

}  // namespace anyacl::matmul

#endif  // ANYACL_OPS_MATMUL_PRODUCT_H_
