// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Tensors, scalars, arrays, lists and executors of the operator interface.

#ifndef ANYACL_ACLNN_ACL_META_H_
#define ANYACL_ACLNN_ACL_META_H_

#ifdef __cplusplus
#include <cstdint>
#include <cstdlib>
#else
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#endif

#include "acl/acl_base.h"

#ifndef ACLNN_API
#define ACLNN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

// A program that declares these types itself defines ACLNN_META before the include.
#ifndef ACLNN_META
#define ACLNN_META
typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;

typedef int32_t aclnnStatus;

#ifdef __cplusplus
constexpr aclnnStatus OK = 0;
#endif
#endif  // ACLNN_META

// ---- Creation ----

// Tensor descriptor over device memory; NULL on failure.
ACLNN_API aclTensor* aclCreateTensor(
    const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
    int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
    void* tensorData);

// Refill an existing tensor descriptor.
ACLNN_API aclnnStatus aclInitTensor(
    aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
    const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
    uint64_t storageDimsNum, void* tensorDataAddr);

// Copy one host value with its type.
ACLNN_API aclScalar* aclCreateScalar(void* value, aclDataType dataType);

// Copy an int64 array.
ACLNN_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);

// Copy a float array.
ACLNN_API aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);

// Copy a bool array.
ACLNN_API aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);

// List that takes ownership of its tensors; entries may be NULL.
ACLNN_API aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size);

// List that takes ownership of its scalars.
ACLNN_API aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size);

// ---- Destruction (device memory is never touched) ----

// Free the descriptor only; NULL is fine.
ACLNN_API aclnnStatus aclDestroyTensor(const aclTensor* tensor);

// Free a scalar; NULL is fine.
ACLNN_API aclnnStatus aclDestroyScalar(const aclScalar* scalar);

// Free an array; NULL is fine.
ACLNN_API aclnnStatus aclDestroyIntArray(const aclIntArray* array);

// Free an array; NULL is fine.
ACLNN_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);

// Free an array; NULL is fine.
ACLNN_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);

// Free a list and every tensor in it.
ACLNN_API aclnnStatus aclDestroyTensorList(const aclTensorList* array);

// Free a list and every scalar in it.
ACLNN_API aclnnStatus aclDestroyScalarList(const aclScalarList* array);

// ---- Queries ----

// Copy of the logical dims made with new[]; the caller frees it with delete[].
ACLNN_API aclnnStatus aclGetViewShape(
    const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum);

// Copy of the storage dims made with new[]; the caller frees it with delete[].
ACLNN_API aclnnStatus aclGetStorageShape(
    const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum);

// Copy of the strides made with new[]; the caller frees it with delete[].
ACLNN_API aclnnStatus aclGetViewStrides(
    const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum);

// Offset of the view in elements.
ACLNN_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);

// Layout tag of a tensor.
ACLNN_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);

// Element type of a tensor.
ACLNN_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);

// Number of values.
ACLNN_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);

// Number of values.
ACLNN_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);

// Number of values.
ACLNN_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);

// Number of entries.
ACLNN_API aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size);

// Number of entries.
ACLNN_API aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size);

// ---- Addresses of tensors without an executor ----

// Change a tensor's storage address.
ACLNN_API aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr);

// Read a tensor's storage address.
ACLNN_API aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr);

// ---- Executors ----

// Let phase two run many times on one executor.
ACLNN_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);

// Free a repeatable executor; NULL gives 561103.
ACLNN_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);

// Extension: another name of aclDestroyAclOpExecutor, used by some programs.
ACLNN_API aclnnStatus aclDestroyOpExecutor(aclOpExecutor* executor);

// ---- New addresses for a repeatable executor ----
//
// Phase 2 refuses them with 161002 when an output would overlap another tensor in a way that phase 1 has not seen.
// Exactly the memory of an input is fine for the element-wise operators.

// New address for the n-th input; list elements count one by one.
ACLNN_API aclnnStatus aclSetInputTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// New address for the n-th output; list elements count one by one.
ACLNN_API aclnnStatus aclSetOutputTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// New address by position over inputs then outputs.
ACLNN_API aclnnStatus aclSetTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// New address for an element of an input list.
ACLNN_API aclnnStatus aclSetDynamicInputTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// New address for an element of an output list.
ACLNN_API aclnnStatus aclSetDynamicOutputTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// New address for a list element, inputs then outputs.
ACLNN_API aclnnStatus aclSetDynamicTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// ---- The same under their older, capitalised names ----

// Alias of aclSetInputTensorAddr.
ACLNN_API aclnnStatus AclSetInputTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// Alias of aclSetOutputTensorAddr.
ACLNN_API aclnnStatus AclSetOutputTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// Alias of aclSetTensorAddr.
ACLNN_API aclnnStatus AclSetTensorAddr(
    aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);

// Alias of aclSetDynamicInputTensorAddr.
ACLNN_API aclnnStatus AclSetDynamicInputTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// Alias of aclSetDynamicOutputTensorAddr.
ACLNN_API aclnnStatus AclSetDynamicOutputTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// Alias of aclSetDynamicTensorAddr.
ACLNN_API aclnnStatus AclSetDynamicTensorAddr(
    aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors,
    void* addr);

// ---- Debugging ----

// Dump tensors of a custom operator on a stream.
ACLNN_API aclnnStatus aclDumpOpTensors(
    const char* opType, const char* opName, aclTensor** tensors, size_t inputTensorNum,
    size_t outputTensorNum, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNN_ACL_META_H_
