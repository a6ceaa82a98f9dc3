// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_RUNTIME_DEVICE_H_
#define ANYACL_RUNTIME_DEVICE_H_

#include <cstdint>

#include "core/status.h"

namespace anyacl::runtime {

// aclrtSetDevice and aclrtResetDevice(Force): count, and make or release the implicit context.
Status SelectDevice(const char* function, int device);
Status ReleaseDevice(const char* function, int device, bool force);
bool IsSelectedByAnyone(int device);

// What a device says about itself. The CPU has no cube and vector cores of its own: each of its cores
// stands for one of both.
int64_t CoresPerDevice();
int64_t SharedCacheBytes();

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_DEVICE_H_
