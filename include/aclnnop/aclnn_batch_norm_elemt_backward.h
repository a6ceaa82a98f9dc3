// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Input gradient of a synchronised batch normalisation.

#ifndef ANYACL_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// Phase 1: check the arguments, plan the work and report the bytes of workspace it needs.
// weight may be null (ones). counter is only read; its elements are added up.
ACLNN_API aclnnStatus aclnnBatchNormElemtBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* mean,
    const aclTensor* invstd, const aclTensor* weight, const aclTensor* sumDy,
    const aclTensor* sumDyXmu, aclTensor* counter, aclTensor* gradInput, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: enqueue the planned work on the stream.
ACLNN_API aclnnStatus aclnnBatchNormElemtBackward(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_BATCH_NORM_ELEMT_BACKWARD_H_
