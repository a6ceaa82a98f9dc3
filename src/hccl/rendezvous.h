// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How the ranks of a communicator find each other. The root info has an address and a secret. The first rank of the process
// that made it serves the address: it collects who comes and where each of them listens, tells all, waits until each has
// connected to each, and tells that. A rank that fails or does not come is told to all the others.
#ifndef ANYACL_HCCL_RENDEZVOUS_H_
#define ANYACL_HCCL_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/socket.h"

namespace anyacl::hccl {

// Opens the address.
Status MakeRootInfo(HcclRootInfo* info);

// What a rank brings, and what it finds.
struct Met {
  bool has_groups = false;    // in: whether its device has an engine of its own to talk over; out: whether all have
  std::vector<Socket> peers;  // connections to every other rank, by number; the own place stays empty
  std::string name;           // the same on all ranks
};
Status Meet(const HcclRootInfo& info, uint32_t ranks, uint32_t rank, Deadline deadline, Met* met);

// In a forked child, with the lock.
void ForgetListeners();

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_RENDEZVOUS_H_
