// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_HCCL_COLLECTIVES_H_
#define ANYACL_HCCL_COLLECTIVES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hccl/device_path.h"
#include "hccl/transport.h"
#include "runtime/backend.h"

namespace anyacl::hccl {

// A place in a buffer, in bytes.
struct Part {
  uint64_t at = 0;
  uint64_t bytes = 0;
};

// One call, checked and in bytes.
struct Call {
  struct Item {  // of Send, Recv and BatchSendRecv
    bool sends;
    void* buffer;
    uint64_t bytes;
    int dtype;
    uint32_t peer;
  };

  Kind kind = Kind::kBarrier;
  int dtype = 0;
  int reduce = 0;
  uint32_t root = 0;
  uint64_t count = 0;  // as the call said, where it is the same on all ranks
  const void* send = nullptr;
  void* recv = nullptr;
  std::vector<Part> send_parts;  // by rank; of AllReduce, Reduce and Broadcast one for all
  std::vector<Part> recv_parts;
  std::vector<Item> items;
  DeviceMemory* memory = nullptr;  // of the buffers, where the host cannot touch them
  DeviceGroups* groups = nullptr;
  int device = 0;
};

// What calls of a communicator leave for the next one.
struct Channel {
  Channel(uint32_t ranks, bool has_groups) : ranks(ranks), sent(ranks), received(ranks), device_path(has_groups) {}

  const uint32_t ranks;
  uint64_t collectives = 0;            // so far
  std::vector<uint64_t> sent, received;  // messages to and from each rank
  std::vector<std::byte> scratch;
  DevicePath device_path;
};

// `transport` null: of one rank.
Status Perform(const Call& call, const char* what, uint32_t rank, Transport* transport, Channel* channel,
               const Patience& patience);

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_COLLECTIVES_H_
