// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_GRU_H_
#define ANYACL_ACLNNOP_ACLNN_GRU_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnGRU: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnGRUGetWorkspaceSize(
    const aclTensor* input, const aclTensorList* params, const aclTensor* hx,
    const aclTensor* batchSizes, bool hasBias, int64_t numLayers, double dropout, bool train,
    bool bidirection, bool batchFirst, aclTensor* output, aclTensor* hy, aclTensorList* rOut,
    aclTensorList* zOut, aclTensorList* nOut, aclTensorList* hnOut, aclTensorList* hOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnGRU(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_GRU_H_
