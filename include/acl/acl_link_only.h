// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Names from below the documented interface that programs are linked with: the loader binds them before main, so they
// must be there, and programs call them only for features that AnyACL does not have. Not included by acl/acl.h.

#ifndef ANYACL_ACL_ACL_LINK_ONLY_H_
#define ANYACL_ACL_ACL_LINK_ONLY_H_

#include <stddef.h>
#include <stdint.h>

#include "acl_base_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t rtError_t;
typedef int32_t (*MsprofCommandHandle)(uint32_t type, void* data, uint32_t length);

// ---- Reports to a profiler: there is none. They return 0 and record nothing. ----

// Number of a text, for reports that name it.
ACL_FUNC_VISIBILITY uint64_t MsprofGetHashId(const char* text, size_t length);

// Time stamp for reports.
ACL_FUNC_VISIBILITY uint64_t MsprofSysCycleTime(void);

// Function to call when profiling begins or ends; it never does.
ACL_FUNC_VISIBILITY int32_t MsprofRegisterCallback(uint32_t moduleId, MsprofCommandHandle handle);

// Begin and end of one call.
ACL_FUNC_VISIBILITY int32_t MsprofReportApi(uint32_t agingFlag, const void* api);

// Small record.
ACL_FUNC_VISIBILITY int32_t MsprofReportCompactInfo(uint32_t agingFlag, const void* data, uint32_t length);

// Large record.
ACL_FUNC_VISIBILITY int32_t MsprofReportAdditionalInfo(uint32_t agingFlag, const void* data, uint32_t length);

// ---- Kernels compiled for the original's chips: they cannot run here. 200001. ----

// Make the code of kernels known.
ACL_FUNC_VISIBILITY rtError_t rtDevBinaryRegister(const void* binary, void** handle);

// Make one kernel of it known.
ACL_FUNC_VISIBILITY rtError_t rtFunctionRegister(void* handle, const void* stub, const char* stubName,
                                                 const void* kernelName, uint32_t mode);

// Run it.
ACL_FUNC_VISIBILITY rtError_t rtKernelLaunch(const void* stub, uint32_t blocks, void* arguments,
                                             uint32_t argumentsSize, void* description, void* stream);

// Address and length of the registers that let cores talk to each other.
ACL_FUNC_VISIBILITY rtError_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACL_ACL_LINK_ONLY_H_
