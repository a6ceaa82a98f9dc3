// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every rank is connected to every other one. The thread of the stream moves the bytes itself, to and from the buffers
// of the program, on whichever connection can take or give some. Because every rank waits for each rank directly, the one
// that is missing is known.
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "hccl/elements.h"
#include "hccl/transport.h"

namespace anyacl::hccl {
namespace {

constexpr std::chrono::milliseconds kLastWords{
    500};                        // for messages that are on their way when a rank gives up
constexpr int kGlance = 100;     // ms between looks at what nobody waits for: other ranks, an abort
constexpr size_t kNotice = 400;  // bytes of a text to the others

class TcpTransport final : public Transport {
 public:
  TcpTransport(uint32_t rank, std::vector<Socket> peers) : rank_(rank), lanes_(peers.size()) {
    for (size_t i = 0; i < peers.size(); ++i) lanes_[i].connection = std::move(peers[i]);
  }
  ~TcpTransport() override;

  Status Exchange(const char* what, std::span<const Message> out, std::span<const Message> in,
                  const Patience& patience) override;
  Status Check() override;
  void GiveUp(std::string_view why) noexcept override;
  void ForgetInChild() noexcept override { lanes_.clear(); }

 private:
  struct Lane {
    Socket connection;
    std::vector<const Message*> out, in;
    size_t outs = 0, ins = 0;  // messages that are through
    size_t sent = 0, got = 0;  // bytes of the present ones, with their headers
    Header header;             // that comes
    bool is_heard = false;     // in this exchange

    bool sends() const { return outs < out.size(); }
    bool receives() const { return ins < in.size(); }
  };

  void Fill(std::span<const Message> out, std::span<const Message> in);
  Status Move(std::vector<uint32_t>* active);
  Status SendSome(Lane& lane, uint32_t peer, bool* moved);
  Status ReceiveSome(Lane& lane, uint32_t peer, bool* moved);
  Status CheckHeader(Lane& lane, uint32_t peer, const Header& wanted);
  Status Sleep(const std::vector<uint32_t>& active, int milliseconds);
  void FinishBegun();
  void ReadToTheEnd();
  Status CheckIdle();
  Status CheckPeer(const Lane& lane, uint32_t peer) const;
  Status Lost(const Lane& lane, uint32_t peer, int error) const;
  Status TimeIsUp(const std::vector<uint32_t>& active, std::chrono::seconds limit) const;
  std::string Name(uint32_t peer) const {
    return fmt::format("rank {} of {}", peer, lanes_.size());
  }

  const uint32_t rank_;
  std::vector<Lane> lanes_;  // by rank
  bool moved_ = false;
  bool gave_up_ = false;
};

// --- the ends ---

void SendNotice(const Socket& to, Kind kind, std::string_view text) noexcept {
  struct {
    Header header;
    char text[kNotice];
  } notice;
  notice.header = Header();
  notice.header.kind = kind;
  notice.header.bytes = std::min(text.size(), kNotice);
  std::memcpy(notice.text, text.data(), notice.header.bytes);
  (void)!send(to.fd(), &notice, sizeof(Header) + notice.header.bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// What others have not read yet reaches them still.
TcpTransport::~TcpTransport() {
  for (const Lane& lane : lanes_) {
    if (!lane.connection) continue;
    if (lane.sent == 0) SendNotice(lane.connection, Kind::kGoodbye, {});
    shutdown(lane.connection.fd(), SHUT_WR);
  }
  if (!gave_up_) return;
  try {
    ReadToTheEnd();
  } catch (const std::bad_alloc&) {  // then some may not hear
  }
}

// A connection that is closed with something unread takes back what is on its way: the other rank would not hear why. So whoever
// gave up reads until all others have ended, too, which they do when they hear of it.
void TcpTransport::ReadToTheEnd() {
  const Deadline soon = std::chrono::steady_clock::now() + kLastWords;
  std::vector<pollfd> open;
  for (const Lane& lane : lanes_) {
    if (lane.connection) open.push_back({lane.connection.fd(), POLLIN, 0});
  }
  const auto is_over = [](const pollfd& one) {
    char scratch[16 * 1024];
    while (true) {
      const ssize_t n = recv(one.fd, scratch, sizeof(scratch), MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n == 0 || errno != EAGAIN;
    }
  };
  while (true) {
    std::erase_if(open, is_over);
    if (open.empty() || std::chrono::steady_clock::now() >= soon) return;
    poll(open.data(), open.size(), PollTime(soon, 10));
  }
}

// A notice in the middle of a message would be taken for a part of it; there the end must do.
void TcpTransport::GiveUp(std::string_view why) noexcept {
  gave_up_ = true;
  for (Lane& lane : lanes_) {
    if (!lane.connection) continue;
    if (lane.sent == 0) SendNotice(lane.connection, Kind::kGaveUp, why);
    shutdown(lane.connection.fd(), SHUT_WR);
  }
}

// --- failures ---

// The first bytes that wait on a connection, left there.
struct Glance {
  Header header;
  char text[kNotice];
};
ssize_t Peek(const Socket& from, Glance* glance) {
  while (true) {
    const ssize_t n = recv(from.fd(), glance, sizeof(*glance), MSG_PEEK | MSG_DONTWAIT);
    if (n >= 0 || errno != EINTR) return n;
  }
}

// Between messages only.
Status TcpTransport::CheckPeer(const Lane& lane, uint32_t peer) const {
  Glance glance;
  const ssize_t n = Peek(lane.connection, &glance);
  if (n < 0 && errno == EAGAIN) return Status();
  if (n <= 0)
    return Problem(HCCL_E_REMOTE, "{} is gone ({})", Name(peer),
                   n == 0 ? "its connection was closed" : ErrorText(errno));
  if (static_cast<size_t>(n) < sizeof(Header) || glance.header.kind != Kind::kGaveUp)
    return Status();
  const size_t length = std::min(
      {static_cast<size_t>(n) - sizeof(Header), static_cast<size_t>(glance.header.bytes), kNotice});
  return Problem(HCCL_E_REMOTE, "{} gave up: {}", Name(peer),
                 std::string_view(glance.text, length));
}

Status TcpTransport::Check() {
  for (uint32_t r = 0; r < lanes_.size(); ++r) {
    if (lanes_[r].connection) ANYACL_RETURN_IF_ERROR(CheckPeer(lanes_[r], r));
  }
  return Status();
}

// The same for those that nothing is expected from now.
Status TcpTransport::CheckIdle() {
  for (uint32_t r = 0; r < lanes_.size(); ++r) {
    if (lanes_[r].connection && lanes_[r].got == 0) ANYACL_RETURN_IF_ERROR(CheckPeer(lanes_[r], r));
  }
  return Status();
}

// A connection broke; the other side may have said why.
Status TcpTransport::Lost(const Lane& lane, uint32_t peer, int error) const {
  if (lane.got == 0) {
    if (Status reason = CheckPeer(lane, peer);
        reason.message().find(" gave up: ") != std::string::npos)
      return reason;
  }
  return Problem(HCCL_E_REMOTE, "{} is gone ({})", Name(peer),
                 error ? ErrorText(error) : "its connection was closed");
}

Status TcpTransport::TimeIsUp(const std::vector<uint32_t>& active,
                              std::chrono::seconds limit) const {
  std::vector<uint32_t> absent, slow;
  for (const uint32_t peer : active) {
    const Lane& lane = lanes_[peer];
    (lane.receives() && !lane.is_heard ? absent : slow).push_back(peer);
  }
  const bool none_came = !absent.empty();
  return Problem(HCCL_E_TIMEOUT, "{} of {} {} within {} s (HCCL_EXEC_TIMEOUT)",
                 NameRanks(none_came ? absent : slow), lanes_.size(),
                 none_came ? "did not come" : "did not go on", limit.count());
}

Status TcpTransport::CheckHeader(Lane& lane, uint32_t peer, const Header& wanted) {
  const Header& header = lane.header;
  if (header == wanted) return Status();
  if (header.magic != wanted.magic) {
    return Problem(HCCL_E_TCP_TRANSFER, "{} sent something that is no message", Name(peer));
  }
  if (header.kind == Kind::kGoodbye)
    return Problem(HCCL_E_REMOTE, "{} has destroyed its communicator", Name(peer));
  if (header.kind == Kind::kGaveUp) {
    std::string text(std::min<size_t>(header.bytes, kNotice), '\0');
    const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    (void)ReadAll(lane.connection, text.data(), text.size(), soon);
    return Problem(HCCL_E_REMOTE, "{} gave up: {}", Name(peer), text);
  }
  const auto describe = [](const Header& h) {
    const char* const reduce = h.kind == Kind::kAllReduce || h.kind == Kind::kReduce ||
                                       h.kind == Kind::kReduceScatter ||
                                       h.kind == Kind::kReduceScatterV
                                   ? ReduceName(h.reduce)
                                   : nullptr;
    return fmt::format("{} (call {}, count {}, {}{}{}, root {}, {} bytes of part {})",
                       NameOf(h.kind), h.number, h.count, TypeName(h.dtype), reduce ? " " : "",
                       reduce ? reduce : "", h.root, h.bytes, h.part);
  };
  return Problem(HCCL_E_PARA, "{} called {} where rank {} called {}", Name(peer), describe(header),
                 rank_, describe(wanted));
}

// --- the exchange ---

void TcpTransport::Fill(std::span<const Message> out, std::span<const Message> in) {
  for (Lane& lane : lanes_) {
    lane.out.clear();
    lane.in.clear();
    lane.outs = lane.ins = 0;
    lane.is_heard = false;
  }
  for (const Message& message : out) lanes_[message.peer].out.push_back(&message);
  for (const Message& message : in) lanes_[message.peer].in.push_back(&message);
}

Status TcpTransport::SendSome(Lane& lane, uint32_t peer, bool* moved) {
  while (lane.sends()) {
    const Message& message = *lane.out[lane.outs];
    const size_t total = sizeof(Header) + message.header.bytes;
    iovec parts[2];
    size_t count = 0;
    if (lane.sent < sizeof(Header)) {
      parts[count++] = {
          const_cast<char*>(reinterpret_cast<const char*>(&message.header)) + lane.sent,
          sizeof(Header) - lane.sent};
    }
    const size_t done = lane.sent < sizeof(Header) ? 0 : lane.sent - sizeof(Header);
    if (message.header.bytes > done)
      parts[count++] = {static_cast<char*>(message.bytes) + done, message.header.bytes - done};
    msghdr what = {};
    what.msg_iov = parts;
    what.msg_iovlen = count;
    const ssize_t n = sendmsg(lane.connection.fd(), &what, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EAGAIN) return Status();
      if (errno == EINTR) continue;
      return Lost(lane, peer, errno);
    }
    *moved = true;
    lane.sent += static_cast<size_t>(n);
    if (lane.sent < total) continue;
    lane.sent = 0;
    ++lane.outs;
  }
  return Status();
}

Status TcpTransport::ReceiveSome(Lane& lane, uint32_t peer, bool* moved) {
  while (lane.receives()) {
    const Message& message = *lane.in[lane.ins];
    const size_t total = sizeof(Header) + message.header.bytes;
    char* to = reinterpret_cast<char*>(&lane.header) + lane.got;
    size_t room = sizeof(Header) - lane.got;
    if (lane.got >= sizeof(Header)) {
      to = static_cast<char*>(message.bytes) + (lane.got - sizeof(Header));
      room = total - lane.got;
    }
    const ssize_t n = recv(lane.connection.fd(), to, room, MSG_DONTWAIT);
    if (n == 0) return Lost(lane, peer, 0);
    if (n < 0) {
      if (errno == EAGAIN) return Status();
      if (errno == EINTR) continue;
      return Lost(lane, peer, errno);
    }
    *moved = lane.is_heard = true;
    lane.got += static_cast<size_t>(n);
    if (lane.got == sizeof(Header)) ANYACL_RETURN_IF_ERROR(CheckHeader(lane, peer, message.header));
    if (lane.got < total) continue;
    lane.got = 0;
    ++lane.ins;
  }
  return Status();
}

// Whatever can be done without waiting; those with nothing left to do leave the list.
Status TcpTransport::Move(std::vector<uint32_t>* active) {
  for (const uint32_t peer : *active) {
    Lane& lane = lanes_[peer];
    ANYACL_RETURN_IF_ERROR(ReceiveSome(lane, peer, &moved_));
    ANYACL_RETURN_IF_ERROR(SendSome(lane, peer, &moved_));
  }
  std::erase_if(
      *active, [this](uint32_t peer) { return !lanes_[peer].sends() && !lanes_[peer].receives(); });
  return Status();
}

// Until something can be done or that time has passed; then looks at everybody.
Status TcpTransport::Sleep(const std::vector<uint32_t>& active, int milliseconds) {
  std::vector<pollfd> wanted;
  wanted.reserve(active.size());
  for (const uint32_t peer : active) {
    const Lane& lane = lanes_[peer];
    const int events = (lane.sends() ? POLLOUT : 0) | (lane.receives() ? POLLIN : 0);
    wanted.push_back({lane.connection.fd(), static_cast<short>(events), 0});
  }
  const int ready = poll(wanted.data(), wanted.size(), milliseconds);
  return ready == 0 ? CheckIdle() : Status();
}

// A rank takes a notice between messages only: without the rest of what it is reading it would take this rank for the one that is
// gone. It may be giving up as well, and waits for room here; what it sends is taken and of no use any more.
void TcpTransport::FinishBegun() {
  std::vector<uint32_t> begun;
  for (uint32_t r = 0; r < lanes_.size(); ++r) {
    Lane& lane = lanes_[r];
    if (lane.sent == 0) continue;
    lane.out.resize(lane.outs + 1);
    begun.push_back(r);
  }
  const Deadline soon = std::chrono::steady_clock::now() + kLastWords;
  const auto is_over = [&](uint32_t peer) {
    Lane& lane = lanes_[peer];
    bool moved = false;
    if (!ReceiveSome(lane, peer, &moved).ok()) lane.ins = lane.in.size();
    return !SendSome(lane, peer, &moved).ok() || !lane.sends();
  };
  while (true) {
    std::erase_if(begun, is_over);
    if (begun.empty() || std::chrono::steady_clock::now() >= soon) return;
    std::vector<pollfd> wanted;
    for (const uint32_t peer : begun) wanted.push_back({lanes_[peer].connection.fd(), POLLOUT, 0});
    poll(wanted.data(), wanted.size(), PollTime(soon, 10));
  }
}

Status TcpTransport::Exchange(const char* what, std::span<const Message> out,
                              std::span<const Message> in, const Patience& patience) {
  Fill(out, in);
  std::vector<uint32_t> active;
  for (uint32_t r = 0; r < lanes_.size(); ++r) {
    if (lanes_[r].sends() || lanes_[r].receives()) active.push_back(r);
  }
  Deadline deadline = kForever;
  moved_ = true;
  while (true) {
    if (std::exchange(moved_, false) && patience.limit.count() > 0) {
      deadline = std::chrono::steady_clock::now() + patience.limit;
    }
    Status status = Move(&active);
    if (status.ok() && active.empty()) return Status();
    if (status.ok() && !moved_) {
      if (std::chrono::steady_clock::now() >= deadline) status = TimeIsUp(active, patience.limit);
      if (status.ok()) status = Sleep(active, PollTime(deadline, kGlance));
      if (status.ok() && patience.is_over && patience.is_over())
        return Within(what, Problem(HCCL_E_INTERNAL, "the stream was aborted"));
    }
    if (status.ok()) continue;
    FinishBegun();
    return Within(what, status);
  }
}

}  // namespace

std::unique_ptr<Transport> NewTcpTransport(uint32_t rank, std::vector<Socket> peers) {
  return std::make_unique<TcpTransport>(rank, std::move(peers));
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "HcclAllReduce";
    case Kind::kReduce:
      return "HcclReduce";
    case Kind::kBroadcast:
      return "HcclBroadcast";
    case Kind::kAllGather:
      return "HcclAllGather";
    case Kind::kAllGatherV:
      return "HcclAllGatherV";
    case Kind::kReduceScatter:
      return "HcclReduceScatter";
    case Kind::kReduceScatterV:
      return "HcclReduceScatterV";
    case Kind::kScatter:
      return "HcclScatter";
    case Kind::kAlltoAll:
      return "HcclAlltoAll";
    case Kind::kAlltoAllV:
      return "HcclAlltoAllV";
    case Kind::kAlltoAllVC:
      return "HcclAlltoAllVC";
    case Kind::kBarrier:
      return "HcclBarrier";
    case Kind::kSend:
      return "HcclSend or HcclRecv";
    case Kind::kWay:
      return "a first collective";
    case Kind::kSubComm:
      return "HcclCreateSubCommConfig";
    default:
      return "something unknown";
  }
}

}  // namespace anyacl::hccl
