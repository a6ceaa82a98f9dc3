// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_BACKWARD_H_
#define ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnThnnFusedLstmCellBackward: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnThnnFusedLstmCellBackwardGetWorkspaceSize(
    const aclTensor* gradHyOptional, const aclTensor* gradCOptional, const aclTensor* cx,
    const aclTensor* cy, const aclTensor* storage, bool hasBias, aclTensor* gradGatesOut,
    aclTensor* gradCxOut, aclTensor* gradBiasOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnThnnFusedLstmCellBackward(void* workspace, uint64_t workspaceSize,
                                                     aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_BACKWARD_H_
