// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/rules.h"

#include <fmt/format.h>

namespace anyacl::matmul {

std::string WrongCubeMathType(int64_t type, Product product) {
  const bool internal = type == -1 && (product == Product::kA2 || product == Product::kA3);
  if (internal || (type >= 0 && type <= 4)) return "";
  return fmt::format("must be 0 to 4, got {}", type);
}

std::string ProductDims(const Dims& a, const Dims& b, Dims* result) {
  const int64_t k = a[a.rank() - 1], other = b[b.rank() == 1 ? 0 : b.rank() - 2];
  const std::string shapes = fmt::format("got {} and {}", ToString(a), ToString(b));
  if (k != other) return "must have as many rows as the first operand has columns, " + shapes;
  Dims batch_a, batch_b;
  for (int i = 0; i + 2 < a.rank(); ++i) batch_a.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); ++i) batch_b.push_back(b[i]);
  const Dims* const batches[] = {&batch_a, &batch_b};
  if (!contract::BroadcastDims(batches, result)) return "must have batch dims that broadcast with those of the first operand, " + shapes;
  if (a.rank() > 1) result->push_back(a[a.rank() - 2]);
  if (b.rank() > 1) result->push_back(b[b.rank() - 1]);
  return "";
}

std::string WrongProductShape(const Dims& a, const Dims& b, const Dims& out) {
  Dims dims;
  ProductDims(a, b, &dims);
  return dims == out ? "" : fmt::format("must have the shape {} of the product, got {}", ToString(dims), ToString(out));
}

}  // namespace anyacl::matmul
