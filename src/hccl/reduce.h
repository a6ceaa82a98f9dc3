// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_HCCL_REDUCE_H_
#define ANYACL_HCCL_REDUCE_H_

#include <cstddef>
#include <span>

namespace anyacl::hccl {

// out[i] = sources[0][i] op sources[1][i] op ..., in this order; of 16-bit floating-point numbers in FLOAT, rounded once at
// the end. Integers wrap. A NaN is passed on. `out` may be one of the sources.
void Reduce(int dtype, int op, std::span<const void* const> sources, void* out, size_t count);

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_REDUCE_H_
