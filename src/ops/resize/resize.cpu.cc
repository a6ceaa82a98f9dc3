// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The taps of an axis are computed once per call; then rows of `inner` elements are summed up with their weights.
#include "ops/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::resize {
namespace {

// Where no number that is no position becomes one.
template <class T>
int64_t Position(T x, int64_t size) {
  const T below = std::floor(x);
  if (!(below > 0)) return 0;
  return below < static_cast<T>(size - 1) ? static_cast<int64_t>(below) : size - 1;
}

template <class T>
T Cubic(T x, T a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The taps of one position of the output.
template <class T>
class Taps {
 public:
  Taps(const Params& p, int64_t o) : p_(p), index_(p.index + o * p.taps), weight_(static_cast<T*>(p.weight) + o * p.taps) {}

  void Fill(int64_t o) {
    const T rate = static_cast<T>(p_.rate), at = static_cast<T>(o), centre = (at + T(0.5)) * rate;
    switch (p_.mode) {
      case Mode::kNearest:  // of DOUBLE too the product is rounded to FLOAT before it is cut off
        Put(Position(static_cast<float>(at * rate), p_.in), 1);
        break;
      case Mode::kNearestExact:
        Put(Position(static_cast<float>(centre), p_.in), 1);
        break;
      case Mode::kLinear:
        FillLinear(p_.align_corners ? at * rate : std::max(centre - T(0.5), T(0)));
        break;
      case Mode::kCubic:
        FillCubic(p_.align_corners ? at * rate : centre - T(0.5));
        break;
      default:
        FillAntialiased(rate, centre);
    }
    if (count_ < p_.taps) index_[count_] = -1;
  }

 private:
  void Put(int64_t index, T weight) {
    index_[count_] = index;
    weight_[count_++] = weight;
  }
  void FillLinear(T x) {
    const int64_t first = Position(x, p_.in);
    const T t = std::clamp(x - static_cast<T>(first), T(0), T(1));
    Put(first, 1 - t);
    Put(std::min(first + 1, p_.in - 1), t);
  }
  void FillCubic(T x) {
    const int64_t first = x < 0 ? -1 : Position(x, p_.in);  // x is at least -0.5
    const T t = std::clamp(x - static_cast<T>(first), T(0), T(1)), a = T(-0.75);
    for (int i = 0; i < 4; ++i) Put(std::clamp<int64_t>(first - 1 + i, 0, p_.in - 1), Cubic(t + static_cast<T>(1 - i), a));
  }
  void FillAntialiased(T rate, T centre) {
    const T half = p_.mode == Mode::kLinearAA ? 1 : 2, wide = std::max(rate, T(1)), support = half * wide;
    const int64_t begin = Position(centre - support + T(0.5), p_.in + 1), end = Position(centre + support + T(0.5), p_.in + 1);
    T sum = 0;
    for (int64_t i = begin; i < end && count_ < p_.taps; ++i) {
      const T x = (static_cast<T>(i) - centre + T(0.5)) / wide;
      const T weight = p_.mode == Mode::kLinearAA ? std::max(1 - std::abs(x), T(0)) : Cubic(x, T(-0.5));
      Put(i, weight);
      sum += weight;
    }
    if (count_ == 0) return Put(Position(centre, p_.in), 1);  // behind the input, as scales that contradict the sizes have it
    for (int64_t i = 0; i < count_; ++i) weight_[i] = sum != 0 ? weight_[i] / sum : weight_[i];
  }

  const Params& p_;
  int64_t* const index_;
  T* const weight_;
  int64_t count_ = 0;
};

template <class T>
void FillTables(const Params& p) {
  constexpr int64_t kPositions = 256;
  cpu::ParallelFor(cpu::CeilDiv(p.out, kPositions), [&](int64_t task) {
    for (int64_t o = task * kPositions; o < std::min(p.out, (task + 1) * kPositions); ++o) Taps<T>(p, o).Fill(o);
  });
}

template <class T>
T RoundedByte(T x) {
  return std::isnan(x) ? T(0) : std::clamp(std::floor(x + T(0.5)), T(0), T(255));
}

// One row of the output, [inner], from the rows of one outer index.
template <class T>
void SumRow(const Params& p, int64_t o, const T* x, T* y) {
  const int64_t* const index = p.index + o * p.taps;
  const T* const weight = static_cast<const T*>(p.weight) + o * p.taps;
  const T* const first = x + index[0] * p.inner;
  if (p.mode == Mode::kLinear) {
    const T* const second = x + index[1] * p.inner;
    const T w0 = weight[0], w1 = weight[1];
    for (int64_t i = 0; i < p.inner; ++i) y[i] = w0 * first[i] + w1 * second[i];
  } else {
    for (int64_t i = 0; i < p.inner; ++i) y[i] = weight[0] * first[i];
    for (int64_t t = 1; t < p.taps && index[t] >= 0; ++t) {
      const T* const row = x + index[t] * p.inner;
      for (int64_t i = 0; i < p.inner; ++i) y[i] += weight[t] * row[i];
    }
  }
  if (p.round_bytes) std::transform(y, y + p.inner, y, RoundedByte<T>);
}

template <class T>
void Apply(const Params& p) {
  const T* const from = static_cast<const T*>(p.from);
  T* const to = static_cast<T*>(p.to);
  const int64_t rows = p.outer * p.out, per_task = std::max<int64_t>(cpu::kTask / (p.inner * p.taps), 1);
  cpu::ParallelFor(cpu::CeilDiv(rows, per_task), [&](int64_t task) {
    for (int64_t row = task * per_task; row < std::min(rows, (task + 1) * per_task); ++row) {
      SumRow(p, row % p.out, from + row / p.out * p.in * p.inner, to + row * p.inner);
    }
  });
}

// Columns [begin, end) of one outer index: every position of the output gives to its taps, in order.
template <class T>
void Spread(const Params& p, const T* from, T* to, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < p.in; ++i) std::fill(to + i * p.inner + begin, to + i * p.inner + end, T(0));
  for (int64_t o = 0; o < p.out; ++o) {
    const int64_t* const index = p.index + o * p.taps;
    const T* const weight = static_cast<const T*>(p.weight) + o * p.taps;
    const T* const row = from + o * p.inner;
    for (int64_t t = 0; t < p.taps && index[t] >= 0; ++t) {
      T* const sum = to + index[t] * p.inner;
      for (int64_t i = begin; i < end; ++i) sum[i] += weight[t] * row[i];
    }
  }
}

template <class T>
void ApplyTransposed(const Params& p) {
  constexpr int64_t kColumns = 512;
  const int64_t blocks = cpu::CeilDiv(p.inner, kColumns), columns = std::min(p.inner, kColumns);
  const int64_t outer_per_task = std::max<int64_t>(cpu::kTask / (columns * (p.in + p.out * p.taps)), 1);
  cpu::ParallelFor(cpu::CeilDiv(p.outer, outer_per_task) * blocks, [&](int64_t task) {
    const int64_t block = task % blocks, first = task / blocks * outer_per_task;
    for (int64_t u = first; u < std::min(p.outer, first + outer_per_task); ++u) {
      Spread(p, static_cast<const T*>(p.from) + u * p.out * p.inner, static_cast<T*>(p.to) + u * p.in * p.inner, block * kColumns,
             std::min(p.inner, (block + 1) * kColumns));
    }
  });
}

template <class T>
void RunAs(const Params& p) {
  FillTables<T>(p);
  p.transposed ? ApplyTransposed<T>(p) : Apply<T>(p);
}

void Run(const Params& p) { p.dtype == DType::kF64 ? RunAs<double>(p) : RunAs<float>(p); }

}  // namespace
}  // namespace anyacl::resize

namespace anyacl::cpu {

std::span<const Kernel> ResizeKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<resize::Params, FitsAlways<resize::Params>, resize::Run>("taps")};
  return kernels;
}

}  // namespace anyacl::cpu
