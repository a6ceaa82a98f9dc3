// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_ASSIGN_V2_H_
#define ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_ASSIGN_V2_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnStridedSliceAssignV2: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnStridedSliceAssignV2GetWorkspaceSize(
    aclTensor* varRef, const aclTensor* inputValue, const aclIntArray* begin,
    const aclIntArray* end, const aclIntArray* strides, const aclIntArray* axesOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnStridedSliceAssignV2(void* workspace, uint64_t workspaceSize,
                                                aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_ASSIGN_V2_H_
