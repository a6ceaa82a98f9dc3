// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_LSTM_H_
#define ANYACL_ACLNNOP_ACLNN_LSTM_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnLSTM: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnLSTMGetWorkspaceSize(
    const aclTensor* input, const aclTensorList* params, const aclTensorList* hx,
    const aclTensor* batchSizes, bool hasBias, int64_t numLayers, double dropout, bool train,
    bool bidirectional, bool batchFirst, aclTensor* output, aclTensor* hy, aclTensor* cy,
    aclTensorList* iOut, aclTensorList* jOut, aclTensorList* fOut, aclTensorList* oOut,
    aclTensorList* hOut, aclTensorList* cOut, aclTensorList* tanhCOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnLSTM(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_LSTM_H_
