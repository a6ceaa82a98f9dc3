// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Operators addressed by type name.

#ifndef ANYACL_ACL_ACL_OP_H_
#define ANYACL_ACL_ACL_OP_H_

#include "acl_base.h"
#include "acl_rt.h"
#include "acl_dump.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopHandle aclopHandle;
typedef struct aclopAttr aclopAttr;
typedef struct aclopKernelDesc aclopKernelDesc;

typedef void (*aclDataDeallocator)(void* data, size_t length);
typedef aclError (*aclopCompileFunc)(
    int numInputs, const aclTensorDesc* const inputDesc[], int numOutputs,
    const aclTensorDesc* const outputDesc[], const aclopAttr* opAttr, aclopKernelDesc* kernelDesc);

// Compile flag: choose the binary through a registered selector.
static const int ACL_COMPILE_FLAG_BIN_SELECTOR = 1;

// Engines of an operator kernel.
typedef enum aclopEngineType {
    ACL_ENGINE_SYS = 0,
    ACL_ENGINE_AICORE = 1,
    ACL_ENGINE_VECTOR = 2
} aclopEngineType;

// ---- Operator attributes ----

// Create an attribute bag.
ACL_FUNC_VISIBILITY aclopAttr* aclopCreateAttr(void);

// Free an attribute bag.
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr* attr);

// Add bool attribute.
ACL_FUNC_VISIBILITY aclError aclopSetAttrBool(
    aclopAttr* attr, const char* attrName, uint8_t attrValue);

// Add integer attribute.
ACL_FUNC_VISIBILITY aclError aclopSetAttrInt(
    aclopAttr* attr, const char* attrName, int64_t attrValue);

// Add float attribute.
ACL_FUNC_VISIBILITY aclError aclopSetAttrFloat(
    aclopAttr* attr, const char* attrName, float attrValue);

// Add string attribute.
ACL_FUNC_VISIBILITY aclError aclopSetAttrString(
    aclopAttr* attr, const char* attrName, const char* attrValue);

// Add type attribute.
ACL_FUNC_VISIBILITY aclError aclopSetAttrDataType(
    aclopAttr* attr, const char* attrName, aclDataType attrValue);

// Add bool list.
ACL_FUNC_VISIBILITY aclError aclopSetAttrListBool(
    aclopAttr* attr, const char* attrName, int numValues, const uint8_t* values);

// Add integer list.
ACL_FUNC_VISIBILITY aclError aclopSetAttrListInt(
    aclopAttr* attr, const char* attrName, int numValues, const int64_t* values);

// Add float list.
ACL_FUNC_VISIBILITY aclError aclopSetAttrListFloat(
    aclopAttr* attr, const char* attrName, int numValues, const float* values);

// Add list of integer lists.
ACL_FUNC_VISIBILITY aclError aclopSetAttrListListInt(
    aclopAttr* attr, const char* attrName, int numLists, const int* numValues,
    const int64_t* const values[]);

// ---- Execution ----

// Set the folder of offline operator models.
ACL_FUNC_VISIBILITY aclError aclopSetModelDir(const char* modelDir);

// Run an operator by type name; updates the output shapes.
ACL_FUNC_VISIBILITY aclError aclopExecuteV2(
    const char* opType, int numInputs, aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
    int numOutputs, aclTensorDesc* outputDesc[], aclDataBuffer* outputs[], aclopAttr* attr,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_OP_H_
