// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ACLNNOP_ACLNN_NPU_FORMAT_CAST_H_
#define ANYACL_ACLNNOP_ACLNN_NPU_FORMAT_CAST_H_

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnNpuFormatCast: checks the arguments, plans the work, reports the bytes of workspace it needs ...
ACLNN_API aclnnStatus aclnnNpuFormatCastGetWorkspaceSize(const aclTensor* srcTensor,
                                                         aclTensor* dstTensor,
                                                         uint64_t* workspaceSize,
                                                         aclOpExecutor** executor);
// ... and enqueues it on the stream.
ACLNN_API aclnnStatus aclnnNpuFormatCast(void* workspace, uint64_t workspaceSize,
                                         aclOpExecutor* executor, aclrtStream stream);

// The storage shape of a tensor in another format, as a new[] array that the caller deletes, its length and the format that it has.
// additionalDtype: -1 or the dtype of srcTensor. Not an operator: it answers at once.
ACLNN_API aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor,
                                                               int dstFormat, int additionalDtype,
                                                               int64_t** dstShape,
                                                               uint64_t* dstShapeSize,
                                                               int* actualFormat);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_NPU_FORMAT_CAST_H_
