// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Callback types of user-supplied allocators.

#ifndef ANYACL_ACL_ACL_RT_ALLOCATOR_H_
#define ANYACL_ACL_ACL_RT_ALLOCATOR_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* (*aclrtAllocatorAllocFunc)(aclrtAllocator allocator, size_t size);
typedef void (*aclrtAllocatorFreeFunc)(aclrtAllocator allocator, aclrtAllocatorBlock block);
typedef void* (*aclrtAllocatorAllocAdviseFunc)(
    aclrtAllocator allocator, size_t size, aclrtAllocatorAddr addr);
typedef void* (*aclrtAllocatorGetAddrFromBlockFunc)(aclrtAllocatorBlock block);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_RT_ALLOCATOR_H_
