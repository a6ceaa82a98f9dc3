// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/kernels.h"

namespace anyacl::cpu {

#if defined(__x86_64__)
int64_t stream_bytes =
    __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f") ? 4 << 20 : 32 << 20;
#else
int64_t stream_bytes = 32 << 20;
#endif

}  // namespace anyacl::cpu
