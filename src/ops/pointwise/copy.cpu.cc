// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/pointwise/copy.h"

#include "cpu/kernels.h"
#include "cpu/strided_copy.h"

namespace anyacl::cpu {

static void RunCopy(const CopyParams& p) { CopyStrided(p.copy); }

std::span<const Kernel> CopyKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<CopyParams, FitsAlways<CopyParams>, RunCopy>("strided_copy")};
  return kernels;
}

}  // namespace anyacl::cpu
