// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_H_
#define ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnThnnFusedLstmCell: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnThnnFusedLstmCellGetWorkspaceSize(
    const aclTensor* inputGates, const aclTensor* hiddenGates, const aclTensor* cx,
    const aclTensor* inputBiasOptional, const aclTensor* hiddenBiasOptional, aclTensor* hyOut,
    aclTensor* cyOut, aclTensor* storageOut, uint64_t* workspaceSize, aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnThnnFusedLstmCell(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_H_
