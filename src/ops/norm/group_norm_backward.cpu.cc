// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/norm/group_norm_backward.h"

#include "cpu/kernels.h"

namespace anyacl::cpu {

std::span<const Kernel> GroupNormBackwardKernels() { return {}; }

}  // namespace anyacl::cpu
