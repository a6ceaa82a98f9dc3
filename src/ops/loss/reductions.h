// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_LOSS_REDUCTIONS_H_
#define ANYACL_OPS_LOSS_REDUCTIONS_H_

#include <cstdint>

namespace anyacl::loss {

// Values of the argument `reduction`.
inline constexpr int64_t kNone = 0, kMean = 1, kSum = 2, kBatchMean = 3;

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_REDUCTIONS_H_
