// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What moves bytes between the ranks of a communicator: the border behind which another engine can stand.
#ifndef ANYACL_HCCL_TRANSPORT_H_
#define ANYACL_HCCL_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hccl/socket.h"
#include "hccl/status.h"

namespace anyacl::hccl {

enum class Kind : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kAllGatherV,
  kReduceScatter,
  kReduceScatterV,
  kScatter,
  kAlltoAll,
  kAlltoAllV,
  kAlltoAllVC,
  kBarrier,
  kSend,  // and receive
  kSubComm,
  kWay,      // over what to talk
  kGoodbye,  // of a rank that destroyed its communicator
  kGaveUp,   // of a rank whose communicator broke; a text follows
};
const char* NameOf(Kind kind);

// In front of every message; both sides must mean the same one.
struct Header {
  uint32_t magic = 0x4c434348;
  Kind kind = Kind::kBarrier;
  uint8_t dtype = 0;
  uint8_t reduce = 0;
  uint8_t round = 0;     // of the exchange within a collective
  uint32_t root = 0;
  uint32_t part = 0;     // of an exchange in parts
  uint64_t number = 0;   // of the collective in its communicator, or of the message of this pair
  uint64_t count = 0;    // of elements, as the call said; 0 where it differs between ranks
  uint64_t bytes = 0;    // that follow

  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 40);

struct Message {
  uint32_t peer;
  Header header;
  void* bytes;  // only read when it goes out
};

struct Patience {
  std::chrono::seconds limit{0};       // without any byte; 0: for ever
  std::function<bool()> is_over = {};  // nobody waits for the result any more
};

// One thread at a time, but for ForgetInChild. After a failure nothing works any more.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends and receives all, at once; messages of one peer in their order. `what` begins the text of a failure.
  virtual Status Exchange(const char* what, std::span<const Message> out, std::span<const Message> in,
                          const Patience& patience) = 0;
  // Why no exchange with somebody will work, if that can be known now.
  virtual Status Check() = 0;
  // Tells the others, who may be waiting.
  virtual void GiveUp(std::string_view why) noexcept = 0;
  virtual void ForgetInChild() noexcept = 0;
};

// Over connections to every other rank; the place of the own one is empty.
std::unique_ptr<Transport> NewTcpTransport(uint32_t rank, std::vector<Socket> peers);

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_TRANSPORT_H_
