// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GroupNormBackward on the CPU. Every kernel sums a group first and then computes its dx from a
// second read that should still be in a cache:
//
//   flat           short channels: vectors run across the channels of a group, or across groups
//   planes         long channels: vectors run along a channel; while dx is streamed the next group
//                  is summed
//   channels_last  vectors run across the channels of a row
//
// Determinism. Elements are summed in float over pieces whose borders depend on C, HxW and group
// alone, and the pieces are added in double, in order: neither the number of threads nor the batch
// around a sample changes a bit of its sums or of its dx. dgamma and dbeta add the samples of a
// block in float and the blocks in double, in order; the blocks depend on the shape.
#include "ops/norm/group_norm_backward.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_ONCE_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_ONCE_
namespace anyacl::cpu {
namespace {

using Params = GroupNormBackwardParams;

inline constexpr int64_t kChunk = 4096;     // elements of a channel that are summed in float
inline constexpr int64_t kPiece = 1 << 16;  // elements of a group that one thread takes at a time
inline constexpr int64_t kChunkRows = 256;  // rows of channels-last memory, likewise
inline constexpr int64_t kPad = 64;         // lanes of the widest vector there is

// How a call is cut up and where its sums lie.
struct Work {
  int64_t channels;  // of a group
  int64_t size;      // elements of a group
  int64_t block;     // samples that share one row of sums
  int64_t blocks;
  int64_t width;             // floats in a row of sums, once for db and once for ds
  float* sums;               // [blocks][2][width]; null: neither dgamma nor dbeta is wanted
  float* partial;            // sums of chunks, where all threads share a group
  bool stream;               // dx bypasses the caches
  bool two_groups_in_cache;  // of a call whose threads share groups

  float* Db(int64_t b) const { return sums + b * 2 * width; }
  float* Ds(int64_t b) const { return Db(b) + width; }

  // flat: gamma of every position of a sample.
  float* gamma;

  // channels_last: `rows` rows of memory are taken as one of `row` elements, so that it fills some
  // vectors.
  int64_t rows;
  int64_t row;
  int64_t chunks;          // of a sample
  unsigned char* samples;  // memory for the sample in work, per block
};

struct Sums {
  double db = 0;
  double ds = 0;
};

// c1 and c2 of a group.
struct Means {
  float c1;
  float c2;
};

template <class T>
T LoadAny(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const T*>(data) + i, sizeof(T));
  return value;
}

inline float Parameter(const Params& p, const void* data, int64_t i) {
  if (p.param_dtype == DType::kF32) return LoadAny<float>(data, i);
  if (p.param_dtype == DType::kF16) return static_cast<float>(LoadAny<Half>(data, i));
  return static_cast<float>(LoadAny<BFloat16>(data, i));
}

inline float Gamma(const Params& p, int64_t c) { return p.gamma ? Parameter(p, p.gamma, c) : 1.0f; }

template <class T>
void StoreAny(T value, void* data, int64_t i) {
  std::memcpy(static_cast<T*>(data) + i, &value, sizeof(T));
}

inline void SetParameter(const Params& p, void* data, int64_t c, double value) {
  if (!data) return;
  if (p.param_dtype == DType::kF32) return StoreAny(static_cast<float>(value), data, c);
  if (p.param_dtype == DType::kF16) return StoreAny(Half(value), data, c);
  StoreAny(BFloat16(value), data, c);
}

// The sums of one channel of one sample: into those of its block and of its group.
inline void AddChannel(const Params& p, const Work& w, int64_t n, int64_t c, Sums channel,
                       Sums* group) {
  const float gamma = Gamma(p, c);
  group->db += gamma * channel.db;
  group->ds += gamma * channel.ds;
  if (!w.sums) return;
  float& db = w.Db(n / w.block)[c];
  float& ds = w.Ds(n / w.block)[c];
  const bool first = n % w.block == 0;
  db = static_cast<float>(first ? channel.db : db + channel.db);
  ds = static_cast<float>(first ? channel.ds : ds + channel.ds);
}

inline Means MeansOf(const Work& w, const Sums& group) {
  const double size = static_cast<double>(w.size);
  return {static_cast<float>(group.db / size), static_cast<float>(group.ds / size)};
}

// The part of a group that one thread takes when all threads share it: channels [channel, channel +
// count), of each the elements [begin, end).
struct Piece {
  int64_t channel, count, begin, end;
};

inline int64_t PiecesOfGroup(const Params& p, const Work& w) {
  if (p.hxw >= kPiece) return w.channels * CeilDiv(p.hxw, kPiece);
  return CeilDiv(w.channels, kPiece / p.hxw);
}

inline Piece PieceOfGroup(const Params& p, const Work& w, int64_t i) {
  if (p.hxw >= kPiece) {
    const int64_t per_channel = CeilDiv(p.hxw, kPiece);
    const int64_t begin = i % per_channel * kPiece;
    return {i / per_channel, 1, begin, std::min(begin + kPiece, p.hxw)};
  }
  const int64_t count = kPiece / p.hxw;
  return {i * count, std::min(count, w.channels - i * count), 0, p.hxw};
}

// The memory channels_last needs for the sample in work. Rows are padded: whole vectors may be
// read.
struct SampleMemory {
  static int64_t Stride(const Work& w) { return (w.row + kPad + 15) / 16 * 16; }
  static int64_t Bytes(const Work& w) {
    return Stride(w) * static_cast<int64_t>(2 * sizeof(double) + 7 * sizeof(float));
  }
  SampleMemory(const Work& w, int64_t block) {
    const int64_t stride = Stride(w);
    total = reinterpret_cast<double*>(w.samples + block * Bytes(w));
    chunk = reinterpret_cast<float*>(total + 2 * stride);
    mean = chunk + 2 * stride;
    rstd = mean + stride;
    gamma = rstd + stride;
    c1 = gamma + stride;
    c2 = c1 + stride;
  }
  double* total;  // db, then ds one stride behind it, as in chunk
  float* chunk;
  float *mean, *rstd, *gamma, *c1, *c2;  // of every position of a row
};

}  // namespace
}  // namespace anyacl::cpu
#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/group_norm_backward.cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {  // other operators have functions of the same names

template <class T>
HWY_INLINE const T* In(const void* data) {
  return static_cast<const T*>(data);
}

// ---- The last vector of `count` elements ----
//
// It ends with the last element and overlaps the vector before it; when there are fewer elements
// than lanes it starts with the first one and goes through a buffer. Nothing outside the elements
// is touched.

HWY_INLINE int64_t LastAt(int64_t count) { return std::max<int64_t>(count - LaneCount(), 0); }

// The lanes whose elements no vector before had; `rest` of them.
HWY_INLINE hn::Mask<F32> LastMask(int64_t count, int64_t rest) {
  const F32 d;
  const int64_t lanes = LaneCount();
  if (count < lanes) return hn::FirstN(d, static_cast<size_t>(rest));
  return hn::Not(hn::FirstN(d, static_cast<size_t>(lanes - rest)));
}

template <class T>
HWY_INLINE VF LoadLast(const T* p, int64_t count) {
  return count >= LaneCount() ? Load1(p + count - LaneCount()) : LoadFirst(p, count);
}

template <class T>
HWY_INLINE void StoreLast(VF v, T* p, int64_t count) {
  count >= LaneCount() ? Store1(v, p + count - LaneCount()) : StoreFirst(v, p, count);
}

// ---- dx of a range ----

HWY_INLINE VF Normal(VF x, VF mean, VF rstd) { return hn::Mul(hn::Sub(x, mean), rstd); }

HWY_INLINE VF Gradient(VF g, VF xhat, VF gamma, VF c1, VF c2, VF rstd) {
  return hn::Mul(rstd, hn::MulAdd(gamma, g, hn::NegMulSub(xhat, c2, c1)));
}

// Where the coefficients of an element come from. kInOrder: they depend on its position.
struct ChannelCoefficients {
  static constexpr bool kInOrder = false;
  float mean, rstd, gamma;
  Means means;

  ChannelCoefficients From(int64_t) const { return *this; }
  HWY_INLINE VF At(int64_t, VF g, VF x) const {
    const F32 d;
    const VF r = hn::Set(d, rstd);
    return Gradient(g, Normal(x, hn::Set(d, mean), r), hn::Set(d, gamma), hn::Set(d, means.c1),
                    hn::Set(d, means.c2), r);
  }
};

// The same with the constants multiplied out: three instructions instead of five. Worth it where no
// product of theirs leaves the range of numbers that float keeps exactly.
struct FoldedCoefficients {
  static constexpr bool kInOrder = false;
  float mean, scale, slope, shift;

  explicit FoldedCoefficients(const ChannelCoefficients& f)
      : mean(f.mean),
        scale(f.rstd * f.gamma),
        slope(f.rstd * f.rstd * f.means.c2),
        shift(-f.rstd * f.means.c1) {}

  bool IsSafe(float rstd) const {
    return InRange(rstd) && InRange(scale) && InRange(slope) && InRange(shift);
  }
  FoldedCoefficients From(int64_t) const { return *this; }
  HWY_INLINE VF At(int64_t, VF g, VF x) const {
    const F32 d;
    const VF centred = hn::Sub(x, hn::Set(d, mean));
    const VF rest = hn::NegMulAdd(centred, hn::Set(d, slope), hn::Set(d, shift));
    return hn::MulAdd(hn::Set(d, scale), g, rest);
  }

 private:
  static bool InRange(float v) {
    const float size = std::fabs(v);
    return size == 0.0f || (size >= 0x1p-64f && size <= 0x1p64f);
  }
};

struct GroupCoefficients {
  static constexpr bool kInOrder = true;
  float mean, rstd;
  Means means;
  const float* gamma;

  GroupCoefficients From(int64_t i) const { return {mean, rstd, means, gamma + i}; }
  HWY_INLINE VF At(int64_t i, VF g, VF x) const {
    const F32 d;
    const VF r = hn::Set(d, rstd);
    return Gradient(g, Normal(x, hn::Set(d, mean), r), hn::LoadU(d, gamma + i),
                    hn::Set(d, means.c1), hn::Set(d, means.c2), r);
  }
};

struct RowCoefficients {
  static constexpr bool kInOrder = true;
  const float *mean, *rstd, *gamma, *c1, *c2;

  RowCoefficients From(int64_t i) const { return {mean + i, rstd + i, gamma + i, c1 + i, c2 + i}; }
  HWY_INLINE VF At(int64_t i, VF g, VF x) const {
    const F32 d;
    const VF r = hn::LoadU(d, rstd + i);
    return Gradient(g, Normal(x, hn::LoadU(d, mean + i), r), hn::LoadU(d, gamma + i),
                    hn::LoadU(d, c1 + i), hn::LoadU(d, c2 + i), r);
  }
};

// Pairs in memory order, where Load2 and Stream2 may use an order of their own.
template <class T>
HWY_INLINE void StreamInOrder(VF a, VF b, T* p) {
  Stream2(a, b, p);
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void StreamInOrder(VF a, VF b, BFloat16* p) {
  const auto low = Narrow(hn::ShiftRight<16>(RoundToUpper16(a)));
  const auto high = Narrow(hn::ShiftRight<16>(RoundToUpper16(b)));
  hn::Stream(hn::Combine(Pair16(), high, low), Pair16(), Bits(p));
}
#endif

template <bool in_order, class T>
HWY_INLINE void LoadPair(const T* p, VF& a, VF& b) {
  if constexpr (in_order) {
    a = Load1(p);
    b = Load1(p + LaneCount());
  } else {
    Load2(p, a, b);
  }
}

template <bool stream, class T>
HWY_INLINE void StoreAsLoaded(VF a, VF b, T* p) {
  if constexpr (stream) {
    Stream2(a, b, p);
  } else {
    Store2(a, b, p);
  }
}

template <bool in_order, bool stream, class T>
HWY_INLINE void StorePair(VF a, VF b, T* p) {
  if constexpr (!in_order) {
    StoreAsLoaded<stream>(a, b, p);
  } else if constexpr (stream) {
    StreamInOrder(a, b, p);
  } else {
    Store1(a, p);
    Store1(b, p + LaneCount());
  }
}

// Whole pairs of vectors; gives the number of elements done.
template <bool stream, class T, class Coefficients>
HWY_INLINE int64_t GradientPairs(const T* dy, const T* x, T* dx, int64_t count, Coefficients f) {
  constexpr bool in_order = Coefficients::kInOrder;
  const int64_t step = static_cast<int64_t>(PairLanes());
  int64_t i = 0;
  for (; i + step <= count; i += step) {
    VF g0, g1, x0, x1;
    if constexpr (stream) {
      FetchStream(dy + i, step);
      FetchStream(x + i, step);
    }
    LoadPair<in_order>(dy + i, g0, g1);
    LoadPair<in_order>(x + i, x0, x1);
    StorePair<in_order, stream>(f.At(i, g0, x0), f.At(i + LaneCount(), g1, x1), dx + i);
  }
  return i;
}

template <class T, class Coefficients>
void PlainGradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f) {
  const int64_t lanes = LaneCount();
  int64_t i = GradientPairs<false>(dy, x, dx, count, f);
  for (; i + lanes <= count; i += lanes) {  // at most once
    Store1(f.At(i, Load1(dy + i), Load1(x + i)), dx + i);
  }
  if (i < count) StoreLast(f.At(LastAt(count), LoadLast(dy, count), LoadLast(x, count)), dx, count);
}

template <class T, class Coefficients>
void StreamedGradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f) {
  SplitAtLines(
      dx, count,
      [&](int64_t i, int64_t n) HWY_ATTR { PlainGradients(dy + i, x + i, dx + i, n, f.From(i)); },
      [&](int64_t i, int64_t n)
          HWY_ATTR { GradientPairs<true>(dy + i, x + i, dx + i, n, f.From(i)); });
}

template <class T, class Coefficients>
HWY_INLINE void Gradients(const T* dy, const T* x, T* dx, int64_t count, Coefficients f,
                          bool stream) {
  stream ? StreamedGradients(dy, x, dx, count, f) : PlainGradients(dy, x, dx, count, f);
}

// ---- planes ----

struct ChunkSums {
  float db, ds;
};

// At most kChunk elements of one channel. Without products only db is computed, to the same bits.
// meanwhile(i) is called for every i that starts four vectors.
template <bool products, class T, class Meanwhile>
HWY_INLINE ChunkSums SumChunk(const T* dy, const T* x, int64_t count, float mean, float rstd,
                              const Meanwhile& meanwhile) {
  const F32 d;
  const int64_t lanes = LaneCount();
  const int64_t pair = 2 * lanes;
  const VF m = hn::Set(d, mean);
  const VF r = hn::Set(d, rstd);
  VF db0 = hn::Zero(d), db1 = db0, db2 = db0, db3 = db0, ds0 = db0, ds1 = db0, ds2 = db0, ds3 = db0;
  int64_t i = 0;
  for (; i + 2 * pair <= count; i += 2 * pair) {
    VF g0, g1, g2, g3;
    meanwhile(i);
    Load2(dy + i, g0, g1);
    Load2(dy + i + pair, g2, g3);
    db0 = hn::Add(db0, g0);
    db1 = hn::Add(db1, g1);
    db2 = hn::Add(db2, g2);
    db3 = hn::Add(db3, g3);
    if constexpr (products) {
      VF x0, x1, x2, x3;
      Load2(x + i, x0, x1);
      Load2(x + i + pair, x2, x3);
      ds0 = hn::MulAdd(g0, Normal(x0, m, r), ds0);
      ds1 = hn::MulAdd(g1, Normal(x1, m, r), ds1);
      ds2 = hn::MulAdd(g2, Normal(x2, m, r), ds2);
      ds3 = hn::MulAdd(g3, Normal(x3, m, r), ds3);
    }
  }
  for (; i + lanes <= count; i += lanes) {  // at most three times
    const VF g = Load1(dy + i);
    db0 = hn::Add(db0, g);
    if constexpr (products) ds0 = hn::MulAdd(g, Normal(Load1(x + i), m, r), ds0);
  }
  if (i < count) {
    const auto mask = LastMask(count, count - i);
    const VF g = LoadLast(dy, count);
    db1 = hn::Add(db1, hn::IfThenElseZero(mask, g));
    if constexpr (products) {
      ds1 = hn::Add(ds1, hn::IfThenElseZero(mask, hn::Mul(g, Normal(LoadLast(x, count), m, r))));
    }
  }
  const VF db = hn::Add(hn::Add(db0, db1), hn::Add(db2, db3));
  const VF ds = hn::Add(hn::Add(ds0, ds1), hn::Add(ds2, ds3));
  return {hn::GetLane(hn::SumOfLanes(d, db)), products ? hn::GetLane(hn::SumOfLanes(d, ds)) : 0.0f};
}

// One group of a row-major call.
template <class T>
struct PlaneGroup {
  PlaneGroup(const Params& params, const Work& work, int64_t sample, int64_t group)
      : p(params), w(work), n(sample), g(group) {
    const int64_t i = n * p.groups + g;
    dy = In<T>(p.dy) + i * w.size;
    x = In<T>(p.x) + i * w.size;
    dx = p.dx ? static_cast<T*>(p.dx) + i * w.size : nullptr;
    mean = Parameter(p, p.mean, i);
    rstd = Parameter(p, p.rstd, i);
  }

  int64_t ChunksOfChannel() const { return CeilDiv(p.hxw, kChunk); }

  // Nothing but sums; lines are called up as by any loop that streams through memory.
  ChunkSums Chunk(int64_t channel, int64_t chunk) const {
    const int64_t begin = chunk * kChunk;
    const int64_t count = std::min(kChunk, p.hxw - begin);
    const int64_t step = 4 * LaneCount();
    const T* const g = dy + channel * p.hxw + begin;
    const T* const v = x + channel * p.hxw + begin;
    if (!p.dx && !p.dgamma) {
      return SumChunk<false>(g, v, count, mean, rstd,
                             [=](int64_t i) HWY_ATTR { FetchStream(g + i, step); });
    }
    return SumChunk<true>(g, v, count, mean, rstd, [=](int64_t i) HWY_ATTR {
      FetchStream(g + i, step);
      FetchStream(v + i, step);
    });
  }

  // The sums of one chunk while dx of the same chunk of another group is streamed.
  template <class Coefficients>
  ChunkSums ChunkBeside(const PlaneGroup& done, const Coefficients& f, int64_t begin,
                        int64_t count) const {
    const int64_t pair = static_cast<int64_t>(PairLanes());
    const T* const g = dy + begin;
    const T* const v = x + begin;
    const T* const done_dy = done.dy + begin;
    const T* const done_x = done.x + begin;
    T* const done_dx = done.dx + begin;
    const ChunkSums sums = SumChunk<true>(g, v, count, mean, rstd, [=](int64_t i) HWY_ATTR {
      constexpr int64_t kFar = 2048 / sizeof(T), kNear = 512 / sizeof(T);
      Fetch(g + i + kFar, 2 * pair);
      Fetch(v + i + kFar, 2 * pair);
      FetchNear(done_dy + i + kNear, 2 * pair);
      FetchNear(done_x + i + kNear, 2 * pair);
      for (int64_t k = i; k < i + 2 * pair; k += pair) {
        VF g0, g1, x0, x1;
        Load2(done_dy + k, g0, g1);
        Load2(done_x + k, x0, x1);
        Stream2(f.At(k, g0, x0), f.At(k, g1, x1), done_dx + k);
      }
    });
    const int64_t whole = count / (2 * pair) * (2 * pair);
    if (whole < count) {
      PlainGradients(done_dy + whole, done_x + whole, done_dx + whole, count - whole, f);
    }
    return sums;
  }

  ChannelCoefficients Coefficients(int64_t channel, Means means) const {
    return {mean, rstd, Gamma(p, g * w.channels + channel), means};
  }

  void AddPartial(int64_t channel, const float* sums, Sums* group) const {
    Sums total;
    for (int64_t k = 0; k < ChunksOfChannel(); ++k) {
      total.db += sums[2 * k];
      total.ds += sums[2 * k + 1];
    }
    AddChannel(p, w, n, g * w.channels + channel, total, group);
  }

  void AddWhole(int64_t channel, Sums* group) const {
    Sums total;
    for (int64_t k = 0; k < ChunksOfChannel(); ++k) {
      const ChunkSums chunk = Chunk(channel, k);
      total.db += chunk.db;
      total.ds += chunk.ds;
    }
    AddChannel(p, w, n, g * w.channels + channel, total, group);
  }

  template <class Coefficients>
  void AddBeside(const PlaneGroup& done, const Coefficients& f, int64_t channel,
                 Sums* group) const {
    Sums total;
    for (int64_t begin = 0; begin < p.hxw; begin += kChunk) {
      const ChunkSums chunk =
          ChunkBeside(done, f, channel * p.hxw + begin, std::min(kChunk, p.hxw - begin));
      total.db += chunk.db;
      total.ds += chunk.ds;
    }
    AddChannel(p, w, n, g * w.channels + channel, total, group);
  }

  // Elements [begin, end) of a channel.
  void WriteDx(int64_t channel, int64_t begin, int64_t end, Means means) const {
    const int64_t at = channel * p.hxw + begin;
    const ChannelCoefficients f = Coefficients(channel, means);
    const FoldedCoefficients folded(f);
    if (folded.IsSafe(rstd)) {
      Gradients(dy + at, x + at, dx + at, end - begin, folded, w.stream);
    } else {
      Gradients(dy + at, x + at, dx + at, end - begin, f, w.stream);
    }
  }

  const Params& p;
  const Work& w;
  int64_t n, g;
  const T* dy;
  const T* x;
  T* dx;
  float mean, rstd;
};

// Then every channel starts and ends with a line, and dx may be streamed without a look at them.
template <class T>
bool HasWholeLines(const Params& p, const Work& w) {
  const T* const dx = static_cast<const T*>(p.dx);
  return w.stream && dx && ElementsToLine(dx) == 0 && ElementsToLine(dx + p.hxw) == 0;
}

// The groups that one thread takes, one after the other. While dx of one is streamed the next one
// is summed, so that the memory has reads and writes to do at any time. Bare loops, time over that
// of loads and stores alone: groups of 164 kB in float 1.47 one read after the other, 1.32 side by
// side; bfloat16 1.74 and 1.70.
template <class T>
class PlaneQueue {
 public:
  PlaneQueue(const Params& p, const Work& w) : p_(p), w_(w), whole_lines_(HasWholeLines<T>(p, w)) {}
  ~PlaneQueue() {
    WriteLast();
    if (w_.stream) EndStream();
  }

  void Add(int64_t n, int64_t g) {
    const PlaneGroup<T> group(p_, w_, n, g);
    Sums sums;
    if (has_last_ && whole_lines_) {
      for (int64_t c = 0; c < w_.channels; ++c) AddBesideLast(group, c, &sums);
    } else {
      WriteLast();
      for (int64_t c = 0; c < w_.channels; ++c) group.AddWhole(c, &sums);
    }
    last_n_ = n;
    last_g_ = g;
    means_ = MeansOf(w_, sums);
    has_last_ = p_.dx != nullptr;
  }

 private:
  void AddBesideLast(const PlaneGroup<T>& group, int64_t c, Sums* sums) const {
    const PlaneGroup<T> last(p_, w_, last_n_, last_g_);
    const ChannelCoefficients f = last.Coefficients(c, means_);
    const FoldedCoefficients folded(f);
    if (folded.IsSafe(last.rstd)) {
      group.AddBeside(last, folded, c, sums);
    } else {
      group.AddBeside(last, f, c, sums);
    }
  }

  // Backwards: what was read last is nearest.
  void WriteLast() {
    if (!has_last_) return;
    const PlaneGroup<T> last(p_, w_, last_n_, last_g_);
    for (int64_t c = w_.channels - 1; c >= 0; --c) {
      for (int64_t begin = (p_.hxw - 1) / kPiece * kPiece; begin >= 0; begin -= kPiece) {
        last.WriteDx(c, begin, std::min(begin + kPiece, p_.hxw), means_);
      }
    }
    has_last_ = false;
  }

  const Params& p_;
  const Work& w_;
  const bool whole_lines_;
  bool has_last_ = false;  // a group whose dx is not written yet
  int64_t last_n_ = 0;
  int64_t last_g_ = 0;
  Means means_{};
};

template <class T>
void PlaneRangeOf(const Params& p, const Work& w, int64_t first, int64_t last) {
  PlaneQueue<T> queue(p, w);
  for (int64_t i = first; i < last; ++i) {
    const int64_t begin = i / p.groups * w.block;
    const int64_t end = std::min(begin + w.block, p.n);
    for (int64_t n = begin; n < end; ++n) queue.Add(n, i % p.groups);
  }
}

// Groups [first, last) of [blocks, groups]: in each all samples of the block.
void PlaneRange(const Params& p, const Work& w, int64_t first, int64_t last) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { PlaneRangeOf<T>(p, w, first, last); });
}

template <class T>
void PlanePieceSums(const PlaneGroup<T>& group, const Piece& piece) {
  const int64_t chunks = group.ChunksOfChannel();
  for (int64_t c = piece.channel; c < piece.channel + piece.count; ++c) {
    for (int64_t k = piece.begin / kChunk; k < CeilDiv(piece.end, kChunk); ++k) {
      const ChunkSums sums = group.Chunk(c, k);
      float* const to = group.w.partial + 2 * (c * chunks + k);
      to[0] = sums.db;
      to[1] = sums.ds;
    }
  }
}

// The same while dx of the same piece of another group is streamed.
template <class T, class Coefficients>
void PlaneChannelBeside(const PlaneGroup<T>& group, const PlaneGroup<T>& done,
                        const Coefficients& f, int64_t channel, const Piece& piece) {
  const int64_t hxw = group.p.hxw;
  float* const to = group.w.partial + 2 * channel * group.ChunksOfChannel();
  for (int64_t begin = piece.begin; begin < piece.end; begin += kChunk) {
    const int64_t count = std::min(kChunk, piece.end - begin);
    const ChunkSums sums = group.ChunkBeside(done, f, channel * hxw + begin, count);
    to[2 * (begin / kChunk)] = sums.db;
    to[2 * (begin / kChunk) + 1] = sums.ds;
  }
}

template <class T>
void PlanePieceBeside(const PlaneGroup<T>& group, const PlaneGroup<T>& done, Means means,
                      const Piece& piece) {
  for (int64_t c = piece.channel; c < piece.channel + piece.count; ++c) {
    const ChannelCoefficients f = done.Coefficients(c, means);
    const FoldedCoefficients folded(f);
    if (folded.IsSafe(done.rstd)) {
      PlaneChannelBeside(group, done, folded, c, piece);
    } else {
      PlaneChannelBeside(group, done, f, c, piece);
    }
  }
  EndStream();
}

// Backwards: what was read last is nearest.
template <class T>
void WriteShared(const PlaneGroup<T>& group, Means means) {
  const Params& p = group.p;
  const Work& w = group.w;
  const int64_t pieces = PiecesOfGroup(p, w);
  ParallelFor(pieces, [&](int64_t i) {
    const Piece piece = PieceOfGroup(p, w, pieces - 1 - i);
    for (int64_t c = piece.channel + piece.count - 1; c >= piece.channel; --c) {
      group.WriteDx(c, piece.begin, piece.end, means);
    }
    if (w.stream) EndStream();
  });
}

template <class T>
Means MeansOfPartial(const PlaneGroup<T>& group) {
  Sums sums;
  for (int64_t c = 0; c < group.w.channels; ++c) {
    group.AddPartial(c, group.w.partial + 2 * c * group.ChunksOfChannel(), &sums);
  }
  return MeansOf(group.w, sums);
}

template <class T>
void SharedPlanesOf(const Params& p, const Work& w) {
  const int64_t pieces = PiecesOfGroup(p, w);
  const bool beside = w.two_groups_in_cache && HasWholeLines<T>(p, w);
  Means means{};
  for (int64_t i = 0; i < p.n * p.groups; ++i) {
    const PlaneGroup<T> group(p, w, i / p.groups, i % p.groups);
    if (beside && i > 0) {
      const PlaneGroup<T> done(p, w, (i - 1) / p.groups, (i - 1) % p.groups);
      ParallelFor(pieces,
                  [&](int64_t k) { PlanePieceBeside(group, done, means, PieceOfGroup(p, w, k)); });
    } else {
      ParallelFor(pieces, [&](int64_t k) { PlanePieceSums(group, PieceOfGroup(p, w, k)); });
    }
    means = MeansOfPartial(group);
    const bool is_last = i + 1 == p.n * p.groups;
    if (p.dx && (!beside || is_last)) WriteShared(group, means);
  }
}

// All groups, each by all threads.
void SharedPlanes(const Params& p, const Work& w) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { SharedPlanesOf<T>(p, w); });
}

// ---- flat: groups longer than a vector ----

// Adds one vector to the sums of its positions and of its group.
HWY_INLINE void AddVector(VF g, VF product, VF gamma, float* db, float* ds, VF& c1, VF& c2) {
  if (db) {
    Store1(hn::Add(Load1(db), g), db);
    Store1(hn::Add(Load1(ds), product), ds);
  }
  c1 = hn::MulAdd(gamma, g, c1);
  c2 = hn::MulAdd(gamma, product, c2);
}

// At most kChunk positions. db is null when nobody wants the sums of positions.
template <class T>
HWY_INLINE ChunkSums SumPositions(const T* dy, const T* x, int64_t count, float mean, float rstd,
                                  const float* gamma, float* db, float* ds) {
  const F32 d;
  const int64_t lanes = LaneCount();
  const VF m = hn::Set(d, mean);
  const VF r = hn::Set(d, rstd);
  const auto from = [db](float* sums, int64_t i) { return db ? sums + i : nullptr; };
  VF c1 = hn::Zero(d), c2 = c1, e1 = c1, e2 = c1;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const VF g0 = Load1(dy + i);
    const VF g1 = Load1(dy + i + lanes);
    const VF h0 = hn::Mul(g0, Normal(Load1(x + i), m, r));
    const VF h1 = hn::Mul(g1, Normal(Load1(x + i + lanes), m, r));
    AddVector(g0, h0, Load1(gamma + i), from(db, i), from(ds, i), c1, c2);
    AddVector(g1, h1, Load1(gamma + i + lanes), from(db, i + lanes), from(ds, i + lanes), e1, e2);
  }
  for (; i + lanes <= count; i += lanes) {  // at most once
    const VF g = Load1(dy + i);
    AddVector(g, hn::Mul(g, Normal(Load1(x + i), m, r)), Load1(gamma + i), from(db, i), from(ds, i),
              c1, c2);
  }
  if (i < count) {
    const auto mask = LastMask(count, count - i);
    const int64_t at = LastAt(count);
    const VF g = hn::IfThenElseZero(mask, LoadLast(dy, count));
    const VF h = hn::IfThenElseZero(mask, hn::Mul(g, Normal(LoadLast(x, count), m, r)));
    AddVector(g, h, hn::IfThenElseZero(mask, Load1(gamma + at)), from(db, at), from(ds, at), e1,
              e2);
  }
  return {hn::GetLane(hn::SumOfLanes(d, hn::Add(c1, e1))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(c2, e2)))};
}

template <class T>
void LongGroup(const Params& p, const Work& w, int64_t n, int64_t g) {
  const int64_t i = n * p.groups + g;
  const T* const dy = In<T>(p.dy) + i * w.size;
  const T* const x = In<T>(p.x) + i * w.size;
  const float mean = Parameter(p, p.mean, i);
  const float rstd = Parameter(p, p.rstd, i);
  const float* const gamma = w.gamma + g * w.size;
  Sums sums;
  for (int64_t at = 0; at < w.size; at += kChunk) {
    const int64_t count = std::min(kChunk, w.size - at);
    const int64_t position = g * w.size + at;
    const ChunkSums chunk = SumPositions(dy + at, x + at, count, mean, rstd, gamma + at,
                                         w.sums ? w.Db(n / w.block) + position : nullptr,
                                         w.sums ? w.Ds(n / w.block) + position : nullptr);
    sums.db += chunk.db;
    sums.ds += chunk.ds;
  }
  if (!p.dx) return;
  const GroupCoefficients f{mean, rstd, MeansOf(w, sums), gamma};
  Gradients(dy, x, static_cast<T*>(p.dx) + i * w.size, w.size, f, w.stream);
}

// ---- flat: several groups in one vector ----

// Moves of lanes for groups of `size` lanes, of which a vector holds whole ones only.
class Lanes {
 public:
  explicit Lanes(int64_t size)
      : size_(static_cast<int>(size)), butterfly_((size & (size - 1)) == 0) {
    const F32 d;
    const I32 di;
    groups_ = LaneCount() / size;
    used_ = groups_ * size;
    const auto lane = hn::Iota(di, 0);
    const VF group = hn::Div(hn::Add(hn::ConvertTo(d, lane), hn::Set(d, 0.5f)),
                             hn::Set(d, static_cast<float>(size)));
    const auto first = hn::Mul(hn::ConvertTo(di, group), hn::Set(di, size_));
    const auto used = hn::Lt(lane, hn::Set(di, static_cast<int>(used_)));
    hn::StoreU(hn::IfThenElseZero(used, hn::ConvertTo(di, group)), di, group_);
    hn::StoreU(hn::IfThenElse(used, first, lane), di, first_);
    // The sum of a window of w lanes becomes one of 2*w, and one more lane where the binary size
    // has a 1.
    int window = 1;
    for (int bit = HighestBit(size_) / 2; bit > 0; bit /= 2) {
      AddStep(window, false);
      window *= 2;
      if ((size_ & bit) == 0) continue;
      AddStep(window, true);
      window += 1;
    }
  }

  int64_t used() const { return used_; }
  int64_t groups() const { return groups_; }
  bool butterfly() const { return butterfly_; }
  int steps() const { return steps_; }
  const int32_t* step(int i) const { return step_[i]; }
  const int32_t* group() const { return group_; }

  // Element i of v to all lanes of group i.
  HWY_INLINE VF Spread(VF v) const {
    return hn::TableLookupLanes(v, hn::SetTableIndices(F32(), group_));
  }

  // In all lanes of a group: the sum of its lanes, added in an order that does not depend on its
  // place.
  HWY_INLINE void Sum(VF& a, VF& b) const {
    const F32 d;
    const VF a1 = a, b1 = b;
    for (int i = 0; i < steps_; ++i) {
      const auto indices = hn::SetTableIndices(d, step_[i]);
      a = hn::Add(a, hn::TableLookupLanes(adds_one_[i] ? a1 : a, indices));
      b = hn::Add(b, hn::TableLookupLanes(adds_one_[i] ? b1 : b, indices));
    }
    if (butterfly_) return;
    const auto first = hn::SetTableIndices(d, first_);
    a = hn::TableLookupLanes(a, first);
    b = hn::TableLookupLanes(b, first);
  }

 private:
  static int HighestBit(int v) {
    int bit = 1;
    while (bit * 2 <= v) bit *= 2;
    return bit;
  }

  // Where the size is a power of two a butterfly, which leaves the same sum in all lanes; else a
  // rotation inside the group. Lanes that are not used stay what they are.
  void AddStep(int by, bool adds_one) {
    const I32 di;
    const auto lane = hn::Iota(di, 0);
    const auto size = hn::Set(di, size_);
    const auto used = hn::Lt(lane, hn::Set(di, static_cast<int>(used_)));
    const auto end = hn::Add(hn::LoadU(di, first_), size);
    const auto moved = hn::Add(lane, hn::Set(di, by));
    const auto rotated = hn::IfThenElse(hn::Lt(moved, end), moved, hn::Sub(moved, size));
    const auto from = butterfly_ ? hn::Xor(lane, hn::Set(di, by)) : rotated;
    hn::StoreU(hn::IfThenElse(used, from, lane), di, step_[steps_]);
    adds_one_[steps_++] = adds_one;
  }

  static constexpr size_t kMost = hn::MaxLanes(F32());
  static constexpr int kMostSteps = 12;  // two per bit of a size of up to 64
  int size_;
  bool butterfly_;
  int64_t groups_;
  int64_t used_;
  int steps_ = 0;
  bool adds_one_[kMostSteps];
  alignas(64) int32_t step_[kMostSteps][kMost];
  alignas(64) int32_t group_[kMost];
  alignas(64) int32_t first_[kMost];
};

// The same for sizes that are powers of two, with the moves in registers: Lanes reads them again
// after every store, as the compiler cannot know what it stored to. 1024x32x1 in groups of 4, one
// thread: 17.1 us with Lanes, 12.1 with this.
template <int steps>
class Butterfly {
 public:
  explicit Butterfly(const Lanes& lanes) : group_(hn::SetTableIndices(F32(), lanes.group())) {
    for (int i = 0; i < steps; ++i) step_[i] = hn::SetTableIndices(F32(), lanes.step(i));
  }

  HWY_INLINE VF Spread(VF v) const { return hn::TableLookupLanes(v, group_); }

  HWY_INLINE void Sum(VF& a, VF& b) const {
    HWY_UNROLL(8)
    for (int i = 0; i < steps; ++i) {
      a = hn::Add(a, hn::TableLookupLanes(a, step_[i]));
      b = hn::Add(b, hn::TableLookupLanes(b, step_[i]));
    }
  }

 private:
  using Indices = decltype(hn::SetTableIndices(F32(), static_cast<const int32_t*>(nullptr)));
  Indices group_;
  Indices step_[steps > 0 ? steps : 1];
};

// dx of the groups in one vector; the products of its elements are handed back for the sums of
// positions. share is 1 / size of a group: a vector division would cost as much as all else.
template <class Moves>
HWY_INLINE VF ShortGroups(const Moves& moves, VF g, VF x, VF means, VF rstds, VF gamma, VF share,
                          VF& product) {
  const VF rstd = moves.Spread(rstds);
  const VF xhat = Normal(x, moves.Spread(means), rstd);
  product = hn::Mul(g, xhat);
  const VF scaled = hn::Mul(gamma, g);
  VF sum1 = scaled;
  VF sum2 = hn::Mul(scaled, xhat);
  moves.Sum(sum1, sum2);
  return hn::Mul(rstd, hn::NegMulAdd(share, hn::MulAdd(xhat, sum2, sum1), scaled));
}

// Where a walk over groups stands that are neighbours in memory. A vector may reach into the next
// sample, then positions behind the first sample are used.
template <class T, class P>
struct ShortCursor {
  const T* dy;
  const T* x;
  T* dx;
  const P* mean;
  const P* rstd;
  int64_t count;  // groups that are left
  int64_t position;

  // By `groups` groups of altogether `elements` elements; `positions` is that modulo a sample.
  HWY_INLINE void Advance(int64_t groups, int64_t elements, int64_t positions, int64_t sample) {
    dy += elements;
    x += elements;
    if (dx) dx += elements;
    mean += groups;
    rstd += groups;
    count -= groups;
    position += positions;
    if (position >= sample) position -= sample;
  }
};

// While as many groups are left as there are lanes: whole vectors may be read and, as later ones
// mend them, written. full: all lanes are used.
template <bool full, class T, class P, class Moves>
HWY_INLINE void WholeVectors(const Lanes& lanes, const Moves& moves, int64_t sample, int64_t size,
                             const float* gamma, float* db, float* ds, ShortCursor<T, P>* cursor) {
  const F32 d;
  const auto used = hn::FirstN(d, static_cast<size_t>(lanes.used()));
  const VF share = hn::Set(d, 1.0f / static_cast<float>(size));
  const int64_t step = lanes.used(), groups = lanes.groups(), advance = step % sample;
  ShortCursor<T, P> c = *cursor;
  for (; c.count >= LaneCount(); c.Advance(groups, step, advance, sample)) {
    const VF g = Load1(c.dy);
    VF product;
    const VF v = ShortGroups(moves, g, Load1(c.x), Load1(c.mean), Load1(c.rstd),
                             Load1(gamma + c.position), share, product);
    if (c.dx) Store1(v, c.dx);
    if (db) {
      const VF kept = full ? g : hn::IfThenElseZero(used, g);
      const VF kept_product = full ? product : hn::IfThenElseZero(used, product);
      Store1(hn::Add(Load1(db + c.position), kept), db + c.position);
      Store1(hn::Add(Load1(ds + c.position), kept_product), ds + c.position);
    }
  }
  *cursor = c;
}

// Calls body with the moves of groups of 2^steps lanes.
template <int steps = 0, class Body>
HWY_INLINE void WithButterfly(const Lanes& lanes, const Body& body) {
  if constexpr ((size_t{1} << steps) <= hn::MaxLanes(F32())) {
    if (lanes.steps() == steps) return body(Butterfly<steps>(lanes));
    WithButterfly<steps + 1>(lanes, body);
  }
}

// Groups [first, first + count) of [n, groups]. Sums of positions are those of block b.
template <class T, class P>
void ShortGroupRange(const Params& p, const Work& w, int64_t b, int64_t first, int64_t count) {
  const Lanes lanes(w.size);
  const int64_t sample = p.c * p.hxw;
  const float* const gamma = w.gamma;
  float* const db = w.sums ? w.Db(b) : nullptr;
  float* const ds = w.sums ? w.Ds(b) : nullptr;
  ShortCursor<T, P> c{In<T>(p.dy) + first * w.size,
                      In<T>(p.x) + first * w.size,
                      p.dx ? static_cast<T*>(p.dx) + first * w.size : nullptr,
                      In<P>(p.mean) + first,
                      In<P>(p.rstd) + first,
                      count,
                      first % p.groups * w.size};
  if (count >= LaneCount() && lanes.butterfly()) {
    WithButterfly(lanes, [&](const auto& moves) HWY_ATTR {
      WholeVectors<true>(lanes, moves, sample, w.size, gamma, db, ds, &c);
    });
  } else {
    WholeVectors<false>(lanes, lanes, sample, w.size, gamma, db, ds, &c);
  }
  const VF share = hn::Set(F32(), 1.0f / static_cast<float>(w.size));
  const int64_t positions = lanes.used() % sample;
  for (; c.count > 0; c.Advance(lanes.groups(), lanes.used(), positions, sample)) {
    const int64_t groups = std::min(lanes.groups(), c.count);
    const int64_t elements = groups * w.size;
    const VF g = LoadFirst(c.dy, elements);
    VF product;
    const VF v = ShortGroups(lanes, g, LoadFirst(c.x, elements), LoadFirst(c.mean, groups),
                             LoadFirst(c.rstd, groups), Load1(gamma + c.position), share, product);
    if (c.dx) StoreFirst(v, c.dx, elements);
    if (!db) continue;
    StoreFirst(hn::Add(LoadFirst(db + c.position, elements), g), db + c.position, elements);
    StoreFirst(hn::Add(LoadFirst(ds + c.position, elements), product), ds + c.position, elements);
  }
}

template <class T>
void ShortGroupRange(const Params& p, const Work& w, int64_t b, int64_t first, int64_t count) {
  if constexpr (sizeof(T) < sizeof(float)) {
    if (p.param_dtype == p.dtype) return ShortGroupRange<T, T>(p, w, b, first, count);
  }
  ShortGroupRange<T, float>(p, w, b, first, count);
}

// Groups [begin, end) of all samples of a block.
template <class T>
void FlatBlock(const Params& p, const Work& w, int64_t b, int64_t begin, int64_t end) {
  const bool is_short = w.size <= LaneCount();
  const bool whole = begin == 0 && end == p.groups;
  const int64_t first = b * w.block;
  const int64_t last = std::min(first + w.block, p.n);
  if (w.sums) {
    // What a vector of short groups reaches behind the sample belongs to whoever has the last
    // group.
    const int64_t places = (end - begin) * w.size + (end == p.groups ? kPad : 0);
    std::memset(w.Db(b) + begin * w.size, 0, places * sizeof(float));
    std::memset(w.Ds(b) + begin * w.size, 0, places * sizeof(float));
  }
  if (is_short && whole) {
    return ShortGroupRange<T>(p, w, b, first * p.groups, (last - first) * p.groups);
  }
  for (int64_t n = first; n < last && is_short; ++n) {
    ShortGroupRange<T>(p, w, b, n * p.groups + begin, end - begin);
  }
  for (int64_t g = begin; g < end && !is_short; ++g) {
    for (int64_t n = first; n < last; ++n) LongGroup<T>(p, w, n, g);
  }
}

template <class T>
void FlatRangeOf(const Params& p, const Work& w, int64_t first, int64_t last) {
  while (first < last) {
    const int64_t b = first / p.groups;
    const int64_t begin = first % p.groups;
    const int64_t end = std::min(p.groups, begin + last - first);
    FlatBlock<T>(p, w, b, begin, end);
    first += end - begin;
  }
}

// Groups [first, last) of [blocks, groups]: in each all samples of the block.
void FlatRange(const Params& p, const Work& w, int64_t first, int64_t last) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { FlatRangeOf<T>(p, w, first, last); });
  if (w.stream) EndStream();
}

// ---- channels_last ----

// Adds `rows` rows of `width` elements to the sums of their positions.
template <int rows, class T>
HWY_INLINE void AddRows(const T* dy, const T* x, int64_t stride, int64_t width,
                        const SampleMemory& s, float* db, float* ds) {
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    const VF mean = Load1(s.mean + i);
    const VF rstd = Load1(s.rstd + i);
    VF g = Load1(dy + i);
    VF product = hn::Mul(g, Normal(Load1(x + i), mean, rstd));
    if constexpr (rows == 2) {
      const VF g1 = Load1(dy + stride + i);
      product = hn::MulAdd(g1, Normal(Load1(x + stride + i), mean, rstd), product);
      g = hn::Add(g, g1);
    }
    Store1(hn::Add(Load1(db + i), g), db + i);
    Store1(hn::Add(Load1(ds + i), product), ds + i);
  }
  if (i == width) return;
  const auto mask = LastMask(width, width - i);
  const int64_t at = LastAt(width);
  for (int row = 0; row < rows; ++row) {
    const VF g = LoadLast(dy + row * stride, width);
    const VF product = hn::Mul(
        g, Normal(LoadLast(x + row * stride, width), Load1(s.mean + at), Load1(s.rstd + at)));
    Store1(hn::Add(Load1(db + at), hn::IfThenElseZero(mask, g)), db + at);
    Store1(hn::Add(Load1(ds + at), hn::IfThenElseZero(mask, product)), ds + at);
  }
}

// One sample of a channels-last call: whole rows of w.row elements and what is left behind the last
// one.
template <class T>
struct LastSample {
  LastSample(const Params& params, const Work& work, int64_t sample)
      : p(params), w(work), n(sample) {
    const int64_t start = n * p.hxw * p.c;
    dy = In<T>(p.dy) + start;
    x = In<T>(p.x) + start;
    dx = p.dx ? static_cast<T*>(p.dx) + start : nullptr;
    whole_rows = p.hxw / w.rows;
    rest = p.hxw % w.rows * p.c;
  }

  bool IsLast(int64_t chunk) const { return chunk == w.chunks - 1; }
  int64_t Begin(int64_t chunk) const { return chunk * kChunkRows; }
  int64_t End(int64_t chunk) const { return std::min(Begin(chunk) + kChunkRows, whole_rows); }

  void SumChunk(int64_t chunk, const SampleMemory& s, float* db, float* ds) const {
    std::memset(db, 0, w.row * sizeof(float));
    std::memset(ds, 0, w.row * sizeof(float));
    int64_t i = Begin(chunk);
    for (; i + 2 <= End(chunk); i += 2)
      AddRows<2>(dy + i * w.row, x + i * w.row, w.row, w.row, s, db, ds);
    if (i < End(chunk)) AddRows<1>(dy + i * w.row, x + i * w.row, 0, w.row, s, db, ds);
    const int64_t end = whole_rows * w.row;
    if (IsLast(chunk) && rest > 0) AddRows<1>(dy + end, x + end, 0, rest, s, db, ds);
  }

  void WriteDx(int64_t chunk, const SampleMemory& s) const {
    const RowCoefficients f{s.mean, s.rstd, s.gamma, s.c1, s.c2};
    const int64_t end = whole_rows * w.row;
    if (IsLast(chunk) && rest > 0) PlainGradients(dy + end, x + end, dx + end, rest, f);
    for (int64_t i = End(chunk) - 1; i >= Begin(chunk); --i) {
      Gradients(dy + i * w.row, x + i * w.row, dx + i * w.row, w.row, f, w.stream);
    }
  }

  void SpreadStatistics(const SampleMemory& s) const {
    for (int64_t g = 0; g < p.groups; ++g) {
      std::fill_n(s.mean + g * w.channels, w.channels, Parameter(p, p.mean, n * p.groups + g));
      std::fill_n(s.rstd + g * w.channels, w.channels, Parameter(p, p.rstd, n * p.groups + g));
    }
    Repeat(s.mean);
    Repeat(s.rstd);
  }

  // From the sums of positions to those of channels, blocks and groups, and to coefficients.
  void Finish(const SampleMemory& s) const {
    for (int64_t g = 0; g < p.groups; ++g) {
      Sums group;
      for (int64_t c = g * w.channels; c < (g + 1) * w.channels; ++c) {
        Sums channel;
        for (int64_t i = c; i < w.row; i += p.c) {
          channel.db += s.total[i];
          channel.ds += s.total[i + SampleMemory::Stride(w)];
        }
        AddChannel(p, w, n, c, channel, &group);
        s.gamma[c] = Gamma(p, c);
      }
      const Means means = MeansOf(w, group);
      std::fill_n(s.c1 + g * w.channels, w.channels, means.c1);
      std::fill_n(s.c2 + g * w.channels, w.channels, means.c2);
    }
    for (float* const values : {s.gamma, s.c1, s.c2}) Repeat(values);
  }

  // The first row, of p.c elements, once for each of w.rows.
  void Repeat(float* values) const {
    for (int64_t i = p.c; i < w.row; i += p.c) std::memcpy(values + i, values, p.c * sizeof(float));
  }

  // Adds the sums of one chunk, which follow each other in memory as those of s.total do.
  void AddChunk(const float* chunk, const SampleMemory& s) const {
    using F64 = hn::ScalableTag<double>;
    const F64 d;
    const hn::Rebind<float, F64> half;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < 2 * SampleMemory::Stride(w); i += step) {
      const auto sum =
          hn::Add(hn::LoadU(d, s.total + i), hn::PromoteTo(d, hn::LoadU(half, chunk + i)));
      hn::StoreU(sum, d, s.total + i);
    }
  }

  void ClearTotal(const SampleMemory& s) const {
    std::memset(s.total, 0, 2 * SampleMemory::Stride(w) * sizeof(double));
  }

  const Params& p;
  const Work& w;
  int64_t n;
  const T* dy;
  const T* x;
  T* dx;
  int64_t whole_rows;
  int64_t rest;  // elements
};

template <class T>
void LastBlockOf(const Params& p, const Work& w, int64_t b) {
  const SampleMemory s(w, b);
  float* const ds = s.chunk + SampleMemory::Stride(w);
  std::memset(s.chunk, 0,
              2 * SampleMemory::Stride(w) * sizeof(float));  // its padding is added, too
  for (int64_t n = b * w.block; n < std::min((b + 1) * w.block, p.n); ++n) {
    const LastSample<T> sample(p, w, n);
    sample.SpreadStatistics(s);
    sample.ClearTotal(s);
    for (int64_t k = 0; k < w.chunks; ++k) {
      sample.SumChunk(k, s, s.chunk, ds);
      sample.AddChunk(s.chunk, s);
    }
    sample.Finish(s);
    for (int64_t k = w.chunks - 1; p.dx && k >= 0; --k) sample.WriteDx(k, s);
  }
  if (w.stream) EndStream();
}

// All samples of a block.
void LastBlock(const Params& p, const Work& w, int64_t b) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { LastBlockOf<T>(p, w, b); });
}

template <class T>
void SharedLastOf(const Params& p, const Work& w, int64_t n) {
  const SampleMemory s(w, 0);
  const int64_t stride = SampleMemory::Stride(w);
  const LastSample<T> sample(p, w, n);
  sample.SpreadStatistics(s);
  sample.ClearTotal(s);
  ParallelFor(w.chunks, [&](int64_t k) {
    float* const db = w.partial + k * 2 * stride;
    std::memset(db, 0, 2 * stride * sizeof(float));
    sample.SumChunk(k, s, db, db + stride);
  });
  for (int64_t k = 0; k < w.chunks; ++k) sample.AddChunk(w.partial + k * 2 * stride, s);
  sample.Finish(s);
  if (!p.dx) return;
  ParallelFor(w.chunks, [&](int64_t k) {
    sample.WriteDx(w.chunks - 1 - k, s);
    if (w.stream) EndStream();
  });
}

// One sample by all threads.
void SharedLast(const Params& p, const Work& w, int64_t n) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { SharedLastOf<T>(p, w, n); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(FlatRange);
HWY_EXPORT(PlaneRange);
HWY_EXPORT(SharedPlanes);
HWY_EXPORT(LastBlock);
HWY_EXPORT(SharedLast);

constexpr int64_t kFlatTask = 8 * 1024;  // elements: those of flat take longer than those of kTask
constexpr int64_t kStackBytes = 16 * 1024;

// Short pieces would break too many lines.
constexpr int64_t kStreamPiece = 1024;

// What a thread should find again in its own cache the second time: larger groups are shared by all
// threads.
constexpr int64_t kGroupBytes = 1 << 20;
constexpr int64_t kFewGroups = 16;

int64_t ElementSize(const Params& p) { return static_cast<int64_t>(SizeOf(p.dtype)); }
int64_t InputBytes(const Params& p) { return 2 * ElementSize(p) * p.n * p.c * p.hxw; }
bool IsEmpty(const Params& p) { return p.n == 0 || p.hxw == 0; }
bool IsRowMajor(const Params& p) { return !p.channels_last || p.c == 1 || p.hxw == 1; }

bool Streams(const Params& p, int64_t piece_elements) {
  return InputBytes(p) / 2 * 3 >= stream_bytes && piece_elements * ElementSize(p) >= kStreamPiece;
}

// ---- Which kernel for which shape. N has no say: a sample gives the same bits in any batch. ----

constexpr int64_t kShortChannel = 32;             // from here on a channel fills its vectors
constexpr int64_t kMostPositions = 300 * 1000;    // flat: tables of C*HxW floats stay in 4 MiB
constexpr int64_t kMostChannels = 1 << 18;        // planes: sums of [C] and of chunks stay in 4 MiB
constexpr int64_t kMostLastChannels = 32 * 1024;  // channels_last: the same

bool FitsFlat(const Params& p) {
  return !IsEmpty(p) && IsRowMajor(p) && p.hxw < kShortChannel && p.c <= kMostPositions / p.hxw;
}
bool FitsPlanes(const Params& p) { return !IsEmpty(p) && IsRowMajor(p) && p.c <= kMostChannels; }
bool FitsLast(const Params& p) { return !IsEmpty(p) && !IsRowMajor(p) && p.c <= kMostLastChannels; }

// ---- Scratch memory, cut from the front ----

class Memory {
 public:
  explicit Memory(void* base) : base_(static_cast<unsigned char*>(base)) {}
  template <class T>
  T* Take(int64_t count) {
    unsigned char* const taken = base_ ? base_ + bytes_ : nullptr;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(taken);
  }
  int64_t bytes() const { return bytes_; }

 private:
  unsigned char* base_;  // null: only the bytes count
  int64_t bytes_ = 0;
};

Work NewWork(const Params& p) {
  Work w{};
  w.channels = p.c / p.groups;
  w.size = w.channels * p.hxw;
  return w;
}

// Samples per block such that the blocks need no more than `bytes`.
void SetBlocks(const Params& p, int64_t least_block, int64_t bytes_of_block, int64_t bytes,
               Work* w) {
  const int64_t most_blocks = std::max<int64_t>(bytes / bytes_of_block, 1);
  w->block = std::clamp<int64_t>(std::max(least_block, CeilDiv(p.n, most_blocks)), 1, p.n);
  w->blocks = CeilDiv(p.n, w->block);
}

// Booked in any case: a plan has no addresses yet, so it cannot know which outputs are wanted.
void TakeSums(const Params& p, Memory* memory, Work* w) {
  float* const sums = memory->Take<float>(w->blocks * 2 * w->width);
  w->sums = p.dgamma || p.dbeta ? sums : nullptr;
}

// Small needs are met from the stack: a call without a workspace is a cheaper call.
template <Work (*cut)(const Params&, Memory*)>
int64_t ScratchBytes(const Params& p) {
  Memory memory(nullptr);
  cut(p, &memory);
  return memory.bytes() <= kStackBytes ? 0 : memory.bytes();
}

template <Work (*cut)(const Params&, Memory*), void (*run)(const Params&, const Work&)>
void WithScratch(const Params& p) {
  alignas(64) unsigned char stack[kStackBytes];
  Memory memory(p.scratch ? p.scratch : stack);  // null when ScratchBytes asked for none
  run(p, cut(p, &memory));
}

// ---- dgamma and dbeta from the sums of blocks, a channel being `places` of them ----

void FinishChannels(const Params& p, const Work& w, int64_t places, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    Sums total;
    for (int64_t b = 0; b < w.blocks; ++b) {
      const float* const db = w.Db(b) + c * places;
      const float* const ds = w.Ds(b) + c * places;
      for (int64_t i = 0; i < places; ++i) {
        total.db += db[i];
        total.ds += ds[i];
      }
    }
    SetParameter(p, p.dbeta, c, total.db);
    SetParameter(p, p.dgamma, c, total.ds);
  }
}

void FinishParameters(const Params& p, const Work& w, int64_t places) {
  if (!w.sums) return;
  const int64_t channels = std::max<int64_t>(kTask / (w.blocks * places), 64);
  ParallelFor(CeilDiv(p.c, channels), [&](int64_t i) {
    FinishChannels(p, w, places, i * channels, std::min((i + 1) * channels, p.c));
  });
}

// Calls range(first, last) over [blocks, groups], in tasks of at least so many elements.
template <class Range>
void ForGroups(const Params& p, const Work& w, int64_t elements, Range&& range) {
  const int64_t all = w.blocks * p.groups;
  int64_t groups = CeilDiv(elements, w.block * w.size);
  // Neighbours by one thread, which reads the next while it writes: as many as leave enough tasks.
  if (w.stream) groups = std::max(groups, std::clamp<int64_t>(all / 16, 1, 16));
  if (groups > p.groups) groups = groups / p.groups * p.groups;
  ParallelFor(CeilDiv(all, groups),
              [&](int64_t i) { range(i * groups, std::min((i + 1) * groups, all)); });
}

// ---- flat ----

Work CutFlat(const Params& p, Memory* memory) {
  Work w = NewWork(p);
  w.width = p.c * p.hxw + kPad;
  w.stream = Streams(p, w.size);
  w.gamma = memory->Take<float>(w.width);
  const int64_t row_bytes = w.width * static_cast<int64_t>(sizeof(float));
  const int64_t bytes = std::max(kScratchBytes, InputBytes(p) / 50) - row_bytes;
  SetBlocks(p, std::clamp<int64_t>(kFlatTask / w.size, 8, 256), 2 * row_bytes, bytes, &w);
  TakeSums(p, memory, &w);
  return w;
}

// gamma of every position, and of those that vectors reach behind the last.
void SpreadGamma(const Params& p, const Work& w) {
  const int64_t sample = p.c * p.hxw;
  for (int64_t c = 0; c < p.c; ++c) std::fill_n(w.gamma + c * p.hxw, p.hxw, Gamma(p, c));
  for (int64_t i = sample; i < w.width; ++i) w.gamma[i] = w.gamma[i - sample];
}

// Positions behind a sample are those of the next one.
void FoldPositions(const Params& p, const Work& w) {
  const int64_t sample = p.c * p.hxw;
  for (int64_t b = 0; b < w.blocks && w.sums; ++b) {
    for (int64_t i = w.width - 1; i >= sample; --i) {
      w.Db(b)[i - sample] += w.Db(b)[i];
      w.Ds(b)[i - sample] += w.Ds(b)[i];
    }
  }
}

void RunFlat(const Params& p, const Work& w) {
  const auto range = HWY_DYNAMIC_DISPATCH(FlatRange);
  SpreadGamma(p, w);
  ForGroups(p, w, kFlatTask, [&](int64_t first, int64_t last) { range(p, w, first, last); });
  FoldPositions(p, w);
  FinishParameters(p, w, p.hxw);
}

// ---- planes ----

// 0 where nobody says so.
int64_t LastCacheBytes() {
  static const int64_t bytes = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  return bytes;
}

bool SharesGroups(const Params& p, const Work& w) {
  const bool few = p.n * p.groups < kFewGroups && w.size >= 2 * kPiece;
  return few || w.size * 2 * ElementSize(p) > kGroupBytes;
}

Work CutPlanes(const Params& p, Memory* memory) {
  Work w = NewWork(p);
  w.width = p.c;
  w.stream = Streams(p, p.hxw);
  const int64_t row_bytes = p.c * static_cast<int64_t>(2 * sizeof(float));
  SetBlocks(p, 1, row_bytes, std::max(kScratchBytes / 2, InputBytes(p) / 100), &w);
  TakeSums(p, memory, &w);
  if (!SharesGroups(p, w)) return w;
  w.partial = memory->Take<float>(2 * w.channels * CeilDiv(p.hxw, kChunk));
  // With room for others. Elsewhere a group is better written at once and backwards, which finds
  // its end in the cache.
  w.two_groups_in_cache = 2 * 2 * w.size * ElementSize(p) <= LastCacheBytes() / 2;
  return w;
}

void RunPlanes(const Params& p, const Work& w) {
  if (w.partial) {
    HWY_DYNAMIC_DISPATCH(SharedPlanes)(p, w);
  } else {
    const auto range = HWY_DYNAMIC_DISPATCH(PlaneRange);
    ForGroups(p, w, kTask, [&](int64_t first, int64_t last) { range(p, w, first, last); });
  }
  FinishParameters(p, w, 1);
}

// ---- channels_last ----

bool SharesSamples(const Params& p) {
  const int64_t size = p.c * p.hxw;
  const bool few = p.n < kFewGroups && size >= 2 * kPiece;
  return few || size * 2 * ElementSize(p) > kGroupBytes;
}

Work CutLast(const Params& p, Memory* memory) {
  constexpr int64_t kRow = 128;  // elements that a row has at least
  constexpr int64_t kBlocks = 64;
  Work w = NewWork(p);
  w.width = p.c;
  w.rows = std::min(CeilDiv(kRow, p.c), p.hxw);
  w.row = w.rows * p.c;
  w.chunks = CeilDiv(p.hxw / w.rows, kChunkRows);
  // Rows that end inside a line would share it with the next one.
  w.stream = Streams(p, w.row) && w.row * ElementSize(p) % 64 == 0;
  const bool shared = SharesSamples(p);
  const int64_t sample_bytes = SampleMemory::Bytes(w);
  const int64_t row_bytes = p.c * static_cast<int64_t>(2 * sizeof(float));
  const int64_t bytes_of_block = row_bytes + (shared ? 0 : sample_bytes);
  SetBlocks(p, CeilDiv(p.n, kBlocks), bytes_of_block, kScratchBytes / 2, &w);
  TakeSums(p, memory, &w);
  w.samples = memory->Take<unsigned char>(sample_bytes * (shared ? 1 : w.blocks));
  if (shared) w.partial = memory->Take<float>(2 * SampleMemory::Stride(w) * w.chunks);
  return w;
}

void RunLast(const Params& p, const Work& w) {
  if (w.partial) {
    const auto sample = HWY_DYNAMIC_DISPATCH(SharedLast);
    for (int64_t n = 0; n < p.n; ++n) sample(p, w, n);
  } else {
    const auto block = HWY_DYNAMIC_DISPATCH(LastBlock);
    ParallelFor(w.blocks, [&](int64_t b) { block(p, w, b); });
  }
  FinishParameters(p, w, 1);
}

template <bool (*fits)(const Params&), Work (*cut)(const Params&, Memory*),
          void (*run)(const Params&, const Work&)>
constexpr Kernel MakeScratchKernel(const char* name) {
  return MakeKernel<Params, fits, WithScratch<cut, run>, ScratchBytes<cut>>(name);
}

constexpr Kernel kKernels[] = {
    MakeScratchKernel<FitsFlat, CutFlat, RunFlat>("flat"),
    MakeScratchKernel<FitsPlanes, CutPlanes, RunPlanes>("planes"),
    MakeScratchKernel<FitsLast, CutLast, RunLast>("channels_last"),
    MakeKernel<Params, FitsAlways<Params>, reference::GroupNormBackward<double>>("reference"),
};

}  // namespace

std::span<const Kernel> GroupNormBackwardKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
