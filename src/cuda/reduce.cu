// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// to = to op from, element by element; 16-bit floating-point types by way of float.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "cuda/transfers.h"

namespace anyacl::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__device__ T Combine(ReduceOp op, T a, T b) {
  if (b != b) return b;  // a NaN stays one, as on the CPU
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(a + b);
    case ReduceOp::kMax:
      return a < b ? b : a;
    default:
      return b < a ? b : a;
  }
}

template <class Stored, class Computed>
__global__ void ReduceElements(Stored* to, const Stored* from, size_t elements, ReduceOp op) {
  const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  to[i] = static_cast<Stored>(
      Combine<Computed>(op, static_cast<Computed>(to[i]), static_cast<Computed>(from[i])));
}

template <class Stored, class Computed = Stored>
bool Launch(void* to, const void* from, size_t elements, ReduceOp op, cudaStream_t stream) {
  if (elements == 0) return true;
  const unsigned blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  ReduceElements<Stored, Computed><<<blocks, kThreads, 0, stream>>>(
      static_cast<Stored*>(to), static_cast<const Stored*>(from), elements, op);
  return true;
}

}  // namespace

bool Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
            cudaStream_t stream) {
  switch (dtype) {
    case DType::kF32:
      return Launch<float>(to, from, elements, op, stream);
    case DType::kF64:
      return Launch<double>(to, from, elements, op, stream);
    case DType::kF16:
      return Launch<__half, float>(to, from, elements, op, stream);
    case DType::kBF16:
      return Launch<__nv_bfloat16, float>(to, from, elements, op, stream);
    case DType::kI8:
      return Launch<int8_t>(to, from, elements, op, stream);
    case DType::kU8:
      return Launch<uint8_t>(to, from, elements, op, stream);
    case DType::kI16:
      return Launch<int16_t>(to, from, elements, op, stream);
    case DType::kU16:
      return Launch<uint16_t>(to, from, elements, op, stream);
    case DType::kI32:
      return Launch<int32_t>(to, from, elements, op, stream);
    case DType::kU32:
      return Launch<uint32_t>(to, from, elements, op, stream);
    case DType::kI64:
      return Launch<int64_t>(to, from, elements, op, stream);
    case DType::kU64:
      return Launch<uint64_t>(to, from, elements, op, stream);
    default:
      return false;
  }
}

}  // namespace anyacl::cuda
