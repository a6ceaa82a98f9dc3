// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/socket.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace anyacl::hccl {
namespace {

constexpr int kBacklog = 4096;  // the system cuts it to what it has

union AnyAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t ToSystem(const Endpoint& from, AnyAddress* to) {
  std::memset(to, 0, sizeof(*to));
  if (from.family == 4) {
    to->v4.sin_family = AF_INET;
    to->v4.sin_port = htons(from.port);
    std::memcpy(&to->v4.sin_addr, from.address, 4);
    return sizeof(to->v4);
  }
  to->v6.sin6_family = AF_INET6;
  to->v6.sin6_port = htons(from.port);
  to->v6.sin6_scope_id = from.scope;
  std::memcpy(&to->v6.sin6_addr, from.address, 16);
  return sizeof(to->v6);
}

Endpoint FromSystem(const AnyAddress& from) {
  Endpoint to;
  to.family = from.any.sa_family == AF_INET ? 4 : 6;
  if (to.family == 4) {
    to.port = ntohs(from.v4.sin_port);
    std::memcpy(to.address, &from.v4.sin_addr, 4);
  } else {
    to.port = ntohs(from.v6.sin6_port);
    to.scope = from.v6.sin6_scope_id;
    std::memcpy(to.address, &from.v6.sin6_addr, 16);
  }
  return to;
}

Socket NewSocket(const Endpoint& like) {
  return Socket(socket(like.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void SendAtOnce(const Socket& connection) {
  const int on = 1;
  setsockopt(connection.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// False: the time is up.
bool WaitFor(const Socket& connection, short events, Deadline deadline) {
  while (true) {
    pollfd wanted{connection.fd(), events, 0};
    const int ready = poll(&wanted, 1, PollTime(deadline));
    if (ready > 0) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

std::string Endpoint::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family == 4 ? AF_INET : AF_INET6, address, text, sizeof(text));
  return family == 4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

bool Endpoint::FromText(const std::string& text) {
  *this = Endpoint();
  const size_t percent = text.find('%');  // fe80::1%eth0
  const std::string bare = text.substr(0, percent);
  if (inet_pton(AF_INET, bare.c_str(), address) == 1) {
    family = 4;
  } else if (inet_pton(AF_INET6, bare.c_str(), address) == 1) {
    family = 6;
    if (percent != std::string::npos) scope = if_nametoindex(text.c_str() + percent + 1);
  }
  return family != 0;
}

int PollTime(Deadline deadline, int most) {
  if (deadline == kForever) return most;
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  const int time = static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
  return most < 0 ? time : std::min(time, most);
}

Status Listen(Endpoint* at, Socket* listener) {
  AnyAddress address;
  const socklen_t size = ToSystem(*at, &address);
  *listener = NewSocket(*at);
  if (!*listener || bind(listener->fd(), &address.any, size) || listen(listener->fd(), kBacklog)) {
    return Problem(HCCL_E_NETWORK, "cannot listen on {}: {}", at->Text(), ErrorText(errno));
  }
  socklen_t length = sizeof(address);
  getsockname(listener->fd(), &address.any, &length);
  at->port = FromSystem(address).port;
  return Status();
}

namespace {

// *error: why there is no connection, for the system; 0 when there is one.
Status ConnectOnce(const Endpoint& to, Deadline deadline, Socket* connection, int* error) {
  AnyAddress address;
  const socklen_t size = ToSystem(to, &address);
  *connection = NewSocket(to);
  if (!*connection) return Problem(HCCL_E_NETWORK, "no socket: {}", ErrorText(errno));
  SendAtOnce(*connection);
  *error = connect(connection->fd(), &address.any, size) ? errno : 0;
  if (*error != EINPROGRESS && *error != EINTR) return Status();
  if (!WaitFor(*connection, POLLOUT, deadline)) return Problem(HCCL_E_TIMEOUT, "{} does not answer", to.Text());
  socklen_t length = sizeof(*error);
  getsockopt(connection->fd(), SOL_SOCKET, SO_ERROR, error, &length);
  return Status();
}

// The way there may come still: a link that goes up, a route. A refusal is an answer.
bool MayPass(int error) { return error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT; }

}  // namespace

Status Connect(const Endpoint& to, Deadline deadline, Socket* connection) {
  constexpr std::chrono::milliseconds kPause{100};
  while (true) {
    int error = 0;
    ANYACL_RETURN_IF_ERROR(ConnectOnce(to, deadline, connection, &error));
    if (error == 0) return Status();
    if (!MayPass(error) || std::chrono::steady_clock::now() + kPause >= deadline) {
      return Problem(HCCL_E_TCP_CONNECT, "cannot connect to {}: {}", to.Text(), ErrorText(error));
    }
    std::this_thread::sleep_for(kPause);
  }
}

Socket Accept(const Socket& listener) {
  Socket connection(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) SendAtOnce(connection);
  return connection;
}

Endpoint LocalAddressTowards(const Endpoint& to) {
  AnyAddress address;
  socklen_t size = ToSystem(to, &address);
  // To connect one of these sends nothing.
  const Socket asked(socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (asked && connect(asked.fd(), &address.any, size) == 0 && getsockname(asked.fd(), &address.any, &size) == 0) {
    return FromSystem(address);
  }
  Endpoint loopback;
  loopback.FromText(to.family == 4 ? "127.0.0.1" : "::1");
  return loopback;
}

Status ConnectedPair(Socket* a, Socket* b) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds)) {
    return Problem(HCCL_E_NETWORK, "no sockets: {}", ErrorText(errno));
  }
  *a = Socket(fds[0]);
  *b = Socket(fds[1]);
  return Status();
}

Status ReadAll(const Socket& from, void* bytes, size_t count, Deadline deadline) {
  char* to = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t n = recv(from.fd(), to, count, 0);
    if (n > 0) {
      to += n;
      count -= static_cast<size_t>(n);
    } else if (n == 0) {
      return Problem(HCCL_E_REMOTE, "the connection was closed at the other end");
    } else if (errno == EAGAIN) {
      if (!WaitFor(from, POLLIN, deadline)) return Problem(HCCL_E_TIMEOUT, "nothing came in time");
    } else if (errno != EINTR) {
      return Problem(HCCL_E_REMOTE, "the connection broke: {}", ErrorText(errno));
    }
  }
  return Status();
}

Status WriteAll(const Socket& to, const void* bytes, size_t count, Deadline deadline) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = send(to.fd(), from, count, MSG_NOSIGNAL);
    if (n >= 0) {
      from += n;
      count -= static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      if (!WaitFor(to, POLLOUT, deadline)) return Problem(HCCL_E_TIMEOUT, "nothing was taken in time");
    } else if (errno != EINTR) {
      return Problem(HCCL_E_REMOTE, "the connection broke: {}", ErrorText(errno));
    }
  }
  return Status();
}

std::string ErrorText(int error) {
  char buffer[128];
  return strerror_r(error, buffer, sizeof(buffer));  // the GNU one
}

}  // namespace anyacl::hccl
