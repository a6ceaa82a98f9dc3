// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_RUNTIME_BACKENDS_H_
#define ANYACL_RUNTIME_BACKENDS_H_

#include "runtime/backend.h"

namespace anyacl {

// The backend that is always there; lives as long as the process.
const Backend& CpuBackend();

}  // namespace anyacl

#endif  // ANYACL_RUNTIME_BACKENDS_H_
