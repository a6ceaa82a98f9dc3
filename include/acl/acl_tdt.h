// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Tensor data transfer: items, datasets, channels.

#ifndef ANYACL_ACL_ACL_TDT_H_
#define ANYACL_ACL_ACL_TDT_H_

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Types ----

// Kinds of item on a channel.
enum acltdtTensorType {
    ACL_TENSOR_DATA_UNDEFINED = -1,
    ACL_TENSOR_DATA_TENSOR = 0,
    ACL_TENSOR_DATA_END_OF_SEQUENCE = 1,
    ACL_TENSOR_DATA_ABNORMAL = 2,
    ACL_TENSOR_DATA_SLICE_TENSOR = 3,
    ACL_TENSOR_DATA_END_TENSOR = 4
};

typedef struct acltdtDataItem acltdtDataItem;
typedef struct acltdtDataset acltdtDataset;
typedef struct acltdtChannelHandle acltdtChannelHandle;

// ---- Items ----

// Element type of an item.
ACL_FUNC_VISIBILITY aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem);

// Data pointer of an item.
ACL_FUNC_VISIBILITY void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem);

// Rank of an item.
ACL_FUNC_VISIBILITY size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem);

// Dims of an item.
ACL_FUNC_VISIBILITY aclError acltdtGetDimsFromItem(
    const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum);

// Free an item.
ACL_FUNC_VISIBILITY aclError acltdtDestroyDataItem(acltdtDataItem* dataItem);

// ---- Datasets ----

// Create a list of items.
ACL_FUNC_VISIBILITY acltdtDataset* acltdtCreateDataset(void);

// Free a list of items.
ACL_FUNC_VISIBILITY aclError acltdtDestroyDataset(acltdtDataset* dataset);

// The n-th item.
ACL_FUNC_VISIBILITY acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index);

// Number of items.
ACL_FUNC_VISIBILITY size_t acltdtGetDatasetSize(const acltdtDataset* dataset);

// Name of the list.
ACL_FUNC_VISIBILITY const char* acltdtGetDatasetName(const acltdtDataset* dataset);

// ---- Channels ----

// Open a bounded channel.
ACL_FUNC_VISIBILITY acltdtChannelHandle* acltdtCreateChannelWithCapacity(
    uint32_t deviceId, const char* name, size_t capacity);

// Close a channel.
ACL_FUNC_VISIBILITY aclError acltdtDestroyChannel(acltdtChannelHandle* handle);

// Receive a dataset, waiting up to a time limit.
ACL_FUNC_VISIBILITY aclError acltdtReceiveTensor(
    const acltdtChannelHandle* handle, acltdtDataset* dataset, int32_t timeout);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_TDT_H_
