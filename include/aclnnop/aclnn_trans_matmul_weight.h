// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_TRANS_MATMUL_WEIGHT_H_
#define ANYACL_ACLNNOP_ACLNN_TRANS_MATMUL_WEIGHT_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnTransMatmulWeight: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnTransMatmulWeightGetWorkspaceSize(aclTensor* mmWeightRef,
                                                             uint64_t* workspaceSize,
                                                             aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnTransMatmulWeight(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

// How many elements the memory of a weight of this shape needs before aclnnTransMatmulWeight: the last two dims rounded up to
// multiples of 16. Not an operator: it answers at once.
ACLNN_API aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                                     uint64_t* weightTensorSize);
// ... and by dtype: the last dim of those of 8 bits is rounded up to a multiple of 32.
ACLNN_API aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape,
                                                       aclDataType dataType,
                                                       uint64_t* weightTensorSize);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_TRANS_MATMUL_WEIGHT_H_
