// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Base types and error codes. Declares nothing itself.

#ifndef ANYACL_ACL_ACL_BASE_H_
#define ANYACL_ACL_ACL_BASE_H_

#include "acl/acl_base_rt.h"
#include "acl/acl_base_mdl.h"
#include "error_codes/rt_error_codes.h"
#include "error_codes/ge_error_codes.h"

#endif  // ANYACL_ACL_ACL_BASE_H_
