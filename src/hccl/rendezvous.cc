// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "core/locks.h"
#include "core/once.h"
#include "hccl/gate.h"
#include "hccl/interface.h"

namespace anyacl::hccl {
namespace {

using std::chrono::milliseconds;

struct RootInfo {
  static constexpr char kMark[16] = "AnyACL HCCL 1";
  char mark[16];
  Secret secret;
  uint64_t id;
  Endpoint address;
};
static_assert(sizeof(RootInfo) <= HCCL_ROOT_INFO_BYTES && std::has_unique_object_representations_v<RootInfo>);

// Addresses that this process opened and that no communicator was made of yet.
struct Opened {
  std::map<uint64_t, Socket> listeners;  // by the id of the root info; guarded by kCommunicators
};
Opened& AllOpened() { return TheOne<Opened>(); }

std::optional<Socket> TakeListener(uint64_t id) {
  const std::lock_guard lock(LockOf(Lock::kCommunicators));
  auto node = AllOpened().listeners.extract(id);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

// A code and a text, or what it is about. It travels on connections that have proved the secret.
struct Frame {
  uint32_t code;
  uint32_t bytes;
};
constexpr uint32_t kMostFrameBytes = 64 * 1024 * 1024;

Status SendFrame(const Socket& to, uint32_t code, const void* bytes, size_t count, Deadline deadline) {
  const Frame frame{code, static_cast<uint32_t>(count)};
  ANYACL_RETURN_IF_ERROR(WriteAll(to, &frame, sizeof(frame), deadline));
  return WriteAll(to, bytes, count, deadline);
}

Status SendFailure(const Socket& to, const Status& failure, Deadline deadline) {
  return SendFrame(to, static_cast<uint32_t>(failure.code()), failure.message().data(), failure.message().size(), deadline);
}

// The status that came; HCCL_E_... of our own when nothing did.
Status ReadFrame(const Socket& from, std::string* content, Deadline deadline) {
  Frame frame;
  ANYACL_RETURN_IF_ERROR(ReadAll(from, &frame, sizeof(frame), deadline));
  if (frame.bytes > kMostFrameBytes) return Problem(HCCL_E_INTERNAL, "a frame of {} bytes came", frame.bytes);
  content->resize(frame.bytes);
  ANYACL_RETURN_IF_ERROR(ReadAll(from, content->data(), content->size(), deadline));
  return frame.code ? Status(static_cast<int32_t>(frame.code), *content) : Status();
}

// How much earlier than a guest who serves gives up, so that the guest still hears why.
constexpr milliseconds kHeadStart{300};

uint32_t MillisecondsUntil(Deadline deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now()) - kHeadStart;
  return static_cast<uint32_t>(std::clamp<int64_t>(left.count(), 1, 0x7fffffff));
}

class Meeting {
 public:
  Meeting(const RootInfo& info, uint32_t ranks, uint32_t rank, Deadline deadline, Met* met)
      : info_(info), ranks_(ranks), rank_(rank), deadline_(deadline), peers_(met->peers), has_groups_(met->has_groups) {
    peers_.clear();
    peers_.resize(ranks);
    places_.resize(ranks);
  }

  // With the listener of the root info.
  Status Serve(const Socket& root);
  Status Attend();

 private:
  Status ListenHere(const Endpoint& otherwise);
  Status Collect(const Socket& root);
  Status Greet(Socket& guest, const Hello& hello);
  Status TellAll(uint32_t code, const void* bytes, size_t count);
  Status AwaitAll();
  Status NameMissing(const char* what, const std::vector<uint32_t>& missing) const;
  Status ConnectPairs(const Socket* news);
  Status AcceptPairs(const Socket* news);
  Hello HelloFor(Purpose purpose) const;
  bool IsGuestsTurn(const Hello& hello, Purpose purpose) const;

  const RootInfo& info_;
  const uint32_t ranks_;
  const uint32_t rank_;
  Deadline deadline_;
  std::vector<Socket>& peers_;
  bool& has_groups_;              // so far
  std::vector<Endpoint> places_;  // where each rank listens
  Socket listener_;
  std::vector<Socket> guests_;  // of who serves, by rank
};

Hello Meeting::HelloFor(Purpose purpose) const {
  Hello hello;
  hello.purpose = purpose;
  hello.has_groups = has_groups_;
  hello.rank = rank_;
  hello.ranks = ranks_;
  hello.milliseconds = MillisecondsUntil(deadline_);
  hello.listens = places_[rank_];
  return hello;
}

// `otherwise`: when the environment does not say where.
Status Meeting::ListenHere(const Endpoint& otherwise) {
  Endpoint here;
  bool told = false;
  ANYACL_RETURN_IF_ERROR(ListenAddress(&here, &told));
  if (!told) here = otherwise;
  here.port = 0;
  ANYACL_RETURN_IF_ERROR(Listen(&here, &listener_));
  places_[rank_] = here;
  return Status();
}

// --- who serves ---

Status Meeting::NameMissing(const char* what, const std::vector<uint32_t>& missing) const {
  return Problem(HCCL_E_TIMEOUT, "{} of {} did not {} within HCCL_CONNECT_TIMEOUT", NameRanks(missing), ranks_, what);
}

bool Meeting::IsGuestsTurn(const Hello& hello, Purpose purpose) const {
  return hello.version == Hello().version && hello.purpose == purpose && hello.rank < ranks_ && hello.rank != rank_;
}

// Takes the guest only when it is welcome.
Status Meeting::Greet(Socket& guest, const Hello& hello) {
  if (hello.version != Hello().version) return Problem(HCCL_E_PARA, "a rank is of another version of AnyACL");
  if (hello.ranks != ranks_) {
    return Problem(HCCL_E_PARA, "rank {} says that there are {} ranks, rank {} says {}", hello.rank, hello.ranks, rank_, ranks_);
  }
  if (hello.rank >= ranks_ || hello.rank == rank_ || guests_[hello.rank]) {
    return Problem(HCCL_E_PARA, "rank {} of {} came twice", hello.rank, ranks_);
  }
  // Whoever waits least decides when it was too long for all.
  deadline_ = std::min(deadline_, std::chrono::steady_clock::now() + milliseconds(hello.milliseconds));
  places_[hello.rank] = hello.listens;
  has_groups_ = has_groups_ && hello.has_groups == 1;
  guests_[hello.rank] = std::move(guest);
  return Status();
}

Status Meeting::Collect(const Socket& root) {
  Gate gate(root, info_.secret);
  for (uint32_t came = 1; came < ranks_; ++came) {
    Socket guest;
    Hello hello;
    const Status status = gate.Next(deadline_, nullptr, &guest, &hello);
    if (status.code() == HCCL_E_TIMEOUT) {
      std::vector<uint32_t> missing;
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (r != rank_ && !guests_[r]) missing.push_back(r);
      }
      return NameMissing("come", missing);
    }
    ANYACL_RETURN_IF_ERROR(Within("the rendezvous", status));
    if (Status greeted = Greet(guest, hello); !greeted.ok()) {
      (void)SendFailure(guest, greeted, deadline_ + kHeadStart);
      return greeted;
    }
  }
  return Status();
}

// A guest that cannot be told is one that the others will miss.
Status Meeting::TellAll(uint32_t code, const void* bytes, size_t count) {
  Status first;
  for (uint32_t r = 0; r < ranks_; ++r) {
    if (!guests_[r]) continue;
    Status status = SendFrame(guests_[r], code, bytes, count, deadline_ + kHeadStart);
    if (!status.ok() && first.ok()) first = Within(fmt::format("rank {} of {} is gone", r, ranks_), status);
  }
  return first;
}

// Until every guest is connected to every other one.
Status Meeting::AwaitAll() {
  std::vector<uint32_t> waiting;
  for (uint32_t r = 0; r < ranks_; ++r) {
    if (guests_[r]) waiting.push_back(r);
  }
  while (!waiting.empty()) {
    std::vector<pollfd> wanted;
    for (const uint32_t r : waiting) wanted.push_back({guests_[r].fd(), POLLIN, 0});
    const int ready = poll(wanted.data(), wanted.size(), PollTime(deadline_));
    if (ready == 0) return NameMissing("connect", waiting);
    std::vector<uint32_t> rest;
    for (size_t i = 0; i < waiting.size(); ++i) {
      const uint32_t r = waiting[i];
      if (ready < 0 || !wanted[i].revents) {
        rest.push_back(r);
        continue;
      }
      std::string content;
      const Status status = ReadFrame(guests_[r], &content, deadline_);
      if (!status.ok()) return Problem(HCCL_E_REMOTE, "rank {} of {} failed: {}", r, ranks_, status.message());
    }
    waiting = std::move(rest);
  }
  return Status();
}

Status Meeting::Serve(const Socket& root) {
  guests_.resize(ranks_);
  Status status = ListenHere(info_.address);
  if (status.ok()) status = Collect(root);
  if (status.ok()) status = TellAll(HCCL_SUCCESS, places_.data(), places_.size() * sizeof(Endpoint));
  if (status.ok()) status = ConnectPairs(nullptr);
  if (status.ok()) status = AwaitAll();
  if (status.ok()) status = TellAll(HCCL_SUCCESS, &has_groups_, sizeof(has_groups_));
  if (!status.ok()) (void)TellAll(static_cast<uint32_t>(status.code()), status.message().data(), status.message().size());
  return status;
}

// --- who comes ---

// In the words of someone who does not know who serves.
Status RootProblem(const Status& status, const Endpoint& address) {
  const std::string who = fmt::format("the rank whose process made the root info (by custom rank 0), at {},", address.Text());
  switch (status.code()) {
    case HCCL_E_TIMEOUT:
      return Problem(HCCL_E_TIMEOUT, "{} did not come within HCCL_CONNECT_TIMEOUT", who);
    case HCCL_E_REMOTE:
      return Problem(HCCL_E_REMOTE, "{} is gone", who);
    case HCCL_E_TCP_CONNECT:
      return Problem(HCCL_E_TCP_CONNECT, "{} cannot be reached, or its root info was used before: {}", who, status.message());
    default:
      return Within(who + " cannot be asked", status);
  }
}

Status Meeting::Attend() {
  ANYACL_RETURN_IF_ERROR(ListenHere(LocalAddressTowards(info_.address)));
  Socket root;
  if (Status status = Knock(info_.address, info_.secret, HelloFor(Purpose::kMeet), deadline_, &root); !status.ok()) {
    return RootProblem(status, info_.address);
  }
  const Deadline last = deadline_ + kHeadStart;
  std::string table;
  ANYACL_RETURN_IF_ERROR(ReadFrame(root, &table, last));
  if (table.size() != places_.size() * sizeof(Endpoint)) return Problem(HCCL_E_INTERNAL, "a table of another size came");
  std::memcpy(places_.data(), table.data(), table.size());
  if (Status status = ConnectPairs(&root); !status.ok()) {
    if (status.code() == HCCL_E_AGAIN) return ReadFrame(root, &table, last);  // it failed elsewhere
    (void)SendFailure(root, status, last);
    return status;
  }
  ANYACL_RETURN_IF_ERROR(SendFrame(root, HCCL_SUCCESS, nullptr, 0, last));
  std::string end;
  ANYACL_RETURN_IF_ERROR(ReadFrame(root, &end, last));
  has_groups_ = end == std::string_view("\1", 1);
  return Status();
}

// --- both ---

Status Meeting::ConnectPairs(const Socket* news) {
  for (uint32_t r = 0; r < rank_; ++r) {
    const Status status = Knock(places_[r], info_.secret, HelloFor(Purpose::kPair), deadline_, &peers_[r]);
    if (!status.ok()) {
      return Within(fmt::format("rank {} of {} cannot be reached from rank {}", r, ranks_, rank_), status);
    }
  }
  return AcceptPairs(news);
}

Status Meeting::AcceptPairs(const Socket* news) {
  Gate gate(listener_, info_.secret);
  for (uint32_t left = ranks_ - 1 - rank_; left > 0;) {
    Socket guest;
    Hello hello;
    Status status = gate.Next(deadline_, news, &guest, &hello);
    if (status.code() == HCCL_E_TIMEOUT) {
      std::vector<uint32_t> missing;
      for (uint32_t r = rank_ + 1; r < ranks_; ++r) {
        if (!peers_[r]) missing.push_back(r);
      }
      return NameMissing("connect", missing);
    }
    if (!status.ok()) return status;
    if (!IsGuestsTurn(hello, Purpose::kPair) || hello.rank < rank_ || peers_[hello.rank]) continue;
    peers_[hello.rank] = std::move(guest);
    --left;
  }
  return Status();
}

}  // namespace

void ForgetListeners() { AllOpened().listeners.clear(); }

Status MakeRootInfo(HcclRootInfo* info) {
  RootInfo root = {};
  std::memcpy(root.mark, RootInfo::kMark, sizeof(root.mark));
  ANYACL_RETURN_IF_ERROR(FillRandom(root.secret.data(), root.secret.size()));
  ANYACL_RETURN_IF_ERROR(FillRandom(&root.id, sizeof(root.id)));
  bool told = false;
  ANYACL_RETURN_IF_ERROR(ListenAddress(&root.address, &told));
  Socket listener;
  ANYACL_RETURN_IF_ERROR(Listen(&root.address, &listener));
  {
    const std::lock_guard lock(LockOf(Lock::kCommunicators));
    AllOpened().listeners.emplace(root.id, std::move(listener));
  }
  std::memset(info, 0, sizeof(*info));
  std::memcpy(info, &root, sizeof(root));
  return Status();
}

Status Meet(const HcclRootInfo& info, uint32_t ranks, uint32_t rank, Deadline deadline, Met* met) {
  RootInfo root;
  std::memcpy(static_cast<void*>(&root), info.internal, sizeof(root));
  if (std::memcmp(root.mark, RootInfo::kMark, sizeof(root.mark)) != 0) {
    return Problem(HCCL_E_PARA, "rootInfo must come from HcclGetRootInfo of AnyACL");
  }
  met->name = fmt::format("hccl_{:016x}", root.id);
  const std::optional<Socket> listener = TakeListener(root.id);
  if (ranks == 1) return Status();
  Meeting meeting(root, ranks, rank, deadline, met);
  return listener ? meeting.Serve(*listener) : meeting.Attend();
}

}  // namespace anyacl::hccl
