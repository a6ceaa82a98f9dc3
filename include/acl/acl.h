// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// The whole runtime interface in one include. Declares nothing itself.

#ifndef ANYACL_ACL_ACL_H_
#define ANYACL_ACL_ACL_H_

#include "acl_rt.h"
#include "acl_op.h"
#include "acl_mdl.h"

#endif  // ANYACL_ACL_ACL_H_
