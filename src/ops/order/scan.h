// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Running results along rows:  out[r, i] = op over j <= i of in[r, j]
#ifndef ANYACL_OPS_ORDER_SCAN_H_
#define ANYACL_OPS_ORDER_SCAN_H_

#include <cstdint>

#include "ops/pointwise/pointwise.h"

namespace anyacl::order {

enum class Scan : uint8_t { kSum, kProduct, kMax, kMin };

struct ScanParams {
  const void* in = nullptr;  // rows of the compute type
  void* out = nullptr;
  void* places = nullptr;  // int64, kMax and kMin: the latest place of the running extreme
  int64_t rows = 0;
  int64_t length = 0;
  pointwise::Compute compute = pointwise::Compute::kFloat;
  Scan op = Scan::kSum;
  bool exclusive = false;  // kSum: without the element itself
  bool reverse = false;    // kSum: from the end
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_SCAN_H_
