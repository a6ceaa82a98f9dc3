// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_GRU_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_GRU_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnGRUBackward: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnGRUBackwardGetWorkspaceSize(
    const aclTensor* input, const aclTensorList* params, const aclTensor* hx, const aclTensor* dy,
    const aclTensor* dh, const aclTensorList* r, const aclTensorList* z, const aclTensorList* n,
    const aclTensorList* hn, const aclTensorList* h, const aclTensor* batchSizes, bool hasBias,
    int64_t numLayers, bool bidirection, bool batchFirst, aclTensor* dxOut, aclTensor* dhPrevOut,
    aclTensorList* dparamsOut, uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnGRUBackward(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_GRU_BACKWARD_H_
