// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/gate.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace anyacl::hccl {
namespace {

constexpr size_t kGuests = 256;                  // unproved at a time; the oldest goes first
constexpr std::chrono::seconds kPatience{10};    // for one of them

struct Statement {  // what the code is of
  char side[8] = {};
  Nonce listener;
  Nonce guest;
  uint32_t words[5] = {};
  Endpoint listens;
};
static_assert(std::has_unique_object_representations_v<Statement>);

uint64_t GuestProof(const Secret& secret, const Nonce& listener, const Hello& hello) {
  Statement statement{"guest", listener, hello.nonce,
                      {hello.version, static_cast<uint32_t>(hello.purpose), hello.rank, hello.ranks, hello.milliseconds},
                      hello.listens};
  return SipHash(secret, &statement, sizeof(statement));
}

uint64_t ListenerProof(const Secret& secret, const Nonce& listener, const Hello& hello) {
  const Statement statement{"host", listener, hello.nonce, {}, {}};
  return SipHash(secret, &statement, sizeof(statement));
}

}  // namespace

Status FillRandom(void* bytes, size_t count) {
  auto* to = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t n = getrandom(to, count, 0);
    if (n < 0 && errno != EINTR) return Problem(HCCL_E_SYSCALL, "no random numbers: {}", ErrorText(errno));
    if (n < 0) continue;
    to += n;
    count -= static_cast<size_t>(n);
  }
  return Status();
}

Status Knock(const Endpoint& to, const Secret& secret, Hello hello, Deadline deadline, Socket* connection) {
  ANYACL_RETURN_IF_ERROR(Connect(to, deadline, connection));
  Nonce nonce;
  uint64_t proof = 0;
  ANYACL_RETURN_IF_ERROR(FillRandom(hello.nonce.data(), hello.nonce.size()));
  ANYACL_RETURN_IF_ERROR(ReadAll(*connection, nonce.data(), nonce.size(), deadline));
  hello.proof = GuestProof(secret, nonce, hello);
  ANYACL_RETURN_IF_ERROR(WriteAll(*connection, &hello, sizeof(hello), deadline));
  ANYACL_RETURN_IF_ERROR(ReadAll(*connection, &proof, sizeof(proof), deadline));
  if (proof == ListenerProof(secret, nonce, hello)) return Status();
  return Problem(HCCL_E_TCP_CONNECT, "whoever listens on {} does not know the secret of the root info", to.Text());
}

void Gate::Admit() {
  while (Socket connection = Accept(listener_)) {
    Guest guest;
    if (!FillRandom(guest.nonce.data(), guest.nonce.size()).ok()) return;
    if (send(connection.fd(), guest.nonce.data(), guest.nonce.size(), MSG_NOSIGNAL) != sizeof(Nonce)) continue;
    guest.connection = std::move(connection);
    guest.patience = std::chrono::steady_clock::now() + kPatience;
    guests_.push_back(std::move(guest));
    if (guests_.size() > kGuests) guests_.pop_front();
  }
}

Gate::Answer Gate::Read(Guest& guest) {
  char* const to = reinterpret_cast<char*>(&guest.hello);
  const ssize_t n = recv(guest.connection.fd(), to + guest.got, sizeof(Hello) - guest.got, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return std::chrono::steady_clock::now() < guest.patience ? Answer::kWaits : Answer::kDrop;
  }
  if (n <= 0) return Answer::kDrop;
  guest.got += static_cast<size_t>(n);
  if (guest.got < sizeof(Hello)) return Answer::kWaits;
  if (guest.hello.proof != GuestProof(secret_, guest.nonce, guest.hello)) return Answer::kDrop;
  const uint64_t proof = ListenerProof(secret_, guest.nonce, guest.hello);
  const bool sent = send(guest.connection.fd(), &proof, sizeof(proof), MSG_NOSIGNAL) == sizeof(proof);
  return sent ? Answer::kProved : Answer::kDrop;
}

Status Gate::Next(Deadline deadline, const Socket* watched, Socket* connection, Hello* hello) {
  while (true) {
    Admit();
    for (size_t i = 0; i < guests_.size();) {
      const Answer answer = Read(guests_[i]);
      if (answer == Answer::kProved) {
        *connection = std::move(guests_[i].connection);
        *hello = guests_[i].hello;
      }
      if (answer == Answer::kWaits) {
        ++i;
      } else {
        guests_.erase(guests_.begin() + static_cast<ptrdiff_t>(i));
      }
      if (answer == Answer::kProved) return Status();
    }
    if (std::chrono::steady_clock::now() >= deadline) return Problem(HCCL_E_TIMEOUT, "nobody came in time");
    std::vector<pollfd> wanted = {{listener_.fd(), POLLIN, 0}};
    if (watched) wanted.push_back({watched->fd(), POLLIN, 0});
    for (const Guest& guest : guests_) wanted.push_back({guest.connection.fd(), POLLIN, 0});
    poll(wanted.data(), wanted.size(), PollTime(deadline, 1000));
    if (watched && wanted[1].revents) return Problem(HCCL_E_AGAIN, "there is news");
  }
}

}  // namespace anyacl::hccl
