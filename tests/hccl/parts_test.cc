// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Parts alone: the code that proves a secret, conversions of 16-bit numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/scalar.h"
#include "hccl/hccl_types.h"
#include "hccl/reduce.h"
#include "hccl/siphash.h"

namespace anyacl::hccl {
namespace {

// The example of the paper: key 00 .. 0f, message 00 .. 0e; and the first of its table, of no byte.
TEST(SipHash, ExampleOfThePaper) {
  Secret key;
  uint8_t message[15];
  for (uint8_t i = 0; i < 16; ++i) key[i] = i;
  for (uint8_t i = 0; i < 15; ++i) message[i] = i;
  EXPECT_EQ(SipHash(key, message, 15), 0xa129ca6149be45e5u);
  EXPECT_EQ(SipHash(key, message, 0), 0x726fdb47dd0e0e31u);
}

// Every 16-bit number alone, and in sums with small ones that fall between two numbers.
template <class Number>
void AllNumbers(int dtype) {
  std::vector<uint16_t> all(65536), got(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const auto value = [](uint16_t bits) {
    Number number;
    number.bits = bits;
    return static_cast<float>(number);
  };
  for (const float other : {0.0f, 1.0f, 0x1p-14f, 3 * 0x1p-24f, -0x1p-9f, 1000.0f}) {
    std::vector<uint16_t> others(65536, Number(other).bits);
    const void* const sources[] = {all.data(), others.data()};
    Reduce(dtype, HCCL_REDUCE_SUM, sources, got.data(), got.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const float sum = value(all[i]) + value(others[i]);
      if (std::isnan(sum)) {
        EXPECT_TRUE(std::isnan(value(got[i]))) << i;
      } else {
        EXPECT_EQ(got[i], Number(sum).bits) << i << " + " << other;
      }
    }
  }
}
TEST(Reduce, AllHalves) { AllNumbers<Half>(HCCL_DATA_TYPE_FP16); }
TEST(Reduce, AllBf16) { AllNumbers<BFloat16>(HCCL_DATA_TYPE_BFP16); }

}  // namespace
}  // namespace anyacl::hccl
