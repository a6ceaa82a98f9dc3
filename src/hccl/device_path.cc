// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/device_path.h"

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "hccl/collectives.h"
#include "hccl/elements.h"

namespace anyacl::hccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kGlance{50};  // between looks for ranks that are gone
constexpr std::chrono::seconds kGrace{2};         // for results to come that a rank left behind that is gone now
constexpr std::chrono::seconds kMeeting{30};      // for all to meet, else they talk the other way

// Everybody's bytes to everybody; by rank, all of one size.
Status Share(const char* what, std::span<const unsigned char> mine, uint8_t round, uint32_t rank, Transport& transport,
             const Patience& patience, std::vector<std::vector<unsigned char>>* all) {
  std::vector<Message> out, in;
  for (uint32_t r = 0; r < all->size(); ++r) {
    (*all)[r].assign(mine.begin(), mine.end());
    if (r == rank) continue;
    Header header;
    header.kind = Kind::kWay;
    header.round = round;
    header.bytes = mine.size();
    out.push_back({r, header, const_cast<unsigned char*>(mine.data())});
    in.push_back({r, header, (*all)[r].data()});
  }
  return transport.Exchange(what, out, in, patience);
}

// Whether all say yes; the key is that of rank 0.
Status Vote(const char* what, bool yes, std::vector<unsigned char>* key, uint8_t round, uint32_t rank, uint32_t ranks,
            Transport& transport, const Patience& patience, bool* all_yes) {
  std::vector<unsigned char> mine = *key;
  mine.push_back(yes);
  std::vector<std::vector<unsigned char>> votes(ranks);
  ANYACL_RETURN_IF_ERROR(Share(what, mine, round, rank, transport, patience, &votes));
  *all_yes = true;
  for (const auto& vote : votes) *all_yes = *all_yes && vote.back();
  key->assign(votes[0].begin(), votes[0].end() - 1);
  return Status();
}

// --- calls in the words of the engine ---

struct DeviceCall {
  GroupCall call;
  std::vector<GroupCall::Transfer> transfers;
};

// Parts by rank, as bytes. Nothing of no bytes travels.
void AddTransfers(const Call& call, std::vector<GroupCall::Transfer>* transfers) {
  const auto add = [&](const void* base, const Part& part, size_t peer, bool sends) {
    char* const bytes = static_cast<char*>(const_cast<void*>(base)) + part.at;
    if (part.bytes > 0) transfers->push_back({bytes, part.bytes, static_cast<uint32_t>(peer), sends});
  };
  for (size_t r = 0; r < call.send_parts.size(); ++r) add(call.send, call.send_parts[r], r, true);
  for (size_t r = 0; r < call.recv_parts.size(); ++r) {
    const bool to_me = call.kind != Kind::kScatter || r == call.root;
    if (to_me) add(call.recv, call.recv_parts[r], r, false);
  }
}

std::optional<DeviceCall> Translate(const Call& call, uint32_t rank, const DeviceGroups& groups) {
  DeviceCall made{};
  GroupCall& to = made.call;
  to.from = call.send;
  to.to = call.recv;
  to.root = call.root;
  const auto reduces = [&](GroupCall::Kind kind, uint64_t bytes) {
    to.kind = kind;
    to.dtype = ElementType(call.dtype);
    to.op = static_cast<GroupCall::Op>(call.reduce);
    to.count = bytes / ElementSize(call.dtype);
    return groups.CanReduce(to.dtype);
  };
  switch (call.kind) {
    case Kind::kAllReduce:
      if (reduces(GroupCall::Kind::kAllReduce, call.send_parts[0].bytes)) return made;
      return {};
    case Kind::kReduce:
      if (reduces(GroupCall::Kind::kReduce, call.send_parts[0].bytes)) return made;
      return {};
    case Kind::kReduceScatter:
      if (reduces(GroupCall::Kind::kReduceScatter, call.send_parts[rank].bytes)) return made;
      return {};
    case Kind::kBroadcast:
      to.kind = GroupCall::Kind::kBroadcast;
      to.from = call.recv;
      to.count = call.send_parts[0].bytes;
      return made;
    case Kind::kAllGather:
      to.kind = GroupCall::Kind::kAllGather;
      to.count = call.send_parts[rank].bytes;
      return made;
    case Kind::kAllGatherV:
    case Kind::kScatter:
    case Kind::kAlltoAll:
    case Kind::kAlltoAllV:
    case Kind::kAlltoAllVC:
      to.kind = GroupCall::Kind::kExchange;
      AddTransfers(call, &made.transfers);
      return made;
    default:
      return {};  // messages of a pair, in which not all take part; sums of uneven parts; barriers, which have no bytes
  }
}

}  // namespace

// Until all that was started is done. Ranks that are gone never come, so it looks for them.
Status DevicePath::Await(const char* what, Transport& transport, const Patience& patience) {
  const Clock::time_point start = Clock::now();
  Clock::time_point glance = start + kGlance;
  std::optional<Clock::time_point> gone;
  for (bool done = false;;) {
    if (const Status status = group_->Poll(&done); !status.ok()) return Problem(HCCL_E_RUNTIME, "{}: {}", what, status.message());
    if (done) return Status();
    if (patience.is_over && patience.is_over()) return Problem(HCCL_E_INTERNAL, "{}: the stream was aborted", what);
    const Clock::time_point now = Clock::now();
    if (patience.limit.count() > 0 && now - start > patience.limit) {
      return Problem(HCCL_E_TIMEOUT, "{}: some ranks did not come within {} s", what, patience.limit.count());
    }
    if (now >= glance) {
      glance = now + kGlance;
      Status status = transport.Check();
      if (!status.ok() && !gone) gone = now;
      if (!status.ok() && now - *gone > kGrace) return status;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Status DevicePath::Settle(const Call& call, const char* what, uint32_t rank, uint32_t ranks, Transport& transport,
                          const Patience& patience) {
  is_settled_ = true;
  constexpr size_t kMostKey = 128;
  std::vector<unsigned char> key(kMostKey);
  bool yes = call.groups->key_bytes() <= kMostKey;
  if (yes && rank == 0) yes = call.groups->MakeKey(std::span(key).first(call.groups->key_bytes())).ok();
  bool all_yes = false;
  ANYACL_RETURN_IF_ERROR(Vote(what, yes, &key, 0, rank, ranks, transport, patience, &all_yes));
  if (!all_yes) return Status();
  group_ = call.groups->NewGroup(call.device);
  const Patience meeting{kMeeting, patience.is_over};
  yes = group_->Meet(std::span(key).first(call.groups->key_bytes()), rank, ranks).ok() && Await(what, transport, meeting).ok();
  Status voted = Vote(what, yes, &key, 1, rank, ranks, transport, patience, &all_yes);
  if (!voted.ok() || !all_yes) group_.reset();
  return voted;
}

Status DevicePath::Perform(const Call& call, const char* what, uint32_t rank, uint32_t ranks, Transport& transport,
                           const Patience& patience, bool* taken) {
  *taken = false;
  if (call.kind == Kind::kSend || call.kind == Kind::kSubComm) return Status();
  if (!is_settled_) ANYACL_RETURN_IF_ERROR(Settle(call, what, rank, ranks, transport, patience));
  if (!group_) return Status();
  std::optional<DeviceCall> translated = Translate(call, rank, *call.groups);
  if (!translated) return Status();
  *taken = true;
  translated->call.transfers = translated->transfers;
  const bool moves = translated->call.kind == GroupCall::Kind::kExchange ? !translated->transfers.empty() : translated->call.count > 0;
  if (!moves) return Status();
  if (const Status status = group_->Start(translated->call); !status.ok()) {
    return Problem(HCCL_E_RUNTIME, "{}: {}", what, status.message());
  }
  return Await(what, transport, patience);
}

}  // namespace anyacl::hccl
