// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the losses share.
#ifndef ANYACL_OPS_LOSS_LOSS_H_
#define ANYACL_OPS_LOSS_LOSS_H_

#include "contract/contract.h"

namespace anyacl::loss {

// Values of the argument `reduction`.
enum : int64_t { kNone, kMean, kSum, kBatchMean };

inline constexpr contract::Products kFive =
    contract::Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining});

}  // namespace anyacl::loss

#endif  // ANYACL_OPS_LOSS_LOSS_H_
