// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_H_
#define ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnStridedSlice: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnStridedSliceGetWorkspaceSize(
    const aclTensor* self, const aclIntArray* begin, const aclIntArray* end,
    const aclIntArray* strides, int64_t beginMask, int64_t endMask, int64_t ellipsisMask,
    int64_t newAxisMask, int64_t shrinkAxisMask, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnStridedSlice(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_STRIDED_SLICE_H_
