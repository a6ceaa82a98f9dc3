// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_H_
#define ANYACL_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnMoeFinalizeRouting: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnMoeFinalizeRoutingGetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* x1, const aclTensor* x2Optional,
    const aclTensor* bias, const aclTensor* scales, const aclTensor* expandedRowIdx,
    const aclTensor* expandedExpertIdx, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnMoeFinalizeRouting(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_H_
