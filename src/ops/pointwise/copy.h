// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_OPS_POINTWISE_COPY_H_
#define ANYACL_OPS_POINTWISE_COPY_H_

#include "runtime/backend.h"

namespace anyacl {

// Elements of one dtype from view to view, by the backend's own strided copy.
struct CopyParams {
  StridedCopy copy;
};

}  // namespace anyacl

#endif  // ANYACL_OPS_POINTWISE_COPY_H_
