// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNormGrad on the CPU: the dot product of a row first, then its dx and its part of dgamma from a second
// read that should still be in a cache. Two ways through the rows:
//
//   row blocks  a thread takes a block of rows, two rows at a time, and sums dgamma over its block
//   columns     few or very long rows: all threads share a group of rows and split its columns
//
// Determinism. A row is summed in float over chunks of kChunk columns and the chunks in double, in order, on
// both ways: neither the number of threads nor the batch around a row changes a bit of its dx. dgamma adds the
// rows of a block and then the blocks, in order; the blocks depend on the shape alone.
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

// Rows that are worked on together by columns.
struct Group {
  int64_t first;
  int64_t rows;
  int64_t chunks;
  float* sums;   // [rows][chunks]
  float* means;  // [rows]: m of the formula
  bool stream;
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

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

HWY_INLINE int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(F32())); }

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
  return count % kPiece;
}  // only called when it is not 0

template <class T>
HWY_INLINE VF LoadLast(const T* p, int64_t count) {
  const int64_t piece = LastPiece(count);
  if (piece >= LaneCount()) return Load1(p + count - LaneCount());
  T buffer[hn::MaxLanes(F32())] = {};
  std::memcpy(buffer, p + count - piece, static_cast<size_t>(piece) * sizeof(T));
  return Load1(buffer);
}

template <class T>
HWY_INLINE void StoreLast(VF v, T* p, int64_t count) {
  const int64_t piece = LastPiece(count);
  if (piece >= LaneCount()) return Store1(v, p + count - LaneCount());
  T buffer[hn::MaxLanes(F32())];
  Store1(v, buffer);
  std::memcpy(p + count - piece, buffer, static_cast<size_t>(piece) * sizeof(T));
}

// Drops the lanes that the vector before already had, or the zeros that filled the buffer up (times an
// infinite rstd they are NaN); `rest` are left.
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

// ---- First read: the dot product ----

// Calls up `count` elements of dy and x for the second cache.
template <class T>
HWY_INLINE void Prefetch(const T* dy, const T* x, int64_t count) {
  constexpr int64_t kLine = kLineBytes / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) {
    __builtin_prefetch(dy + i, 0, 2);
    __builtin_prefetch(x + i, 0, 2);
  }
}

HWY_INLINE VF Product(VF g, VF x, VF gamma, VF rstd) {
  return hn::Mul(hn::Mul(g, gamma), hn::Mul(x, rstd));
}

HWY_INLINE VF AddProduct(VF g, VF x, VF gamma, VF rstd, VF sum) {
  return hn::MulAdd(hn::Mul(g, gamma), hn::Mul(x, rstd), sum);
}

template <class T>
HWY_INLINE void AddPair(const T* dy, const T* x, const float* gamma, VF rstd, VF& a, VF& b) {
  VF g0, g1, x0, x1;
  Load2(dy, g0, g1);
  Load2(x, x0, x1);
  a = AddProduct(g0, x0, Load1(gamma), rstd, a);
  b = AddProduct(g1, x1, Load1(gamma + LaneCount()), rstd, b);
}

// Over at most kChunk columns. Four sums hide the latency of the additions. `ahead`: elements from here to
// those that are called up meanwhile; 0: none.
template <class T>
HWY_INLINE float ChunkDot(const T* dy, const T* x, const float* gamma, float rstd, int64_t count,
                          int64_t ahead) {
  const F32 d;
  const int64_t lanes = LaneCount();
  const int64_t pair = 2 * lanes;
  const VF r = hn::Set(d, rstd);
  VF s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * pair <= count; i += 2 * pair) {
    if (ahead) Prefetch(dy + ahead + i, x + ahead + i, 2 * pair);
    AddPair(dy + i, x + i, gamma + i, r, s0, s1);
    AddPair(dy + i + pair, x + i + pair, gamma + i + pair, r, s2, s3);
  }
  for (; i + pair <= count; i += pair) AddPair(dy + i, x + i, gamma + i, r, s0, s1);
  for (; i + lanes <= count; i += lanes) {
    s2 = AddProduct(Load1(dy + i), Load1(x + i), Load1(gamma + i), r, s2);
  }
  if (i < count) {
    const VF last = Product(LoadLast(dy, count), LoadLast(x, count), Load1(gamma + i), r);
    s3 = hn::Add(s3, KeepLast(last, count, count - i));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

template <class T>
HWY_INLINE float Mean(const T* dy, const T* x, const float* gamma, float rstd, int64_t cols,
                      int64_t ahead) {
  double total = 0;
  for (int64_t j = 0; j < cols; j += kChunk) {
    total += ChunkDot(dy + j, x + j, gamma + j, rstd, std::min(kChunk, cols - j), ahead);
  }
  return static_cast<float>(total / static_cast<double>(cols));
}

// ---- Second read: dx and dgamma ----

template <class T>
struct Row {
  const T* dy;
  const T* x;
  T* dx;
  float rstd;
  float mean;
};

template <class T>
HWY_INLINE Row<T> RowOf(const Params& p, int64_t i, int64_t column) {
  const int64_t at = i * p.cols + column;
  return {static_cast<const T*>(p.dy) + at, static_cast<const T*>(p.x) + at,
          static_cast<T*>(p.dx) + at, LoadFloat(p.rstd, i), 0};
}

// dx of one vector; u is x * rstd.
HWY_INLINE VF Gradient(VF g, VF u, VF gamma, VF mean, VF rstd) {
  return hn::Mul(hn::NegMulAdd(u, mean, hn::Mul(g, gamma)), rstd);
}

// One vector of one row: dx to memory, dy * u into `sum`.
template <class T>
HWY_INLINE void GradientOne(const T* dy, const T* x, T* dx, VF gamma, const Row<T>& row, VF& sum) {
  const F32 d;
  const VF rstd = hn::Set(d, row.rstd);
  const VF g = Load1(dy);
  const VF u = hn::Mul(Load1(x), rstd);
  Store1(Gradient(g, u, gamma, hn::Set(d, row.mean), rstd), dx);
  sum = hn::MulAdd(g, u, sum);
}

template <class T>
HWY_INLINE void GradientLast(const Row<T>& row, int64_t count, VF gamma, VF& sum) {
  const F32 d;
  const VF rstd = hn::Set(d, row.rstd);
  const VF g = LoadLast(row.dy, count);
  const VF u = hn::Mul(LoadLast(row.x, count), rstd);
  StoreLast(Gradient(g, u, gamma, hn::Set(d, row.mean), rstd), row.dx, count);
  sum = hn::MulAdd(g, u, sum);
}

// Stores without the care for NaN that costs bfloat16 a third of its rounding.
template <bool stream, class T>
HWY_INLINE void StoreFinite(VF a, VF b, T* p) {
  stream ? Stream2(a, b, p) : Store2(a, b, p);
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE VU RoundFinite(VF v) {
  const U32 du;
  const VU bits = hn::BitCast(du, v);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  return hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
}
template <bool stream>
HWY_INLINE void StoreFinite(VF even, VF odd, BFloat16* p) {
  const VU high = hn::And(RoundFinite(odd), hn::Set(U32(), 0xffff0000u));
  const auto both = hn::BitCast(Pair16(), hn::Or(hn::ShiftRight<16>(RoundFinite(even)), high));
  stream ? hn::Stream(both, Pair16(), Bits(p)) : hn::StoreU(both, Pair16(), Bits(p));
}
#endif

template <bool stream, bool finite, class T>
HWY_INLINE void StoreDx(VF a, VF b, T* p) {
  if constexpr (finite) {
    StoreFinite<stream>(a, b, p);
  } else {
    stream ? Stream2(a, b, p) : Store2(a, b, p);
  }
}

// Two vectors of one row at column i.
template <bool stream, bool finite, class T>
HWY_INLINE void GradientPair(const Row<T>& row, int64_t i, VF gamma0, VF gamma1, VF& sum0,
                             VF& sum1) {
  const F32 d;
  const VF rstd = hn::Set(d, row.rstd);
  const VF mean = hn::Set(d, row.mean);
  VF g0, g1, u0, u1;
  Load2(row.dy + i, g0, g1);
  Load2(row.x + i, u0, u1);
  u0 = hn::Mul(u0, rstd);
  u1 = hn::Mul(u1, rstd);
  const VF dx0 = Gradient(g0, u0, gamma0, mean, rstd);
  const VF dx1 = Gradient(g1, u1, gamma1, mean, rstd);
  StoreDx<stream, finite>(dx0, dx1, row.dx + i);
  sum0 = hn::MulAdd(g0, u0, sum0);
  sum1 = hn::MulAdd(g1, u1, sum1);
}

// One row, or two that share the reads and writes of gamma and dgamma. `ahead` as in ChunkDot, from q.
template <bool stream, bool finite, bool two, class T>
void Gradients(const Row<T>& p, const Row<T>& q, const float* gamma, float* dgamma, int64_t count,
               int64_t ahead) {
  const F32 d;
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    if (ahead) Prefetch(q.dy + ahead + i, q.x + ahead + i, 2 * lanes);
    const VF gamma0 = Load1(gamma + i), gamma1 = Load1(gamma + i + lanes);
    VF sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    GradientPair<stream, finite>(p, i, gamma0, gamma1, sum0, sum1);
    if (two) GradientPair<stream, finite>(q, i, gamma0, gamma1, sum0, sum1);
    Store1(hn::Add(Load1(dgamma + i), sum0), dgamma + i);
    Store1(hn::Add(Load1(dgamma + i + lanes), sum1), dgamma + i + lanes);
  }
  for (; i + lanes <= count; i += lanes) {
    VF sum = hn::Zero(d);
    GradientOne(p.dy + i, p.x + i, p.dx + i, Load1(gamma + i), p, sum);
    if (two) GradientOne(q.dy + i, q.x + i, q.dx + i, Load1(gamma + i), q, sum);
    Store1(hn::Add(Load1(dgamma + i), sum), dgamma + i);
  }
  if (i < count) {
    VF sum = hn::Zero(d);
    GradientLast(p, count, Load1(gamma + i), sum);
    if (two) GradientLast(q, count, Load1(gamma + i), sum);
    Store1(hn::Add(Load1(dgamma + i), sum), dgamma + i);
  }
}

// A finite mean says that all products of its row were finite, hence dy, gamma, u and rstd, and dx is no NaN.
template <bool two, class T>
HWY_INLINE void Gradients(const Row<T>& p, const Row<T>& q, const float* gamma, float* dgamma,
                          int64_t count, int64_t ahead, bool stream) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (std::isfinite(p.mean) && std::isfinite(q.mean)) {
      return stream ? Gradients<true, true, two>(p, q, gamma, dgamma, count, ahead)
                    : Gradients<false, true, two>(p, q, gamma, dgamma, count, ahead);
    }
  }
  stream ? Gradients<true, false, two>(p, q, gamma, dgamma, count, ahead)
         : Gradients<false, false, two>(p, q, gamma, dgamma, count, ahead);
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
    const Row<T> row = RowOf<T>(p, group.first + i, column);
    group.sums[i * group.chunks + chunk] = ChunkDot(row.dy, row.x, gamma, row.rstd, count, 0);
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
    row.mean = group.means[i];
    return row;
  };
  const float* const gamma = OrderGamma<T>(p, column, count, buffer);
  if (group.first == 0) {
    Clear(sums, count);
  } else {
    InPairOrder<T>(dgamma, count, sums);
  }
  int64_t i = 0;
  for (; i + 2 <= group.rows; i += 2) {
    Gradients<true>(row_of(i), row_of(i + 1), gamma, sums, count, 0, group.stream);
  }
  if (i < group.rows) Gradients<false>(row_of(i), row_of(i), gamma, sums, count, 0, group.stream);
  StoreDgamma<T>(sums, count, dgamma);
  if (group.stream) EndStream();
}

// ---- By blocks of rows ----

template <class T>
HWY_INLINE Row<T> RowWithMean(const Params& p, const Blocks& w, int64_t i, int64_t ahead) {
  Row<T> row = RowOf<T>(p, i, 0);
  row.mean = Mean(row.dy, row.x, w.gamma, row.rstd, p.cols, ahead);
  return row;
}

template <class T>
void RowBlockOf(const Params& p, const Blocks& w, int64_t block) {
  constexpr int64_t kAheadBytes = 4096;  // what is on its way to the caches at least
  float* const sums = w.sums + block * w.width;
  const int64_t end = std::min((block + 1) * w.rows, p.rows);
  const int64_t row_bytes = p.cols * static_cast<int64_t>(sizeof(T));
  const int64_t ahead_rows = std::max<int64_t>(2, CeilDiv(kAheadBytes, row_bytes));
  Clear(sums, p.cols);
  int64_t i = block * w.rows;
  for (; i + 2 <= end; i += 2) {
    // Of the two rows to come one is called up during the first read and one during the second.
    const int64_t ahead = i + ahead_rows + 2 <= end ? ahead_rows * p.cols : 0;
    const Row<T> first = RowWithMean<T>(p, w, i, ahead);
    const Row<T> second = RowWithMean<T>(p, w, i + 1, 0);
    Gradients<true>(first, second, w.gamma, sums, p.cols, ahead, w.stream);
  }
  if (i < end) {
    const Row<T> row = RowWithMean<T>(p, w, i, 0);
    Gradients<false>(row, row, w.gamma, sums, p.cols, 0, w.stream);
  }
  if (w.stream) EndStream();
}

template <class T>
void SumBlocksOf(const Params& p, const Blocks& w, int64_t piece) {
  alignas(kLineBytes) float sums[kPiece];
  const int64_t column = piece * kPiece;
  const int64_t count = std::min(kPiece, p.cols - column);
  Clear(sums, count);
  for (int64_t b = 0; b < w.count; ++b) AddTo(sums, w.sums + b * w.width + column, count);
  StoreDgamma<T>(sums, count, static_cast<float*>(p.dgamma) + column);
}

// ---- Entries ----

// Calls body with a null pointer to the type of dy, x and dx.
template <class Body>
HWY_INLINE void WithType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(static_cast<float*>(nullptr));
    case DType::kF16:
      return body(static_cast<Half*>(nullptr));
    case DType::kBF16:
      return body(static_cast<BFloat16*>(nullptr));
    default:
      return;
  }
}

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

// From here on dx does not stay in the caches anyway; see elu_backward.cpu.cc.
constexpr int64_t kStreamBytes = 32 << 20;

constexpr int64_t kScratchBytes = 4 << 20;  // always allowed; above it 2 % of the inputs

int64_t ElementSize(const Params& p) { return static_cast<int64_t>(SizeOf(p.dtype)); }

// Whole lines only: every row must start on one.
bool Streams(const Params& p) {
  return p.rows * p.cols * 3 * ElementSize(p) >= kStreamBytes &&
         p.cols * ElementSize(p) % 64 == 0 && reinterpret_cast<uintptr_t>(p.dx) % 64 == 0;
}

// ---- By columns ----

int64_t Chunks(const Params& p) { return CeilDiv(p.cols, kChunk); }

float MeanOfChunks(const Params& p, const Group& group, int64_t i) {
  double total = 0;
  for (int64_t c = 0; c < group.chunks; ++c) total += group.sums[i * group.chunks + c];
  return static_cast<float>(total / static_cast<double>(p.cols));
}

// Pieces run backwards: the end of the group was read last.
template <class ForEach>
void RunColumns(const Params& p, Group group, int64_t rows_of_group, const ForEach& for_each) {
  const auto dots = HWY_DYNAMIC_DISPATCH(GroupDots);
  const auto columns = HWY_DYNAMIC_DISPATCH(GroupColumns);
  const int64_t pieces = CeilDiv(p.cols, kPiece);
  for (group.first = 0; group.first < p.rows; group.first += rows_of_group) {
    group.rows = std::min(rows_of_group, p.rows - group.first);
    for_each(group.chunks * CeilDiv(group.rows, kDotRows), [&](int64_t i) { dots(p, group, i); });
    for (int64_t i = 0; i < group.rows; ++i) group.means[i] = MeanOfChunks(p, group, i);
    for_each(pieces, [&](int64_t i) { columns(p, group, pieces - 1 - i); });
  }
}

// One thread and no scratch: below this a second thread costs more than it saves.
bool IsSmall(const Params& p) {
  return p.rows <= 2048 && p.cols <= 32 * 1024 && p.rows * p.cols <= 32 * 1024;
}

void RunSmall(const Params& p) {
  constexpr int64_t kSums = 512;
  float sums[kSums];
  float means[kSums];
  const int64_t chunks = Chunks(p);
  RunColumns(p, {0, 0, chunks, sums, means, false}, kSums / chunks,
             [](int64_t tasks, const auto& task) {
               for (int64_t i = 0; i < tasks; ++i) task(i);
             });
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

void RunByColumns(const Params& p) {
  const int64_t rows = RowsOfGroup(p);
  float* const sums = static_cast<float*>(p.scratch);
  RunColumns(p, {0, 0, Chunks(p), sums, sums + rows * Chunks(p), Streams(p)}, rows,
             [](int64_t tasks, const auto& task) { ParallelFor(tasks, task); });
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

int64_t ScratchBytes(const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  constexpr int64_t kFloat = sizeof(float);
  if (IsSmall(p)) return 0;
  if (GoesByColumns(p)) return RowsOfGroup(p) * (Chunks(p) + 1) * kFloat;
  const Blocks w = CutBlocks(p);
  return (w.count + 1) * w.width * kFloat;
}

void FillNan(const Params& p) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t j = 0; j < p.cols; ++j)
    std::memcpy(static_cast<float*>(p.dgamma) + j, &nan, sizeof(nan));
}

bool Fits(const Params&) { return true; }

void Vector(const Params& p) {
  if (p.rows == 0) return FillNan(p);
  if (IsSmall(p)) return RunSmall(p);
  GoesByColumns(p) ? RunByColumns(p) : RunByBlocks(p);
}

constexpr Kernel VectorKernel() {
  Kernel kernel = MakeKernel<Params, Fits, Vector>("vector");
  kernel.scratch_bytes = ScratchBytes;
  return kernel;
}

constexpr Kernel kKernels[] = {
    VectorKernel(),
    MakeKernel<Params, Fits, reference::RmsNormGrad<double>>("reference"),
};

}  // namespace

std::span<const Kernel> RmsNormGradKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
