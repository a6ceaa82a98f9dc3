// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Single elements of FLOAT, FLOAT16 and BF16 and their conversions.
#ifndef ANYACL_CUDA_ELEMENTS_CUH_
#define ANYACL_CUDA_ELEMENTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace anyacl::cuda {

// Calls f.operator()<T>() with the device type of FLOAT, FLOAT16 or BF16.
template <class F>
void WithType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF16:
      return f.template operator()<__half>();
    case DType::kBF16:
      return f.template operator()<__nv_bfloat16>();
    default:
      return;
  }
}

template <class T>
__device__ inline T FromFloat(float value) {
  if constexpr (sizeof(T) == sizeof(float))
    return value;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else
    return __float2bfloat16_rn(value);
}

template <class T>
__device__ inline float ToFloat(T value) {
  return static_cast<float>(value);
}

// An array of FLOAT, FLOAT16, BF16 or INT32; only the call knows which. A load that is decoded at once is
// waited for: whoever needs several numbers gets all of them raw first.
struct Numbers {
  const void* data;
  DType dtype;

  __device__ bool is_wide() const { return dtype == DType::kF32 || dtype == DType::kI32; }
  __device__ uint32_t Raw(int64_t i) const {
    return is_wide() ? static_cast<const uint32_t*>(data)[i]
                     : static_cast<const uint16_t*>(data)[i];
  }
  __device__ float Decode(uint32_t raw) const {
    if (dtype == DType::kF32) return __uint_as_float(raw);
    if (dtype == DType::kBF16) return __uint_as_float(raw << 16);
    if (dtype == DType::kI32) return static_cast<float>(static_cast<int32_t>(raw));
    return __half2float(__ushort_as_half(static_cast<unsigned short>(raw)));
  }
  // For arrays of FLOAT or T.
  template <class T>
  __device__ uint32_t RawAs(int64_t i) const {
    if constexpr (sizeof(T) == 4) return static_cast<const uint32_t*>(data)[i];
    return dtype == DType::kF32 ? static_cast<const uint32_t*>(data)[i]
                                : static_cast<const uint16_t*>(data)[i];
  }
  template <class T>
  __device__ float DecodeAs(uint32_t raw) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(raw);
    const uint16_t bits = static_cast<uint16_t>(raw);
    return dtype == DType::kF32 ? __uint_as_float(raw) : ToFloat(reinterpret_cast<const T&>(bits));
  }
  __device__ float operator[](int64_t i) const { return Decode(Raw(i)); }
};

__device__ inline void StoreAs(void* data, DType dtype, int64_t i, float value) {
  switch (dtype) {
    case DType::kF16:
      static_cast<__half*>(data)[i] = FromFloat<__half>(value);
      return;
    case DType::kBF16:
      static_cast<__nv_bfloat16*>(data)[i] = FromFloat<__nv_bfloat16>(value);
      return;
    default:
      static_cast<float*>(data)[i] = value;
      return;
  }
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_ELEMENTS_CUH_
