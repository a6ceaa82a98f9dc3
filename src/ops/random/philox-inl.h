// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The words of a stream: Philox4x32 with ten rounds, key = seed, counter = (number of four words, offset).
#if defined(ANYACL_OPS_RANDOM_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_RANDOM_PHILOX_INL_H_
#undef ANYACL_OPS_RANDOM_PHILOX_INL_H_
#else
#define ANYACL_OPS_RANDOM_PHILOX_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/random/random.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace random {
namespace HWY_NAMESPACE {

// Counters that are worked on together, in loops that compilers make vectors of.
inline constexpr int kCounters = 16;
// How many words Words writes more than it is asked for, at most.
inline constexpr int64_t kSpareWords = 4 * kCounters;

// Words first, first + 1, ... ; first is a multiple of 4.
HWY_INLINE void Words(const Key& key, uint64_t first, int64_t count, uint32_t* words) {
  for (int64_t at = 0; at < count; at += 4 * kCounters) {
    const uint64_t number = first / 4 + static_cast<uint64_t>(at / 4);
    uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
    for (int i = 0; i < kCounters; ++i) {
      c0[i] = static_cast<uint32_t>(number + static_cast<uint64_t>(i));
      c1[i] = static_cast<uint32_t>((number + static_cast<uint64_t>(i)) >> 32);
      c2[i] = static_cast<uint32_t>(key.offset);
      c3[i] = static_cast<uint32_t>(key.offset >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kCounters; ++i) {
        const uint64_t a = uint64_t{0xD2511F53} * c0[i], b = uint64_t{0xCD9E8D57} * c2[i];
        c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<uint32_t>(b);
        c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<uint32_t>(a);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < kCounters; ++i) {
      words[at + 4 * i] = c0[i];
      words[at + 4 * i + 1] = c1[i];
      words[at + 4 * i + 2] = c2[i];
      words[at + 4 * i + 3] = c3[i];
    }
  }
}

// The same from any word on; `words` has room for three more in front.
HWY_INLINE const uint32_t* WordsFrom(const Key& key, uint64_t first, int64_t count, uint32_t* words) {
  const uint64_t before = first % 4;
  Words(key, first - before, count + static_cast<int64_t>(before), words);
  return words + before;
}

// In (0, 1]
HWY_INLINE float OpenUniform(uint32_t word) { return static_cast<float>(word) * 0x1p-32f + 0x1p-33f; }

}  // namespace HWY_NAMESPACE
}  // namespace random
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
