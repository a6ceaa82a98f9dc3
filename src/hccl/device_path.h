// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Collectives over an engine of the devices' own, where every rank of a communicator has one and they find each other; over
// copies in host memory otherwise. Which of the two is settled once, by all ranks, at their first collective.
#ifndef ANYACL_HCCL_DEVICE_PATH_H_
#define ANYACL_HCCL_DEVICE_PATH_H_

#include <cstdint>
#include <memory>

#include "hccl/transport.h"
#include "runtime/backend.h"

namespace anyacl::hccl {

struct Call;

class DevicePath {
 public:
  // Without groups all go the other way.
  explicit DevicePath(bool has_groups) : is_settled_(!has_groups) {}

  // *taken: the call was of a kind that goes this way, and has been done.
  Status Perform(const Call& call, const char* what, uint32_t rank, uint32_t ranks, Transport& transport, const Patience& patience,
                 bool* taken);
  // In a forked child: the group is the parent's.
  void Forget() { (void)group_.release(); }

 private:
  Status Settle(const Call& call, const char* what, uint32_t rank, uint32_t ranks, Transport& transport, const Patience& patience);
  Status Await(const char* what, Transport& transport, const Patience& patience);

  bool is_settled_;
  std::unique_ptr<DeviceGroup> group_;  // null: the other way
};

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_DEVICE_PATH_H_
