// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Long channels: vectors run along a channel.
#if defined(ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_PLANES_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_PLANES_CPU_INL_H_
#undef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_PLANES_CPU_INL_H_
#else
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_PLANES_CPU_INL_H_
#endif

#include "ops/norm/group_norm_backward_terms.cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {

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

// Prefetches what is read while one group is summed and dx of another is written. The other one is in the second
// cache or, where all threads share the groups, in the last one, which is nearly as far away as the memory.
template <bool shared, class T>
HWY_INLINE void FetchBeside(const T* dy, const T* x, const T* done_dy, const T* done_x,
                            int64_t count) {
  if constexpr (shared) {
    FetchStream(dy, count);
    FetchStream(x, count);
    FetchStream(done_dy, count);
    FetchStream(done_x, count);
  } else if (is_zen) {  // which brings the other one by itself
    Fetch(dy + 4096 / sizeof(T), count);
    Fetch(x + 4096 / sizeof(T), count);
  } else {
    constexpr int64_t kFar = 2048 / sizeof(T), kClose = 512 / sizeof(T);
    Fetch(dy + kFar, count);
    Fetch(x + kFar, count);
    FetchNear(done_dy + kClose, count);
    FetchNear(done_x + kClose, count);
  }
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

  // Nothing but sums.
  template <class Fetching = FetchAlong>
  ChunkSums Chunk(int64_t channel, int64_t chunk, Fetching fetching = {}) const {
    const int64_t begin = chunk * kChunk;
    const int64_t count = std::min(kChunk, p.hxw - begin);
    const int64_t step = 4 * LaneCount();
    const T* const g = dy + channel * p.hxw + begin;
    const T* const v = x + channel * p.hxw + begin;
    if (!p.dx && !p.dgamma) {
      return SumChunk<false>(g, v, count, mean, rstd,
                             [=](int64_t i) HWY_ATTR { FetchStream(g + i, step); });
    }
    return SumChunk<true>(g, v, count, mean, rstd,
                          [=](int64_t i) HWY_ATTR { fetching.ForSums(g + i, v + i, step); });
  }

  // The sums of one chunk while dx of the same chunk of another group is streamed. `shared`: by all threads.
  template <bool shared, class Coefficients>
  ChunkSums ChunkBeside(const PlaneGroup& done, const Coefficients& f, int64_t begin,
                        int64_t count) const {
    const int64_t pair = static_cast<int64_t>(PairLanes());
    const T* const g = dy + begin;
    const T* const v = x + begin;
    const T* const done_dy = done.dy + begin;
    const T* const done_x = done.x + begin;
    T* const done_dx = done.dx + begin;
    const ChunkSums sums = SumChunk<true>(g, v, count, mean, rstd, [=](int64_t i) HWY_ATTR {
      FetchBeside<shared>(g + i, v + i, done_dy + i, done_x + i, 2 * pair);
      HWY_UNROLL(2)
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

  template <class Fetching = FetchAlong>
  void AddWhole(int64_t channel, Sums* group, Fetching fetching = {}) const {
    Sums total;
    for (int64_t k = 0; k < ChunksOfChannel(); ++k) {
      const ChunkSums chunk = Chunk(channel, k, fetching);
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
          ChunkBeside<false>(done, f, channel * p.hxw + begin, std::min(kChunk, p.hxw - begin));
      total.db += chunk.db;
      total.ds += chunk.ds;
    }
    AddChannel(p, w, n, g * w.channels + channel, total, group);
  }

  // Elements [begin, end) of a channel.
  template <class Fetching = FetchAlong>
  void WriteDx(int64_t channel, int64_t begin, int64_t end, Means means,
               Fetching fetching = {}) const {
    const int64_t at = channel * p.hxw + begin;
    const ChannelCoefficients f = Coefficients(channel, means);
    const FoldedCoefficients folded(f);
    if (folded.IsSafe(rstd)) {
      Gradients(dy + at, x + at, dx + at, end - begin, folded, w.stream, fetching);
    } else {
      Gradients(dy + at, x + at, dx + at, end - begin, f, w.stream, fetching);
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

// The groups that one thread takes, one after the other, in one of two ways that give the memory reads and writes to
// do at any time.
//
//   beside    while dx of a group is streamed the next one is summed. Bare loops, time over that of loads and stores
//             alone: groups of 164 kB in float 1.47 one read after the other, 1.32 side by side; bfloat16 1.74 and
//             1.70.
//   in turns  a group is summed, then its dx is streamed, and meanwhile half of the next one comes into the second
//             cache. A Zen 4 likes few streams, where they have little arithmetic to hide: 32x256x56x56 in FLOAT takes
//             1.13 times the floor beside and 1.11 in turns, 1.47 and 1.19 where its cores have a way to the memory
//             each; 8x320x64x64 in BF16 1.09 and 1.26.
template <class T>
class PlaneQueue {
 public:
  PlaneQueue(const Params& p, const Work& w)
      : p_(p),
        w_(w),
        in_turns_(is_zen && std::is_same_v<T, float> && w.stream && p.dx),
        beside_(!in_turns_ && HasWholeLines<T>(p, w)) {}
  ~PlaneQueue() {
    WriteLast();
    if (w_.stream) EndStream();
  }

  void Add(int64_t n, int64_t g) {
    if (in_turns_) return SumAndWrite(PlaneGroup<T>(p_, w_, n, g));
    const PlaneGroup<T> group(p_, w_, n, g);
    Sums sums;
    if (has_last_ && beside_) {
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
  void SumAndWrite(const PlaneGroup<T>& group) const {
    const FetchNextGroup next{w_.block == 1 ? w_.size : p_.c * p_.hxw};
    Sums sums;
    for (int64_t c = 0; c < w_.channels; ++c) group.AddWhole(c, &sums, next);
    const Means means = MeansOf(w_, sums);
    for (int64_t c = 0; c < w_.channels; ++c) group.WriteDx(c, 0, p_.hxw, means, next);
  }

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
  const bool in_turns_;
  const bool beside_;
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
    const ChunkSums sums = group.template ChunkBeside<true>(done, f, channel * hxw + begin, count);
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
  const auto write = [&](int64_t i) {
    const Piece piece = PieceOfGroup(p, w, i);
    for (int64_t c = piece.channel + piece.count - 1; c >= piece.channel; --c) {
      group.WriteDx(c, piece.begin, piece.end, means);
    }
    if (w.stream) EndStream();
  };
  ParallelFor(PiecesOfGroup(p, w), write, Order::kBackwards);
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
  const bool beside = w.beside && HasWholeLines<T>(p, w);
  Means means{};
  for (int64_t i = 0; i < p.n * p.groups; ++i) {
    const PlaneGroup<T> group(p, w, i / p.groups, i % p.groups);
    if (beside && i > 0) {
      const PlaneGroup<T> done(p, w, (i - 1) / p.groups, (i - 1) % p.groups);
      ParallelFor(pieces, [&](int64_t k) {
        PlanePieceBeside(group, done, means, PieceOfGroup(p, w, k));
      });
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
