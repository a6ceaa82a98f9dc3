// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_TOP_K_TOP_P_SAMPLE_H_
#define ANYACL_ACLNNOP_ACLNN_TOP_K_TOP_P_SAMPLE_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnTopKTopPSample: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnTopKTopPSampleGetWorkspaceSize(const aclTensor* logits,
    const aclTensor* topK, const aclTensor* topP, const aclTensor* q, double eps, bool isNeedLogits,
    int64_t topKGuess, const aclTensor* logitsSelectIdx, const aclTensor* logitsTopKPSelect,
    uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnTopKTopPSample(void* workspace, uint64_t workspaceSize,
    aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_TOP_K_TOP_P_SAMPLE_H_
