// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_REDUCE_LOG_SUM_H_
#define ANYACL_ACLNNOP_ACLNN_REDUCE_LOG_SUM_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnReduceLogSum: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnReduceLogSumGetWorkspaceSize(const aclTensor* data,
                                                        const aclIntArray* axes, bool keepDims,
                                                        bool noopWithEmptyAxes, aclTensor* reduce,
                                                        uint64_t* workspaceSize,
                                                        aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnReduceLogSum(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_REDUCE_LOG_SUM_H_
