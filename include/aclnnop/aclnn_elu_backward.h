// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Gradient of the ELU activation.

#ifndef ANYACL_ACLNNOP_ACLNN_ELU_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_ELU_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// Phase 1: check the arguments, plan the work and report the bytes of workspace it needs.
// isResult tells whether selfOrResult is the output (true) or the input (false) of the forward ELU.
ACLNN_API aclnnStatus aclnnEluBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclScalar* alpha, const aclScalar* scale,
    const aclScalar* inputScale, bool isResult, const aclTensor* selfOrResult,
    aclTensor* gradInput, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: enqueue the planned work on the stream.
ACLNN_API aclnnStatus aclnnEluBackward(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_ELU_BACKWARD_H_
