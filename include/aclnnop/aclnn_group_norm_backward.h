// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Gradients of group normalisation.

#ifndef ANYACL_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// Phase 1: check the arguments, plan the work and report the bytes of workspace it needs.
// gamma may be null (ones). An output whose outputMask entry is false may be null.
ACLNN_API aclnnStatus aclnnGroupNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclTensor* mean, const aclTensor* rstd,
    const aclTensor* gamma, int64_t N, int64_t C, int64_t HxW, int64_t group,
    const aclBoolArray* outputMask, aclTensor* gradInput, aclTensor* gradGammaOut,
    aclTensor* gradBetaOut, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: enqueue the planned work on the stream.
ACLNN_API aclnnStatus aclnnGroupNormBackward(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_GROUP_NORM_BACKWARD_H_
