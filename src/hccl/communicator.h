// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A communicator: its ranks' connections, the turn of the calls made on it, and the failure that ended it, if any.
//
// Calls are put on streams, of which there may be several. Each takes a ticket when it is made, and runs when all before it
// are through: so their order is the same on all ranks whatever the streams do.
#ifndef ANYACL_HCCL_COMMUNICATOR_H_
#define ANYACL_HCCL_COMMUNICATOR_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/collectives.h"
#include "hccl/transport.h"

namespace anyacl::hccl {

class Communicator {
 public:
  struct Settings {
    uint32_t rank = 0;
    uint32_t ranks = 1;
    int device = 0;
    std::string name;
    std::chrono::seconds limit{0};  // for calls to wait; 0: for ever
    bool has_groups = false;        // the devices of all ranks have an engine of their own to talk over
  };
  using IsOver = std::function<bool()>;

  // `transport` null: of one rank.
  Communicator(Settings settings, std::unique_ptr<Transport> transport)
      : settings_(std::move(settings)), transport_(std::move(transport)), channel_(settings_.ranks, settings_.has_groups) {}

  uint32_t rank() const { return settings_.rank; }
  uint32_t ranks() const { return settings_.ranks; }
  int device() const { return settings_.device; }
  const std::string& name() const { return settings_.name; }
  std::chrono::seconds limit() const { return settings_.limit; }

  uint64_t TakeTicket();
  void DropTicket(uint64_t ticket);
  // In its turn; drops the ticket. `is_over`: nobody waits for it any more.
  Status Run(const char* what, uint64_t ticket, const Call& call, const IsOver& is_over);

  // Why it does not work any more; looks for ranks that are gone when it is idle.
  Status Failure();

  int32_t deterministic() const { return deterministic_; }
  void set_deterministic(int32_t value) { deterministic_ = value; }

  // In a forked child: the connections are the parent's.
  void ForgetInChild();

 private:
  bool AwaitTurn(uint64_t ticket, const IsOver& is_over);
  void Break(int32_t code, std::string_view why) noexcept;
  Status Broken();

  const Settings settings_;
  const std::unique_ptr<Transport> transport_;
  Channel channel_;
  std::atomic<int32_t> deterministic_{0};

  std::mutex mutex_;
  std::condition_variable moved_on_;
  // Guarded by mutex_.
  uint64_t next_ticket_ = 1;
  std::set<uint64_t> tickets_;  // of calls that are not through
  bool is_running_ = false;
  int32_t code_ = 0;
  std::string text_;
};

using SharedCommunicator = std::shared_ptr<Communicator>;

// Handles are numbers, given once.
HcclComm Publish(SharedCommunicator communicator);
SharedCommunicator Find(HcclComm handle);
SharedCommunicator Withdraw(HcclComm handle);

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_COMMUNICATOR_H_
