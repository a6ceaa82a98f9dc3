// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_LSTM_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_LSTM_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnLstmBackward: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnLstmBackwardGetWorkspaceSize(
    const aclTensor* input, const aclTensorList* hx, const aclTensorList* params,
    const aclTensor* dy, const aclTensor* dh, const aclTensor* dc, const aclTensorList* i,
    const aclTensorList* g, const aclTensorList* f, const aclTensorList* o, const aclTensorList* h,
    const aclTensorList* c, const aclTensorList* tanhc, const aclTensor* batchSizesOptional,
    bool hasBias, int64_t numLayers, double dropout, bool train, bool bidirectional,
    bool batchFirst, const aclBoolArray* outputMask, aclTensor* dxOut, aclTensor* dhPrevOut,
    aclTensor* dcPrevOut, aclTensorList* dparamsOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnLstmBackward(void* workspace, uint64_t workspaceSize,
                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_LSTM_BACKWARD_H_
