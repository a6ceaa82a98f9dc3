// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_RUNTIME_BACKENDS_H_
#define ANYACL_RUNTIME_BACKENDS_H_

#include <string>

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl {

// The backend that is always there; lives as long as the process.
const Backend& CpuBackend();

// The CUDA plug-in, opened by the first call; null, and why in *problem, where it cannot be used. A machine
// without a driver or a GPU costs one failed search for the driver's library.
const Backend* CudaBackend(std::string* problem = nullptr);

// ok, or why the backend that ANYACL_BACKEND asks for cannot be had: 100000 for an unknown name, 207004
// (no device) for one that is not here.
Status CheckBackend(const char* function);

}  // namespace anyacl

#endif  // ANYACL_RUNTIME_BACKENDS_H_
