// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_SCATTER_LIST_H_
#define ANYACL_ACLNNOP_ACLNN_SCATTER_LIST_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnScatterList: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnScatterListGetWorkspaceSize(
    aclTensorList* varRef, const aclTensor* indice, const aclTensor* updates,
    const aclTensor* maskOptional, char* reduceOptional, int64_t axis, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnScatterList(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_SCATTER_LIST_H_
