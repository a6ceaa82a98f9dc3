// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_ADDR_H_
#define ANYACL_ACLNNOP_ACLNN_ADDR_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnAddr: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnAddrGetWorkspaceSize(const aclTensor* self, const aclTensor* vec1,
                                                const aclTensor* vec2,
                                                const aclScalar* betaOptional,
                                                const aclScalar* alphaOptional, aclTensor* out,
                                                uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnAddr(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

// aclnnInplaceAddr: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnInplaceAddrGetWorkspaceSize(
    aclTensor* selfRef, const aclTensor* vec1, const aclTensor* vec2, const aclScalar* betaOptional,
    const aclScalar* alphaOptional, uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnInplaceAddr(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_ADDR_H_
