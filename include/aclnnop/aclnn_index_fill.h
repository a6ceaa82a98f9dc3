// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_INDEX_FILL_H_
#define ANYACL_ACLNNOP_ACLNN_INDEX_FILL_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnIndexFill: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnIndexFillGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                                     const aclTensor* index, const aclScalar* value,
                                                     aclTensor* out, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnIndexFill(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream);

// aclnnInplaceIndexFill: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnInplaceIndexFillGetWorkspaceSize(aclTensor* selfRef, int64_t dim,
                                                            const aclTensor* index,
                                                            const aclScalar* value,
                                                            uint64_t* workspaceSize,
                                                            aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnInplaceIndexFill(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_INDEX_FILL_H_
