// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Weights in FRACTAL_NZ (core/nz_layout.h). A tensor in this format says so by its tag; its view is that of the matrix, and a
// view with the last two axes exchanged is the image of the other one.
#ifndef ANYACL_OPS_MATMUL_WEIGHT_LAYOUT_H_
#define ANYACL_OPS_MATMUL_WEIGHT_LAYOUT_H_

#include <string>

#include "contract/contract.h"
#include "core/nz_layout.h"
#include "plan/plan.h"

namespace anyacl::matmul {

// The view of which an NZ tensor holds the image, and whether its own has the last two axes exchanged. False for other views.
bool NzMatrices(const Tensor& t, Dims* matrices, bool* exchanged);

// "" or why the storage of an NZ tensor is not that of an image of its view.
std::string WrongNz(const Tensor& t);

// A weight may be in a public format or in NZ.
inline constexpr char kWeightRule[] = "must be in no private format but FRACTAL_NZ, and then with the storage of its image";
std::string WrongWeight(const Tensor& t);
template <int kArg>
std::string WeightFits(contract::Values values, Product) {
  return WrongWeight(*values[kArg].tensor);
}

// The logical elements of a weight: the tensor itself, or a copy of what an NZ image holds.
Status WeightOperand(PlanBuilder& plan, int arg, Operand* weight);

// Writes the image of dense matrices into the memory that starts where `memory` does.
Status PackNz(PlanBuilder& plan, const Operand& matrices, const Operand& memory);
// ... and the reverse.
Status UnpackNz(PlanBuilder& plan, const Operand& memory, const Operand& matrices);

}  // namespace anyacl::matmul

#endif  // ANYACL_OPS_MATMUL_WEIGHT_LAYOUT_H_
