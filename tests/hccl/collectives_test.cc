// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What collectives compute: every type and operation against an oracle in double or wide integers, the same bits on every
// rank, in place and not, counts that are nothing, little and much.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "ranks.h"
#include "sanitized.h"

namespace anyacl::hccl_test {
namespace {

using Bytes = std::vector<uint8_t>;

// --- numbers ---

struct Type {
  int dtype;
  size_t size;
  enum { kSigned, kUnsigned, kFloat } kind;
  int digits;  // of a floating-point number, with the hidden one
};
constexpr Type kReducible[] = {
    {HCCL_DATA_TYPE_INT8, 1, Type::kSigned, 0},    {HCCL_DATA_TYPE_INT16, 2, Type::kSigned, 0},
    {HCCL_DATA_TYPE_INT32, 4, Type::kSigned, 0},   {HCCL_DATA_TYPE_INT64, 8, Type::kSigned, 0},
    {HCCL_DATA_TYPE_UINT8, 1, Type::kUnsigned, 0}, {HCCL_DATA_TYPE_UINT16, 2, Type::kUnsigned, 0},
    {HCCL_DATA_TYPE_UINT32, 4, Type::kUnsigned, 0}, {HCCL_DATA_TYPE_UINT64, 8, Type::kUnsigned, 0},
    {HCCL_DATA_TYPE_FP16, 2, Type::kFloat, 11},    {HCCL_DATA_TYPE_BFP16, 2, Type::kFloat, 8},
    {HCCL_DATA_TYPE_FP32, 4, Type::kFloat, 24},    {HCCL_DATA_TYPE_FP64, 8, Type::kFloat, 53},
};

// What a number stands for, from its bits: sign, exponent and fraction by the definition of the formats.
double ValueOf(const Type& type, const uint8_t* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, type.size);
  if (type.size == 8) return std::bit_cast<double>(bits);
  const int fraction_bits = type.digits - 1;
  const int exponent_bits = static_cast<int>(type.size) * 8 - 1 - fraction_bits;
  const uint64_t most = (uint64_t{1} << exponent_bits) - 1;
  const int bias = static_cast<int>(most >> 1);
  const bool negative = bits >> (type.size * 8 - 1);
  const uint64_t exponent = bits >> fraction_bits & most;
  const double fraction = static_cast<double>(bits & ((uint64_t{1} << fraction_bits) - 1));
  double value = std::ldexp(fraction, 1 - bias - fraction_bits);
  if (exponent == most) value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent > 0) value = std::ldexp(fraction + std::ldexp(1.0, fraction_bits), static_cast<int>(exponent) - bias - fraction_bits);
  return negative ? -value : value;
}

// Deterministic numbers of one rank. Floating-point ones lie around 1, so that products stay in range.
Bytes NumbersOf(const Type& type, size_t count, uint32_t rank, uint32_t seed) {
  uint64_t random = seed * 1000003 + rank;
  Bytes bytes(count * type.size);
  for (size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = random ^ random >> 32;  // the low ones alone would repeat
    if (type.kind == Type::kFloat) {
      const int fraction_bits = type.digits - 1;
      const int exponent_bits = static_cast<int>(type.size) * 8 - 1 - fraction_bits;
      const uint64_t bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
      const uint64_t exponent = bias - 1 + (bits >> 62 & 1);  // 0.5 to 2
      bits = (bits & ((uint64_t{1} << fraction_bits) - 1)) | exponent << fraction_bits | (bits >> 63) << (type.size * 8 - 1);
    }
    std::memcpy(bytes.data() + i * type.size, &bits, type.size);
  }
  return bytes;
}

__int128 IntegerAt(const Type& type, const uint8_t* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, type.size);
  const int unused = 64 - 8 * static_cast<int>(type.size);
  if (type.kind == Type::kSigned) return static_cast<int64_t>(bits << unused) >> unused;
  return bits;
}

// Empty when `got` is what the numbers of all ranks give, else what is wrong.
std::string Difference(const Type& type, int op, const std::vector<Bytes>& of_ranks, size_t first, const Bytes& got) {
  for (size_t i = 0; i < got.size() / type.size; ++i) {
    const uint8_t* const at = got.data() + i * type.size;
    const auto source = [&](size_t r) { return of_ranks[r].data() + (first + i) * type.size; };
    bool right = true;
    if (type.kind != Type::kFloat) {
      __int128 want = IntegerAt(type, source(0));
      for (size_t r = 1; r < of_ranks.size(); ++r) {
        const __int128 next = IntegerAt(type, source(r));
        want = op == HCCL_REDUCE_SUM    ? want + next
               : op == HCCL_REDUCE_PROD ? static_cast<__int128>(static_cast<uint64_t>(want) * static_cast<uint64_t>(next))
               : op == HCCL_REDUCE_MAX  ? std::max(want, next)
                                        : std::min(want, next);
      }
      right = std::memcmp(&want, at, type.size) == 0;  // the low bytes: it wraps
    } else {
      // One rounding to `digits` per step of the sum; of 16-bit types 24 digits per step, then one to the type.
      long double want = ValueOf(type, source(0)), magnitudes = std::fabs(want);
      const double per_step = std::ldexp(1.0, -std::max(type.digits, 24));
      for (size_t r = 1; r < of_ranks.size(); ++r) {
        const long double next = ValueOf(type, source(r));
        want = op == HCCL_REDUCE_SUM ? want + next : op == HCCL_REDUCE_PROD ? want * next : op == HCCL_REDUCE_MAX ? std::max(want, next) : std::min(want, next);
        magnitudes = op == HCCL_REDUCE_SUM ? magnitudes + std::fabs(next) : std::fabs(want);
      }
      const long double steps = op < HCCL_REDUCE_MAX ? static_cast<long double>(of_ranks.size() - 1) : 0;
      const bool rounds_once_more = type.digits < 24 && op < HCCL_REDUCE_MAX;
      const long double computed = std::fabs(want) + steps * per_step * magnitudes * 1.01L;
      const long double bound = steps * per_step * magnitudes * 1.01L +
                                (rounds_once_more ? std::ldexp(computed, -type.digits) + std::ldexp(1.0L, -25) : 0);
      right = std::fabs(ValueOf(type, at) - want) <= bound;
    }
    if (!right) return "element " + std::to_string(i) + " of type " + std::to_string(type.dtype) + ", op " + std::to_string(op);
  }
  return "";
}

std::vector<Bytes> NumbersOfAll(const Type& type, size_t count, uint32_t ranks, uint32_t seed) {
  std::vector<Bytes> all(ranks);
  for (uint32_t r = 0; r < ranks; ++r) all[r] = NumbersOf(type, count, r, seed);
  return all;
}

// The same bytes on every rank.
void CheckSameEverywhere(Rank& self, const Bytes& bytes) {
  uint64_t hash = 1469598103934665603u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  Bytes own(8);
  std::memcpy(own.data(), &hash, 8);
  const Buffer send(own), recv(8 * self.ranks);
  CHECK_OK(HcclAllGather(send.at(), recv.at(), 1, HCCL_DATA_TYPE_UINT64, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const Bytes all = recv.Read();
  for (uint32_t r = 0; r < self.ranks; ++r) CHECK_THAT(std::memcmp(all.data() + 8 * r, own.data(), 8) == 0);
}

// Below and above the size from which sums are cut into chunks, and not divisible by the number of ranks.
constexpr size_t kCounts[] = {0, 1, 7, 1001, 20011};

void CheckAllReduce(Rank& self, const Type& type, int op, size_t count, bool in_place) {
  const auto dtype = static_cast<HcclDataType>(type.dtype);
  const std::vector<Bytes> all = NumbersOfAll(type, count, self.ranks, static_cast<uint32_t>(count) + op);
  const Buffer send(all[self.rank]), apart(in_place ? 0 : count * type.size);
  const Buffer& recv = in_place ? send : apart;
  CHECK_OK(HcclAllReduce(send.at(), recv.at(), count, dtype, static_cast<HcclReduceOp>(op), self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const Bytes got = recv.Read();
  const std::string difference = Difference(type, op, all, 0, got);
  CHECK_THAT(difference.empty(), difference);
  if (!in_place) CHECK_THAT(send.Read() == all[self.rank]);
  if (type.kind == Type::kFloat) CheckSameEverywhere(self, got);
}

void CheckReduce(Rank& self, const Type& type, int op, size_t count, uint32_t root) {
  const auto dtype = static_cast<HcclDataType>(type.dtype);
  const std::vector<Bytes> all = NumbersOfAll(type, count, self.ranks, static_cast<uint32_t>(count) + op + 10);
  const Buffer send(all[self.rank]);
  const Buffer recv(Bytes(count * type.size, 0xA5));
  CHECK_OK(HcclReduce(send.at(), recv.at(), count, dtype, static_cast<HcclReduceOp>(op), root, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const Bytes got = recv.Read();
  if (self.rank != root) {
    CHECK_THAT(got == Bytes(got.size(), 0xA5), "the result of another rank was written");
    return;
  }
  const std::string difference = Difference(type, op, all, 0, got);
  CHECK_THAT(difference.empty(), difference);
}

void CheckReduceScatter(Rank& self, const Type& type, int op, size_t count, bool in_place) {
  const auto dtype = static_cast<HcclDataType>(type.dtype);
  const std::vector<Bytes> all = NumbersOfAll(type, count * self.ranks, self.ranks, static_cast<uint32_t>(count) + op + 20);
  const Buffer send(all[self.rank]), apart(count * type.size);
  void* const recv = in_place ? send.at(self.rank * count * type.size) : apart.at();
  CHECK_OK(HcclReduceScatter(send.at(), recv, count, dtype, static_cast<HcclReduceOp>(op), self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const Bytes whole = in_place ? send.Read() : apart.Read();
  const size_t from = in_place ? self.rank * count * type.size : 0;
  const Bytes got(whole.begin() + from, whole.begin() + from + count * type.size);
  const std::string difference = Difference(type, op, all, self.rank * count, got);
  CHECK_THAT(difference.empty(), difference);
}

PROGRAM(Reductions) {
  for (const Type& type : kReducible) {
    for (int op = 0; op < 4; ++op) {
      for (const size_t count : kCounts) {
        const bool takes_long_ones =
            kSanitized ? op == HCCL_REDUCE_SUM && type.dtype == HCCL_DATA_TYPE_FP32 : op == HCCL_REDUCE_SUM || type.size == 4;
        if (count == kCounts[4] && !takes_long_ones) continue;  // enough of them
        CheckAllReduce(self, type, op, count, false);
        CheckAllReduce(self, type, op, count, true);
        CheckReduceScatter(self, type, op, count, op % 2 == 0);
        CheckReduce(self, type, op, count, static_cast<uint32_t>(count + op) % self.ranks);
      }
    }
  }
}

// More than one slice, with a rest.
PROGRAM(LongReductions) {
  const Type& fp32 = kReducible[10];
  const size_t count = 1024 * 1024 + 77;
  CheckAllReduce(self, fp32, HCCL_REDUCE_SUM, count, true);
  CheckReduce(self, fp32, HCCL_REDUCE_SUM, count, self.ranks - 1);
  CheckReduceScatter(self, fp32, HCCL_REDUCE_SUM, count / self.ranks, true);
}

// The definition to the bit: one addition in FLOAT after the other in the order of the ranks, short or long.
PROGRAM(OrderOfRanks) {
  for (const size_t count : {100, 100000}) {
    std::vector<float> want(count, 0), own(count);
    for (uint32_t r = 0; r < self.ranks; ++r) {
      std::mt19937 random(r + 5);
      for (size_t i = 0; i < count; ++i) {
        const float value = std::ldexp(static_cast<float>(random() % 16777216), static_cast<int>(random() % 30) - 15);
        want[i] = r == 0 ? value : want[i] + value;
        if (r == self.rank) own[i] = value;
      }
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(own.data());
    const Buffer buffer(Bytes(bytes, bytes + count * 4));
    CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, self.comm, self.stream));
    CHECK_OK(aclrtSynchronizeStream(self.stream));
    CHECK_THAT(std::memcmp(buffer.Read().data(), want.data(), count * 4) == 0);
  }
}

PROGRAM(NotANumber) {
  for (const int op : {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN}) {
    for (uint32_t where = 0; where < self.ranks; ++where) {
      for (const Type& type : kReducible) {
        if (type.kind != Type::kFloat) continue;
        Bytes own = NumbersOf(type, 3, self.rank, 1);
        if (self.rank == where) std::fill_n(own.begin() + type.size, type.size, 0xff);
        const Buffer buffer(own);
        CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), 3, static_cast<HcclDataType>(type.dtype), static_cast<HcclReduceOp>(op),
                               self.comm, self.stream));
        CHECK_OK(aclrtSynchronizeStream(self.stream));
        const Bytes got = buffer.Read();
        CHECK_THAT(std::isnan(ValueOf(type, got.data() + type.size)));
        CHECK_THAT(!std::isnan(ValueOf(type, got.data())));
      }
    }
  }
}

// --- bytes ---

struct Movable {
  int dtype;
  size_t size;
};
constexpr Movable kMovable[] = {
    {HCCL_DATA_TYPE_INT8, 1},   {HCCL_DATA_TYPE_INT16, 2},   {HCCL_DATA_TYPE_INT32, 4},   {HCCL_DATA_TYPE_FP16, 2},
    {HCCL_DATA_TYPE_FP32, 4},   {HCCL_DATA_TYPE_INT64, 8},   {HCCL_DATA_TYPE_UINT64, 8},  {HCCL_DATA_TYPE_UINT8, 1},
    {HCCL_DATA_TYPE_UINT16, 2}, {HCCL_DATA_TYPE_UINT32, 4},  {HCCL_DATA_TYPE_FP64, 8},    {HCCL_DATA_TYPE_BFP16, 2},
    {HCCL_DATA_TYPE_INT128, 16}, {HCCL_DATA_TYPE_HIF8, 1},   {HCCL_DATA_TYPE_FP8E4M3, 1}, {HCCL_DATA_TYPE_FP8E5M2, 1},
    {HCCL_DATA_TYPE_FP8E8M0, 1},
};

// What rank `from` has for rank `to`.
Bytes Content(size_t bytes, uint32_t from, uint32_t to = 0) {
  uint32_t random = from * 131 + to * 7 + 1;
  Bytes content(bytes);
  for (uint8_t& byte : content) byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  return content;
}

void Append(Bytes* to, const Bytes& more) { to->insert(to->end(), more.begin(), more.end()); }

void CheckAllGather(Rank& self, const Movable& type, size_t count, bool in_place) {
  const size_t bytes = count * type.size;
  const Buffer recv(bytes * self.ranks);
  const Buffer apart(Content(bytes, self.rank));
  if (in_place && bytes) {
    CHECK_OK(aclrtMemcpy(recv.at(self.rank * bytes), bytes, apart.at(), bytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  }
  void* const send = in_place ? recv.at(self.rank * bytes) : apart.at();
  CHECK_OK(HcclAllGather(send, recv.at(), count, static_cast<HcclDataType>(type.dtype), self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  Bytes want;
  for (uint32_t r = 0; r < self.ranks; ++r) Append(&want, Content(bytes, r));
  CHECK_THAT(recv.Read() == want);
}

void CheckBroadcast(Rank& self, const Movable& type, size_t count, uint32_t root) {
  const Buffer buffer(Content(count * type.size, self.rank));
  CHECK_OK(HcclBroadcast(buffer.at(), count, static_cast<HcclDataType>(type.dtype), root, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(buffer.Read() == Content(count * type.size, root));
}

void CheckScatter(Rank& self, const Movable& type, size_t count, uint32_t root, bool in_place) {
  const size_t bytes = count * type.size;
  Bytes all;
  for (uint32_t r = 0; r < self.ranks; ++r) Append(&all, Content(bytes, root, r));
  const Buffer send(self.rank == root ? all : Bytes()), apart(bytes);
  const bool here = in_place && self.rank == root;
  void* const recv = here ? send.at(root * bytes) : apart.at();
  CHECK_OK(HcclScatter(send.at(), recv, count, static_cast<HcclDataType>(type.dtype), root, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(here ? send.Read() == all : apart.Read() == Content(bytes, root, self.rank));
}

void CheckAlltoAll(Rank& self, const Movable& type, size_t count) {
  const size_t bytes = count * type.size;
  Bytes own, want;
  for (uint32_t r = 0; r < self.ranks; ++r) {
    Append(&own, Content(bytes, self.rank, r));
    Append(&want, Content(bytes, r, self.rank));
  }
  const Buffer send(own), recv(want.size());
  const auto dtype = static_cast<HcclDataType>(type.dtype);
  CHECK_OK(HcclAlltoAll(send.at(), count, dtype, recv.at(), count, dtype, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(recv.Read() == want);
}

PROGRAM(Movements) {
  for (const Movable& type : kMovable) {
    for (const size_t count : kCounts) {
      if (count == kCounts[4] && type.size != 2 && type.size != 16) continue;  // enough of them
      const uint32_t root = static_cast<uint32_t>(count + type.size) % self.ranks;
      CheckAllGather(self, type, count, false);
      CheckAllGather(self, type, count, true);
      CheckBroadcast(self, type, count, root);
      CheckScatter(self, type, count, root, count % 2 == 0);
      CheckAlltoAll(self, type, count);
    }
  }
  const size_t two_slices = kSanitized ? 2200003 : 5 * 1024 * 1024 + 3;
  CheckBroadcast(self, kMovable[1], two_slices, self.ranks - 1);
  CheckAllGather(self, kMovable[4], two_slices / 5, true);
}

// --- uneven ---

// How much rank `from` has for rank `to`: also nothing.
uint64_t Uneven(uint32_t from, uint32_t to) { return (from * 5 + to * 3) % 4 * 701 + (from == to ? 2 : 0); }

PROGRAM(UnevenExchanges) {
  constexpr size_t kSize = 4;
  const auto dtype = HCCL_DATA_TYPE_INT32;
  std::vector<uint64_t> out, in, out_at, in_at, matrix;
  Bytes own, want;
  uint64_t sent = 0, received = 0;
  for (uint32_t r = 0; r < self.ranks; ++r) {
    out.push_back(Uneven(self.rank, r));
    in.push_back(Uneven(r, self.rank));
    out_at.push_back(sent);
    in_at.push_back(received);
    sent += out.back();
    received += in.back();
    Append(&own, Content(out.back() * kSize, self.rank, r));
    Append(&want, Content(in.back() * kSize, r, self.rank));
    for (uint32_t to = 0; to < self.ranks; ++to) matrix.push_back(Uneven(r, to));
  }
  const Buffer send(own), recv(want.size()), again(want.size());
  CHECK_OK(HcclAlltoAllV(send.at(), out.data(), out_at.data(), dtype, recv.at(), in.data(), in_at.data(), dtype, self.comm,
                         self.stream));
  CHECK_OK(HcclAlltoAllVC(send.at(), matrix.data(), dtype, again.at(), dtype, self.comm, self.stream));
  std::fill(out.begin(), out.end(), 1u << 30);  // the lists were read
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(recv.Read() == want);
  CHECK_THAT(again.Read() == want);
}

// Parts with gaps between them, which stay as they are.
PROGRAM(UnevenGather) {
  constexpr size_t kSize = 2;
  std::vector<uint64_t> counts, places;
  uint64_t end = 3;
  for (uint32_t r = 0; r < self.ranks; ++r) {
    counts.push_back(r * 401 % 1000);
    places.push_back(end);
    end += counts.back() + 5;
  }
  Bytes want(end * kSize, 0xEE);
  const Buffer recv(want);
  for (uint32_t r = 0; r < self.ranks; ++r) {
    const Bytes part = Content(counts[r] * kSize, r);
    std::copy(part.begin(), part.end(), want.begin() + static_cast<ptrdiff_t>(places[r] * kSize));
  }
  const Buffer send(Content(counts[self.rank] * kSize, self.rank));
  CHECK_OK(HcclAllGatherV(send.at(), counts[self.rank], recv.at(), counts.data(), places.data(), HCCL_DATA_TYPE_FP16,
                          self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(recv.Read() == want);
}

PROGRAM(UnevenReduceScatter) {
  const Type& type = kReducible[9];  // BFP16
  for (const uint64_t scale : {1, kSanitized ? 100 : 1500}) {  // the second in several slices, and not for all ranks as many
    std::vector<uint64_t> counts, places;
    uint64_t end = 2;
    for (uint32_t r = 0; r < self.ranks; ++r) {
      counts.push_back(r * 701 % 1000 * scale);
      places.push_back(end);
      end += counts.back() + 1;
    }
    const std::vector<Bytes> all = NumbersOfAll(type, end, self.ranks, 77);
    const Buffer send(all[self.rank]), recv(counts[self.rank] * 2);
    CHECK_OK(HcclReduceScatterV(send.at(), counts.data(), places.data(), recv.at(), counts[self.rank], HCCL_DATA_TYPE_BFP16,
                                HCCL_REDUCE_SUM, self.comm, self.stream));
    CHECK_OK(aclrtSynchronizeStream(self.stream));
    const std::string difference = Difference(type, HCCL_REDUCE_SUM, all, places[self.rank], recv.Read());
    CHECK_THAT(difference.empty(), difference);
  }
}

// --- one to one ---

PROGRAM(SendsAndReceives) {
  const size_t bytes = 300000;
  const uint32_t next = (self.rank + 1) % self.ranks, before = (self.rank + self.ranks - 1) % self.ranks;
  const Buffer out(Content(bytes, self.rank)), in(bytes), in2(bytes), in3(100);
  // In turn, from rank 0 round to it again.
  if (self.ranks > 1) {
    if (self.rank > 0) CHECK_OK(HcclRecv(in.at(), bytes, HCCL_DATA_TYPE_UINT8, before, self.comm, self.stream));
    CHECK_OK(HcclSend(out.at(), bytes, HCCL_DATA_TYPE_UINT8, next, self.comm, self.stream));
    if (self.rank == 0) CHECK_OK(HcclRecv(in.at(), bytes, HCCL_DATA_TYPE_UINT8, before, self.comm, self.stream));
    CHECK_OK(aclrtSynchronizeStream(self.stream));
    CHECK_THAT(in.Read() == Content(bytes, before));
  }
  // All at once, two messages of which one has another size; with one rank to itself.
  HcclSendRecvItem items[] = {
      {HCCL_SEND, out.at(), bytes, HCCL_DATA_TYPE_UINT8, next},
      {HCCL_RECV, in2.at(), bytes / 4, HCCL_DATA_TYPE_FP32, before},
      {HCCL_SEND, out.at(100), 100, HCCL_DATA_TYPE_UINT8, next},
      {HCCL_RECV, in3.at(), 100, HCCL_DATA_TYPE_UINT8, before},
  };
  items[0].count = bytes / 4;
  items[0].dataType = HCCL_DATA_TYPE_FP32;
  CHECK_OK(HcclBatchSendRecv(items, 4, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  const Bytes theirs = Content(bytes, before);
  CHECK_THAT(in2.Read() == theirs);
  CHECK_THAT(in3.Read() == Bytes(theirs.begin() + 100, theirs.begin() + 200));
  // The same as a group; nothing runs before its end.
  in2.at();
  CHECK_OK(aclrtMemset(in2.at(), bytes, 0, bytes));
  CHECK_OK(HcclGroupStart());
  CHECK_OK(HcclGroupStart());
  CHECK_OK(HcclSend(out.at(), bytes, HCCL_DATA_TYPE_UINT8, next, self.comm, self.stream));
  CHECK_OK(HcclRecv(in2.at(), bytes, HCCL_DATA_TYPE_UINT8, before, self.comm, self.stream));
  CHECK_OK(HcclGroupEnd());
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(in2.Read() == Bytes(bytes, 0));
  CHECK_OK(HcclGroupEnd());
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(in2.Read() == theirs);
  CHECK_CODE(HcclGroupEnd(), HCCL_E_PARA);
}

// --- order and time ---

PROGRAM(ManySmall) {
  const Buffer buffer(Bytes(16, 0));
  std::vector<float> values(4, self.rank == 0 ? 1.0f : 0.0f);
  CHECK_OK(aclrtMemcpy(buffer.at(), 16, values.data(), 16, ACL_MEMCPY_HOST_TO_DEVICE));
  for (int i = 0; i < 1000; ++i) {
    CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, self.comm, self.stream));
  }
  for (int i = 0; i < 4; ++i) {
    CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, self.comm, self.stream));
  }
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_OK(aclrtMemcpy(values.data(), 16, buffer.at(), 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_THAT(values[3] == std::pow(static_cast<float>(self.ranks), 4.0f), std::to_string(values[3]));
}

// A barrier ends when the last has come, and no call waits for it.
PROGRAM(LateRank) {
  const auto late = +[](void*) { usleep(300 * 1000); };
  const double start = Seconds();
  if (self.rank == self.ranks - 1) CHECK_OK(aclrtLaunchHostFunc(self.stream, late, nullptr));
  CHECK_OK(HcclBarrier(self.comm, self.stream));
  CHECK_THAT(Seconds() - start < 0.2, "the call waited");
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_THAT(Seconds() - start > 0.25, "the barrier did not wait for the last rank");
}

// Calls on two streams, whose work is ready in another order on every other rank, run in the order of the calls.
PROGRAM(TwoStreams) {
  aclrtStream other = nullptr;
  CHECK_OK(aclrtCreateStream(&other));
  const auto late = +[](void*) { usleep(20 * 1000); };
  for (int round = 0; round < 5; ++round) {
    const Buffer a(Content(40000, self.rank)), b(Content(100, self.rank));
    CHECK_OK(aclrtLaunchHostFunc(self.rank % 2 ? self.stream : other, late, nullptr));
    CHECK_OK(HcclBroadcast(a.at(), 40000, HCCL_DATA_TYPE_UINT8, 0, self.comm, self.stream));
    CHECK_OK(HcclBroadcast(b.at(), 100, HCCL_DATA_TYPE_UINT8, self.ranks - 1, self.comm, other));
    CHECK_OK(aclrtSynchronizeStream(other));
    CHECK_OK(aclrtSynchronizeStream(self.stream));
    CHECK_THAT(a.Read() == Content(40000, 0));
    CHECK_THAT(b.Read() == Content(100, self.ranks - 1));
  }
  CHECK_OK(aclrtDestroyStream(other));
}

// Recorded once, it runs with every replay.
PROGRAM(Captured) {
  const Buffer buffer(Bytes(4, 0));
  const float one = 1.0f;
  CHECK_OK(aclrtMemcpy(buffer.at(), 4, &one, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  aclmdlRI graph = nullptr;
  CHECK_OK(aclmdlRICaptureBegin(self.stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, self.comm, self.stream));
  CHECK_OK(aclmdlRICaptureEnd(self.stream, &graph));
  for (int i = 0; i < 3; ++i) CHECK_OK(aclmdlRIExecuteAsync(graph, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  float got = 0;
  CHECK_OK(aclrtMemcpy(&got, 4, buffer.at(), 4, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_THAT(got == std::pow(static_cast<float>(self.ranks), 3.0f), std::to_string(got));
  CHECK_OK(aclmdlRIDestroy(graph));
}

// The sum of rank + 1 over all ranks, everywhere.
void CheckLongSum(Rank& self, size_t count) {
  std::vector<float> values(count, static_cast<float>(self.rank + 1));
  const Buffer buffer(count * 4);
  CHECK_OK(aclrtMemcpy(buffer.at(), count * 4, values.data(), count * 4, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(HcclAllReduce(buffer.at(), buffer.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, self.comm, self.stream));
  CHECK_OK(aclrtSynchronizeStream(self.stream));
  CHECK_OK(aclrtMemcpy(values.data(), count * 4, buffer.at(), count * 4, ACL_MEMCPY_DEVICE_TO_HOST));
  const float want = static_cast<float>(self.ranks * (self.ranks + 1) / 2);
  CHECK_THAT(std::count(values.begin(), values.end(), want) == static_cast<ptrdiff_t>(count));
}
PROGRAM(Huge) { CheckLongSum(self, 64 * 1024 * 1024); }
// So many that a slice grows with their number; two slices.
PROGRAM(ManyRanks) {
  CheckLongSum(self, 1300007);
  CheckBroadcast(self, kMovable[4], 1300007, self.ranks - 3);
}

// --- the tests ---

using Shape = std::tuple<As, uint32_t>;
class Ranks : public testing::TestWithParam<Shape> {
 protected:
  static void Go(const char* program) { RunRanks(program, {std::get<0>(GetParam()), std::get<1>(GetParam())}); }
};

TEST_P(Ranks, Reductions) { Go("Reductions"); }
TEST_P(Ranks, LongReductions) { Go("LongReductions"); }
TEST_P(Ranks, OrderOfRanks) { Go("OrderOfRanks"); }
TEST_P(Ranks, NotANumber) { Go("NotANumber"); }
TEST_P(Ranks, Movements) { Go("Movements"); }
TEST_P(Ranks, UnevenExchanges) { Go("UnevenExchanges"); }
TEST_P(Ranks, UnevenGather) { Go("UnevenGather"); }
TEST_P(Ranks, UnevenReduceScatter) { Go("UnevenReduceScatter"); }
TEST_P(Ranks, SendsAndReceives) { Go("SendsAndReceives"); }
TEST_P(Ranks, ManySmall) { Go("ManySmall"); }
TEST_P(Ranks, LateRank) { Go("LateRank"); }
TEST_P(Ranks, TwoStreams) { Go("TwoStreams"); }
TEST_P(Ranks, Captured) { Go("Captured"); }

INSTANTIATE_TEST_SUITE_P(Shapes, Ranks, testing::Combine(testing::Values(As::kThreads, As::kProcesses), testing::Values(1, 2, 3, 5)),
                         [](const testing::TestParamInfo<Shape>& info) {
                           return (std::get<0>(info.param) == As::kThreads ? "Threads" : "Processes") +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(SlowRanks, Huge) {
  if (!with_slow_ones || kSanitized) GTEST_SKIP() << "without --slow, or sanitized";
  RunRanks("Huge", {As::kProcesses, 2});
  RunRanks("Huge", {As::kThreads, 3});
}
// The library that hccl.nccl puts in front counts its calls.
TEST(Nccl, TakesCollectivesWhereAllRanksHaveIt) {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  auto* const calls = library ? static_cast<std::atomic<int>*>(dlsym(library, "fake_nccl_calls")) : nullptr;
  if (!calls) GTEST_SKIP() << "without the NCCL of this test";
  for (const char* program : {"LongReductions", "Movements", "UnevenExchanges"}) {
    const int before = *calls;
    RunRanks(program, {.as = As::kThreads, .ranks = 3});
    EXPECT_GT(*calls, before) << program;
  }
}

TEST(SlowRanks, Many) {
  if (!with_slow_ones || kSanitized) GTEST_SKIP() << "without --slow, or sanitized";
  RunRanks("ManyRanks", {As::kProcesses, 70});
}

}  // namespace
}  // namespace anyacl::hccl_test
