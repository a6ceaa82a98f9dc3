// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// BatchNormElemtBackward on the CPU, in the order of operations of the reference, so that the bits are those
// of the float reference. Two ways through the elements:
//
//   planes     inner is large: along a plane the terms of its channel are constants
//   positions  inner is small (1 is channels-last): a row of positions has its terms in tables, which serve
//              the same positions of all samples; small samples are joined to one row
//
// dy, x and dx of one dtype run as they are; any mixture goes through float buffers in the first cache.
#include "ops/norm/batch_norm_elemt_backward.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

#ifndef ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_CPU_ONCE_
#define ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_CPU_ONCE_
namespace anyacl::cpu {
namespace {

using Params = BatchNormElemtBackwardParams;
using Operand = Params::Operand;

// Positions of a table; a multiple of two of the widest vectors. Two tables lie on the stack, which may be the caller's.
inline constexpr int64_t kBlock = 512;
inline constexpr int64_t kPad = 64;         // lanes of the widest vector there is
inline constexpr int64_t kShortPlane = 48;  // elements from which a plane may have its own loop

// The four terms of consecutive channels or positions. Whole vectors are written: pad to kPad.
struct Terms {
  float* mean;
  float* mean_dy;
  float* slope;
  float* factor;

  Terms From(int64_t i) const { return {mean + i, mean_dy + i, slope + i, factor + i}; }
};

// The terms of all channels, for planes.
struct Channels {
  Terms terms;
  bool results_are_normal;  // in BF16
};

struct Table {
  alignas(64) float data[4][kBlock + kPad];

  Terms terms() { return {data[0], data[1], data[2], data[3]}; }
};

// `count` elements at `first` that begin at a position of their row, and the same in the rows behind.
struct Run {
  int64_t position;
  int64_t first;
  int64_t count;
  int64_t rows;
  int64_t stride;  // elements from row to row
};

inline bool OneType(const Params& p) { return p.dy.dtype == p.dx_dtype && p.x.dtype == p.dx_dtype; }

}  // namespace
}  // namespace anyacl::cpu
#endif  // ANYACL_OPS_NORM_BATCH_NORM_ELEMT_BACKWARD_CPU_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/batch_norm_elemt_backward.cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {  // other operators have functions of the same names

// ---- One vector of at most `count` elements; nothing outside them is touched ----

template <class T>
HWY_INLINE VF LoadUpTo(const T* p, int64_t count) {
  return count >= LaneCount() ? Load1(p) : LoadFirst(p, count);
}

template <class T>
HWY_INLINE void StoreUpTo(VF v, T* p, int64_t count) {
  count >= LaneCount() ? Store1(v, p) : StoreFirst(v, p, count);
}

HWY_INLINE VF LoadUpTo(const Operand& t, int64_t i, int64_t count) {
  switch (t.dtype) {
    case DType::kF16:
      return LoadUpTo(static_cast<const Half*>(t.data) + i, count);
    case DType::kBF16:
      return LoadUpTo(static_cast<const BFloat16*>(t.data) + i, count);
    default:
      return LoadUpTo(static_cast<const float*>(t.data) + i, count);
  }
}

// ---- Terms of channels ----

void ChannelTerms(const Params& p, float count, int64_t first, int64_t channels, const Terms& to) {
  const F32 d;
  const VF divisor = hn::Set(d, count);
  for (int64_t i = 0; i < channels; i += LaneCount()) {
    const int64_t c = first + i;
    const int64_t n = channels - i;
    const VF invstd = LoadUpTo(p.invstd, c, n);
    const VF weight = p.weight.data ? LoadUpTo(p.weight, c, n) : hn::Set(d, 1.0f);
    const VF mean_dy_xmu = hn::Div(LoadUpTo(p.sum_dy_xmu, c, n), divisor);
    Store1(LoadUpTo(p.mean, c, n), to.mean + i);
    Store1(hn::Div(LoadUpTo(p.sum_dy, c, n), divisor), to.mean_dy + i);
    Store1(hn::Mul(mean_dy_xmu, hn::Mul(invstd, invstd)), to.slope + i);
    Store1(hn::Mul(invstd, weight), to.factor + i);
  }
}

// Whether no dx can be subnormal where dy and x are BF16. Then the instruction that rounds to BF16 needs no help, which is
// a tenth of the time of short planes.
//
// Let e(v) be the exponent of v: 2^e(v) <= |v| < 2^(e(v) + 1). dy has 8 bits, so dy - mean_dy is a multiple of
// 2^(e(mean_dy) - 24), however small dy is beside mean_dy, and stays one when it is rounded. In the same way x - mean is a
// multiple of 2^(e(mean) - 24). Its product with slope is 0 or at least 2^(e(mean) + e(slope) - 24), so with 24 bits it is
// a multiple of 2^(e(mean) + e(slope) - 47). The difference of both is a multiple of the smaller of these powers, and dx
// is 0 or at least that power times 2^e(factor). This is 2^-126 or more, the smallest normal number, where
// e(mean_dy) + e(factor) >= -102 and e(mean) + e(slope) + e(factor) >= -79. The products below are less than 4 and 8 times
// those powers of two; what the limits have beyond that covers their roundings. NaN gives false.
void ResultsAreNormal(const Terms& t, int64_t channels, bool* all) {
  const F32 d;
  const VF least = hn::Set(d, 0x1p-99f), least_of_three = hn::Set(d, 0x1p-75f);
  *all = true;
  for (int64_t i = 0; i < channels; i += LaneCount()) {
    const VF factor = Load1(t.factor + i);
    const VF two = hn::Abs(hn::Mul(Load1(t.mean_dy + i), factor));
    const VF three = hn::Abs(hn::Mul(hn::Mul(Load1(t.mean + i), Load1(t.slope + i)), factor));
    const auto normal = hn::And(hn::Ge(two, least), hn::Ge(three, least_of_three));
    const auto counts = hn::FirstN(d, static_cast<size_t>(channels - i));
    *all = *all && hn::AllFalse(d, hn::AndNot(normal, counts));
  }
}

// ---- Elements ----

HWY_INLINE VF Gradient(VF g, VF x, VF mean, VF mean_dy, VF slope, VF factor) {
  const VF centred = hn::Sub(x, mean);
  return hn::Mul(hn::Sub(hn::Sub(g, mean_dy), hn::Mul(centred, slope)), factor);
}

struct PlaneTerms {
  float mean, mean_dy, slope, factor;

  PlaneTerms From(int64_t) const { return *this; }
  // The exception among the loops that read once: a Zen 4 takes 1.06 times the floor for 64x256x56x56 in FLOAT when lines
  // bypass its second cache, and 1.01 when they do not. In BF16 it is the other way round: 1.00 and 1.30.
  template <class T>
  HWY_INLINE void CallUp(const T* p, int64_t count) const {
    const bool into_second = is_zen && std::is_same_v<T, float>;
    into_second ? Fetch(p + 2048 / sizeof(T), count) : FetchOnce(p, count);
  }
  HWY_INLINE VF At(int64_t, VF g, VF x) const {
    const F32 d;
    return Gradient(g, x, hn::Set(d, mean), hn::Set(d, mean_dy), hn::Set(d, slope),
                    hn::Set(d, factor));
  }
};

struct PositionTerms {
  Terms terms;
  int64_t stride;  // elements from row to row

  PositionTerms From(int64_t i) const { return {terms.From(i), stride}; }
  // What lies behind the few positions of a row is another task's. The same positions of the next row are
  // too short a piece for the processor to see coming: 256x2048x7x7 in BF16 takes 40 % longer without.
  template <class T>
  HWY_INLINE void CallUp(const T* p, int64_t count) const {
    FetchNext(p + stride, count);
  }
  HWY_INLINE VF At(int64_t i, VF g, VF x) const {
    return Gradient(g, x, Load1(terms.mean + i), Load1(terms.mean_dy + i), Load1(terms.slope + i),
                    Load1(terms.factor + i));
  }
};

// Whole pairs of vectors; gives the number of elements done.
template <bool stream, class T, class At>
HWY_INLINE int64_t Pairs(const T* dy, const T* x, T* dx, int64_t count, const At& terms) {
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    if constexpr (stream) {
      terms.CallUp(dy + i, 2 * lanes);
      terms.CallUp(x + i, 2 * lanes);
    }
    VF g0, g1, x0, x1;
    Load2(dy + i, g0, g1);
    Load2(x + i, x0, x1);
    const VF dx0 = terms.At(i, g0, x0);
    const VF dx1 = terms.At(i + lanes, g1, x1);
    stream ? Stream2(dx0, dx1, dx + i) : Store2(dx0, dx1, dx + i);
  }
  return i;
}

template <class T, class At>
HWY_INLINE void Plain(const T* dy, const T* x, T* dx, int64_t count, const At& terms) {
  for (int64_t i = Pairs<false>(dy, x, dx, count, terms); i < count; i += LaneCount()) {
    const int64_t n = count - i;
    StoreUpTo(terms.At(i, LoadUpTo(dy + i, n), LoadUpTo(x + i, n)), dx + i, n);
  }
}

template <class T, class At>
HWY_INLINE void Streamed(const T* dy, const T* x, T* dx, int64_t count, const At& terms) {
  SplitAtLines(
      dx, count,
      [&](int64_t i, int64_t n) HWY_ATTR { Plain(dy + i, x + i, dx + i, n, terms.From(i)); },
      [&](int64_t i, int64_t n) HWY_ATTR { Pairs<true>(dy + i, x + i, dx + i, n, terms.From(i)); });
}

// Elements [first, first + count) of three arrays of one type.
template <class T, class At>
HWY_INLINE void Elements(const Params& p, int64_t first, int64_t count, bool stream,
                         const At& terms) {
  const T* const dy = static_cast<const T*>(p.dy.data) + first;
  const T* const x = static_cast<const T*>(p.x.data) + first;
  T* const dx = static_cast<T*>(p.dx) + first;
  stream ? Streamed(dy, x, dx, count, terms) : Plain(dy, x, dx, count, terms);
}

// ---- Mixtures of types ----

void ToFloats(const Operand& t, int64_t first, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += LaneCount())
    Store1(LoadUpTo(t, first + i, count - i), to + i);
}

template <class T>
void FromFloats(const float* from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; i += LaneCount()) StoreUpTo(Load1(from + i), to + i, count - i);
}

struct Mixed {};  // stands for the type of arrays that have several

template <class At>
void MixedElements(const Params& p, int64_t first, int64_t count, const At& terms) {
  alignas(kLineBytes) float dy[kBlock];
  alignas(kLineBytes) float x[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    ToFloats(p.dy, first + i, n, dy);
    ToFloats(p.x, first + i, n, x);
    Plain(dy, x, dy, n, terms.From(i));
    switch (p.dx_dtype) {
      case DType::kF16:
        FromFloats(dy, n, static_cast<Half*>(p.dx) + first + i);
        break;
      case DType::kBF16:
        FromFloats(dy, n, static_cast<BFloat16*>(p.dx) + first + i);
        break;
      default:
        FromFloats(dy, n, static_cast<float*>(p.dx) + first + i);
    }
  }
}

template <class T, class At>
HWY_INLINE void AnyElements(const Params& p, int64_t first, int64_t count, bool stream,
                            const At& terms) {
  if constexpr (std::is_same_v<T, Mixed>) {
    MixedElements(p, first, count, terms);
  } else {
    Elements<T>(p, first, count, stream, terms);
  }
}

// ---- Planes ----

// Whole planes of at least one pair. The last pair of a plane overlaps the one before: that costs less than parts of
// vectors do. It is loaded first, so that dx may be where dy or x is.
template <bool normal, class T>
HWY_INLINE void WholePlanes(const Params& p, const Terms& channels, int64_t begin, int64_t end) {
  static_assert(2 * hn::MaxLanes(F32()) <= kShortPlane);
  const F32 d;
  const int64_t inner = p.inner, last_channel = p.c - 1;
  const int64_t last = inner - static_cast<int64_t>(PairLanes());
  const T* dy = static_cast<const T*>(p.dy.data) + begin;
  const T* x = static_cast<const T*>(p.x.data) + begin;
  T* dx = static_cast<T*>(p.dx) + begin;
  int64_t c = begin / inner % p.c;
  for (int64_t i = begin; i < end; i += inner, dy += inner, x += inner, dx += inner) {
    const Terms t = channels.From(c);
    const VF mean = hn::Set(d, *t.mean), mean_dy = hn::Set(d, *t.mean_dy);
    const VF slope = hn::Set(d, *t.slope), factor = hn::Set(d, *t.factor);
    const auto store = [&](VF g0, VF g1, VF x0, VF x1, T* to) HWY_ATTR {
      const VF dx0 = Gradient(g0, x0, mean, mean_dy, slope, factor);
      const VF dx1 = Gradient(g1, x1, mean, mean_dy, slope, factor);
      normal ? Store2Normal(dx0, dx1, to) : Store2(dx0, dx1, to);
    };
    VF g0, g1, x0, x1;
    Load2Once(dy + last, g0, g1);
    Load2Once(x + last, x0, x1);
    for (int64_t k = 0; k < last; k += static_cast<int64_t>(PairLanes())) {
      VF g2, g3, x2, x3;
      Load2Once(dy + k, g2, g3);
      Load2Once(x + k, x2, x3);
      store(g2, g3, x2, x3, dx + k);
    }
    store(g0, g1, x0, x1, dx + last);
    c = c < last_channel ? c + 1 : 0;
  }
}

template <class T>
void PlanesOf(const Params& p, const Channels& channels, int64_t begin, int64_t end, bool stream) {
  if constexpr (!std::is_same_v<T, Mixed>) {
    const bool whole = begin % p.inner == 0 && end % p.inner == 0;
    if (whole && !stream) {
      return channels.results_are_normal ? WholePlanes<true, T>(p, channels.terms, begin, end)
                                         : WholePlanes<false, T>(p, channels.terms, begin, end);
    }
  }
  const int64_t plane = begin / p.inner;
  int64_t c = plane % p.c;
  int64_t stop = (plane + 1) * p.inner;
  for (int64_t at = begin; at < end; at = stop, stop += p.inner) {
    const Terms t = channels.terms.From(c);
    const PlaneTerms terms{*t.mean, *t.mean_dy, *t.slope, *t.factor};
    AnyElements<T>(p, at, std::min(stop, end) - at, stream, terms);
    c = c + 1 < p.c ? c + 1 : 0;
  }
  if (stream) EndStream();
}

// ---- Positions ----

// Spreads the terms of channels over positions. channels[0] is the first one; behind channel p.c - 1 the next
// sample begins. Whole vectors are written; the next channel overwrites what is too much.
void Spread(const Params& p, int64_t position, int64_t count, const Terms& channels,
            int64_t first_channel, const Terms& to) {
  const F32 d;
  int64_t c = position / p.inner % p.c;
  int64_t within = position % p.inner;
  for (int64_t i = 0; i < count;) {
    const int64_t stop = std::min(i + p.inner - within, count);
    const Terms t = channels.From(c - first_channel);
    const VF mean = hn::Set(d, *t.mean), mean_dy = hn::Set(d, *t.mean_dy);
    const VF slope = hn::Set(d, *t.slope), factor = hn::Set(d, *t.factor);
    for (; i < stop; i += LaneCount()) {
      Store1(mean, to.mean + i);
      Store1(mean_dy, to.mean_dy + i);
      Store1(slope, to.slope + i);
      Store1(factor, to.factor + i);
    }
    i = stop;
    within = 0;
    c = c + 1 < p.c ? c + 1 : 0;
  }
}

// Into the order in which Load2 gives elements of T.
template <class T>
HWY_INLINE void ToPairOrder([[maybe_unused]] float* values, [[maybe_unused]] int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<T, BFloat16>) {
    const int64_t pair = 2 * LaneCount();
    for (int64_t i = 0; i + pair <= count; i += pair) {
      const VF low = Load1(values + i), high = Load1(values + i + LaneCount());
      Store2(hn::ConcatEven(F32(), high, low), hn::ConcatOdd(F32(), high, low), values + i);
    }
  }
#endif
}

// The table of the positions of a run.
template <class T>
void PositionTable(const Params& p, float count, const Run& run, Table* table) {
  const Terms to = table->terms();
  const int64_t first = run.position / p.inner;
  const int64_t channels = (run.position + run.count - 1) / p.inner - first + 1;
  if (p.inner == 1 && first + channels <= p.c) {
    ChannelTerms(p, count, first, channels, to);
  } else {
    Table spare;
    const bool wraps =
        first + channels > p.c;  // then a row has many samples, and their channels are few
    const int64_t from = wraps ? 0 : first;
    ChannelTerms(p, count, from, wraps ? p.c : channels, spare.terms());
    Spread(p, run.position, run.count, spare.terms(), from, to);
  }
  for (float* const values : {to.mean, to.mean_dy, to.slope, to.factor})
    ToPairOrder<T>(values, run.count);
}

template <class T>
void PositionsOf(const Params& p, float count, const Run& run, bool stream) {
  Table table;
  PositionTable<T>(p, count, run, &table);
  const PositionTerms terms{table.terms(), run.stride};
  for (int64_t i = 0; i < run.rows; ++i) {
    AnyElements<T>(p, run.first + i * run.stride, run.count, stream, terms);
  }
  if (stream) EndStream();
}

// ---- Entries ----

// Calls body with a null pointer to the common type of dy, x and dx.
template <class Body>
HWY_INLINE void WithCommonType(const Params& p, const Body& body) {
  OneType(p) ? WithType(p.dx_dtype, body) : body(static_cast<Mixed*>(nullptr));
}

// Elements [begin, end).
void Planes(const Params& p, const Channels& channels, int64_t begin, int64_t end, bool stream) {
  NoteTarget();
  WithCommonType(p, [&]<class T>(T*) HWY_ATTR { PlanesOf<T>(p, channels, begin, end, stream); });
}

void Positions(const Params& p, float count, const Run& run, bool stream) {
  NoteTarget();
  WithCommonType(p, [&]<class T>(T*) HWY_ATTR { PositionsOf<T>(p, count, run, stream); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(ChannelTerms);
HWY_EXPORT(ResultsAreNormal);
HWY_EXPORT(Planes);
HWY_EXPORT(Positions);

constexpr int64_t kStreamTask = 8 * kTask;  // every task starts with lines that nobody prefetched
constexpr int64_t kPlane = 256;             // elements from which a plane is worth its own loop

int64_t Elements(const Params& p) { return p.outer * p.c * p.inner; }

bool IsLarge(const Params& p) {
  const size_t element = SizeOf(p.dy.dtype) + SizeOf(p.x.dtype) + SizeOf(p.dx_dtype);
  return Elements(p) * static_cast<int64_t>(element) >= stream_bytes;
}

template <class Load>
double SumOf(int64_t count, const Load& load) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += load(i);
  return sum;
}

template <class T>
T LoadElement(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const T*>(data) + i, sizeof(value));
  return value;
}

float Count(const Params& p) {
  const void* const data = p.counter.data;
  const auto sum = [&]<class T>(T) {
    return static_cast<float>(SumOf(
        p.counter_count, [&](int64_t i) { return static_cast<float>(LoadElement<T>(data, i)); }));
  };
  switch (p.counter.dtype) {
    case DType::kI32:
      return sum(int32_t{});
    case DType::kF16:
      return sum(Half{});
    default:
      return sum(float{});
  }
}

// ---- Planes ----

// Tables need no scratch memory, which is better for small calls, and whole lines of dx can be streamed from them.
// Otherwise planes are faster already where their last pair is not much of a waste (8x2048x7x7 in BF16 takes 66 us instead
// of 85, 32x512x7x7 61 and 70; 6x6 is slower), unless to convert what is wasted costs most (7x7 in FLOAT16: 81 and 74).
bool HasPlanes(const Params& p) {
  if (p.inner >= kPlane) return true;
  if (IsLarge(p) || Elements(p) <= kTask) return false;
  constexpr int64_t kShortPlaneOfHalves = 64;
  return p.inner >= (OneType(p) && p.dx_dtype != DType::kF16 ? kShortPlane : kShortPlaneOfHalves);
}

int64_t PaddedChannels(const Params& p) { return (p.c + kPad - 1) / kPad * kPad; }

// A line that two planes share is not streamed; with short planes there are too many of them.
bool StreamsPlanes(const Params& p) {
  constexpr int64_t kLongPlane = 2048;  // bytes
  const int64_t plane = p.inner * static_cast<int64_t>(SizeOf(p.dx_dtype));
  return IsLarge(p) && (plane >= kLongPlane || plane % 64 == 0);
}

// Whole planes, unless they are long; a power of two of them, because so many channels are: no thread waits for another's
// last task then.
int64_t TaskOfPlanes(const Params& p, bool stream) {
  if (stream) return kStreamTask;
  if (p.inner > kTask) return kTask;
  return p.inner * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kTask / p.inner)));
}

Channels AllChannels(const Params& p) {
  float* const scratch = static_cast<float*>(p.scratch);
  const int64_t padded = PaddedChannels(p);
  Channels channels{{scratch, scratch + padded, scratch + 2 * padded, scratch + 3 * padded}, false};
  HWY_DYNAMIC_DISPATCH(ChannelTerms)(p, Count(p), 0, p.c, channels.terms);
  if (OneType(p) && p.dx_dtype == DType::kBF16) {
    HWY_DYNAMIC_DISPATCH(ResultsAreNormal)(channels.terms, p.c, &channels.results_are_normal);
  }
  return channels;
}

void RunPlanes(const Params& p) {
  const Channels channels = AllChannels(p);
  const auto planes = HWY_DYNAMIC_DISPATCH(Planes);
  const int64_t total = Elements(p);
  const bool stream = StreamsPlanes(p);
  const int64_t task = TaskOfPlanes(p, stream);
  ParallelFor(CeilDiv(total, task), [&](int64_t i) {
    planes(p, channels, i * task, std::min((i + 1) * task, total), stream);
  });
}

// ---- Positions ----

// How the elements lie in rows of positions and the rows in tasks.
struct Rows {
  int64_t length;  // positions of a row: one sample, or several that fit into one table
  int64_t count;   // whole rows
  int64_t blocks;  // tables of a row
  int64_t rows_of_task;
  int64_t tasks;  // of whole rows; one more has the samples that do not fill a row
};

Rows CutRows(const Params& p) {
  const int64_t sample = p.c * p.inner;
  // Powers of two: rows then end with a line whenever that is possible.
  const int64_t fit = std::clamp<int64_t>(kBlock / sample, 1, p.outer);
  const int64_t samples = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fit)));
  Rows rows{};
  rows.length = samples * sample;
  rows.count = p.outer / samples;
  rows.blocks = (rows.length + kBlock - 1) / kBlock;
  rows.rows_of_task = std::max<int64_t>(1, kTask / std::min(rows.length, kBlock));
  rows.tasks = rows.blocks * ((rows.count + rows.rows_of_task - 1) / rows.rows_of_task);
  return rows;
}

Run RunOfTask(const Params& p, const Rows& rows, int64_t task) {
  if (task == rows.tasks) {
    const int64_t done = rows.count * rows.length;
    return {0, done, Elements(p) - done, 1, 0};
  }
  const int64_t position = task % rows.blocks * kBlock;
  const int64_t row = task / rows.blocks * rows.rows_of_task;
  return {position, row * rows.length + position, std::min(kBlock, rows.length - position),
          std::min(rows.rows_of_task, rows.count - row), rows.length};
}

// The table stands still: every row of it must start on a line.
bool StreamsRows(const Params& p, const Rows& rows) {
  return IsLarge(p) && rows.length * static_cast<int64_t>(SizeOf(p.dx_dtype)) % 64 == 0 &&
         reinterpret_cast<uintptr_t>(p.dx) % 64 == 0;
}

void RunPositions(const Params& p) {
  const auto positions = HWY_DYNAMIC_DISPATCH(Positions);
  const float count = Count(p);
  if (Elements(p) <= kBlock) return positions(p, count, {0, 0, Elements(p), 1, 0}, false);
  const Rows rows = CutRows(p);
  const bool stream = StreamsRows(p, rows);
  const int64_t tasks = rows.tasks + (rows.count * rows.length < Elements(p));
  const auto task = [&](int64_t i) { positions(p, count, RunOfTask(p, rows, i), stream); };
  if (Elements(p) > kTask) return ParallelFor(tasks, task);
  for (int64_t i = 0; i < tasks; ++i) task(i);
}

// ---- The kernels ----

int64_t ScratchBytes(const Params& p) {
  return HasPlanes(p) ? 4 * PaddedChannels(p) * static_cast<int64_t>(sizeof(float)) : 0;
}

void Vector(const Params& p) { HasPlanes(p) ? RunPlanes(p) : RunPositions(p); }

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsAlways<Params>, Vector, ScratchBytes>("vector"),
    MakeKernel<Params, FitsAlways<Params>, reference::BatchNormElemtBackward<double>>("reference"),
};

}  // namespace

std::span<const Kernel> BatchNormElemtBackwardKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
