// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_RUNTIME_DEVICE_H_
#define ANYACL_RUNTIME_DEVICE_H_

#include <cstdint>

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl::runtime {

// aclrtSetDevice and aclrtResetDevice(Force): count, and make or release the implicit context.
Status SelectDevice(const char* function, int device);
Status ReleaseDevice(const char* function, int device, bool force);
bool IsSelectedByAnyone(int device);

// What a visible device says about itself.
const DeviceFacts& FactsOf(int device);

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_DEVICE_H_
