// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Tensor descriptions for the aclop and model functions.

#ifndef ANYACL_ACL_ACL_BASE_MDL_H_
#define ANYACL_ACL_ACL_BASE_MDL_H_

#include "acl/acl_base_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

// Entries of a range.
#define ACL_TENSOR_SHAPE_RANGE_NUM 2
#define ACL_TENSOR_VALUE_RANGE_NUM 2

// Rank is not known.
#define ACL_UNKNOWN_RANK 0xFFFFFFFFFFFFFFFE

typedef struct aclTensorDesc aclTensorDesc;

// ---- Tensor descriptions ----

// Shape, type and layout record for the aclop and model functions.
ACL_FUNC_VISIBILITY aclTensorDesc* aclCreateTensorDesc(
    aclDataType dataType, int numDims, const int64_t* dims, aclFormat format);

// Free a record.
ACL_FUNC_VISIBILITY void aclDestroyTensorDesc(const aclTensorDesc* desc);

// Name a record.
ACL_FUNC_VISIBILITY void aclSetTensorDescName(aclTensorDesc* desc, const char* name);

// Name of a record.
ACL_FUNC_VISIBILITY const char* aclGetTensorDescName(aclTensorDesc* desc);

// Element type.
ACL_FUNC_VISIBILITY aclDataType aclGetTensorDescType(const aclTensorDesc* desc);

// Layout.
ACL_FUNC_VISIBILITY aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc);

// Size in bytes.
ACL_FUNC_VISIBILITY size_t aclGetTensorDescSize(const aclTensorDesc* desc);

// Number of elements.
ACL_FUNC_VISIBILITY size_t aclGetTensorDescElementCount(const aclTensorDesc* desc);

// Rank.
ACL_FUNC_VISIBILITY size_t aclGetTensorDescNumDims(const aclTensorDesc* desc);

// One dim; deprecated.
ACL_FUNC_VISIBILITY int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index);

// One dim by out-parameter.
ACL_FUNC_VISIBILITY aclError aclGetTensorDescDimV2(
    const aclTensorDesc* desc, size_t index, int64_t* dimSize);

// Ranges of dynamic dims.
ACL_FUNC_VISIBILITY aclError aclSetTensorShapeRange(
    aclTensorDesc* desc, size_t dimsCount, int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]);

// Set the storage layout.
ACL_FUNC_VISIBILITY aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format);

// Set the storage dims.
ACL_FUNC_VISIBILITY aclError aclSetTensorShape(
    aclTensorDesc* desc, int numDims, const int64_t* dims);

// Attach a constant value.
ACL_FUNC_VISIBILITY aclError aclSetTensorConst(
    aclTensorDesc* desc, void* dataBuffer, size_t length);

// Set host or device placement.
ACL_FUNC_VISIBILITY aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_BASE_MDL_H_
