// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Philox4x32-10 as docs/numerics.md has it, for oracles.
#ifndef ANYACL_HARNESS_PHILOX_H_
#define ANYACL_HARNESS_PHILOX_H_

#include <array>
#include <cstdint>

namespace anyacl::harness {

inline std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

// Word j of the sequence that (seed, offset) names.
inline uint32_t PhiloxWord(uint64_t seed, uint64_t offset, uint64_t j) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  return Philox({low(j / 4), high(j / 4), low(offset), high(offset)}, {low(seed), high(seed)})[j % 4];
}

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_PHILOX_H_
