// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The product whose rules apply, chosen by ANYACL_SOC.
#ifndef ANYACL_CORE_PRODUCT_H_
#define ANYACL_CORE_PRODUCT_H_

#include <optional>
#include <string>
#include <string_view>

namespace anyacl {

enum class Product {
  kAscend950,  // the newest: accepts the union of all rules
  kA3,         // Atlas A3
  kA2,         // Atlas A2
  kTraining,   // Atlas training series
  kInference,  // Atlas inference series
  k200I,       // Atlas 200I/500 A2
};

inline constexpr Product kProducts[] = {Product::kAscend950, Product::kA3,        Product::kA2,
                                        Product::kTraining,  Product::kInference, Product::k200I};

// The product as the documents call it: "Ascend 950", "Atlas A2", ...
const char* Name(Product product);

// The product a chip name stands for; nothing for an unknown name.
std::optional<Product> ProductOf(std::string_view soc_name);

// "Ascend910B1, Ascend910B2, ...": for error texts and `anyacl info`.
std::string KnownSocNames();

// ANYACL_SOC as it was when first asked for; never null. May be an unknown name: aclInit rejects that.
const char* SocName();

// The product of SocName(); an unknown name counts as Ascend950.
Product CurrentProduct();
void SetCurrentProduct(Product product);  // tests walk through all of them in one process

}  // namespace anyacl

#endif  // ANYACL_CORE_PRODUCT_H_
