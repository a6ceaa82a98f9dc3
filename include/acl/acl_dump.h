// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Dump records and switches.

#ifndef ANYACL_ACL_ACL_DUMP_H_
#define ANYACL_ACL_ACL_DUMP_H_

#include <stdint.h>

#include "acl_base.h"

#ifndef ACL_DUMP_API
#define ACL_DUMP_API __attribute__((visibility("default")))
#endif
#ifndef ACL_DUMP_WEAK
#define ACL_DUMP_WEAK __attribute__((weak))
#endif

// Limits and flags.
#define ACL_DUMP_MAX_FILE_PATH_LENGTH 4096
#define ACL_OP_DUMP_OP_AICORE_ARGS 0x00000001U
#define ACL_DUMP_MAX_SHAPE_NUM 25

#ifdef __cplusplus
extern "C" {
#endif

// ---- Enumerations ----

// Dump kinds.
typedef enum acldumpType {
    AIC_ERR_BRIEF_DUMP = 1,
    AIC_ERR_NORM_DUMP = 2,
    AIC_ERR_DETAIL_DUMP = 3,
    DATA_DUMP = 4,
    OVERFLOW_DUMP = 5
} acldumpType;

// Roles of a dumped tensor.
typedef enum acldumpTensorType {
    ACL_DUMP_TENSOR_INPUT = 0,
    ACL_DUMP_TENSOR_OUTPUT = 1,
    ACL_DUMP_TENSOR_WORKSPACE = 2
} acldumpTensorType;

// Meaning of a dumped tensor's address.
typedef enum acldumpTensorAddressType {
    ACL_DUMP_ADDR_PTR = 0,
    ACL_DUMP_ADDR_PTR_PTR = 1,
    ACL_DUMP_ADDR_RAW = 2
} acldumpTensorAddressType;

// Where a dumped tensor lives.
typedef enum acldumpTensorPlacement {
    ACL_DUMP_PLACEMENT_DEVICE = 0,
    ACL_DUMP_PLACEMENT_HOST = 1,
    ACL_DUMP_PLACEMENT_END = 2
} acldumpTensorPlacement;

// ---- Records ----

// Piece of a dump file; the data follows the record.
typedef struct acldumpChunk {
    char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH];
    uint32_t bufLen;
    uint32_t isLastChunk;
    int64_t offset;
    int32_t flag;
    __extension__ uint8_t dataBuf[0];
} acldumpChunk;

// Tensor to be dumped.
typedef struct acldumpTensorInfo {
    acldumpTensorType type;
    size_t tensorSize;
    int32_t format;
    int32_t dataType;
    int64_t* tensorAddr;
    acldumpTensorAddressType addrType;
    acldumpTensorPlacement placement;
    uint32_t argsOffset;
    uint32_t shapeNum;
    uint32_t originShapeNum;
    uint64_t shape[ACL_DUMP_MAX_SHAPE_NUM];
    uint64_t originShape[ACL_DUMP_MAX_SHAPE_NUM];
} acldumpTensorInfo;

// ---- Argument dump ----

// Record operator arguments to a folder.
ACL_DUMP_API aclError aclopStartDumpArgs(uint32_t dumpType, const char* path);

// Stop recording operator arguments.
ACL_DUMP_API aclError aclopStopDumpArgs(uint32_t dumpType);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_DUMP_H_
