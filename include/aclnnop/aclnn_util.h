// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Visibility of operator functions.

#ifndef ANYACL_ACLNNOP_ACLNN_UTIL_H_
#define ANYACL_ACLNNOP_ACLNN_UTIL_H_

#ifndef ACLNN_API
#define ACLNN_API __attribute__((visibility("default")))
#endif

#endif  // ANYACL_ACLNNOP_ACLNN_UTIL_H_
