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

// Scratch memory that several products use one after the other: every one of them is fitted, then it is booked.
class ProductRoom {
 public:
  void Fit(int64_t m, int64_t n, int64_t k, int64_t batch = 1);
  void Book(PlanBuilder& plan);
  // The sums of a product, dense FLOAT.
  Operand Sums(const Dims& dims) const;

 private:
  friend Status AddContraction(PlanBuilder&, const Operand&, Groups, const Operand&, Groups, const Operand&, const ProductRoom&);
  friend void BindContraction(PlanBuilder&, const Operand&, Groups, const Operand&, Groups, const Operand&, const ProductRoom&, GemmParams*);
  int64_t rows_ = 0;     // floats
  int64_t columns_ = 0;
  int64_t sums_ = 0;
  Operand packed_rows_, packed_columns_, product_;
};
Status AddContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                      const ProductRoom& room);
// Inside the present step, whose kernel may make any part of the product.
void BindContraction(PlanBuilder& plan, const Operand& a, Groups a_groups, const Operand& b, Groups b_groups, const Operand& c,
                     const ProductRoom& room, GemmParams* params);

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
