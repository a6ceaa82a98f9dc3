// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Vectors of 16 bytes.
//
// Kernels work on them whatever the address is: where the arrays are aligned a vector is one access, else it is put
// together from its elements. So the order of all sums, and with it every bit of the results, is the same for any address
// that is a multiple of the element size.
#ifndef ANYACL_CUDA_VECTORS_CUH_
#define ANYACL_CUDA_VECTORS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace anyacl::cuda {

template <class T>
inline constexpr int kLanes = 16 / sizeof(T);

template <class T>
union Vector {
  uint4 bits;
  T lanes[kLanes<T>];
  __device__ Vector() : bits{} {}
};

template <class T>
__device__ inline void Unpack(const uint4& from, float (&to)[kLanes<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    to[0] = __uint_as_float(from.x), to[1] = __uint_as_float(from.y);
    to[2] = __uint_as_float(from.z), to[3] = __uint_as_float(from.w);
  } else {
    const uint32_t words[] = {from.x, from.y, from.z, from.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, __half>) {
        const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
        to[2 * i] = pair.x, to[2 * i + 1] = pair.y;
      } else {  // a bfloat16 is the upper half of a float
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      }
    }
  }
}

template <class T>
__device__ inline uint4 Pack(const float (&from)[kLanes<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    return {__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
            __float_as_uint(from[3])};
  } else {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(from[2 * i], from[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      }
    }
    return {words[0], words[1], words[2], words[3]};
  }
}

// True when every array and every distance between two vectors is a multiple of a vector's bytes.
inline bool Aligned(std::initializer_list<const void*> arrays, int64_t pitch_bytes = 0,
                    uintptr_t vector_bytes = 16) {
  uintptr_t all = static_cast<uintptr_t>(pitch_bytes);
  for (const void* array : arrays) all |= reinterpret_cast<uintptr_t>(array);
  return all % vector_bytes == 0;
}

// The vector at `from`, of which the first `count` elements exist; the others are 0. Where `aligned`, count
// is a whole vector or nothing. Loads carry no streaming hints, which cost time
// (docs/performance.md).
template <class T>
__device__ inline uint4 LoadVector(const T* from, int count, bool aligned) {
  Vector<T> v;
  if (aligned) {
    if (count > 0) v.bits = *reinterpret_cast<const uint4*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      if (i < count) v.lanes[i] = from[i];
    }
  }
  return v.bits;
}

template <class T>
__device__ inline void StoreVector(T* to, const uint4& bits, int count, bool aligned) {
  if (aligned) {
    if (count > 0) *reinterpret_cast<uint4*>(to) = bits;
  } else {
    Vector<T> v;
    v.bits = bits;
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      if (i < count) to[i] = v.lanes[i];
    }
  }
}

// A slot is written as elements and read as a vector, or the other way round: the compiler must not take the
// two for different memory.
__device__ inline void KeepOrder() { asm volatile("" ::: "memory"); }

// The same for kernels that keep many vectors; alignment is part of the kernel, because code that is never
// run still costs registers and room in the instruction cache. Unaligned vectors go through a slot of shared
// memory of the thread's own: a short loop instead of many instructions.
template <bool kAligned, class T>
__device__ inline uint4 LoadVector(const T* from, int count, uint4* slot) {
  if constexpr (kAligned) return LoadVector(from, count, true);
  *slot = uint4{};
  KeepOrder();
#pragma unroll 1
  for (int i = 0; i < kLanes<T> && i < count; ++i) reinterpret_cast<T*>(slot)[i] = from[i];
  KeepOrder();
  return *slot;
}

template <bool kAligned, class T>
__device__ inline void StoreVector(T* to, const uint4& bits, int count, uint4* slot) {
  if constexpr (kAligned) return StoreVector(to, bits, count, true);
  *slot = bits;
  KeepOrder();
#pragma unroll 1
  for (int i = 0; i < kLanes<T> && i < count; ++i) to[i] = reinterpret_cast<const T*>(slot)[i];
  KeepOrder();
}

// Copies the vector into a slot of the thread's own, asynchronously where the hardware can (pieces of 4 bytes
// and more). Elements that do not exist leave the slot as it is. A thread that reads only slots it copied
// itself needs no barrier, only __pipeline_wait_prior.
template <bool kAligned, class T>
__device__ inline void CopyVector(uint4* slot, const T* from, int count) {
  if constexpr (kAligned) {
    if (count > 0) __pipeline_memcpy_async(slot, from, 16);
  } else {
    T* const lanes = reinterpret_cast<T*>(slot);
    KeepOrder();
#pragma unroll 1
    for (int i = 0; i < kLanes<T> && i < count; ++i) {
      if constexpr (sizeof(T) == 4)
        __pipeline_memcpy_async(lanes + i, from + i, 4);
      else
        lanes[i] = from[i];
    }
    KeepOrder();
  }
}

// Slots start at a line of the banks; behind a few other bytes every access would take one more turn.
#define ANYACL_SLOTS(name) extern __shared__ __align__(128) uint4 name[]

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_VECTORS_CUH_
