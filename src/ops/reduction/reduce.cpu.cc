// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Two ways through a tensor. Rows: one sequence after the other, dealt to a fixed number of lanes that are joined in a
// tree. Columns: many sequences side by side, element by element. Long sequences are cut into pieces whose
// results are joined in their order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduction/reduce.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"
#include "ops/reduction/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace reduction {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using pointwise::Compute;

constexpr int kLanes = 16;         // of a row
constexpr int kColumns = 128;      // side by side
constexpr int64_t kBlock = 1024;   // elements converted at a time; a multiple of kLanes

template <class T>
struct Pair {  // a complex number
  T re, im;
};
template <class T>
inline constexpr bool kIsPair = false;
template <class T>
inline constexpr bool kIsPair<Pair<T>> = true;

template <class T>
HWY_INLINE bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

// ---- What is folded. Lanes<L> are L running results, State is one at rest. -----------------------------------------

// A sum and what its additions lost (Knuth's two-sum): DOUBLE keeps about its last bit.
struct TwoSum {
  double sum = 0, lost = 0;
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
  double Value() const { return std::isfinite(sum) ? sum + lost : sum; }
};
// FLOAT is added up in DOUBLE, whose roundings do not matter.
struct PlainSum {
  double sum = 0;
  HWY_INLINE void Add(double x) { sum += x; }
  HWY_INLINE void Join(const PlainSum& other) { sum += other.sum; }
  double Value() const { return sum; }
};
struct WrappingSum {
  uint64_t sum = 0;
  HWY_INLINE void Add(uint64_t x) { sum += x; }
  HWY_INLINE void Join(const WrappingSum& other) { sum += other.sum; }
  int64_t Value() const { return static_cast<int64_t>(sum); }
};

template <class T>
struct SumTraits;
template <>
struct SumTraits<float> {
  using Sum = PlainSum;
};
template <>
struct SumTraits<double> {
  using Sum = TwoSum;
};
template <>
struct SumTraits<int64_t> {
  using Sum = WrappingSum;
};
template <class T>
using SumOf = typename SumTraits<T>::Sum;

// A running result per lane that is its own State.
template <class S, int L>
struct PlainLanes {
  S state[L];
  HWY_INLINE void Begin(int l) { state[l] = S(); }
  HWY_INLINE const S& Get(int l) const { return state[l]; }
};

template <class T, bool kSkipNan>
struct Sum {
  using State = SumOf<T>;
  using Element = T;
  using Number = decltype(State::sum);
  using D = hn::ScalableTag<Number>;
  static HWY_INLINE hn::Vec<D> Widened(const T* x) {
    const hn::Rebind<T, D> d;
    auto v = hn::LoadU(d, x);
    if constexpr (kSkipNan && std::is_floating_point_v<T>) v = hn::IfThenZeroElse(hn::IsNaN(v), v);
    if constexpr (sizeof(T) == sizeof(Number)) return hn::BitCast(D(), v);
    else return hn::PromoteTo(D(), v);
  }
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, T, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, T x, int32_t) {
      if constexpr (kSkipNan) x = IsNan(x) ? T(0) : x;
      this->state[l].Add(static_cast<Number>(x));
    }
    // Add(l, x[r * L + l]) for every lane in every round r, with the sums in registers meanwhile.
    HWY_INLINE void AddRounds(const T* x, int64_t rounds)
      requires(sizeof(State) == sizeof(Number))
    {
      constexpr int kEach = static_cast<int>(hn::MaxLanes(D()));
      static_assert(L % kEach == 0);
      Number* const sums = &this->state[0].sum;
      hn::Vec<D> sum[L / kEach];
      for (int v = 0; v < L / kEach; ++v) sum[v] = hn::LoadU(D(), sums + v * kEach);
      for (int64_t r = 0; r < rounds; ++r) {
        for (int v = 0; v < L / kEach; ++v) sum[v] = hn::Add(sum[v], Widened(x + r * L + v * kEach));
      }
      for (int v = 0; v < L / kEach; ++v) hn::StoreU(sum[v], D(), sums + v * kEach);
    }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) { a.Join(b); }
};

template <class T>
struct ComplexSum {
  struct State {
    SumOf<T> re, im;
  };
  using Element = Pair<T>;
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, Pair<T>, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, Pair<T> x, int32_t) {
      this->state[l].re.Add(x.re);
      this->state[l].im.Add(x.im);
    }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) {
    a.re.Join(b.re);
    a.im.Join(b.im);
  }
};

// sum of (x - center)^2
template <class T>
struct Squares {
  using State = SumOf<T>;
  using Element = T;
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    double center[L];
    HWY_INLINE void Start(int l, T, double middle) {
      this->Begin(l);
      center[l] = middle;
    }
    HWY_INLINE void Add(int l, T x, int32_t) {
      const double d = static_cast<double>(x) - center[l];
      this->state[l].Add(d * d);
    }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) { a.Join(b); }
};

template <class T>  // double or uint64_t
struct Product {
  T product = 1;
  T Value() const { return product; }
};

template <class T>
struct Multiply {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  using State = Product<Wide>;
  using Element = T;
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, T, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, T x, int32_t) { this->state[l].product *= static_cast<Wide>(x); }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) { a.product *= b.product; }
};

template <class T>
struct ComplexMultiply {
  struct State {
    double re = 1, im = 0;
    HWY_INLINE void By(double other_re, double other_im) {
      const double old = re;
      re = old * other_re - im * other_im;
      im = old * other_im + im * other_re;
    }
  };
  using Element = Pair<T>;
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, Pair<T>, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, Pair<T> x, int32_t) { this->state[l].By(x.re, x.im); }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) { a.By(b.re, b.im); }
};

// The largest or smallest and its place; equal ones count by the lower place, NaN is beyond every number.
template <class T, bool kLargest>
struct Extreme {
  struct State {
    T value;
    int64_t place;
  };
  using Element = T;
  static HWY_INLINE bool Beats(T x, T y) {
    const bool beyond = kLargest ? x > y : x < y;
    return beyond | (IsNan(x) & !IsNan(y));
  }
  template <int L>
  struct Lanes {
    T value[L];
    int32_t place[L];  // from the start of the piece
    HWY_INLINE void Start(int l, T first, double) {  // every lane begins with the first element: no empty state is needed
      value[l] = first;
      place[l] = 0;
    }
    HWY_INLINE void Add(int l, T x, int32_t at) {
      const bool better = Beats(x, value[l]);
      value[l] = better ? x : value[l];
      place[l] = better ? at : place[l];
    }
    HWY_INLINE State Get(int l) const { return {value[l], place[l]}; }
  };
  static State Empty() { return {T(0), 0}; }  // never asked: the contracts refuse it
  static HWY_INLINE void Join(State& a, const State& b) {
    if (Beats(b.value, a.value) || (!Beats(a.value, b.value) && b.place < a.place)) a = b;
  }
};

// Is some element 0 (kZero) or not?
template <class T, bool kZero>
struct Test {
  struct State {
    bool found = false;
  };
  using Element = T;
  static HWY_INLINE bool IsZero(T x) {
    if constexpr (kIsPair<T>) return x.re == 0 && x.im == 0;
    else return x == 0;
  }
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, T, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, T x, int32_t) { this->state[l].found |= IsZero(x) == kZero; }
  };
  static State Empty() { return {}; }
  static HWY_INLINE void Join(State& a, const State& b) { a.found |= b.found; }
};

// sum of exp(x - max), for the largest x so far.
template <class T>
struct ExpSum {
  struct State {
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0;
  };
  using Element = T;
  template <int L>
  struct Lanes : PlainLanes<State, L> {
    HWY_INLINE void Start(int l, T, double) { this->Begin(l); }
    HWY_INLINE void Add(int l, T element, int32_t) {
      const double x = element;
      State& s = this->state[l];
      if (x > s.max) {
        s.sum = s.sum * std::exp(s.max - x) + 1;
        s.max = x;
      } else {
        s.sum += x == s.max ? 1 : std::exp(x - s.max);  // infinities are equal, and their difference is NaN
      }
    }
  };
  static State Empty() { return {}; }
  static void Join(State& a, const State& b) {
    if (a.max == b.max) {
      a.sum += b.sum;
    } else if (a.max < b.max) {
      a.sum = a.sum * std::exp(a.max - b.max) + b.sum;
      a.max = b.max;
    } else {
      a.sum += b.sum * std::exp(b.max - a.max);
    }
  }
};

// ---- Results --------------------------------------------------------------------------------------------------------

template <class T>
void Put(const ReduceParams& p, int64_t k, T value) {
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

HWY_INLINE void Write(const ReduceParams& p, int64_t k, const PlainSum& s) { PutReal(p, k, s.Value()); }
HWY_INLINE void Write(const ReduceParams& p, int64_t k, const TwoSum& s) { PutReal(p, k, s.Value()); }
HWY_INLINE void Write(const ReduceParams& p, int64_t k, const WrappingSum& s) { PutWhole(p, k, s.sum); }
HWY_INLINE void Write(const ReduceParams& p, int64_t k, const Product<double>& s) { PutReal(p, k, s.product); }
HWY_INLINE void Write(const ReduceParams& p, int64_t k, const Product<uint64_t>& s) { PutWhole(p, k, s.product); }

template <class OpT>
HWY_INLINE void WriteState(const ReduceParams& p, int64_t k, const typename OpT::State& s) {
  using T = typename OpT::Element;
  using State = typename OpT::State;
  if constexpr (requires { s.found; }) {
    Put(p, k, static_cast<unsigned char>(s.found == (p.op == Op::kAny)));
  } else if constexpr (requires { s.place; }) {
    if (p.out) Put(p, k, s.value);
    if (p.places) static_cast<int64_t*>(p.places)[k] = s.place;
  } else if constexpr (std::is_same_v<State, typename ExpSum<T>::State>) {
    PutReal(p, k, std::log(s.sum) + s.max);
  } else if constexpr (requires { s.re.sum; }) {
    PutPair(p, k, s.re.Value(), s.im.Value());
  } else if constexpr (requires { s.re; }) {
    PutPair(p, k, s.re, s.im);
  } else {
    Write(p, k, s);
  }
}

// ---- The walk -------------------------------------------------------------------------------------------------------

// A position in the row-major order of some axes.
class Walk {
 public:
  Walk(const Axis* axes, int count, int64_t index) : axes_(axes), inner_(count - 1) {
    for (int i = inner_; i >= 0; --i) {
      at_[i] = index % axes[i].size;
      index /= axes[i].size;
      offset_ += at_[i] * axes[i].stride;
    }
  }
  int64_t offset() const { return offset_; }
  int64_t Run() const { return axes_[inner_].size - at_[inner_]; }
  int64_t Step() const { return axes_[inner_].stride; }
  // By at most a run.
  HWY_INLINE void Advance(int64_t count) {
    int i = inner_;
    at_[i] += count;
    offset_ += count * axes_[i].stride;
    while (at_[i] == axes_[i].size && i > 0) {
      offset_ -= at_[i] * axes_[i].stride;
      at_[i] = 0;
      --i;
      ++at_[i];
      offset_ += axes_[i].stride;
    }
  }

 private:
  const Axis* axes_;
  int inner_;
  int64_t at_[kMaxAxes];
  int64_t offset_ = 0;
};

// Elements of in, as T.
template <class T>
class Source {
 public:
  explicit Source(const ReduceParams& p)
      : data_(static_cast<const unsigned char*>(p.in)),
        size_(static_cast<int64_t>(SizeOf(p.in_type))),
        load_(pointwise::LoadConversion(p.in_type, p.compute)),
        as_is_(p.in_type == ResultType(Op::kSum, p.compute)) {}

  // The next `count` elements of the walk, which lies at `base`: in `buffer`, or where they are.
  HWY_INLINE const T* Take(int64_t base, Walk& walk, int64_t count, T* buffer) const {
    if (as_is_ && walk.Step() == 1 && walk.Run() >= count) {
      const T* const here = reinterpret_cast<const T*>(data_) + base + walk.offset();
      walk.Advance(count);
      return here;
    }
    for (int64_t done = 0; done < count;) {
      const int64_t run = std::min(walk.Run(), count - done);
      load_(data_ + (base + walk.offset()) * size_, walk.Step(), buffer + done, 1, run);
      walk.Advance(run);
      done += run;
    }
    return buffer;
  }

 private:
  const unsigned char* data_;
  int64_t size_;
  pointwise::RunConversion load_;
  bool as_is_;
};

HWY_INLINE double CenterOf(const ReduceParams& p, int64_t k) {
  return p.center ? static_cast<const double*>(p.center)[k] : 0;
}

// Elements [begin, end) of one sequence.
template <class OpT>
typename OpT::State FoldRow(const ReduceParams& p, const Source<typename OpT::Element>& source, int64_t base, int64_t k,
                            int64_t begin, int64_t end) {
  using T = typename OpT::Element;
  alignas(64) T buffer[kBlock];
  typename OpT::template Lanes<kLanes> lanes;
  Walk walk(p.over, p.over_axes, begin);
  for (int64_t i = begin; i < end; i += kBlock) {
    const int count = static_cast<int>(std::min(kBlock, end - i));
    const T* const x = source.Take(base, walk, count, buffer);
    const auto at = static_cast<int32_t>(i - begin);
    if (i == begin) {
      for (int l = 0; l < kLanes; ++l) lanes.Start(l, x[0], CenterOf(p, k));
    }
    int j = 0;
    if constexpr (requires { lanes.AddRounds(x, 1); }) {
      lanes.AddRounds(x, count / kLanes);
      j = count / kLanes * kLanes;
    }
    for (; j + kLanes <= count; j += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes.Add(l, x[j + l], at + j + l);
    }
    for (int l = 0; j + l < count; ++l) lanes.Add(l, x[j + l], at + j + l);
  }
  typename OpT::State states[kLanes];
  for (int l = 0; l < kLanes; ++l) states[l] = lanes.Get(l);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) OpT::Join(states[l], states[l + half]);
  }
  if constexpr (requires { states[0].place; }) states[0].place += begin;
  return states[0];
}

// Elements [begin, end) of the sequences [k, k + count), count <= kColumns.
template <class OpT>
void FoldColumns(const ReduceParams& p, const Source<typename OpT::Element>& source, int64_t k, int count, int64_t begin,
                 int64_t end, typename OpT::State* states, int64_t states_step) {
  using T = typename OpT::Element;
  alignas(64) T buffer[kColumns];
  typename OpT::template Lanes<kColumns> lanes;
  const Walk first(p.kept, p.kept_axes, k);
  Walk over(p.over, p.over_axes, begin);
  for (int64_t i = begin; i < end; ++i) {
    Walk walk = first;
    const T* const x = source.Take(over.offset(), walk, count, buffer);
    const auto at = static_cast<int32_t>(i - begin);
    if (i == begin) {
      for (int j = 0; j < count; ++j) lanes.Start(j, x[j], CenterOf(p, k + j));
    }
    if (count == kColumns) {
      for (int j = 0; j < kColumns; ++j) lanes.Add(j, x[j], at);
    } else {
      for (int j = 0; j < count; ++j) lanes.Add(j, x[j], at);
    }
    over.Advance(1);
  }
  for (int j = 0; j < count; ++j) {
    typename OpT::State& s = states[j * states_step];
    s = lanes.Get(j);
    if constexpr (requires { s.place; }) s.place += begin;
  }
}

int64_t Pieces(const ReduceParams& p) { return cpu::CeilDiv(p.length, p.piece); }

template <class OpT>
int64_t ScratchBytes(const ReduceParams& p) {
  return Pieces(p) > 1 ? p.results * Pieces(p) * static_cast<int64_t>(sizeof(typename OpT::State)) : 0;
}

// Every sequence is one piece.
template <class OpT>
void RunWhole(const ReduceParams& p, const Source<typename OpT::Element>& source) {
  const int64_t side = p.columns ? kColumns : 1;
  const int64_t groups = cpu::CeilDiv(p.results, side);
  const int64_t groups_per_task = std::max<int64_t>(1, cpu::kTask / (side * p.length));
  cpu::ParallelFor(cpu::CeilDiv(groups, groups_per_task), [&](int64_t task) {
    const int64_t begin = task * groups_per_task * side;
    const int64_t end = std::min(p.results, begin + groups_per_task * side);
    if (p.columns) {
      typename OpT::State states[kColumns];
      for (int64_t k = begin; k < end; k += kColumns) {
        const int count = static_cast<int>(std::min<int64_t>(kColumns, end - k));
        FoldColumns<OpT>(p, source, k, count, 0, p.length, states, 1);
        for (int j = 0; j < count; ++j) WriteState<OpT>(p, k + j, states[j]);
      }
      return;
    }
    Walk kept(p.kept, p.kept_axes, begin);
    for (int64_t k = begin; k < end; ++k) {
      WriteState<OpT>(p, k, FoldRow<OpT>(p, source, kept.offset(), k, 0, p.length));
      kept.Advance(1);
    }
  });
}

// Pieces of sequences first, then their results are joined.
template <class OpT>
void RunPieces(const ReduceParams& p, const Source<typename OpT::Element>& source) {
  using State = typename OpT::State;
  State* const states = static_cast<State*>(p.scratch);
  const int64_t pieces = Pieces(p);
  const int64_t side = p.columns ? kColumns : 1;
  cpu::ParallelFor(cpu::CeilDiv(p.results, side) * pieces, [&](int64_t task) {
    const int64_t k = task / pieces * side;
    const int64_t piece = task % pieces;
    const int64_t begin = piece * p.piece;
    const int64_t end = std::min(p.length, begin + p.piece);
    State* const mine = states + k * pieces + piece;
    if (p.columns) {
      FoldColumns<OpT>(p, source, k, static_cast<int>(std::min(side, p.results - k)), begin, end, mine, pieces);
    } else {
      *mine = FoldRow<OpT>(p, source, Walk(p.kept, p.kept_axes, k).offset(), k, begin, end);
    }
  });
  const int64_t per_task = std::max<int64_t>(1, cpu::kTask / pieces);
  cpu::ParallelFor(cpu::CeilDiv(p.results, per_task), [&](int64_t task) {
    for (int64_t k = task * per_task; k < std::min(p.results, (task + 1) * per_task); ++k) {
      State state = states[k * pieces];
      for (int64_t piece = 1; piece < pieces; ++piece) OpT::Join(state, states[k * pieces + piece]);
      WriteState<OpT>(p, k, state);
    }
  });
}

template <class OpT>
void RunOp(const ReduceParams& p) {
  if (p.length == 0) {
    for (int64_t k = 0; k < p.results; ++k) WriteState<OpT>(p, k, OpT::Empty());
    return;
  }
  const Source<typename OpT::Element> source(p);
  Pieces(p) > 1 ? RunPieces<OpT>(p, source) : RunWhole<OpT>(p, source);
}

// ---- By operation and compute type ----------------------------------------------------------------------------------

struct Fold {
  void (*run)(const ReduceParams&) = nullptr;
  int64_t (*scratch)(const ReduceParams&) = nullptr;
};
template <class OpT>
constexpr Fold FoldOf() {
  return {RunOp<OpT>, ScratchBytes<OpT>};
}

// In the order of Compute; a Fold of none where the operation has no meaning. Sums and products of UINT64 are those of
// INT64, bit by bit.
struct Folds {
  Fold of[pointwise::kComputeTypes];
};
constexpr Folds kFolds[kOps] = {
    {{FoldOf<Sum<float, false>>(), FoldOf<Sum<double, false>>(), FoldOf<Sum<int64_t, false>>(),
      FoldOf<Sum<int64_t, false>>(), FoldOf<ComplexSum<float>>(), FoldOf<ComplexSum<double>>()}},
    {{FoldOf<Sum<float, true>>(), FoldOf<Sum<double, true>>(), FoldOf<Sum<int64_t, false>>(),
      FoldOf<Sum<int64_t, false>>(), {}, {}}},
    {{FoldOf<Multiply<float>>(), FoldOf<Multiply<double>>(), FoldOf<Multiply<int64_t>>(), FoldOf<Multiply<int64_t>>(),
      FoldOf<ComplexMultiply<float>>(), FoldOf<ComplexMultiply<double>>()}},
    {{FoldOf<Extreme<float, true>>(), FoldOf<Extreme<double, true>>(), FoldOf<Extreme<int64_t, true>>(),
      FoldOf<Extreme<uint64_t, true>>(), {}, {}}},
    {{FoldOf<Extreme<float, false>>(), FoldOf<Extreme<double, false>>(), FoldOf<Extreme<int64_t, false>>(),
      FoldOf<Extreme<uint64_t, false>>(), {}, {}}},
    {{FoldOf<Test<float, false>>(), FoldOf<Test<double, false>>(), FoldOf<Test<int64_t, false>>(),
      FoldOf<Test<int64_t, false>>(), FoldOf<Test<Pair<float>, false>>(), FoldOf<Test<Pair<double>, false>>()}},
    {{FoldOf<Test<float, true>>(), FoldOf<Test<double, true>>(), FoldOf<Test<int64_t, true>>(),
      FoldOf<Test<int64_t, true>>(), FoldOf<Test<Pair<float>, true>>(), FoldOf<Test<Pair<double>, true>>()}},
    {{FoldOf<Squares<float>>(), FoldOf<Squares<double>>(), {}, {}, {}, {}}},
    {{FoldOf<ExpSum<float>>(), FoldOf<ExpSum<double>>(), {}, {}, {}, {}}},
};

const Fold& FindFold(Op op, Compute compute) { return kFolds[static_cast<int>(op)].of[static_cast<int>(compute)]; }

bool HasFold(const ReduceParams& p) { return FindFold(p.op, p.compute).run != nullptr; }
void RunFold(const ReduceParams& p) { FindFold(p.op, p.compute).run(p); }
int64_t FoldScratch(const ReduceParams& p) { return FindFold(p.op, p.compute).scratch(p); }

}  // namespace HWY_NAMESPACE
}  // namespace reduction
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::reduction {

HWY_EXPORT(HasFold);
HWY_EXPORT(RunFold);
HWY_EXPORT(FoldScratch);

static bool Fits(const ReduceParams& p) { return ANYACL_FAMILY_DISPATCH(HasFold)(p); }
static void Run(const ReduceParams& p) { ANYACL_FAMILY_DISPATCH(RunFold)(p); }
static int64_t Scratch(const ReduceParams& p) { return ANYACL_FAMILY_DISPATCH(FoldScratch)(p); }

}  // namespace anyacl::reduction

namespace anyacl::cpu {

std::span<const Kernel> ReduceKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<reduction::ReduceParams, reduction::Fits, reduction::Run, reduction::Scratch>("strided")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
