// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the contracts of matrix products have in common.
#ifndef ANYACL_OPS_MATMUL_RULES_H_
#define ANYACL_OPS_MATMUL_RULES_H_

#include <string>

#include "contract/contract.h"

namespace anyacl::matmul {

// "" or why it is no cubeMathType; -1 is an internal value that older products let through.
std::string WrongCubeMathType(int64_t type, Product product);
template <int kArg>
std::string CubeMathType(contract::Values values, Product product) {
  return WrongCubeMathType(values[kArg].integer, product);
}

// The shape of [..., m, k] @ [..., k, n] with batch dims that broadcast, or what is wrong; vectors count as one row or column.
std::string ProductDims(const Dims& a, const Dims& b, Dims* result);

// Custom rules by the places of the operands.
template <int kA, int kB>
std::string Multiply(contract::Values values, Product) {
  Dims dims;
  return ProductDims(values[kA].tensor->dims, values[kB].tensor->dims, &dims);
}
std::string WrongProductShape(const Dims& a, const Dims& b, const Dims& out);
template <int kA, int kB, int kOut>
std::string HasProductShape(contract::Values values, Product) {
  return WrongProductShape(values[kA].tensor->dims, values[kB].tensor->dims, values[kOut].tensor->dims);
}

}  // namespace anyacl::matmul

#endif  // ANYACL_OPS_MATMUL_RULES_H_
