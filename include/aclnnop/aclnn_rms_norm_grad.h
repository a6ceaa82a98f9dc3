// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Gradients of root mean square normalisation.

#ifndef ANYACL_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_
#define ANYACL_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// Phase 1: check the arguments, plan the work and report the bytes of workspace it needs.
// rstd is the reciprocal root mean square. dxOut and dgammaOut are written.
ACLNN_API aclnnStatus aclnnRmsNormGradGetWorkspaceSize(
    const aclTensor* dy, const aclTensor* x, const aclTensor* rstd, const aclTensor* gamma,
    const aclTensor* dxOut, const aclTensor* dgammaOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: enqueue the planned work on the stream.
ACLNN_API aclnnStatus aclnnRmsNormGrad(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_RMS_NORM_GRAD_H_
