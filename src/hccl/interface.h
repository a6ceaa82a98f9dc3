// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the environment says about where to listen and how long to wait.
#ifndef ANYACL_HCCL_INTERFACE_H_
#define ANYACL_HCCL_INTERFACE_H_

#include <chrono>

#include "hccl/socket.h"

namespace anyacl::hccl {

// HCCL_IF_IP, HCCL_SOCKET_IFNAME, else *told is false and it is the loopback interface.
Status ListenAddress(Endpoint* address, bool* told);

std::chrono::seconds ConnectTimeout();
// 0: for ever.
std::chrono::seconds ExecTimeout();

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_INTERFACE_H_
