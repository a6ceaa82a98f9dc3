// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_INPLACE_ADD_RMS_NORM_H_
#define ANYACL_ACLNNOP_ACLNN_INPLACE_ADD_RMS_NORM_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnInplaceAddRmsNorm: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnInplaceAddRmsNormGetWorkspaceSize(aclTensor* x1Ref, aclTensor* x2Ref,
                                                             const aclTensor* gamma, double epsilon,
                                                             const aclTensor* rstdOut,
                                                             uint64_t* workspaceSize,
                                                             aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnInplaceAddRmsNorm(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_INPLACE_ADD_RMS_NORM_H_
