// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every rank talks to every other one directly. A sum is cut into one chunk for each rank; everybody sends chunk r to rank
// r, who adds up in the order of the ranks and sends the result to all: each rank sends and receives 2 (n - 1) / n of the
// bytes, the least there is, in two steps. Short ones go to everybody whole, and everybody adds them up: one step. Both
// make the same sums in the same order, so the bits do not depend on which it is.
#include "hccl/collectives.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "hccl/elements.h"
#include "hccl/reduce.h"

namespace anyacl::hccl {
namespace {

constexpr uint64_t kShort = 16 * 1024;          // bytes that everybody sends to everybody
constexpr uint64_t kSlice = 4 * 1024 * 1024;    // of a long one that is under way at a time, but
constexpr uint64_t kLeastChunk = 64 * 1024;     // of it for each rank: less would cost more to announce than to move

class Performance {
 public:
  Performance(const Call& call, const char* what, uint32_t rank, Transport* transport, Channel* channel,
              const Patience& patience)
      : call_(call), what_(what), rank_(rank), ranks_(channel->ranks), transport_(transport), channel_(*channel),
        patience_(patience), element_(std::max<uint64_t>(ElementSize(call.dtype), 1)),
        slice_(std::max(kSlice, ranks_ * kLeastChunk)) {}

  Status Run();

 private:
  Status ReduceAll();
  Status ReduceShort();
  Status ReduceLong();
  Status ReduceParts();
  Status Broadcast();
  Status ExchangeParts();
  Status ExchangeItems();

  bool IsReduceResultHere(uint32_t rank) const { return call_.kind == Kind::kAllReduce || call_.root == rank; }
  const char* send() const { return static_cast<const char*>(call_.send); }
  char* recv() const { return static_cast<char*>(call_.recv); }
  char* Scratch(uint64_t bytes);
  // Chunk of rank r of `bytes` bytes: whole elements, by shape alone.
  Part ChunkOf(uint64_t bytes, uint32_t r) const {
    const uint64_t count = bytes / element_;
    const uint64_t from = count * r / ranks_, to = count * (r + 1) / ranks_;
    return {from * element_, (to - from) * element_};
  }
  // Slice s of a part.
  static Part SliceOf(const Part& part, uint64_t slice_bytes, uint64_t s) {
    const uint64_t from = std::min(part.bytes, s * slice_bytes);
    return {part.at + from, std::min(part.bytes - from, slice_bytes)};
  }

  void Send(uint32_t peer, const void* bytes, uint64_t count, uint8_t round = 0, uint64_t part = 0) {
    out_.push_back({peer, HeaderOf(count, round, part), const_cast<void*>(bytes)});
  }
  void Receive(uint32_t peer, void* bytes, uint64_t count, uint8_t round = 0, uint64_t part = 0) {
    in_.push_back({peer, HeaderOf(count, round, part), bytes});
  }
  Header HeaderOf(uint64_t bytes, uint8_t round, uint64_t part) const;
  Status Flush();

  const Call& call_;
  const char* const what_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Transport* const transport_;
  Channel& channel_;
  const Patience& patience_;
  const uint64_t element_;
  const uint64_t slice_;
  uint64_t number_ = 0;
  std::vector<Message> out_, in_;
};

Header Performance::HeaderOf(uint64_t bytes, uint8_t round, uint64_t part) const {
  Header header;
  header.kind = call_.kind;
  header.dtype = static_cast<uint8_t>(call_.dtype);
  header.reduce = static_cast<uint8_t>(call_.reduce);
  header.round = round;
  header.root = call_.root;
  header.part = static_cast<uint32_t>(part);
  header.number = number_;
  header.count = call_.count;
  header.bytes = bytes;
  return header;
}

Status Performance::Flush() {
  if (out_.empty() && in_.empty()) return Status();
  Status status = transport_->Exchange(what_, out_, in_, patience_);
  out_.clear();
  in_.clear();
  return status;
}

char* Performance::Scratch(uint64_t bytes) {
  if (channel_.scratch.size() < bytes) channel_.scratch.resize(bytes);
  return reinterpret_cast<char*>(channel_.scratch.data());
}

void Copy(void* to, const void* from, uint64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

Status Performance::ReduceAll() {
  const uint64_t bytes = call_.send_parts[0].bytes;
  if (ranks_ > 1) return bytes <= kShort ? ReduceShort() : ReduceLong();
  Copy(recv(), send(), bytes);
  return Status();
}

Status Performance::ReduceShort() {
  const uint64_t bytes = call_.send_parts[0].bytes;
  char* const scratch = Scratch(bytes * ranks_);
  std::vector<const void*> sources(ranks_, call_.send);
  for (uint32_t r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    if (IsReduceResultHere(r)) Send(r, send(), bytes);
    if (!IsReduceResultHere(rank_)) continue;
    Receive(r, scratch + r * bytes, bytes);
    sources[r] = scratch + r * bytes;
  }
  ANYACL_RETURN_IF_ERROR(Flush());
  if (IsReduceResultHere(rank_)) Reduce(call_.dtype, call_.reduce, sources, recv(), bytes / element_);
  return Status();
}

// While the results of one slice travel, the next one does, too.
Status Performance::ReduceLong() {
  const Part whole = call_.send_parts[0];
  const uint64_t most = ChunkOf(slice_, ranks_ - 1).bytes + element_;  // of a chunk
  char* const scratch = Scratch((ranks_ + 1) * most);
  char* const own = scratch + ranks_ * most;
  std::vector<const void*> sources(ranks_);
  const uint64_t slices = (whole.bytes + slice_ - 1) / slice_;
  for (uint64_t s = 0; s <= slices; ++s) {
    if (s > 0) {  // the results of the slice before
      const Part slice = SliceOf(whole, slice_, s - 1);
      const Part mine = ChunkOf(slice.bytes, rank_);
      char* const result = IsReduceResultHere(rank_) ? recv() + slice.at + mine.at : own;
      Reduce(call_.dtype, call_.reduce, sources, result, mine.bytes / element_);
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (r == rank_) continue;
        const Part theirs = ChunkOf(slice.bytes, r);
        if (IsReduceResultHere(r)) Send(r, result, mine.bytes, 1, s);
        if (IsReduceResultHere(rank_)) Receive(r, recv() + slice.at + theirs.at, theirs.bytes, 1, s);
      }
    }
    if (s < slices) {
      const Part slice = SliceOf(whole, slice_, s);
      const Part mine = ChunkOf(slice.bytes, rank_);
      sources[rank_] = send() + slice.at + mine.at;
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (r == rank_) continue;
        const Part theirs = ChunkOf(slice.bytes, r);
        Send(r, send() + slice.at + theirs.at, theirs.bytes, 0, s);
        Receive(r, scratch + r * most, mine.bytes, 0, s);
        sources[r] = scratch + r * most;
      }
    }
    ANYACL_RETURN_IF_ERROR(Flush());
  }
  return Status();
}

// Rank r gets the sum of everybody's part r.
Status Performance::ReduceParts() {
  const Part mine = call_.send_parts[rank_];
  const uint64_t bytes = std::max<uint64_t>(slice_ / ranks_ / element_, 1) * element_;
  const uint64_t most = std::min(bytes, mine.bytes);
  uint64_t slices = 1;
  for (const Part& part : call_.send_parts) slices = std::max(slices, (part.bytes + bytes - 1) / bytes);
  char* const scratch = Scratch(ranks_ * most);
  std::vector<const void*> sources(ranks_);
  for (uint64_t s = 0; s < slices; ++s) {
    const Part own = SliceOf(mine, bytes, s);
    sources[rank_] = send() + own.at;
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (r == rank_) continue;
      const Part theirs = SliceOf(call_.send_parts[r], bytes, s);
      if (s == 0 || theirs.bytes > 0) Send(r, send() + theirs.at, theirs.bytes, 0, s);
      if (s == 0 || own.bytes > 0) Receive(r, scratch + r * most, own.bytes, 0, s);
      sources[r] = scratch + r * most;
    }
    ANYACL_RETURN_IF_ERROR(Flush());
    Reduce(call_.dtype, call_.reduce, sources, recv() + (own.at - mine.at), own.bytes / element_);
  }
  return Status();
}

// A long one goes out in chunks, one to each rank, who sends it on to the others: the root sends it once, not n - 1 times.
Status Performance::Broadcast() {
  const Part whole = call_.send_parts[0];
  const bool is_root = rank_ == call_.root;
  if (whole.bytes <= kShort || ranks_ == 2) {
    for (uint32_t r = 0; is_root && r < ranks_; ++r) {
      if (r != rank_) Send(r, recv(), whole.bytes);
    }
    if (!is_root) Receive(call_.root, recv(), whole.bytes);
    return Flush();
  }
  const uint64_t slices = (whole.bytes + slice_ - 1) / slice_;
  for (uint64_t s = 0; s <= slices; ++s) {
    if (s > 0) {
      const Part slice = SliceOf(whole, slice_, s - 1);
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (r == rank_) continue;
        const Part mine = ChunkOf(slice.bytes, rank_), theirs = ChunkOf(slice.bytes, r);
        if (r != call_.root) Send(r, recv() + slice.at + mine.at, mine.bytes, 1, s);
        if (!is_root) Receive(r, recv() + slice.at + theirs.at, theirs.bytes, 1, s);
      }
    }
    if (s < slices) {
      const Part slice = SliceOf(whole, slice_, s);
      for (uint32_t r = 0; is_root && r < ranks_; ++r) {
        const Part theirs = ChunkOf(slice.bytes, r);
        if (r != rank_) Send(r, recv() + slice.at + theirs.at, theirs.bytes, 0, s);
      }
      const Part mine = ChunkOf(slice.bytes, rank_);
      if (!is_root) Receive(call_.root, recv() + slice.at + mine.at, mine.bytes, 0, s);
    }
    ANYACL_RETURN_IF_ERROR(Flush());
  }
  return Status();
}

// Part r of what is sent goes to rank r, part r of what is received comes from it. Ranks without parts take no part.
Status Performance::ExchangeParts() {
  for (uint32_t r = 0; r < ranks_; ++r) {
    const bool sends = !call_.send_parts.empty(), receives = !call_.recv_parts.empty();
    const bool to_me = receives && (call_.kind != Kind::kScatter || r == call_.root);
    if (r == rank_) {
      if (sends && to_me) Copy(recv() + call_.recv_parts[r].at, send() + call_.send_parts[r].at, call_.recv_parts[r].bytes);
      continue;
    }
    if (sends) Send(r, send() + call_.send_parts[r].at, call_.send_parts[r].bytes);
    if (to_me) Receive(r, recv() + call_.recv_parts[r].at, call_.recv_parts[r].bytes);
  }
  return Flush();
}

Status Performance::ExchangeItems() {
  std::vector<const Call::Item*> to_self;
  for (const Call::Item& item : call_.items) {
    if (item.peer == rank_) {
      if (item.sends) to_self.push_back(&item);
      continue;
    }
    number_ = item.sends ? channel_.sent[item.peer]++ : channel_.received[item.peer]++;
    Message message{item.peer, HeaderOf(item.bytes, 0, 0), item.buffer};
    message.header.dtype = static_cast<uint8_t>(item.dtype);
    (item.sends ? out_ : in_).push_back(message);
  }
  size_t next = 0;
  for (const Call::Item& item : call_.items) {
    if (item.peer == rank_ && !item.sends) Copy(item.buffer, to_self[next++]->buffer, item.bytes);
  }
  return Flush();
}

Status Performance::Run() {
  if (call_.kind == Kind::kSend || call_.kind == Kind::kSubComm) return ExchangeItems();
  number_ = channel_.collectives++;
  switch (call_.kind) {
    case Kind::kAllReduce:
    case Kind::kReduce:
      return ReduceAll();
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      return ReduceParts();
    case Kind::kBroadcast:
      return Broadcast();
    default:
      return ExchangeParts();
  }
}

// --- memory that the host cannot touch ---

// A buffer of the device in memory of the host, for as long as a call runs.
class HostCopy {
 public:
  HostCopy(DeviceMemory& memory, int device, void* buffer, uint64_t bytes)
      : memory_(memory), launch_{nullptr, device}, buffer_(buffer), bytes_(bytes), copy_(new std::byte[bytes]) {}

  void* get() const { return copy_.get(); }
  Status Fetch() const { return bytes_ ? memory_.Copy({copy_.get(), bytes_, buffer_, bytes_, bytes_, 1}, launch_) : Status(); }
  Status PutBack() const { return bytes_ ? memory_.Copy({buffer_, bytes_, copy_.get(), bytes_, bytes_, 1}, launch_) : Status(); }

 private:
  DeviceMemory& memory_;
  const Launch launch_;
  void* const buffer_;
  const uint64_t bytes_;
  const std::unique_ptr<std::byte[]> copy_;
};

uint64_t Extent(const std::vector<Part>& parts) {
  uint64_t end = 0;
  for (const Part& part : parts) end = std::max(end, part.at + part.bytes);
  return end;
}

Status PerformOnHost(const Call& call, const char* what, uint32_t rank, Transport* transport, Channel* channel,
                     const Patience& patience) {
  return Performance(call, what, rank, transport, channel, patience).Run();
}

// What is received is fetched first, too: parts of it may stay as they are.
Status PerformOnCopies(Call call, const char* what, uint32_t rank, Transport* transport, Channel* channel,
                       const Patience& patience) {
  DeviceMemory& memory = *call.memory;
  const auto fetched = [&](void* buffer, uint64_t bytes, std::unique_ptr<HostCopy>* copy) -> Status {
    *copy = std::make_unique<HostCopy>(memory, call.device, buffer, bytes);
    return (*copy)->Fetch();
  };
  const auto runtime_problem = [&](const Status& status) { return Problem(HCCL_E_RUNTIME, "{}: {}", what, status.message()); };
  std::unique_ptr<HostCopy> send, recv;
  std::vector<std::unique_ptr<HostCopy>> items(call.items.size());
  Status status = fetched(const_cast<void*>(call.send), call.send ? Extent(call.send_parts) : 0, &send);
  if (status.ok()) status = fetched(call.recv, call.recv ? Extent(call.recv_parts) : 0, &recv);
  for (size_t i = 0; i < items.size() && status.ok(); ++i) {
    status = fetched(call.items[i].buffer, call.items[i].bytes, &items[i]);
    call.items[i].buffer = items[i]->get();
  }
  if (!status.ok()) return runtime_problem(status);
  call.send = send->get();
  call.recv = recv->get();
  ANYACL_RETURN_IF_ERROR(PerformOnHost(call, what, rank, transport, channel, patience));
  status = recv->PutBack();
  for (size_t i = 0; i < items.size() && status.ok(); ++i) {
    if (!call.items[i].sends) status = items[i]->PutBack();
  }
  return status.ok() ? Status() : runtime_problem(status);
}

}  // namespace

Status Perform(const Call& call, const char* what, uint32_t rank, Transport* transport, Channel* channel,
               const Patience& patience) {
  if (!call.memory) return PerformOnHost(call, what, rank, transport, channel, patience);
  bool taken = false;
  if (transport) {
    ANYACL_RETURN_IF_ERROR(channel->device_path.Perform(call, what, rank, channel->ranks, *transport, patience, &taken));
  }
  return taken ? Status() : PerformOnCopies(call, what, rank, transport, channel, patience);
}

}  // namespace anyacl::hccl
