// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Short channels: vectors run across the channels of a group, or across groups.
#if defined(ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_FLAT_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_FLAT_CPU_INL_H_
#undef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_FLAT_CPU_INL_H_
#else
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_FLAT_CPU_INL_H_
#endif

#include "ops/norm/group_norm_backward_terms.cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {

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

constexpr int kHeldVectors = 2;  // of a sample; with four the library is 6 % larger

// Whole samples of kVectors full vectors: what belongs to their positions stays in registers. 1024x32x1 in groups
// of 4, one thread: 8.8 us with this, 11.1 without.
template <int kVectors, class T, class P, class Moves>
HWY_INLINE void WholeSamples(const Lanes& lanes, const Moves& moves, int64_t size,
                             const float* gamma, float* db, float* ds, ShortCursor<T, P>* cursor) {
  const VF share = hn::Set(F32(), 1.0f / static_cast<float>(size));
  const int64_t step = LaneCount(), groups = lanes.groups(), sample = kVectors * step;
  // As many as there are lanes are read of the numbers of groups. That is a sample at least: of less, the other sums
  // belong to other threads.
  const int64_t reach = (kVectors - 1) * groups + step;
  if (cursor->count < reach) return;
  VF gammas[kVectors], dbs[kVectors], dss[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    gammas[i] = Load1(gamma + i * step);
    dbs[i] = Load1(db + i * step);
    dss[i] = Load1(ds + i * step);
  }
  ShortCursor<T, P> c = *cursor;
  for (; c.count >= reach; c.Advance(kVectors * groups, sample, 0, sample)) {
    HWY_UNROLL(kHeldVectors)
    for (int i = 0; i < kVectors; ++i) {
      const VF g = Load1(c.dy + i * step);
      VF product;
      const VF v = ShortGroups(moves, g, Load1(c.x + i * step), Load1(c.mean + i * groups),
                               Load1(c.rstd + i * groups), gammas[i], share, product);
      if (c.dx) Store1(v, c.dx + i * step);
      dbs[i] = hn::Add(dbs[i], g);
      dss[i] = hn::Add(dss[i], product);
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    Store1(dbs[i], db + i * step);
    Store1(dss[i], ds + i * step);
  }
  *cursor = c;
}

// As far as whole samples are held in registers.
template <int kVectors = 1, class T, class P, class Moves>
HWY_INLINE void HeldSamples(const Lanes& lanes, const Moves& moves, int64_t sample, int64_t size,
                            const float* gamma, float* db, float* ds, ShortCursor<T, P>* cursor) {
  if constexpr (kVectors <= kHeldVectors) {
    if (sample == kVectors * LaneCount())
      return WholeSamples<kVectors>(lanes, moves, size, gamma, db, ds, cursor);
    HeldSamples<kVectors + 1>(lanes, moves, sample, size, gamma, db, ds, cursor);
  }
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
      if (db && c.position == 0) HeldSamples(lanes, moves, sample, w.size, gamma, db, ds, &c);
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
