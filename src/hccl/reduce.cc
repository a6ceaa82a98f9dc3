// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "hccl/hccl_types.h"

namespace anyacl::hccl {
namespace {

constexpr size_t kBlock = 2048;  // elements that stay in the first cache

// Storage and back, without branches, so that loops over them become vectors.
struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

template <class T>
T Load(T value) {
  return value;
}
float Load(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
float Load(Fp16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  // The exponent moves from bias 15 to 127 by a product, which is exact for subnormal numbers, too.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  return std::bit_cast<float>(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : finite));
}

template <class T>
void Store(T value, T* to) {
  *to = value;
}
void Store(float value, Bf16* to) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t nearest_even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  to->bits = static_cast<uint16_t>(value != value ? (u >> 16) | 0x40u : nearest_even);
}
void Store(float value, Fp16* to) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = u & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Next to 0.5 a FLOAT counts in units of 2^-24, the subnormal ones of FP16.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t bits = magnitude < 0x38800000u ? small : normal;
  bits = magnitude >= 0x477ff000u ? 0x7c00u : bits;
  bits = magnitude > 0x7f800000u ? 0x7e00u : bits;
  to->bits = static_cast<uint16_t>(bits | (u >> 16 & 0x8000u));
}

// Signed integers wrap, too; small ones would be int otherwise, and uint16_t squared overflows that.
template <class A>
auto Wrapping(A a) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<std::common_type_t<std::make_unsigned_t<A>, unsigned>>(a);
  } else {
    return a;
  }
}

struct Sum {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(Wrapping(a) + Wrapping(b));
  }
};
struct Product {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(Wrapping(a) * Wrapping(b));
  }
};
struct Largest {
  template <class A>
  static A Of(A a, A b) {
    return a > b || a != a ? a : b;
  }
};
struct Smallest {
  template <class A>
  static A Of(A a, A b) {
    return a < b || a != a ? a : b;
  }
};

template <class Op, class T>
void ReduceBlocks(std::span<const void* const> sources, void* out, size_t count) {
  using A = decltype(Load(T()));
  A sums[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t n = std::min(kBlock, count - first);
    const T* from = static_cast<const T*>(sources[0]) + first;
    for (size_t i = 0; i < n; ++i) sums[i] = Load(from[i]);
    for (const void* const source : sources.subspan(1)) {
      from = static_cast<const T*>(source) + first;
      for (size_t i = 0; i < n; ++i) sums[i] = Op::template Of<A>(sums[i], Load(from[i]));
    }
    T* const to = static_cast<T*>(out) + first;
    for (size_t i = 0; i < n; ++i) Store(sums[i], to + i);
  }
}

template <class T>
void ReduceTyped(int op, std::span<const void* const> sources, void* out, size_t count) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return ReduceBlocks<Sum, T>(sources, out, count);
    case HCCL_REDUCE_PROD:
      return ReduceBlocks<Product, T>(sources, out, count);
    case HCCL_REDUCE_MAX:
      return ReduceBlocks<Largest, T>(sources, out, count);
    default:
      return ReduceBlocks<Smallest, T>(sources, out, count);
  }
}

}  // namespace

void Reduce(int dtype, int op, std::span<const void* const> sources, void* out, size_t count) {
  switch (dtype) {
#define ANYACL_REDUCE(name, type)    \
  case HCCL_DATA_TYPE_##name:        \
    return ReduceTyped<type>(op, sources, out, count);
    ANYACL_REDUCE(INT8, int8_t)
    ANYACL_REDUCE(INT16, int16_t)
    ANYACL_REDUCE(INT32, int32_t)
    ANYACL_REDUCE(INT64, int64_t)
    ANYACL_REDUCE(UINT8, uint8_t)
    ANYACL_REDUCE(UINT16, uint16_t)
    ANYACL_REDUCE(UINT32, uint32_t)
    ANYACL_REDUCE(UINT64, uint64_t)
    ANYACL_REDUCE(FP16, Fp16)
    ANYACL_REDUCE(BFP16, Bf16)
    ANYACL_REDUCE(FP32, float)
    ANYACL_REDUCE(FP64, double)
#undef ANYACL_REDUCE
    default:
      return;  // refused at the border
  }
}

}  // namespace anyacl::hccl
