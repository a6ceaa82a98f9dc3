// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_ABI_VERIFY_H_
#define ANYACL_ABI_VERIFY_H_

namespace anyacl::abi {

// At the first call that is watched: opens libanyacl_verify.so if ANYACL_VERIFY asks for it.
void StartVerify();

}  // namespace anyacl::abi

#endif  // ANYACL_ABI_VERIFY_H_
