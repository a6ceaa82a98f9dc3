// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Common part of every operator header: objects, status codes, start-up.

#ifndef ANYACL_ACLNN_ACLNN_BASE_H_
#define ANYACL_ACLNN_ACLNN_BASE_H_

#ifdef __cplusplus
// The published sample programs include only <iostream>, <vector> and our headers, yet use
// std::array, printf and the fixed-width integers; hence <array> and <cstdio>.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#else
#include <stdint.h>
#include <stdlib.h>
#endif

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Start-up and shutdown ----

// Light initialisation of aclnn only, with an optional JSON path.
ACLNN_API aclnnStatus aclnnInit(const char* configPath);

// Light finalisation.
ACLNN_API aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_ACLNN_ACLNN_BASE_H_
