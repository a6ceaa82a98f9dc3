// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How two ranks know each other: both prove that they have the secret, and neither shows it. Who listens sends a random
// number; who comes answers with what it wants, a random number of its own and the code of all that under the secret; the
// answer is the code of both numbers. Connections that do not prove it, or not soon, are dropped.
#ifndef ANYACL_HCCL_GATE_H_
#define ANYACL_HCCL_GATE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <type_traits>

#include "hccl/siphash.h"
#include "hccl/socket.h"

namespace anyacl::hccl {

using Nonce = std::array<uint8_t, 16>;

enum class Purpose : uint32_t { kMeet = 1, kPair = 2 };

// What comes first on a connection. No byte of it is padding.
struct Hello {
  uint16_t version = 2;  // of all that ranks say to each other
  uint16_t has_groups = 0;  // 1: its device has an engine of its own to talk over
  Purpose purpose = Purpose::kMeet;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  uint32_t milliseconds = 0;  // so long it will wait
  Endpoint listens;           // where other ranks reach it
  Nonce nonce = {};
  uint64_t proof = 0;
};
static_assert(std::has_unique_object_representations_v<Endpoint>);

Status FillRandom(void* bytes, size_t count);

// A connection to someone who has the secret.
Status Knock(const Endpoint& to, const Secret& secret, Hello hello, Deadline deadline, Socket* connection);

class Gate {
 public:
  Gate(const Socket& listener, const Secret& secret) : listener_(listener), secret_(secret) {}

  // The next one who has the secret. HCCL_E_TIMEOUT, or HCCL_E_AGAIN when there is something to read on `watched`.
  Status Next(Deadline deadline, const Socket* watched, Socket* connection, Hello* hello);

 private:
  struct Guest {
    Socket connection;
    Nonce nonce;
    Deadline patience;
    Hello hello;
    size_t got = 0;
  };
  enum class Answer { kWaits, kProved, kDrop };

  void Admit();
  Answer Read(Guest& guest);

  const Socket& listener_;
  const Secret& secret_;
  std::deque<Guest> guests_;
};

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_GATE_H_
