// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// TCP connections that know how long to wait.
#ifndef ANYACL_HCCL_SOCKET_H_
#define ANYACL_HCCL_SOCKET_H_

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "hccl/status.h"
#include "runtime/engine.h"

namespace anyacl::hccl {

using runtime::Deadline;
using runtime::kForever;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// An address and a port as they travel.
struct Endpoint {
  uint16_t family = 0;  // 4 or 6
  uint16_t port = 0;
  uint32_t scope = 0;  // of link-local addresses
  uint8_t address[16] = {};

  std::string Text() const;
  bool FromText(const std::string& address);
};

// Until when a poll may sleep, in milliseconds: rounded up, -1 for ever, `most` at most.
int PollTime(Deadline deadline, int most = -1);

// `*at` gets its port when it has none. Nothing but HCCL_E_NETWORK can go wrong.
Status Listen(Endpoint* at, Socket* listener);
Status Connect(const Endpoint& to, Deadline deadline, Socket* connection);
// A connection that waits, or none.
Socket Accept(const Socket& listener);
// Where this machine sends from when it sends there; the loopback interface when it cannot tell.
Endpoint LocalAddressTowards(const Endpoint& to);

// What a rank of this process uses for a connection to another one.
Status ConnectedPair(Socket* a, Socket* b);

Status ReadAll(const Socket& from, void* bytes, size_t count, Deadline deadline);
Status WriteAll(const Socket& to, const void* bytes, size_t count, Deadline deadline);

// The text of an error number, without a lock.
std::string ErrorText(int error);

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_SOCKET_H_
