// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/norm/rms_norm_grad.h"

#include "cpu/kernels.h"

namespace anyacl::cpu {

std::span<const Kernel> RmsNormGradKernels() { return {}; }

}  // namespace anyacl::cpu
