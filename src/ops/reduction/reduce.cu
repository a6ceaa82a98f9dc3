// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Reductions on CUDA. Rows: threads side by side share a sequence, four neighbouring elements each in turn, and join what
// they have in a tree. Columns: a thread per sequence. Long sequences are cut into pieces, and a second kernel joins these.
// Who takes which element follows from the shape alone: no address, stride or device changes a bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "ops/pointwise/convert.cuh"
#include "ops/pointwise/steps.cuh"
#include "ops/reduction/reduce.h"

namespace anyacl::reduction {
namespace {

using pointwise::Compute;
using pointwise::Steps;
using pointwise::device::BFloat16;
using pointwise::device::Half;
using pointwise::device::Pair;

template <class T>
HWY_INLINE bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

// ---- What is folded, as on the CPU ---------------------------------------------------------------------------------

// A sum and what its additions lost (Knuth's two-sum): DOUBLE keeps about its last bit.
struct TwoSum {
  double sum, lost;
  HWY_INLINE void Add(double x) {
    const double next = sum + x;
    const double part = next - sum;
    lost += (sum - (next - part)) + (x - part);
    sum = next;
  }
  HWY_INLINE void Join(const TwoSum& other) {
    Add(other.sum);
    lost += other.lost;
  }
  HWY_INLINE double Value() const { return std::isfinite(sum) ? sum + lost : sum; }
};
// FLOAT is added up in DOUBLE, whose roundings do not matter.
struct PlainSum {
  double sum;
  HWY_INLINE void Add(double x) { sum += x; }
  HWY_INLINE void Join(const PlainSum& other) { sum += other.sum; }
  HWY_INLINE double Value() const { return sum; }
};
struct WrappingSum {
  uint64_t sum;
  HWY_INLINE void Add(uint64_t x) { sum += x; }
  HWY_INLINE void Join(const WrappingSum& other) { sum += other.sum; }
};
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, float>, PlainSum, std::conditional_t<std::is_same_v<T, double>, TwoSum, WrappingSum>>;

// Each has: Element; State, and the one of nothing; Add of the element at a place; Join; Write of the k-th result.

template <class T, bool kSkipNan>
struct Sum {
  using Element = T;
  using State = SumOf<T>;
  static HWY_INLINE State Nothing() { return {}; }
  static HWY_INLINE void Add(State& s, T x, int64_t, double) {
    if constexpr (kSkipNan) x = IsNan(x) ? T(0) : x;
    s.Add(static_cast<decltype(s.sum)>(x));
  }
  static HWY_INLINE void Join(State& a, const State& b) { a.Join(b); }
};

template <class T>
struct ComplexSum {
  using Element = Pair<T>;
  struct State {
    SumOf<T> re, im;
  };
  static HWY_INLINE State Nothing() { return {}; }
  static HWY_INLINE void Add(State& s, Pair<T> x, int64_t, double) {
    s.re.Add(x.re);
    s.im.Add(x.im);
  }
  static HWY_INLINE void Join(State& a, const State& b) {
    a.re.Join(b.re);
    a.im.Join(b.im);
  }
};

template <class T>
struct Squares {
  using Element = T;
  using State = SumOf<T>;
  static HWY_INLINE State Nothing() { return {}; }
  static HWY_INLINE void Add(State& s, T x, int64_t, double center) {
    const double d = static_cast<double>(x) - center;
    s.Add(d * d);
  }
  static HWY_INLINE void Join(State& a, const State& b) { a.Join(b); }
};

template <class T>
struct Multiply {
  using Element = T;
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  struct State {
    Wide product;
  };
  static HWY_INLINE State Nothing() { return {1}; }
  static HWY_INLINE void Add(State& s, T x, int64_t, double) { s.product *= static_cast<Wide>(x); }
  static HWY_INLINE void Join(State& a, const State& b) { a.product *= b.product; }
};

template <class T>
struct ComplexMultiply {
  using Element = Pair<T>;
  struct State {
    double real, imaginary;
  };
  static HWY_INLINE State Nothing() { return {1, 0}; }
  static HWY_INLINE void By(State& s, double re, double im) {
    s = {s.real * re - s.imaginary * im, s.real * im + s.imaginary * re};
  }
  static HWY_INLINE void Add(State& s, Pair<T> x, int64_t, double) { By(s, x.re, x.im); }
  static HWY_INLINE void Join(State& a, const State& b) { By(a, b.real, b.imaginary); }
};

// The largest or smallest and its place; equal ones count by the lower place, NaN is beyond every number.
template <class T, bool kLargest>
struct Extreme {
  using Element = T;
  struct State {
    T value;
    int64_t place;  // -1: none yet
  };
  static HWY_INLINE State Nothing() { return {T(0), -1}; }
  static HWY_INLINE bool Beats(T x, T y) {
    const bool beyond = kLargest ? x > y : x < y;
    return beyond | (IsNan(x) & !IsNan(y));
  }
  static HWY_INLINE void Add(State& s, T x, int64_t at, double) {  // in rising order
    if (s.place < 0 || Beats(x, s.value)) s = {x, at};
  }
  static HWY_INLINE void Join(State& a, const State& b) {
    if (b.place < 0) return;
    if (a.place < 0 || Beats(b.value, a.value) || (!Beats(a.value, b.value) && b.place < a.place)) a = b;
  }
};

// Is some element 0 (kZero) or not?
template <class T, bool kZero>
struct Test {
  using Element = T;
  struct State {
    bool found;
  };
  static HWY_INLINE State Nothing() { return {false}; }
  static HWY_INLINE void Add(State& s, T x, int64_t, double) {
    bool zero;
    if constexpr (requires { x.re; }) zero = x.re == 0 && x.im == 0;
    else zero = x == 0;
    s.found |= zero == kZero;
  }
  static HWY_INLINE void Join(State& a, const State& b) { a.found |= b.found; }
};

// sum of exp(x - max), for the largest x so far.
template <class T>
struct ExpSum {
  using Element = T;
  struct State {
    double max, exps;
  };
  static HWY_INLINE State Nothing() { return {-std::numeric_limits<double>::infinity(), 0}; }
  static HWY_INLINE void Add(State& s, T element, int64_t, double) {
    const double x = element;
    const bool larger = x > s.max;
    // Infinities are equal, and their difference is NaN.
    const double factor = x == s.max ? 1 : std::exp(larger ? s.max - x : x - s.max);
    s.exps = larger ? s.exps * factor + 1 : s.exps + factor;
    s.max = larger ? x : s.max;
  }
  static HWY_INLINE void Join(State& a, const State& b) {
    if (a.max == b.max) {
      a.exps += b.exps;
    } else if (a.max < b.max) {
      a = {b.max, a.exps * std::exp(a.max - b.max) + b.exps};
    } else {
      a.exps += b.exps * std::exp(b.max - a.max);
    }
  }
};

// ---- Results -------------------------------------------------------------------------------------------------------

template <class T>
HWY_INLINE void Put(const ReduceParams& p, int64_t k, T value) {
  static_cast<T*>(p.out)[k] = value;
}

HWY_INLINE double Finished(const ReduceParams& p, double value) {
  switch (p.finish) {
    case Finish::kNone:
      return value;
    case Finish::kDivide:
      return value / p.divisor;
    case Finish::kDivideAndRoot:
      return std::sqrt(value / p.divisor);
    case Finish::kLog:
      return std::log(value);
  }
  return value;
}

HWY_INLINE void PutReal(const ReduceParams& p, int64_t k, double value) {
  value = Finished(p, value);
  if (p.out_type == DType::kF32) Put(p, k, static_cast<float>(value));
  else Put(p, k, value);
}

HWY_INLINE void PutWhole(const ReduceParams& p, int64_t k, uint64_t value) {
  if (p.finish == Finish::kDivide) {  // a mean of integers is cut off towards zero; that of none is 0
    const auto divisor = static_cast<int64_t>(p.divisor);
    value = divisor == 0 ? 0 : static_cast<uint64_t>(static_cast<int64_t>(value) / divisor);
  }
  Put(p, k, value);
}

HWY_INLINE void PutPair(const ReduceParams& p, int64_t k, double re, double im) {
  re = Finished(p, re);
  im = Finished(p, im);
  if (p.out_type == DType::kC64) Put(p, k, Pair<float>{static_cast<float>(re), static_cast<float>(im)});
  else Put(p, k, Pair<double>{re, im});
}

template <class State>
HWY_INLINE void Write(const ReduceParams& p, int64_t k, const State& s) {
  if constexpr (requires { s.found; }) {
    Put(p, k, static_cast<unsigned char>(s.found == (p.op == Op::kAny)));
  } else if constexpr (requires { s.place; }) {
    if (p.out) Put(p, k, s.value);
    if (p.places) static_cast<int64_t*>(p.places)[k] = s.place;
  } else if constexpr (requires { s.exps; }) {
    PutReal(p, k, std::log(s.exps) + s.max);
  } else if constexpr (requires { s.re; }) {
    PutPair(p, k, s.re.Value(), s.im.Value());
  } else if constexpr (requires { s.imaginary; }) {
    PutPair(p, k, s.real, s.imaginary);
  } else if constexpr (requires { s.product; }) {
    if constexpr (std::is_integral_v<decltype(s.product)>) PutWhole(p, k, s.product);
    else PutReal(p, k, s.product);
  } else if constexpr (std::is_same_v<State, WrappingSum>) {
    PutWhole(p, k, s.sum);
  } else {
    PutReal(p, k, s.Value());
  }
}

// ---- The walk ------------------------------------------------------------------------------------------------------

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kFour = 4;         // neighbours that a thread takes in one turn
constexpr int kTurns = 4;        // that it loads at a time
constexpr int kBatch = 8;        // elements of a column, likewise
constexpr int64_t kRowOfWarp = 1024;    // the longest one
constexpr int64_t kRowPiece = 16384;
constexpr int64_t kColumnPiece = 64;    // the shortest one
constexpr int64_t kManyThreads = int64_t{1} << 18;  // enough to keep a GPU busy

// How elements are stored: as they are folded, in 16 bits, or otherwise.
enum class Storage : uint8_t { kNatural, kHalf, kBFloat16, kOther };

struct Walk {
  Steps kept;
  Steps over;
  int64_t piece;   // elements of a sequence
  int64_t pieces;
  int side;        // threads that share a row
  Storage storage;
  bool in_fours;   // four neighbours of a sequence lie side by side
};

template <bool kMany = true>
HWY_INLINE int64_t OffsetOf(const Steps& steps, const Axis* axes, int64_t index) {
  int64_t offset = 0;
  steps.ForCoordinates<kMany>(index, [&](int axis, int64_t at) { offset += at * axes[axis].stride; });
  return offset;
}

template <class T>
HWY_NOINLINE T LoadSlowly(const void* data, DType dtype, int64_t at) {
  return pointwise::device::LoadElement<T>(data, dtype, at);
}

// Four elements at an address that is a multiple of their bytes, or of 16.
template <class T>
union Four {
  uint4 bits[sizeof(T) * kFour / sizeof(uint4)];
  T x[kFour];
  HWY_INLINE Four() {}
};

// Whether the elements of all turns could be loaded as vectors.
template <class T>
HWY_INLINE bool LoadTurns(const ReduceParams& p, const Walk& walk, const int64_t (&at)[kTurns], T (&x)[kTurns][kFour]) {
  int64_t any = 0;
#pragma unroll
  for (int r = 0; r < kTurns; ++r) any |= at[r];
  const auto address = reinterpret_cast<uintptr_t>(p.in);
  if (walk.storage == Storage::kNatural) {
    if ((address | any * sizeof(T)) % sizeof(uint4) != 0) return false;
    Four<T> four[kTurns];
#pragma unroll
    for (int r = 0; r < kTurns; ++r) {
      const auto* const from = reinterpret_cast<const uint4*>(static_cast<const T*>(p.in) + at[r]);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(T) * kFour / sizeof(uint4)); ++i) four[r].bits[i] = from[i];
    }
#pragma unroll
    for (int r = 0; r < kTurns; ++r) {
#pragma unroll
      for (int i = 0; i < kFour; ++i) x[r][i] = four[r].x[i];
    }
    return true;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (walk.storage == Storage::kOther || (address | any * 2) % sizeof(uint2) != 0) return false;
    uint2 bits[kTurns];
#pragma unroll
    for (int r = 0; r < kTurns; ++r) bits[r] = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(p.in) + at[r]);
#pragma unroll
    for (int r = 0; r < kTurns; ++r) {
#pragma unroll
      for (int i = 0; i < kFour; ++i) {
        Half half;
        half.bits = static_cast<uint16_t>((i < 2 ? bits[r].x : bits[r].y) >> 16 * (i % 2));
        BFloat16 brief;
        brief.bits = half.bits;
        x[r][i] = walk.storage == Storage::kHalf ? static_cast<float>(half) : static_cast<float>(brief);
      }
    }
    return true;
  }
  return false;
}

HWY_INLINE double CenterOf(const ReduceParams& p, int64_t k) {
  return p.center ? static_cast<const double*>(p.center)[k] : 0;
}

// What `side` neighbouring threads have becomes that of the first.
template <class OpT>
HWY_INLINE typename OpT::State JoinThreads(const typename OpT::State& mine, int side) {
  using State = typename OpT::State;
  __shared__ alignas(16) unsigned char memory[kThreads * sizeof(State)];
  State* const states = reinterpret_cast<State*>(memory);
  const int t = static_cast<int>(threadIdx.x);
  states[t] = mine;
  for (int half = side / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t % side < half) OpT::Join(states[t], states[t + half]);
  }
  return states[t];
}

// The piece of a sequence is the result, or a state in the scratch memory.
template <class OpT>
HWY_INLINE void Leave(const ReduceParams& p, const Walk& walk, int64_t k, int64_t piece, const typename OpT::State& state) {
  if (walk.pieces == 1) Write(p, k, state);
  else static_cast<typename OpT::State*>(p.scratch)[piece * p.results + k] = state;
}

template <class OpT>
__global__ void __launch_bounds__(kThreads) Rows(const __grid_constant__ ReduceParams p, const __grid_constant__ Walk walk) {
  cuda::BeginKernel();
  using T = typename OpT::Element;
  typename OpT::State state = OpT::Nothing();
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / walk.side;
  const int lane = static_cast<int>(threadIdx.x) % walk.side;
  const bool exists = row < p.results * walk.pieces;
  const int64_t k = row / walk.pieces, piece = row % walk.pieces;
  if (exists) {
    const int64_t base = OffsetOf(walk.kept, p.kept, k);
    const int64_t end = min(p.length, (piece + 1) * walk.piece);
    const int64_t turn = int64_t{walk.side} * kFour;
    const double center = CenterOf(p, k);
    for (int64_t i = piece * walk.piece + lane * kFour; i < end; i += turn * kTurns) {
      if (walk.in_fours && i + turn * (kTurns - 1) + kFour <= end) {
        T x[kTurns][kFour];
        int64_t at[kTurns];
#pragma unroll
        for (int r = 0; r < kTurns; ++r) at[r] = base + OffsetOf</*kMany=*/false>(walk.over, p.over, i + r * turn);
        if (LoadTurns(p, walk, at, x)) {
#pragma unroll
          for (int r = 0; r < kTurns; ++r) {
#pragma unroll
            for (int j = 0; j < kFour; ++j) OpT::Add(state, x[r][j], i + r * turn + j, center);
          }
          continue;
        }
      }
#pragma unroll 1
      for (int j = 0; j < kTurns * kFour; ++j) {
        const int64_t at = i + j / kFour * turn + j % kFour;
        if (at >= end) continue;
        OpT::Add(state, LoadSlowly<T>(p.in, p.in_type, base + OffsetOf(walk.over, p.over, at)), at, center);
      }
    }
  }
  state = JoinThreads<OpT>(state, walk.side);
  if (exists && lane == 0) Leave<OpT>(p, walk, k, piece, state);
}

template <class OpT>
__global__ void __launch_bounds__(kThreads) Columns(const __grid_constant__ ReduceParams p, const __grid_constant__ Walk walk) {
  cuda::BeginKernel();
  using T = typename OpT::Element;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= p.results * walk.pieces) return;
  const int64_t k = index % p.results, piece = index / p.results;
  const int64_t base = OffsetOf(walk.kept, p.kept, k);
  const int64_t end = min(p.length, (piece + 1) * walk.piece);
  const double center = CenterOf(p, k);
  typename OpT::State state = OpT::Nothing();
  for (int64_t i = piece * walk.piece; i < end; i += kBatch) {
    if (walk.over.axes > 1) {
#pragma unroll 1
      for (int64_t j = i; j < min(i + kBatch, end); ++j) {
        OpT::Add(state, LoadSlowly<T>(p.in, p.in_type, base + OffsetOf(walk.over, p.over, j)), j, center);
      }
      continue;
    }
    T x[kBatch];
    int64_t at[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) at[j] = base + min(i + j, end - 1) * p.over[0].stride;
    if (walk.storage == Storage::kNatural) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) x[j] = static_cast<const T*>(p.in)[at[j]];
    } else if (std::is_same_v<T, float> && walk.storage == Storage::kHalf) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) x[j] = pointwise::device::Converted<T>(static_cast<const Half*>(p.in)[at[j]]);
    } else if (std::is_same_v<T, float> && walk.storage == Storage::kBFloat16) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) x[j] = pointwise::device::Converted<T>(static_cast<const BFloat16*>(p.in)[at[j]]);
    } else {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) x[j] = LoadSlowly<T>(p.in, p.in_type, at[j]);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (i + j < end) OpT::Add(state, x[j], i + j, center);
    }
  }
  Leave<OpT>(p, walk, k, piece, state);
}

// The pieces of each sequence; walk.side threads share one.
template <class OpT>
__global__ void __launch_bounds__(kThreads) Pieces(const __grid_constant__ ReduceParams p, const __grid_constant__ Walk walk) {
  cuda::BeginKernel();
  using State = typename OpT::State;
  const int64_t k = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / walk.side;
  const int lane = static_cast<int>(threadIdx.x) % walk.side;
  State state = OpT::Nothing();
  if (k < p.results) {
    const State* const states = static_cast<const State*>(p.scratch);
    for (int64_t piece = lane; piece < walk.pieces; piece += walk.side) OpT::Join(state, states[piece * p.results + k]);
  }
  state = JoinThreads<OpT>(state, walk.side);
  if (k < p.results && lane == 0) Write(p, k, state);
}

// ---- Launches ------------------------------------------------------------------------------------------------------

int64_t PieceOf(const ReduceParams& p) {
  if (!p.columns) return kRowPiece;
  const int64_t pieces = std::min(cuda::CeilDiv(kManyThreads, p.results), cuda::CeilDiv(p.length, kColumnPiece));
  return std::max<int64_t>(1, cuda::CeilDiv(p.length, std::max<int64_t>(1, pieces)));
}

int64_t PiecesOf(const ReduceParams& p) { return std::max<int64_t>(1, cuda::CeilDiv(p.length, PieceOf(p))); }

Storage StorageOf(const ReduceParams& p) {
  if (p.in_type == ResultType(Op::kSum, p.compute)) return Storage::kNatural;
  if (p.compute == Compute::kFloat && p.in_type == DType::kF16) return Storage::kHalf;
  if (p.compute == Compute::kFloat && p.in_type == DType::kBF16) return Storage::kBFloat16;
  return Storage::kOther;
}

Walk WalkOf(const ReduceParams& p) {
  Walk walk{};
  for (int i = 0; i < p.kept_axes; ++i) walk.kept.Add(p.kept[i].size);
  for (int i = 0; i < p.over_axes; ++i) walk.over.Add(p.over[i].size);
  walk.piece = PieceOf(p);
  walk.pieces = PiecesOf(p);
  walk.side = p.length <= kRowOfWarp ? kWarp : kThreads;
  walk.storage = StorageOf(p);
  const Axis& inner = p.over[p.over_axes - 1];
  walk.in_fours = inner.stride == 1 && (p.over_axes == 1 || (inner.size % kFour == 0 && !walk.over.many));
  return walk;
}

template <class OpT>
void Run(const ReduceParams& p, const Launch& launch) {
  Walk walk = WalkOf(p);
  const auto blocks = [](int64_t threads) { return cuda::LaunchShape{.blocks = cuda::CeilDiv<int64_t>(threads, kThreads), .threads = kThreads}; };
  if (p.columns || p.length == 0) {
    cuda::LaunchKernel<Columns<OpT>>(launch, blocks(p.results * walk.pieces), p, walk);
  } else {
    cuda::LaunchKernel<Rows<OpT>>(launch, blocks(p.results * walk.pieces * walk.side), p, walk);
  }
  if (walk.pieces == 1) return;
  walk.side = walk.pieces <= kWarp ? 1 : kThreads;
  cuda::LaunchKernel<Pieces<OpT>>(launch, blocks(p.results * walk.side), p, walk);
}

// In the order of Compute; null where the operation has no meaning. Sums and products of UINT64 are those of INT64, bit by
// bit.
struct Fold {
  void (*run)(const ReduceParams& p, const Launch& launch) = nullptr;
  int64_t state_bytes = 0;
};
template <class OpT>
constexpr Fold FoldOf() {
  return {Run<OpT>, sizeof(typename OpT::State)};
}

constexpr Fold kFolds[kOps][pointwise::kComputeTypes] = {
    {FoldOf<Sum<float, false>>(), FoldOf<Sum<double, false>>(), FoldOf<Sum<int64_t, false>>(), FoldOf<Sum<int64_t, false>>(),
     FoldOf<ComplexSum<float>>(), FoldOf<ComplexSum<double>>()},
    {FoldOf<Sum<float, true>>(), FoldOf<Sum<double, true>>(), FoldOf<Sum<int64_t, false>>(), FoldOf<Sum<int64_t, false>>(), {}, {}},
    {FoldOf<Multiply<float>>(), FoldOf<Multiply<double>>(), FoldOf<Multiply<int64_t>>(), FoldOf<Multiply<int64_t>>(),
     FoldOf<ComplexMultiply<float>>(), FoldOf<ComplexMultiply<double>>()},
    {FoldOf<Extreme<float, true>>(), FoldOf<Extreme<double, true>>(), FoldOf<Extreme<int64_t, true>>(),
     FoldOf<Extreme<uint64_t, true>>(), {}, {}},
    {FoldOf<Extreme<float, false>>(), FoldOf<Extreme<double, false>>(), FoldOf<Extreme<int64_t, false>>(),
     FoldOf<Extreme<uint64_t, false>>(), {}, {}},
    {FoldOf<Test<float, false>>(), FoldOf<Test<double, false>>(), FoldOf<Test<int64_t, false>>(), FoldOf<Test<int64_t, false>>(),
     FoldOf<Test<Pair<float>, false>>(), FoldOf<Test<Pair<double>, false>>()},
    {FoldOf<Test<float, true>>(), FoldOf<Test<double, true>>(), FoldOf<Test<int64_t, true>>(), FoldOf<Test<int64_t, true>>(),
     FoldOf<Test<Pair<float>, true>>(), FoldOf<Test<Pair<double>, true>>()},
    {FoldOf<Squares<float>>(), FoldOf<Squares<double>>(), {}, {}, {}, {}},
    {FoldOf<ExpSum<float>>(), FoldOf<ExpSum<double>>(), {}, {}, {}, {}},
};

const Fold& FoldOf(const ReduceParams& p) { return kFolds[static_cast<int>(p.op)][static_cast<int>(p.compute)]; }

bool Fits(const ReduceParams& p) { return FoldOf(p).run && (p.length == 0 || pointwise::HasStorage(p.in_type)); }
void RunFold(const ReduceParams& p, const Launch& launch) { FoldOf(p).run(p, launch); }
int64_t ScratchBytes(const void* params) {
  const ReduceParams& p = *static_cast<const ReduceParams*>(params);
  return PiecesOf(p) > 1 ? p.results * PiecesOf(p) * FoldOf(p).state_bytes : 0;
}

}  // namespace
}  // namespace anyacl::reduction

namespace anyacl::cuda {

std::span<const Kernel> ReduceKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<reduction::ReduceParams, reduction::Fits, reduction::RunFold>("simple", reduction::ScratchBytes)};
  return kernels;
}

}  // namespace anyacl::cuda
