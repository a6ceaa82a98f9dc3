// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Element-wise passes as steps of a plan. Every family converts and copies with these.
#ifndef ANYACL_OPS_POINTWISE_PASS_H_
#define ANYACL_OPS_POINTWISE_PASS_H_

#include <initializer_list>
#include <span>

#include "ops/pointwise/copy.h"
#include "ops/pointwise/pointwise.h"
#include "plan/plan.h"

namespace anyacl::pointwise {

// A scalar of a formula, rounded or wrapped to `as` first; kUndefined: only to the compute type.
struct ScalarUse {
  Scalar value;
  DType as = DType::kUndefined;
};

// An input that is the i-th scalar of the call for all elements: so the scalar form of an operator has the formula of its
// tensor form.
Operand ConstantOperand(int i);
bool IsConstant(const Operand& operand);

struct PassOptions {
  unsigned keep_inputs = 0;  // one bit each: used with all its digits, not rounded or wrapped to `computed` first
  bool cut_result = false;  // rounded or wrapped to `computed` before it is converted, whatever it is
};

// out = formula(inputs, scalars), computed in `computed`; inputs are broadcast to out and converted to `computed` first.
// Whole results are wrapped to `computed` before they are converted to out's dtype; floating ones are rounded once, to out.
Status AddPass(PlanBuilder& plan, Formula formula, DType computed, std::span<const Operand> inputs, const Operand& out,
               std::span<const ScalarUse> scalars = {}, PassOptions options = {});

// to = from, converted to its dtype.
Status AddCopy(PlanBuilder& plan, const Operand& from, const Operand& to);

// For kernels that take dense row-major arrays of one dtype. Input: the tensor itself where it is such, else a converted
// copy in scratch memory. Output: the tensor itself where it is such and nothing else of the call lies there, else scratch
// memory; after the kernel's step FinishOutput brings it into the tensor.
Status DenseInput(PlanBuilder& plan, int arg, int item, DType dtype, Operand* operand);
Operand DenseOutput(PlanBuilder& plan, int arg, int item, DType dtype);
Status FinishOutput(PlanBuilder& plan, int arg, int item, const Operand& operand);

// Broadcast to `dims`: strides 0 where the operand has one element for all. It must fit.
Operand BroadcastTo(Operand operand, const Dims& dims);

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_PASS_H_
