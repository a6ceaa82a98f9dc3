// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/communicator.h"

#include <map>
#include <new>
#include <utility>

#include "core/locks.h"
#include "core/once.h"
#include "core/undo.h"
#include "hccl/rendezvous.h"

namespace anyacl::hccl {
namespace {

constexpr std::chrono::milliseconds kGlance{50};  // between looks whether anybody waits still

// Guarded by kCommunicators.
struct Alive {
  uint64_t last = 0;
  std::map<uint64_t, SharedCommunicator> all;
};
Alive& Everyone() { return TheOne<Alive>(); }

// No address of a program has these top bits, no handle of ours these low ones.
constexpr uint64_t kTop = uint64_t{0xf} << 60;
constexpr uint64_t kLow = 0xf;
HcclComm Encode(uint64_t number) { return reinterpret_cast<HcclComm>(kTop | number << 4 | kLow); }

[[maybe_unused]] const int mends = [] {
  InForkedChild(Lock::kCommunicators, [] {
    ForgetListeners();
    for (auto& [number, communicator] : Everyone().all) communicator->ForgetInChild();
  });
  return 0;
}();

}  // namespace

HcclComm Publish(SharedCommunicator communicator) {
  const std::lock_guard lock(LockOf(Lock::kCommunicators));
  const uint64_t number = ++Everyone().last;
  Everyone().all.emplace(number, std::move(communicator));
  return Encode(number);
}

SharedCommunicator Find(HcclComm handle) {
  const auto value = reinterpret_cast<uint64_t>(handle);
  const std::lock_guard lock(LockOf(Lock::kCommunicators));
  const auto found = Everyone().all.find((value & ~kTop) >> 4);
  return found != Everyone().all.end() && Encode(found->first) == handle ? found->second : nullptr;
}

SharedCommunicator Withdraw(HcclComm handle) {
  const auto value = reinterpret_cast<uint64_t>(handle);
  const std::lock_guard lock(LockOf(Lock::kCommunicators));
  if (Encode((value & ~kTop) >> 4) != handle) return nullptr;
  auto node = Everyone().all.extract((value & ~kTop) >> 4);
  return node.empty() ? nullptr : std::move(node.mapped());
}

uint64_t Communicator::TakeTicket() {
  const std::lock_guard lock(mutex_);
  tickets_.insert(next_ticket_);
  return next_ticket_++;
}

void Communicator::DropTicket(uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    tickets_.erase(ticket);
  }
  moved_on_.notify_all();
}

bool Communicator::AwaitTurn(uint64_t ticket, const IsOver& is_over) {
  std::unique_lock lock(mutex_);
  while (is_running_ || *tickets_.begin() != ticket) {
    moved_on_.wait_for(lock, kGlance);
    if (is_over && is_over()) return false;
  }
  is_running_ = true;
  return true;
}

void Communicator::Break(int32_t code, std::string_view why) noexcept {
  if (transport_) transport_->GiveUp(why);
  const std::lock_guard lock(mutex_);
  if (code_ != 0) return;
  code_ = code;
  try {
    text_ = why;
  } catch (const std::bad_alloc&) {  // the code must do
  }
}

Status Communicator::Broken() {
  const std::lock_guard lock(mutex_);
  return code_ ? Status(code_, text_) : Status();
}

Status Communicator::Run(const char* what, uint64_t ticket, const Call& call, const IsOver& is_over) {
  const Undo done([&] { DropTicket(ticket); });
  if (!AwaitTurn(ticket, is_over)) return Problem(HCCL_E_INTERNAL, "{}: the stream was aborted", what);
  const Undo ran([&] {
    const std::lock_guard lock(mutex_);
    is_running_ = false;
  });
  if (Status broken = Broken(); !broken.ok()) {
    return Problem(static_cast<HcclResult>(broken.code()), "{}: the communicator is broken: {}", what, broken.message());
  }
  Undo thrown([&] { Break(HCCL_E_MEMORY, "out of host memory"); });  // the others must not wait for this rank
  Status status = Perform(call, what, rank(), transport_.get(), &channel_, Patience{limit(), is_over});
  thrown.Keep();
  if (!status.ok()) Break(status.code(), status.message());
  return status;
}

Status Communicator::Failure() {
  std::unique_lock lock(mutex_);
  if (code_) return Status(code_, text_);
  if (is_running_ || !transport_) return Status();  // what runs looks itself
  is_running_ = true;
  lock.unlock();
  Status status = transport_->Check();
  if (!status.ok()) transport_->GiveUp(status.message());  // others may wait for this rank, which will not come any more
  lock.lock();
  is_running_ = false;
  if (!status.ok()) {
    code_ = status.code();
    text_ = status.message();
  }
  lock.unlock();
  moved_on_.notify_all();
  return status;
}

void Communicator::ForgetInChild() {
  new (&mutex_) std::mutex;
  new (&moved_on_) std::condition_variable;
  is_running_ = false;
  tickets_.clear();
  code_ = HCCL_E_UNAVAIL;
  text_ = "the communicator belongs to the parent of this process";
  if (transport_) transport_->ForgetInChild();
  channel_.device_path.Forget();
}

}  // namespace anyacl::hccl
