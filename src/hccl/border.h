// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the C functions of this room share.
#ifndef ANYACL_HCCL_BORDER_H_
#define ANYACL_HCCL_BORDER_H_

#include "core/border.h"
#include "hccl/communicator.h"
#include "hccl/hccl.h"

namespace anyacl::hccl {

template <class Body>
HcclResult HcclBorder(const char* function, Body&& body) {
  static constexpr BorderCodes kCodes{HCCL_E_MEMORY, HCCL_E_INTERNAL};
  const auto named = [&]() -> Status {
    Status status = body();
    return status.ok() ? Status() : Within(function, status);  // what is done needs no more memory
  };
  return static_cast<HcclResult>(Border(function, kCodes, named));
}

inline Status RequireNotNull(const char* argument, const void* pointer) {
  if (pointer) return Status();
  return Problem(HCCL_E_PTR, "{} must not be null", argument);
}

inline Status Resolve(HcclComm handle, SharedCommunicator* communicator) {
  *communicator = Find(handle);
  if (*communicator) return Status();
  return Problem(handle ? HCCL_E_PARA : HCCL_E_PTR, "comm must be a live communicator, got {}", handle);
}

// Puts a call on a stream; in a group, sends and receives wait for its end.
Status Enqueue(const char* what, HcclComm comm, Call call, aclrtStream stream);

// Of the thread.
Status BeginGroup();
Status EndGroup();

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_BORDER_H_
