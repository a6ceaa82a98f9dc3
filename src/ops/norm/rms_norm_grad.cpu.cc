// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNormGrad on the CPU: the dot product of a row first, then its dx and its part of dgamma from a second
// read that should still be in a cache. Two ways through the rows:
//
//   row blocks  a thread takes a block of rows, some rows (a tile) at a time, and sums dgamma over its block;
//               short rows stay in its registers instead
//   columns     few or very long rows: all threads share a group of rows and split its columns
//
// Determinism. A row is summed in float over chunks of kChunk columns and the chunks in double, in order, on
// both ways: neither the number of threads nor the batch around a row changes a bit of its dx. dgamma adds the
// rows of a block and then the blocks, in order; the blocks depend on the shape alone. Every kChain of them (of the rows,
// by columns) the sums move into totals: a longer chain of additions in float would show in the last places.
//
// "Pair order" of columns is the order in which Load2 gives elements of T. gamma and the sums of dgamma are
// kept in it; a last part shorter than a vector has a vector of its own behind the whole ones.
#include "ops/norm/rms_norm_grad.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

#ifndef ANYACL_OPS_NORM_RMS_NORM_GRAD_CPU_ONCE_
#define ANYACL_OPS_NORM_RMS_NORM_GRAD_CPU_ONCE_
namespace anyacl::cpu {
namespace {

using Params = RmsNormGradParams;

// All multiples of two of the widest vectors there are (64 floats); a chunk is some pieces.
inline constexpr int64_t kChunk = 4096;  // columns whose products are summed in float
inline constexpr int64_t kPiece = 2048;  // columns of dx and dgamma that one thread takes at a time
inline constexpr int64_t kDotRows = 8;   // rows of a chunk that one thread sums at a time
inline constexpr int64_t kChain = 32;    // rows, or blocks of rows, that dgamma adds one after the other
inline constexpr int64_t kOneChain = 50;  // so many rows are one chain: for less, totals would be too much scratch memory

// Sums of chains of dgamma, by column in pair order: in float for up to kChain chains, else in double.
struct Totals {
  void* data = nullptr;  // null: all rows are one chain
  bool wide = true;

  Totals From(int64_t column) const {
    return {static_cast<unsigned char*>(data) + column * (wide ? 8 : 4), wide};
  }
};

// Rows that are worked on together by columns.
struct Group {
  int64_t first;
  int64_t rows;
  int64_t chunks;
  float* sums;   // [rows][chunks]
  float* means;  // [rows]: m of the formula
  bool stream;
  Totals totals;
};

// Rows cut into blocks.
struct Blocks {
  int64_t count;
  int64_t rows;        // of a block; even
  int64_t width;       // floats of one row of sums
  const float* gamma;  // in pair order
  float* sums;         // [count][width], in pair order
  bool stream;         // dx bypasses the caches
};

// The reciprocal is the same for all rows, and known before their sums are.
inline float MeanOf(double total, int64_t cols) {
  return static_cast<float>(total * (1 / static_cast<double>(cols)));
}

inline float LoadFloat(const void* data, int64_t i) {
  float value;
  std::memcpy(&value, static_cast<const float*>(data) + i, sizeof(value));
  return value;
}

}  // namespace
}  // namespace anyacl::cpu
#endif  // ANYACL_OPS_NORM_RMS_NORM_GRAD_CPU_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/rms_norm_grad.cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {  // other operators have functions of the same names

// ---- Pair order ----

template <class T>
HWY_INLINE void LoadInPairOrder(const float* p, VF& a, VF& b) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<T, BFloat16>) return hn::LoadInterleaved2(F32(), p, a, b);
#endif
  Load2(p, a, b);
}
template <class T, class G>
HWY_INLINE void LoadInPairOrder(const G* p, VF& a, VF& b) {
  static_assert(std::is_same_v<T, G>);
  Load2(p, a, b);
}

template <class T>
HWY_INLINE void StoreFromPairOrder(VF a, VF b, float* p) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<T, BFloat16>) return hn::StoreInterleaved2(a, b, F32(), p);
#endif
  Store2(a, b, p);
}

// ---- The last vector of `count` elements ----
//
// It ends with the last element and overlaps the vector before it, which does no harm to results that are
// stored twice. Where the last piece has fewer elements than lanes it starts with the first of them and goes
// through a buffer: a row, its last chunk and its last piece then agree about the lanes. Nothing outside the
// elements is touched.

HWY_INLINE int64_t LastPiece(int64_t count) {
  return count % kPiece;  // only called when it is not 0
}

template <class T>
HWY_INLINE VF LoadLast(const T* p, int64_t count) {
  const int64_t piece = LastPiece(count);
  if (piece >= LaneCount()) return Load1(p + count - LaneCount());
  return LoadFirst(p + count - piece, piece);
}

template <class T>
HWY_INLINE void StoreLast(VF v, T* p, int64_t count) {
  const int64_t piece = LastPiece(count);
  if (piece >= LaneCount()) return Store1(v, p + count - LaneCount());
  StoreFirst(v, p + count - piece, piece);
}

// Drops the lanes that the vector before already had, or the zeros behind them (times an infinite rstd
// they are NaN); `rest` are left.
HWY_INLINE VF KeepLast(VF v, int64_t count, int64_t rest) {
  const F32 d;
  if (LastPiece(count) < LaneCount()) {
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), v);
  }
  return hn::IfThenZeroElse(hn::FirstN(d, static_cast<size_t>(LaneCount() - rest)), v);
}

// ---- gamma and dgamma ----

template <class T, class G>
void InPairOrder(const G* from, int64_t count, float* to) {
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    VF a, b;
    LoadInPairOrder<T>(from + i, a, b);
    Store2(a, b, to + i);
  }
  for (; i + lanes <= count; i += lanes) Store1(Load1(from + i), to + i);
  if (i < count) Store1(LoadLast(from, count), to + i);
}

// gamma of the columns [begin, begin + count): where it lies if that is pair order already, else in `buffer`.
template <class T>
const float* OrderGamma(const Params& p, int64_t begin, int64_t count, float* buffer) {
  if (p.gamma_dtype != DType::kF32) {
    InPairOrder<T>(static_cast<const T*>(p.gamma) + begin, count, buffer);
    return buffer;
  }
  const float* const gamma = static_cast<const float*>(p.gamma) + begin;
  if (std::is_same_v<T, float> && count % LaneCount() == 0) return gamma;
  InPairOrder<T>(gamma, count, buffer);
  return buffer;
}

void Clear(float* sums, int64_t count) {
  for (int64_t i = 0; i < count; i += LaneCount()) Store1(hn::Zero(F32()), sums + i);
}

void AddTo(float* sums, const float* more, int64_t count) {
  for (int64_t i = 0; i < count; i += LaneCount())
    Store1(hn::Add(Load1(sums + i), Load1(more + i)), sums + i);
}

// All lanes of the last vector, too.
HWY_INLINE int64_t InVectors(int64_t count) { return CeilDiv(count, LaneCount()) * LaneCount(); }

template <class Total>
void MoveSums(Total* totals, float* sums, int64_t count, bool first) {
  for (int64_t i = 0; i < count; ++i) {
    totals[i] = first ? static_cast<Total>(sums[i]) : totals[i] + static_cast<Total>(sums[i]);
  }
}

// Moves the sums of a chain, the first one or another, into the totals.
void MoveTo(const Totals& totals, float* sums, int64_t count, bool first) {
  totals.wide ? MoveSums(static_cast<double*>(totals.data), sums, InVectors(count), first)
              : MoveSums(static_cast<float*>(totals.data), sums, InVectors(count), first);
  Clear(sums, count);
}

template <class Total>
void TakeSums(const Total* totals, float* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] = static_cast<float>(totals[i] + static_cast<Total>(sums[i]));
}

// Puts the totals, with what is left of the last chain, into the sums.
void TakeTotals(const Totals& totals, float* sums, int64_t count) {
  totals.wide ? TakeSums(static_cast<const double*>(totals.data), sums, InVectors(count))
              : TakeSums(static_cast<const float*>(totals.data), sums, InVectors(count));
}

template <class T>
void StoreDgamma(const float* sums, int64_t count, float* dgamma) {
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    StoreFromPairOrder<T>(Load1(sums + i), Load1(sums + i + lanes), dgamma + i);
  }
  for (; i + lanes <= count; i += lanes) Store1(Load1(sums + i), dgamma + i);
  if (i < count) StoreLast(Load1(sums + i), dgamma, count);
}

// ---- Rows ----

template <class T>
struct Row {
  const T* dy;
  const T* x;
  T* dx;
  float rstd;
  float slope;  // m of the formula, times rstd

  Row From(int64_t i) const { return {dy + i, x + i, dx + i, rstd, slope}; }
};

template <class T>
HWY_INLINE Row<T> RowOf(const Params& p, int64_t i, int64_t column) {
  const int64_t at = i * p.cols + column;
  return {static_cast<const T*>(p.dy) + at, static_cast<const T*>(p.x) + at,
          static_cast<T*>(p.dx) + at, LoadFloat(p.rstd, i), 0};
}

// Where dgamma is summed, and where to the rows `ahead` elements behind those in work are prefetched meanwhile:
// x in the first read, dy in the second, so that the memory has something to do in both. (0 ahead: nowhere.)
enum class Way {
  kColumns,    // dgamma in the second read, nothing prefetched
  kShortRows,  // dgamma in the first read, tiles of the first cache
  kLongRows,   // dgamma in the first read, tiles of the second cache
};

template <Way way, class T>
HWY_INLINE void FetchAhead(const T* p, int64_t count) {
  if constexpr (way == Way::kShortRows) FetchNext(p, count);
  if constexpr (way == Way::kLongRows) Fetch(p, count);
}

// ---- Sums of lanes ----

// Neighbours are added, then neighbours among the sums, and so on.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE VF AddNeighbours(VF low, VF) { return low; }
HWY_INLINE float SumLanes(VF v) { return hn::GetLane(v); }
#else
HWY_INLINE VF AddNeighbours(VF low, VF high) {
  const F32 d;
  return hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
}

HWY_INLINE float SumLanes(VF v) {
  const F32 d;
  v = hn::Add(v, hn::Shuffle2301(v));
  v = hn::Add(v, hn::Shuffle1032(v));
  if constexpr (hn::MaxLanes(F32()) >= 8) v = hn::Add(v, hn::SwapAdjacentBlocks(v));
  if constexpr (hn::MaxLanes(F32()) >= 16) v = hn::Add(v, hn::ConcatUpperUpper(d, v, v));
  static_assert(hn::MaxLanes(F32()) <= 16);
  return hn::GetLane(v);
}
#endif

// The sums of the lanes of kTileRows vectors, each with the bits of SumLanes, in a third of the steps.
inline constexpr int kTileRows = 8;
inline constexpr int64_t kSums = std::max<int64_t>(kTileRows, hn::MaxLanes(F32()));

HWY_INLINE void SumTile(VF* v, float* sums) {
  int count = kTileRows;
  for (int64_t left = LaneCount(); left > 1; left /= 2) {
    count = std::max(count / 2, 1);
    for (int i = 0; i < count; ++i) v[i] = AddNeighbours(v[2 * i], v[2 * i + 1]);
  }
  for (int i = 0; i < count; ++i) Store1(v[i], sums + i * LaneCount());
}

// ---- First read: the dot product ----

// What has less arithmetic than the second cache takes time prefetches its own columns for the first one.
template <Way way, class T>
inline constexpr bool kWaits = way == Way::kColumns ||
                               (way == Way::kLongRows && std::is_same_v<T, float>);
inline constexpr int64_t kNear = 2048;  // bytes

// Two vectors of some rows at column i; p[k] + i is element i of row k. The sums of dgamma, where they are
// taken in this read, are dgamma + i.
template <Way way, int rows, class T>
HWY_INLINE void DotPairs(const Row<T>* p, int64_t i, const float* gamma, float* dgamma,
                         int64_t ahead, VF (*sums)[4], int at) {
  const int64_t lanes = LaneCount();
  const VF gamma0 = Load1(gamma + i), gamma1 = Load1(gamma + i + lanes);
  VF dgamma0, dgamma1;
  if constexpr (way != Way::kColumns) Load2(dgamma + i, dgamma0, dgamma1);
  HWY_UNROLL(4)
  for (int k = 0; k < rows; ++k) {
    FetchAhead<way>(p[k].x + ahead + i, 2 * lanes);
    if (kWaits<way, T> && (way == Way::kColumns || !is_zen)) {
      FetchNear(p[k].dy + i + kNear / sizeof(T), 2 * lanes);
      FetchNear(p[k].x + i + kNear / sizeof(T), 2 * lanes);
    }
    const VF rstd = hn::Set(F32(), p[k].rstd);
    VF g0, g1, u0, u1;
    Load2(p[k].dy + i, g0, g1);
    Load2(p[k].x + i, u0, u1);
    u0 = hn::Mul(u0, rstd);
    u1 = hn::Mul(u1, rstd);
    sums[k][at] = hn::MulAdd(hn::Mul(g0, gamma0), u0, sums[k][at]);
    sums[k][at + 1] = hn::MulAdd(hn::Mul(g1, gamma1), u1, sums[k][at + 1]);
    if constexpr (way != Way::kColumns) {
      dgamma0 = hn::MulAdd(g0, u0, dgamma0);
      dgamma1 = hn::MulAdd(g1, u1, dgamma1);
    }
  }
  if constexpr (way != Way::kColumns) Store2(dgamma0, dgamma1, dgamma + i);
}

// What is left of a row from column i on: a vector, and less than one.
template <Way way, class T>
HWY_INLINE void DotRest(const Row<T>& p, int64_t i, const float* gamma, float* dgamma,
                        int64_t count, VF* sums) {
  const int64_t lanes = LaneCount();
  const VF rstd = hn::Set(F32(), p.rstd);
  for (; i + lanes <= count; i += lanes) {  // at most once
    const VF g = Load1(p.dy + i);
    const VF u = hn::Mul(Load1(p.x + i), rstd);
    sums[2] = hn::MulAdd(hn::Mul(g, Load1(gamma + i)), u, sums[2]);
    if constexpr (way != Way::kColumns) Store1(hn::MulAdd(g, u, Load1(dgamma + i)), dgamma + i);
  }
  if (i == count) return;
  const VF g = LoadLast(p.dy, count);
  const VF u = hn::Mul(LoadLast(p.x, count), rstd);
  const VF last = hn::Mul(hn::Mul(g, Load1(gamma + i)), u);
  sums[3] = hn::Add(sums[3], KeepLast(last, count, count - i));
  if constexpr (way != Way::kColumns) Store1(hn::MulAdd(g, u, Load1(dgamma + i)), dgamma + i);
}

// Over at most kChunk columns, of one row or of some that share gamma and dgamma: with the same bits. The lanes
// of `dots`, a vector for each row, are still to be added. Four sums hide the latency of the additions; loops
// over rows that stay loops would keep them in memory.
template <Way way, int rows, class T>
void ChunkDots(const Row<T>* p, const float* gamma, float* dgamma, int64_t count, int64_t ahead,
               VF* dots) {
  const int64_t pair = 2 * LaneCount();
  VF sums[rows][4];
  HWY_UNROLL(4)
  for (int k = 0; k < rows; ++k) {
    sums[k][0] = sums[k][1] = sums[k][2] = sums[k][3] = hn::Zero(F32());
  }
  int64_t i = 0;
  for (; i + 2 * pair <= count; i += 2 * pair) {
    DotPairs<way, rows>(p, i, gamma, dgamma, ahead, sums, 0);
    DotPairs<way, rows>(p, i + pair, gamma, dgamma, ahead, sums, 2);
  }
  for (; i + pair <= count; i += pair) DotPairs<way, rows>(p, i, gamma, dgamma, ahead, sums, 0);
  HWY_UNROLL(4)
  for (int k = 0; k < rows; ++k) {
    DotRest<way>(p[k], i, gamma, dgamma, count, sums[k]);
    dots[k] = hn::Add(hn::Add(sums[k][0], sums[k][1]), hn::Add(sums[k][2], sums[k][3]));
  }
}

// ---- Second read: dx ----

// One vector; its part of dgamma, where that is taken in this read, goes into `sum`.
template <Way way, class T>
HWY_INLINE VF Gradient(const Row<T>& row, VF g, VF x, VF gamma, VF& sum) {
  const F32 d;
  const VF rstd = hn::Set(d, row.rstd);
  if constexpr (way == Way::kColumns) sum = hn::MulAdd(g, hn::Mul(x, rstd), sum);
  return hn::Mul(hn::NegMulAdd(x, hn::Set(d, row.slope), hn::Mul(g, gamma)), rstd);
}

// Two vectors of some rows at column i.
template <bool stream, Way way, int rows, class T>
HWY_INLINE void GradientPairs(const Row<T>* p, int64_t i, const float* gamma, float* dgamma) {
  const VF gamma0 = Load1(gamma + i), gamma1 = Load1(gamma + i + LaneCount());
  VF sum0 = hn::Zero(F32()), sum1 = sum0;
  if constexpr (way == Way::kColumns) Load2(dgamma + i, sum0, sum1);
  HWY_UNROLL(2)
  for (int k = 0; k < rows; ++k) {
    VF g0, g1, x0, x1;
    Load2(p[k].dy + i, g0, g1);
    Load2(p[k].x + i, x0, x1);
    const VF dx0 = Gradient<way>(p[k], g0, x0, gamma0, sum0);
    const VF dx1 = Gradient<way>(p[k], g1, x1, gamma1, sum1);
    stream ? Stream2(dx0, dx1, p[k].dx + i) : Store2(dx0, dx1, p[k].dx + i);
  }
  if constexpr (way == Way::kColumns) Store2(sum0, sum1, dgamma + i);
}

// What is left of a row from column i on: a vector, and less than one.
template <Way way, class T>
HWY_INLINE void GradientRest(const Row<T>& row, int64_t i, const float* gamma, float* dgamma,
                             int64_t count) {
  VF sum = hn::Zero(F32());
  for (; i + LaneCount() <= count; i += LaneCount()) {  // at most once
    if constexpr (way == Way::kColumns) sum = Load1(dgamma + i);
    const VF g = Load1(row.dy + i), x = Load1(row.x + i);
    Store1(Gradient<way>(row, g, x, Load1(gamma + i), sum), row.dx + i);
    if constexpr (way == Way::kColumns) Store1(sum, dgamma + i);
  }
  if (i == count) return;
  if constexpr (way == Way::kColumns) sum = Load1(dgamma + i);
  const VF g = LoadLast(row.dy, count), x = LoadLast(row.x, count);
  StoreLast(Gradient<way>(row, g, x, Load1(gamma + i), sum), row.dx, count);
  if constexpr (way == Way::kColumns) Store1(sum, dgamma + i);
}

// One row, or two that share the reads of gamma and dgamma.
template <bool stream, Way way, int rows, class T>
void Gradients(const Row<T>* from, const float* gamma, float* dgamma, int64_t count,
               int64_t ahead) {
  Row<T> p[rows];  // a copy: the compiler need not fear that the stores to dx change it
  std::copy_n(from, rows, p);
  const int64_t lanes = LaneCount();
  const int64_t pairs = count / (2 * lanes) * (2 * lanes);
  for (int k = 0; k < rows; ++k) GradientRest<way>(p[k], pairs, gamma, dgamma, count);
  for (int64_t i = 0; i < pairs; i += 2 * lanes) {
    HWY_UNROLL(2)
    for (int k = 0; k < rows; ++k) FetchAhead<way>(p[k].dy + ahead + i, 2 * lanes);
    GradientPairs<stream, way, rows>(p, i, gamma, dgamma);
  }
}

template <Way way, int rows, class T>
HWY_INLINE void Gradients(const Row<T>* p, const float* gamma, float* dgamma, int64_t count,
                          int64_t ahead, bool stream) {
  stream ? Gradients<true, way, rows>(p, gamma, dgamma, count, ahead)
         : Gradients<false, way, rows>(p, gamma, dgamma, count, ahead);
}

// ---- By columns ----

template <class T>
void GroupDotsOf(const Params& p, const Group& group, int64_t task) {
  alignas(kLineBytes) float buffer[kChunk];
  const int64_t chunk = task % group.chunks;
  const int64_t begin = task / group.chunks * kDotRows;
  const int64_t end = std::min(begin + kDotRows, group.rows);
  const int64_t column = chunk * kChunk;
  const int64_t count = std::min(kChunk, p.cols - column);
  const float* const gamma = OrderGamma<T>(p, column, count, buffer);
  for (int64_t i = begin; i < end; ++i) {
    VF dot;
    const Row<T> row = RowOf<T>(p, group.first + i, column);
    ChunkDots<Way::kColumns, 1>(&row, gamma, nullptr, count, 0, &dot);
    group.sums[i * group.chunks + chunk] = SumLanes(dot);
  }
}

template <class T>
void GroupColumnsOf(const Params& p, const Group& group, int64_t piece) {
  alignas(kLineBytes) float buffer[kPiece];
  alignas(kLineBytes) float sums[kPiece];
  const int64_t column = piece * kPiece;
  const int64_t count = std::min(kPiece, p.cols - column);
  float* const dgamma = static_cast<float*>(p.dgamma) + column;
  const auto row_of = [&](int64_t i) HWY_ATTR {
    Row<T> row = RowOf<T>(p, group.first + i, column);
    row.slope = group.means[i] * row.rstd;
    return row;
  };
  const float* const gamma = OrderGamma<T>(p, column, count, buffer);
  const bool chains = group.totals.data;
  const Totals totals = group.totals.From(column);
  if (group.first == 0 || (chains && group.first % kChain == 0)) {
    Clear(sums, count);
  } else {
    InPairOrder<T>(dgamma, count, sums);
  }
  for (int64_t i = 0; i < group.rows;) {
    const int64_t end = chains ? std::min(group.rows, i + kChain - (group.first + i) % kChain) : group.rows;
    for (; i + 2 <= end; i += 2) {
      const Row<T> two[2] = {row_of(i), row_of(i + 1)};
      Gradients<Way::kColumns, 2>(two, gamma, sums, count, 0, group.stream);
    }
    if (i < end) {
      const Row<T> one = row_of(i++);
      Gradients<Way::kColumns, 1>(&one, gamma, sums, count, 0, group.stream);
    }
    const int64_t row = group.first + i;
    if (chains && row % kChain == 0) MoveTo(totals, sums, count, row == kChain);
  }
  if (chains && group.first + group.rows == p.rows) TakeTotals(totals, sums, count);
  StoreDgamma<T>(sums, count, dgamma);
  if (group.stream) EndStream();
}

// ---- By blocks of rows ----

inline constexpr int64_t kTileBytes = 16 << 10;  // of dy and x: two tiles stay in the first cache
inline constexpr int64_t kLongTile = 4;          // rows, where not even two fit into that

// Rows that share gamma and dgamma in the first read. Long rows get both from the second cache, in FLOAT as many
// bytes as two more rows have. In the second read rows that take turns vector by vector would write dx here and there,
// which costs more than gamma does; they take turns by pieces, for which gamma stays in the first cache. RmsNormGrad
// 4096x4096 on a Zen 4, two rows together in both reads: 1.16 times the floor where the cores share their way to the
// memory and 1.39 where they do not, so 1.13 and 1.29; in BF16 1.27 and 1.46, so 1.21 and 1.24.
template <Way way>
inline constexpr int kTogether = way == Way::kLongRows ? 4 : 2;

// The dot products of some rows over the chunk that begins at column j.
template <Way way, int rows, class T>
HWY_INLINE void TileDots(const Row<T>* row, const Blocks& w, int64_t j, int64_t columns,
                         int64_t ahead, float* sums, VF* dots) {
  Row<T> p[rows];
  for (int k = 0; k < rows; ++k) p[k] = row[k].From(j);
  ChunkDots<way, rows>(p, w.gamma + j, sums + j, columns, ahead, dots);
}

// Sets the slopes of some rows and adds their part of dgamma to `sums`.
template <Way way, class T>
HWY_INLINE void ReadTile(const Params& p, const Blocks& w, Row<T>* rows, int64_t count,
                         int64_t ahead, float* sums) {
  constexpr int together = kTogether<way>;
  double totals[kTileRows] = {};
  for (int64_t j = 0; j < p.cols; j += kChunk) {
    VF dots[kTileRows];
    alignas(kLineBytes) float chunk_sums[kSums];
    const int64_t columns = std::min(kChunk, p.cols - j);
    int64_t k = 0;
    for (; k + together <= count; k += together) {
      TileDots<way, together>(rows + k, w, j, columns, ahead, sums, dots + k);
    }
    for (; k < count; ++k) TileDots<way, 1>(rows + k, w, j, columns, ahead, sums, dots + k);
    if (count == kTileRows) {
      SumTile(dots, chunk_sums);
    } else {
      for (k = 0; k < count; ++k) chunk_sums[k] = SumLanes(dots[k]);
    }
    for (k = 0; k < count; ++k) totals[k] += chunk_sums[k];
  }
  for (int64_t k = 0; k < count; ++k) {
    rows[k].slope = MeanOf(totals[k], p.cols) * rows[k].rstd;
  }
}

// The slopes of a tile of rows, then their dx.
template <Way way, class T>
HWY_INLINE void RowTile(const Params& p, const Blocks& w, int64_t first, int64_t count,
                        int64_t ahead, float* sums) {
  Row<T> rows[kTileRows];
  for (int64_t k = 0; k < count; ++k) rows[k] = RowOf<T>(p, first + k, 0);
  ReadTile<way>(p, w, rows, count, ahead, sums);
  for (int64_t j = 0; j < p.cols; j += kPiece) {
    const int64_t columns = std::min(kPiece, p.cols - j);
    for (int64_t k = 0; k < count; ++k) {
      const Row<T> row = rows[k].From(j);
      Gradients<way, 1>(&row, w.gamma + j, nullptr, columns, ahead, w.stream);
    }
  }
}

template <Way way, class T>
void RowBlockOf(const Params& p, const Blocks& w, int64_t block, int64_t tile) {
  float* const sums = w.sums + block * w.width;
  const int64_t end = std::min((block + 1) * w.rows, p.rows);
  Clear(sums, p.cols);
  for (int64_t i = block * w.rows; i < end; i += tile) {
    const int64_t count = std::min(tile, end - i);
    // Beyond the end of the block, too: the next one is this thread's as a rule.
    const int64_t ahead = i + 2 * count <= p.rows ? count * p.cols : 0;
    RowTile<way, T>(p, w, i, count, ahead, sums);
  }
  if (w.stream) EndStream();
}

// ---- Rows that stay in the registers from the first read to the second ----

inline constexpr int kMostPairs = 4;

// Half costs more to convert than to keep. Other x are read again, from the first cache, and leave the registers to dy times
// gamma.
template <class T>
inline constexpr bool kKeepsX = std::is_same_v<T, Half>;

// A row between its two reads.
template <int pairs, class T>
struct HeldRow {
  HWY_INLINE HeldRow() {}  // the compiler's own would not be one of the target

  VF weighted[2 * pairs];
  VF x[kKeepsX<T> ? 2 * pairs : 1];
  VF rstd;
  VF slope;
};

// What is written beside the reads in the caches takes a Zen 4 as long to fetch as what is read.
template <bool stream, class T>
HWY_INLINE void FetchRows(const Row<T>& row, int64_t column, int64_t count) {
  if (stream || !is_zen) {
    FetchStream(row.dy + column, count);
    FetchStream(row.x + column, count);
  } else {
    const int64_t near = column + kNear / static_cast<int64_t>(sizeof(T));
    FetchNear(row.dy + near, count);
    FetchNear(row.x + near, count);
    FetchNear(row.dx + near, count);
  }
}

template <bool stream, int pairs, class T>
HWY_INLINE void HoldRow(const Row<T>& row, const float* gamma, VF* dgamma,
                        HeldRow<pairs, T>& held) {
  const F32 d;
  const int64_t lanes = LaneCount();
  held.rstd = hn::Set(d, row.rstd);
  VF dots[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  HWY_UNROLL(4)
  for (int k = 0; k < pairs; ++k) {
    const int64_t column = 2 * k * lanes;
    FetchRows<stream>(row, column, 2 * lanes);
    VF g[2], x[2];
    Load2(row.dy + column, g[0], g[1]);
    Load2(row.x + column, x[0], x[1]);
    HWY_UNROLL(2)
    for (int v = 2 * k; v < 2 * k + 2; ++v) {
      const VF u = hn::Mul(x[v % 2], held.rstd);
      held.weighted[v] = hn::Mul(g[v % 2], Load1(gamma + v * lanes));
      if constexpr (kKeepsX<T>) held.x[v] = x[v % 2];
      dots[v % 4] = hn::MulAdd(held.weighted[v], u, dots[v % 4]);
      dgamma[v] = hn::MulAdd(g[v % 2], u, dgamma[v]);
    }
  }
  const VF dot = hn::Add(hn::Add(dots[0], dots[1]), hn::Add(dots[2], dots[3]));
  held.slope = hn::Set(d, MeanOf(SumLanes(dot), 2 * pairs * lanes) * row.rstd);
}

template <bool stream, int pairs, class T>
HWY_INLINE void WriteRow(const Row<T>& row, const HeldRow<pairs, T>& held) {
  HWY_UNROLL(4)
  for (int k = 0; k < pairs; ++k) {
    const int64_t column = 2 * k * LaneCount();
    VF x[2];
    if constexpr (kKeepsX<T>) {
      x[0] = held.x[2 * k];
      x[1] = held.x[2 * k + 1];
    } else {
      Load2(row.x + column, x[0], x[1]);
    }
    const auto dx = [&](int v) HWY_ATTR {
      return hn::Mul(hn::NegMulAdd(x[v], held.slope, held.weighted[2 * k + v]), held.rstd);
    };
    stream ? Stream2(dx(0), dx(1), row.dx + column) : Store2(dx(0), dx(1), row.dx + column);
  }
}

// A row may be written after the next one was read: no processor looks far enough ahead to find work while the lanes of a
// sum are added. 32768x128 on a Zen 4 takes 340 us so in BF16 and 374 in FLOAT16; row by row it was 425 and 434. Past the
// caches the memory has no use for that: 262144x128 in FLOAT takes 1.05 times the floor row by row, and 1.10 so.
template <bool stream, class T>
inline constexpr bool kWritesLate = !stream || std::is_same_v<T, BFloat16>;

template <class Held, class Hold, class Write>
HWY_INLINE void WriteLate(int64_t i, int64_t end, const Hold& hold, const Write& write) {
  Held even, odd;
  for (hold(i, even); i + 2 < end; i += 2) {
    hold(i + 1, odd);
    write(i, even);
    hold(i + 2, even);
    write(i + 1, odd);
  }
  if (i + 2 == end) {
    hold(i + 1, odd);
    write(i, even);
    write(i + 1, odd);
  } else {
    write(i, even);
  }
}

// Puts the rows' part of dgamma into `sums`. The bits are those of tiles.
template <bool stream, int pairs, class T>
void RowsInRegisters(const Params& p, const Blocks& w, int64_t begin, int64_t end, float* sums) {
  // Copies: the compiler need not fear that the stores to dx change them.
  const Row<T> first = RowOf<T>(p, 0, 0);
  const void* const rstd = p.rstd;
  const float* const gamma = w.gamma;
  const auto row_of = [=](int64_t i) HWY_ATTR {
    Row<T> row = first.From(i * 2 * pairs * LaneCount());
    row.rstd = LoadFloat(rstd, i);
    return row;
  };
  VF dgamma[2 * pairs];
  HWY_UNROLL(8)
  for (int v = 0; v < 2 * pairs; ++v) dgamma[v] = hn::Zero(F32());
  const auto hold = [&](int64_t i, HeldRow<pairs, T>& held)
                        HWY_ATTR { HoldRow<stream>(row_of(i), gamma, dgamma, held); };
  const auto write = [&](int64_t i, const HeldRow<pairs, T>& held)
                         HWY_ATTR { WriteRow<stream>(row_of(i), held); };
  if constexpr (kWritesLate<stream, T>) {
    WriteLate<HeldRow<pairs, T>>(begin, end, hold, write);
  } else {
    HeldRow<pairs, T> held;
    for (int64_t i = begin; i < end; ++i) {
      hold(i, held);
      write(i, held);
    }
  }
  HWY_UNROLL(8)
  for (int v = 0; v < 2 * pairs; ++v) Store1(dgamma[v], sums + v * LaneCount());
}

template <class T, int pairs = 1>
void ShortRows(const Params& p, const Blocks& w, int64_t block) {
  if constexpr (pairs < kMostPairs) {
    if (p.cols > 2 * pairs * LaneCount()) return ShortRows<T, pairs + 1>(p, w, block);
  }
  float* const sums = w.sums + block * w.width;
  const int64_t begin = block * w.rows, end = std::min(begin + w.rows, p.rows);
  w.stream ? RowsInRegisters<true, pairs, T>(p, w, begin, end, sums)
           : RowsInRegisters<false, pairs, T>(p, w, begin, end, sums);
  if (w.stream) EndStream();
}

template <class T>
void RowBlockOf(const Params& p, const Blocks& w, int64_t block) {
  const int64_t pair = 2 * LaneCount();
  if (p.cols % pair == 0 && p.cols <= kMostPairs * pair) return ShortRows<T>(p, w, block);
  const int64_t row_bytes = 2 * p.cols * static_cast<int64_t>(sizeof(T));
  const int64_t tile = std::min<int64_t>(kTileBytes / row_bytes, kTileRows) & ~int64_t{1};
  tile > 0 ? RowBlockOf<Way::kShortRows, T>(p, w, block, tile)
           : RowBlockOf<Way::kLongRows, T>(p, w, block, kLongTile);
}

// The sums of more blocks than make a chain. On its own, because little work runs on the caller's stack and has few blocks.
HWY_NOINLINE void SumChains(const Blocks& w, int64_t column, int64_t count, float* sums) {
  alignas(kLineBytes) double of_chains[kPiece];
  const Totals totals{of_chains};
  for (int64_t b = 0; b < w.count; ++b) {
    AddTo(sums, w.sums + b * w.width + column, count);
    if ((b + 1) % kChain == 0) MoveTo(totals, sums, count, b + 1 == kChain);
  }
  TakeTotals(totals, sums, count);
}

template <class T>
void SumBlocksOf(const Params& p, const Blocks& w, int64_t piece) {
  alignas(kLineBytes) float sums[kPiece];
  const int64_t column = piece * kPiece;
  const int64_t count = std::min(kPiece, p.cols - column);
  Clear(sums, count);
  if (w.count > kChain) {
    SumChains(w, column, count, sums);
  } else {
    for (int64_t b = 0; b < w.count; ++b) AddTo(sums, w.sums + b * w.width + column, count);
  }
  StoreDgamma<T>(sums, count, static_cast<float*>(p.dgamma) + column);
}

// ---- Entries ----

void GroupDots(const Params& p, const Group& group, int64_t task) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { GroupDotsOf<T>(p, group, task); });
}

void GroupColumns(const Params& p, const Group& group, int64_t piece) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { GroupColumnsOf<T>(p, group, piece); });
}

void OrderWholeGamma(const Params& p, float* room, const float** gamma) {
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { *gamma = OrderGamma<T>(p, 0, p.cols, room); });
}

void RowBlock(const Params& p, const Blocks& w, int64_t block) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { RowBlockOf<T>(p, w, block); });
}

void SumBlocks(const Params& p, const Blocks& w, int64_t piece) {
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { SumBlocksOf<T>(p, w, piece); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(GroupDots);
HWY_EXPORT(GroupColumns);
HWY_EXPORT(OrderWholeGamma);
HWY_EXPORT(RowBlock);
HWY_EXPORT(SumBlocks);

int64_t ElementSize(const Params& p) { return static_cast<int64_t>(SizeOf(p.dtype)); }

// Whole lines only: every row must start on one.
bool Streams(const Params& p) {
  return p.rows * p.cols * 3 * ElementSize(p) >= stream_bytes &&
         p.cols * ElementSize(p) % 64 == 0 && reinterpret_cast<uintptr_t>(p.dx) % 64 == 0;
}

// ---- By columns ----

int64_t Chunks(const Params& p) { return CeilDiv(p.cols, kChunk); }

float MeanOfChunks(const Params& p, const Group& group, int64_t i) {
  double total = 0;
  for (int64_t c = 0; c < group.chunks; ++c) total += group.sums[i * group.chunks + c];
  return MeanOf(total, p.cols);
}

template <class ForEach>
void RunColumns(const Params& p, Group group, int64_t rows_of_group, const ForEach& for_each) {
  const auto dots = HWY_DYNAMIC_DISPATCH(GroupDots);
  const auto columns = HWY_DYNAMIC_DISPATCH(GroupColumns);
  const int64_t pieces = CeilDiv(p.cols, kPiece);
  for (group.first = 0; group.first < p.rows; group.first += rows_of_group) {
    group.rows = std::min(rows_of_group, p.rows - group.first);
    const auto sum_chunk = [&](int64_t i) { dots(p, group, i); };
    const auto write_piece = [&](int64_t i) { columns(p, group, i); };
    for_each(group.chunks * CeilDiv(group.rows, kDotRows), sum_chunk, Order::kForwards);
    for (int64_t i = 0; i < group.rows; ++i) group.means[i] = MeanOfChunks(p, group, i);
    for_each(pieces, write_piece, Order::kBackwards);
  }
}

// One thread and no scratch: below this a second thread costs more than it saves.
bool IsSmall(const Params& p) {
  return p.rows <= 2048 && p.cols <= kTask && p.rows * p.cols <= kTask;
}

// With room for the sums of so many chunks; on the caller's stack, which may be small.
template <int64_t kSums, bool chains>
HWY_NOINLINE void RunSmallOf(const Params& p) {
  float sums[kSums];
  float means[kSums];
  double totals[chains ? CeilDiv(kTask / kOneChain, 64) * 64 : 1];
  const int64_t chunks = Chunks(p);
  RunColumns(p, {0, 0, chunks, sums, means, false, {chains ? totals : nullptr}}, kSums / chunks,
             [](int64_t tasks, const auto& task, Order) {
               for (int64_t i = 0; i < tasks; ++i) task(i);
             });
}

// More rows than one chain have fewer columns than one chunk.
void RunSmall(const Params& p) {
  static_assert(kTask / kOneChain <= kChunk && kOneChain * (kTask / kChunk) <= 512);
  p.rows > kOneChain ? RunSmallOf<2 * kChain, true>(p) : RunSmallOf<512, false>(p);
}

// Few rows give too few blocks; very long ones leave the second cache before they are read again.
bool GoesByColumns(const Params& p) {
  constexpr int64_t kFewRows = 512;
  constexpr int64_t kLongRow = 256 << 10;  // bytes of dy and x
  return p.cols >= 2 * kChunk && (p.rows < kFewRows || 2 * p.cols * ElementSize(p) > kLongRow);
}

// Rows whose dy and x stay in the last cache.
int64_t RowsOfGroup(const Params& p) {
  constexpr int64_t kGroupBytes = 8 << 20;
  return std::clamp<int64_t>(kGroupBytes / (2 * p.cols * ElementSize(p)), 1, p.rows);
}

// The scratch memory: totals, sums, means.
bool HasWideTotals(const Params& p) { return p.rows > kChain * kChain; }
int64_t TotalsBytes(const Params& p) {
  return p.rows > kOneChain ? CeilDiv(p.cols, 64) * 64 * (HasWideTotals(p) ? 8 : 4) : 0;
}

void RunByColumns(const Params& p) {
  const int64_t rows = RowsOfGroup(p);
  auto* const scratch = static_cast<unsigned char*>(p.scratch);
  float* const sums = reinterpret_cast<float*>(scratch + TotalsBytes(p));
  const Totals totals{p.rows > kOneChain ? scratch : nullptr, HasWideTotals(p)};
  RunColumns(p, {0, 0, Chunks(p), sums, sums + rows * Chunks(p), Streams(p), totals}, rows,
             [](int64_t tasks, const auto& task, Order order) { ParallelFor(tasks, task, order); });
}

// ---- By blocks of rows ----

// At least 16 rows, so that the sums of the blocks are little work; 64 blocks feed many threads. More of
// them, where there is room, keep the sums of very many rows exact.
Blocks CutBlocks(const Params& p) {
  constexpr int64_t kBlocks = 64;
  constexpr int64_t kManyRows = 256;
  Blocks w{};
  w.width = CeilDiv(p.cols, 64) * 64;
  const int64_t row_bytes = w.width * static_cast<int64_t>(sizeof(float));
  const int64_t inputs = 2 * p.rows * p.cols * ElementSize(p);
  const int64_t room =
      std::max(kScratchBytes, inputs / 50) / row_bytes - 1;  // one row is for gamma
  const int64_t wanted =
      std::clamp(p.rows / kManyRows, std::min(kBlocks, CeilDiv(p.rows, 16)), p.rows);
  const int64_t blocks = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(room, 1));
  w.rows = CeilDiv(p.rows, 2 * blocks) * 2;
  w.count = CeilDiv(p.rows, w.rows);
  return w;
}

void RunByBlocks(const Params& p) {
  Blocks w = CutBlocks(p);
  float* const scratch = static_cast<float*>(p.scratch);
  HWY_DYNAMIC_DISPATCH(OrderWholeGamma)(p, scratch, &w.gamma);
  w.sums = scratch + w.width;
  w.stream = Streams(p);
  const auto block = HWY_DYNAMIC_DISPATCH(RowBlock);
  ParallelFor(w.count, [&](int64_t i) { block(p, w, i); });
  const auto sum = HWY_DYNAMIC_DISPATCH(SumBlocks);
  ParallelFor(CeilDiv(p.cols, kPiece), [&](int64_t i) { sum(p, w, i); });
}

// ---- The kernels ----

int64_t ScratchBytes(const Params& p) {
  constexpr int64_t kFloat = sizeof(float);
  if (IsSmall(p)) return 0;
  if (GoesByColumns(p)) {
    return TotalsBytes(p) + RowsOfGroup(p) * (Chunks(p) + 1) * kFloat;
  }
  const Blocks w = CutBlocks(p);
  return (w.count + 1) * w.width * kFloat;
}

void FillNan(const Params& p) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t j = 0; j < p.cols; ++j)
    std::memcpy(static_cast<float*>(p.dgamma) + j, &nan, sizeof(nan));
}

void Vector(const Params& p) {
  if (p.rows == 0) return FillNan(p);
  if (IsSmall(p)) return RunSmall(p);
  GoesByColumns(p) ? RunByColumns(p) : RunByBlocks(p);
}

constexpr Kernel kKernels[] = {
    MakeKernel<Params, FitsAlways<Params>, Vector, ScratchBytes>("vector"),
    MakeKernel<Params, FitsAlways<Params>, reference::RmsNormGrad<double>>("reference"),
};

}  // namespace

std::span<const Kernel> RmsNormGradKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
