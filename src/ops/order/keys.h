// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Numbers as keys whose unsigned order is the order of the library: -0 equals 0, NaN is greatest and equal to itself.
#ifndef ANYACL_OPS_ORDER_KEYS_H_
#define ANYACL_OPS_ORDER_KEYS_H_

#include <bit>
#include <cstdint>

namespace anyacl::order {

inline uint64_t KeyOf(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = x == 0 ? 0 : std::bit_cast<uint32_t>(x);
  return bits >> 31 ? static_cast<uint32_t>(~bits) : bits | 0x80000000u;
}
inline uint64_t KeyOf(double x) {
  if (x != x) return ~uint64_t{0};
  const uint64_t bits = x == 0 ? 0 : std::bit_cast<uint64_t>(x);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}
inline uint64_t KeyOf(int64_t x) { return static_cast<uint64_t>(x) ^ uint64_t{1} << 63; }
inline uint64_t KeyOf(uint64_t x) { return x; }

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_KEYS_H_
