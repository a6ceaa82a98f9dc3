// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Profiling sessions, steps and marks.

#ifndef ANYACL_ACL_ACL_PROF_H_
#define ANYACL_ACL_ACL_PROF_H_

#include "acl_base.h"

#ifndef MSVP_PROF_API
#define MSVP_PROF_API __attribute__((visibility("default")))
#endif

// Data to collect.
#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_GE_API_L0 0x0200ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_MEMORY 0x1000ULL
#define ACL_PROF_GE_API_L1 0x01000000ULL
#define ACL_PROF_TASK_TIME_L2 0x2000ULL
#define ACL_PROF_OP_ATTR 0x4000ULL
#define ACL_PROF_TASK_TIME_L3 0x8000ULL
#define ACL_PROF_API_STATS 0x400000000ULL
#define ACL_PROF_AICORE_SHAPE 0x800000000ULL

// Sizes.
#define ACL_PROF_MAX_OP_NAME_LEN 257
#define ACL_PROF_MAX_OP_TYPE_LEN 65
#define ACL_PROF_TENSOR_DATA_SHAPE_LEN 8

#ifdef __cplusplus
extern "C" {
#endif

// ---- Opaque types ----

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofStopConfig aclprofStopConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;
typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;
typedef struct aclprofStepInfo aclprofStepInfo;

// ---- Enumerations ----

// Groups of hardware counters.
typedef enum aclprofAicoreMetrics {
    ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
    ACL_AICORE_PIPE_UTILIZATION = 1,
    ACL_AICORE_MEMORY_BANDWIDTH = 2,
    ACL_AICORE_L0B_AND_WIDTH = 3,
    ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
    ACL_AICORE_MEMORY_UB = 5,
    ACL_AICORE_L2_CACHE = 6,
    ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
    ACL_AICORE_MEMORY_ACCESS = 8,
    ACL_AICORE_NONE = 255
} aclprofAicoreMetrics;

// Ends of a step.
typedef enum aclprofStepTag {
    ACL_STEP_START = 0,
    ACL_STEP_END = 1
} aclprofStepTag;

// Kinds of subscribed record.
typedef enum aclprofSubscribeOpFlag {
    ACL_SUBSCRIBE_OP = 0,
    ACL_SUBSCRIBE_SUBGRAPH = 1,
    ACL_SUBSCRIBE_OP_THREAD = 2,
    ACL_SUBSCRIBE_NONE = 255
} aclprofSubscribeOpFlag;

// Attributes of a subscribed record.
typedef enum aclprofSubscribeOpAttri {
    ACL_SUBSCRIBE_ATTRI_THREADID = 0,
    ACL_SUBSCRIBE_ATTRI_NONE = 1
} aclprofSubscribeOpAttri;

// Settings of aclprofSetConfig.
typedef enum aclprofConfigType {
    ACL_PROF_ARGS_MIN = 0,
    ACL_PROF_STORAGE_LIMIT = 1,
    ACL_PROF_SYS_HARDWARE_MEM_FREQ = 3,
    ACL_PROF_LLC_MODE = 4,
    ACL_PROF_SYS_IO_FREQ = 5,
    ACL_PROF_SYS_INTERCONNECTION_FREQ = 6,
    ACL_PROF_DVPP_FREQ = 7,
    ACL_PROF_HOST_SYS = 8,
    ACL_PROF_HOST_SYS_USAGE = 9,
    ACL_PROF_HOST_SYS_USAGE_FREQ = 10,
    ACL_PROF_LOW_POWER_FREQ = 11,
    ACL_PROF_SYS_MEM_SERVICEFLOW = 12,
    ACL_PROF_SYS_CPU_FREQ = 13,
    ACL_PROF_OPTYPE = 14,
    ACL_PROF_NTS_METRICS = 15,
    ACL_PROF_PATH = 16,
    ACL_PROF_ARGS_MAX = 17
} aclprofConfigType;

// Payload kinds of an event record.
typedef enum aclprofMessageType {
    ACL_PROF_MESSAGE_TYPE_TENSOR_INFO = 0
} aclprofMessageType;

// ---- Records ----

// Tensor of a profiled operator.
typedef struct aclprofTensor {
    uint32_t type;
    uint32_t format;
    uint32_t dataType;
    uint32_t shapeDim;
    uint32_t shape[ACL_PROF_TENSOR_DATA_SHAPE_LEN];
} aclprofTensor;

// Tensors of a profiled operator.
typedef struct aclprofTensorInfo {
    uint64_t opNameId;
    uint64_t opTypeId;
    uint32_t resv;
    uint32_t tensorNum;
    uint32_t kernelType;
    uint32_t blockNums;
    void* stream;
    aclprofTensor* tensors;
} aclprofTensorInfo;

// Attributes of a profiling range.
typedef struct aclprofEventAttributes {
    uint16_t version;
    uint16_t size;
    uint32_t messageType;
    union Message {
        aclprofTensorInfo* tensorInfo;
    } message;
} aclprofEventAttributes;

// ---- Sessions ----

// Start a profiling session that writes into a folder.
MSVP_PROF_API aclError aclprofInit(const char* profilerResultPath, size_t length);

// End the session.
MSVP_PROF_API aclError aclprofFinalize(void);

// Give an extra setting as text.
MSVP_PROF_API aclError aclprofSetConfig(
    aclprofConfigType configType, const char* config, size_t configLength);

// Choose devices, metrics and data bits.
MSVP_PROF_API aclprofConfig* aclprofCreateConfig(
    uint32_t* deviceIdList, uint32_t deviceNums, aclprofAicoreMetrics aicoreMetrics,
    const aclprofAicoreEvents* aicoreEvents, uint64_t dataTypeConfig);

// Free a configuration.
MSVP_PROF_API aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig);

// Begin collection.
MSVP_PROF_API aclError aclprofStart(const aclprofConfig* profilerConfig);

// End collection.
MSVP_PROF_API aclError aclprofStop(const aclprofConfig* profilerConfig);

// ---- Steps and marks ----

// Create a step object.
MSVP_PROF_API aclprofStepInfo* aclprofCreateStepInfo(void);

// Free a step object.
MSVP_PROF_API void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo);

// Mark the start or the end of a step.
MSVP_PROF_API aclError aclprofGetStepTimestamp(
    aclprofStepInfo* stepInfo, aclprofStepTag tag, aclrtStream stream);

// Instant mark on a stream.
MSVP_PROF_API aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_PROF_H_
