// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "roof.h"

#include <algorithm>
#include <cstdint>

#include "library.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "roof.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace tool {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<uint32_t>;
using Ahead = RoofWay::Ahead;

constexpr size_t kLine = 64;
constexpr size_t kDistance = 2048;  // bytes; kept in the second cache: better than nearer or closer

// kReads arrays in, kWrites arrays out, line by line. `bytes` is a multiple of a line.
template <int kReads, int kWrites, Ahead kAhead, bool kStreaming>
void Move(unsigned char* const* reads, unsigned char* const* writes, size_t begin, size_t bytes) {
  const Tag d;
  const size_t vector = hn::Lanes(d) * sizeof(uint32_t);
  const auto at = [](unsigned char* array, size_t offset)
                      HWY_ATTR { return reinterpret_cast<uint32_t*>(array + offset); };
  const auto step = [&](size_t i) HWY_ATTR {
    auto v = hn::Load(d, at(reads[0], i));
    for (int r = 1; r < kReads; ++r) v = hn::Or(v, hn::Load(d, at(reads[r], i)));
    for (int w = 0; w < kWrites; ++w) {
      if constexpr (kStreaming) {
        hn::Stream(v, d, at(writes[w], i));
      } else {
        hn::Store(v, d, at(writes[w], i));
      }
    }
  };
  for (size_t i = begin; i < begin + bytes; i += kLine) {
    if constexpr (kAhead != Ahead::kNot) {
      constexpr int kLocality = kAhead == Ahead::kKept ? 2 : 0;
      for (int r = 0; r < kReads; ++r) __builtin_prefetch(reads[r] + i + kDistance, 0, kLocality);
    }
    for (size_t offset = 0; offset < kLine; offset += vector) step(i + offset);
  }
  if constexpr (kStreaming) hwy::FlushStream();
}

template <int kReads, int kWrites, Ahead kAhead>
void MoveOf(const RoofWay& way, unsigned char* const* reads, unsigned char* const* writes,
            size_t begin, size_t bytes) {
  way.streaming ? Move<kReads, kWrites, kAhead, true>(reads, writes, begin, bytes)
                : Move<kReads, kWrites, kAhead, false>(reads, writes, begin, bytes);
}

template <int kReads, int kWrites>
void MoveOf(const RoofWay& way, unsigned char* const* reads, unsigned char* const* writes,
            size_t begin, size_t bytes) {
  switch (way.ahead) {
    case Ahead::kNot:
      return MoveOf<kReads, kWrites, Ahead::kNot>(way, reads, writes, begin, bytes);
    case Ahead::kKept:
      return MoveOf<kReads, kWrites, Ahead::kKept>(way, reads, writes, begin, bytes);
    case Ahead::kOnce:
      return MoveOf<kReads, kWrites, Ahead::kOnce>(way, reads, writes, begin, bytes);
  }
}

template <int kReads>
void MoveOf(const RoofWay& way, unsigned char* const* reads, unsigned char* const* writes,
            int write_count, size_t begin, size_t bytes) {
  switch (write_count) {
    case 1:
      return MoveOf<kReads, 1>(way, reads, writes, begin, bytes);
    case 2:
      return MoveOf<kReads, 2>(way, reads, writes, begin, bytes);
    case 3:
      return MoveOf<kReads, 3>(way, reads, writes, begin, bytes);
    default:
      return MoveOf<kReads, 4>(way, reads, writes, begin, bytes);
  }
}

void MoveAny(const RoofWay& way, unsigned char* const* reads, int read_count,
             unsigned char* const* writes, int write_count, size_t begin, size_t bytes) {
  switch (read_count) {
    case 1:
      return MoveOf<1>(way, reads, writes, write_count, begin, bytes);
    case 2:
      return MoveOf<2>(way, reads, writes, write_count, begin, bytes);
    case 3:
      return MoveOf<3>(way, reads, writes, write_count, begin, bytes);
    default:
      return MoveOf<4>(way, reads, writes, write_count, begin, bytes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tool
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::tool {
namespace {

HWY_EXPORT(MoveAny);

constexpr size_t kLine = 64;
constexpr size_t kMaxArrays = 4;
constexpr size_t kFarShorter = 32;  // such an array does not count: under 3 % of the longest

size_t WholeLines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

size_t Longest(const std::vector<Stretch>& arrays) {
  size_t longest = 0;
  for (const Stretch& array : arrays) longest = std::max(longest, array.bytes);
  return longest;
}

// The arrays cut into pieces of one length, as many as the loops above take.
std::vector<unsigned char*> Pieces(const std::vector<Stretch>& arrays, size_t length) {
  std::vector<unsigned char*> pieces;
  for (const Stretch& array : arrays) {
    for (size_t at = 0; at + length <= WholeLines(array.bytes); at += length) {
      if (pieces.size() < kMaxArrays) pieces.push_back(array.data + at);
    }
  }
  return pieces;
}

}  // namespace

Roof::Roof(std::vector<Stretch> reads, std::vector<Stretch> writes) {
  const size_t longest = std::max(Longest(reads), Longest(writes));
  length_ = longest;
  const auto is_short = [&](const Stretch& array) { return array.bytes * kFarShorter < longest; };
  for (std::vector<Stretch>* arrays : {&reads, &writes}) {
    std::erase_if(*arrays, is_short);
    for (const Stretch& array : *arrays) length_ = std::min(length_, array.bytes);
  }
  length_ = WholeLines(length_);
  reads_ = Pieces(reads, length_);
  writes_ = Pieces(writes, length_);
}

size_t Roof::bytes() const { return (reads_.size() + writes_.size()) * length_; }

MovePass Roof::DevicePass() const {
  static_assert(kMaxArrays <= MovePass::kMaxArrays);
  MovePass pass{};
  for (unsigned char* array : reads_) pass.reads[pass.read_count++] = array;
  for (unsigned char* array : writes_) pass.writes[pass.write_count++] = array;
  pass.bytes = length_;
  return pass;
}

std::vector<RoofWay> Roof::Ways() const {
  const size_t share = WholeLines(length_ / Library().threads() + 1);  // one task per thread
  std::vector<size_t> tasks = {0};
  for (const size_t bytes : {size_t{32} << 10, size_t{128} << 10, size_t{1} << 20, share}) {
    if (bytes < length_) tasks.push_back(bytes);
  }
  if (tasks.size() > 1 && Library().threads() > 1 && length_ > (size_t{4} << 20))
    tasks.erase(tasks.begin());
  std::vector<RoofWay> ways;
  for (const size_t task : tasks) {
    for (const auto ahead : {RoofWay::Ahead::kNot, RoofWay::Ahead::kKept, RoofWay::Ahead::kOnce}) {
      ways.push_back({false, ahead, task});
      ways.push_back({true, ahead, task});
    }
  }
  return ways;
}

void Roof::Pass(const RoofWay& way) const {
  struct Context {
    const Roof& roof;
    const RoofWay& way;
    decltype(&HWY_DYNAMIC_DISPATCH(MoveAny)) move;
    size_t task;
  };
  Context context{*this, way, &HWY_DYNAMIC_DISPATCH(MoveAny),
                  way.task_bytes ? way.task_bytes : length_};
  const auto run = [](void* opaque, int64_t index) {
    const Context& c = *static_cast<Context*>(opaque);
    const size_t begin = static_cast<size_t>(index) * c.task;
    c.move(c.way, c.roof.reads_.data(), static_cast<int>(c.roof.reads_.size()),
           c.roof.writes_.data(), static_cast<int>(c.roof.writes_.size()), begin,
           std::min(c.task, c.roof.length_ - begin));
  };
  const int64_t tasks = static_cast<int64_t>((length_ + context.task - 1) / context.task);
  if (tasks == 1) return run(&context, 0);
  Library().run_tasks(tasks, run, &context);
}

}  // namespace anyacl::tool
#endif  // HWY_ONCE
