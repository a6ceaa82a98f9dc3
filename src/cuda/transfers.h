// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Kernels that move bytes for the runtime. All launch and return.
#ifndef ANYACL_CUDA_TRANSFERS_H_
#define ANYACL_CUDA_TRANSFERS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "runtime/backend.h"

namespace anyacl::cuda {

void CopyStrided(const StridedCopy& copy, cudaStream_t stream);

// False when the type cannot be reduced; nothing is launched for no elements.
bool Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
            cudaStream_t stream);

// A word is written, or waited for until a condition of aclrtValueWait holds or *give_up is not 0.
void WriteWord(uint64_t* word, uint64_t value, cudaStream_t stream);
void WaitForWord(const uint64_t* word, uint64_t value, uint32_t condition, const uint32_t* give_up,
                 cudaStream_t stream);

void MoveBytes(const MovePass& pass, cudaStream_t stream);

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_TRANSFERS_H_
