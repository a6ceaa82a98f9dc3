// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/product.h"

#include <atomic>
#include <cstring>

#include "core/env.h"
#include "core/once.h"

namespace anyacl {
namespace {

constexpr std::string_view kNewest = "Ascend950";  // and every name that starts so

struct Row {
  const char* soc_name;
  Product product;
};

constexpr Row kRows[] = {
    {"Ascend910B1", Product::kA2},         {"Ascend910B2", Product::kA2},
    {"Ascend910B2C", Product::kA2},        {"Ascend910B3", Product::kA2},
    {"Ascend910B4", Product::kA2},         {"Ascend910B4-1", Product::kA2},
    {"Ascend910_9391", Product::kA3},      {"Ascend910_9392", Product::kA3},
    {"Ascend910_9381", Product::kA3},      {"Ascend910_9382", Product::kA3},
    {"Ascend910_9372", Product::kA3},      {"Ascend910_9362", Product::kA3},
    {"Ascend910_9363", Product::kA3},      {"Ascend910A", Product::kTraining},
    {"Ascend910B", Product::kTraining},    {"Ascend910ProA", Product::kTraining},
    {"Ascend910ProB", Product::kTraining}, {"Ascend910PremiumA", Product::kTraining},
    {"Ascend310P1", Product::kInference},  {"Ascend310P2", Product::kInference},
    {"Ascend310P3", Product::kInference},  {"Ascend310P4", Product::kInference},
    {"Ascend310P5", Product::kInference},  {"Ascend310P7", Product::kInference},
    {"Ascend310B1", Product::k200I},       {"Ascend310B2", Product::k200I},
    {"Ascend310B3", Product::k200I},       {"Ascend310B4", Product::k200I},
};

// No name of a product is longer.
struct Configured {
  Configured() { std::strncpy(name, env::Get(env::Var::ANYACL_SOC), sizeof(name) - 1); }
  char name[128] = {};
};

struct Active {
  std::atomic<Product> product{ProductOf(SocName()).value_or(Product::kAscend950)};
};

}  // namespace

std::optional<Product> ProductOf(std::string_view soc_name) {
  if (soc_name.starts_with(kNewest)) return Product::kAscend950;
  for (const Row& row : kRows) {
    if (soc_name == row.soc_name) return row.product;
  }
  return std::nullopt;
}

std::string KnownSocNames() {
  std::string names = std::string(kNewest) + "*";
  for (const Row& row : kRows) names.append(", ").append(row.soc_name);
  return names;
}

const char* SocName() { return TheOne<Configured>().name; }

Product CurrentProduct() { return TheOne<Active>().product.load(std::memory_order_relaxed); }

void SetCurrentProduct(Product product) { TheOne<Active>().product.store(product, std::memory_order_relaxed); }

const char* Name(Product product) {
  switch (product) {
    case Product::kAscend950:
      return "Ascend 950";
    case Product::kA3:
      return "Atlas A3";
    case Product::kA2:
      return "Atlas A2";
    case Product::kTraining:
      return "Atlas training";
    case Product::kInference:
      return "Atlas inference";
    case Product::k200I:
      return "Atlas 200I/500 A2";
  }
  return "unknown product";
}

}  // namespace anyacl
