// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/norm/batch_norm_elemt_backward.h"

#include "cpu/kernels.h"

namespace anyacl::cpu {

std::span<const Kernel> BatchNormElemtBackwardKernels() { return {}; }

}  // namespace anyacl::cpu
