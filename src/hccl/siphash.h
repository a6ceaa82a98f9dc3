// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed code of short messages. Without the key nobody can make the code of
// a message that he has not seen one of.
#ifndef ANYACL_HCCL_SIPHASH_H_
#define ANYACL_HCCL_SIPHASH_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace anyacl::hccl {

using Secret = std::array<uint8_t, 16>;

namespace siphash {

struct State {
  uint64_t a, b, c, d;

  void Round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void Take(uint64_t word) {
    d ^= word;
    Round();
    Round();
    a ^= word;
  }
};

}  // namespace siphash

inline uint64_t SipHash(const Secret& key, const void* message, size_t bytes) {
  uint64_t k[2];
  std::memcpy(k, key.data(), sizeof(k));
  siphash::State state{k[0] ^ 0x736f6d6570736575u, k[1] ^ 0x646f72616e646f6du, k[0] ^ 0x6c7967656e657261u,
                       k[1] ^ 0x7465646279746573u};
  const auto* from = static_cast<const uint8_t*>(message);
  size_t left = bytes;
  for (; left >= 8; left -= 8, from += 8) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    state.Take(word);
  }
  uint64_t last = 0;
  if (left) std::memcpy(&last, from, left);
  state.Take(last | static_cast<uint64_t>(bytes) << 56);
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_SIPHASH_H_
