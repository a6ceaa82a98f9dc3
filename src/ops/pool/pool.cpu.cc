// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Planes are independent: a task takes a few of them and goes through their windows in row-major order.
#include "ops/pool/pool.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::pool {
namespace {

int64_t Size(const Params& p, bool large) {
  int64_t size = 1;
  for (const Axis& axis : p.axes) size *= large ? axis.in : axis.out;
  return size;
}

// A window: the positions of its taps on one axis that lie inside the plane, and how long it is with its padding.
struct Range {
  Range(const Axis& axis, int64_t o) : step(axis.adaptive ? 1 : axis.dilation) {
    begin = axis.Begin(o);
    end = axis.End(o);
    length = std::min(end, axis.in + axis.pad) - begin;
    if (begin < 0) begin += (-begin + step - 1) / step * step;
    end = std::min(end, axis.in);
  }
  int64_t begin, end, step, length;
};

// Calls visit(o, ranges) for every window of a plane.
template <class Visit>
void ForWindows(const Params& p, const Visit& visit) {
  int64_t o = 0;
  for (int64_t a = 0; a < p.axes[0].out; ++a) {
    const Range depth(p.axes[0], a);
    for (int64_t b = 0; b < p.axes[1].out; ++b) {
      const Range rows(p.axes[1], b);
      for (int64_t c = 0; c < p.axes[2].out; ++c) {
        const Range ranges[3] = {depth, rows, Range(p.axes[2], c)};
        visit(o++, ranges);
      }
    }
  }
}

// Calls visit(i) for the positions of a window inside the plane.
template <class Visit>
void ForTaps(const Params& p, const Range* r, const Visit& visit) {
  for (int64_t a = r[0].begin; a < r[0].end; a += r[0].step) {
    for (int64_t b = r[1].begin; b < r[1].end; b += r[1].step) {
      const int64_t row = (a * p.axes[1].in + b) * p.axes[2].in;
      for (int64_t c = r[2].begin; c < r[2].end; c += r[2].step) visit(row + c);
    }
  }
}

int64_t Divisor(const Params& p, const Range* r) {
  if (p.divisor != 0) return p.divisor;
  int64_t count = 1;
  for (int i = 0; i < 3; ++i) count *= p.count_padding ? r[i].length : std::max<int64_t>(r[i].end - r[i].begin, 0);
  return count;
}

template <class T>
void Average(const Params& p, int64_t plane) {
  const T* const x = static_cast<const T*>(p.from) + plane * Size(p, true);
  T* const y = static_cast<T*>(p.to) + plane * Size(p, false);
  ForWindows(p, [&](int64_t o, const Range* ranges) {
    std::conditional_t<std::is_same_v<T, float>, double, T> sum = 0;
    ForTaps(p, ranges, [&](int64_t i) { sum += x[i]; });
    y[o] = static_cast<T>(sum / static_cast<decltype(sum)>(Divisor(p, ranges)));
  });
}

template <class T>
void AverageGradient(const Params& p, int64_t plane) {
  const T* const dy = static_cast<const T*>(p.from) + plane * Size(p, false);
  T* const dx = static_cast<T*>(p.to) + plane * Size(p, true);
  std::fill_n(dx, Size(p, true), T(0));
  ForWindows(p, [&](int64_t o, const Range* ranges) {
    const T share = dy[o] / static_cast<T>(Divisor(p, ranges));
    ForTaps(p, ranges, [&](int64_t i) { dx[i] += share; });
  });
}

template <class T>
bool IsNan(T x) {
  return x != x;
}

// Row-major, the first of equal ones; NaN wins, the last of several. A window without taps is the least number, at where its
// first tap would be.
template <class T>
void Maximum(const Params& p, int64_t plane) {
  const T* const x = static_cast<const T*>(p.from) + plane * Size(p, true);
  T* const y = static_cast<T*>(p.to) + plane * Size(p, false);
  int64_t* const indices = p.indices ? p.indices + plane * Size(p, false) : nullptr;
  constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  ForWindows(p, [&](int64_t o, const Range* r) {
    T most = kLeast;
    int64_t at = (r[0].begin * p.axes[1].in + r[1].begin) * p.axes[2].in + r[2].begin;
    ForTaps(p, r, [&](int64_t i) {
      if (!(x[i] > most) && !IsNan(x[i])) return;
      most = x[i];
      at = i;
    });
    y[o] = most;
    if (indices) indices[o] = at;
  });
}

template <class T>
void MaximumGradient(const Params& p, int64_t plane) {
  const int64_t large = Size(p, true), small = Size(p, false);
  const T* const dy = static_cast<const T*>(p.from) + plane * small;
  const int64_t* const indices = p.indices + plane * small;
  T* const dx = static_cast<T*>(p.to) + plane * large;
  std::fill_n(dx, large, T(0));
  for (int64_t o = 0; o < small; ++o) {
    if (indices[o] >= 0 && indices[o] < large) dx[indices[o]] += dy[o];
  }
}

template <class T>
void RunPlane(const Params& p, int64_t plane) {
  switch (p.mode) {
    case Mode::kAverage:
      return Average<T>(p, plane);
    case Mode::kMaximum:
      return Maximum<T>(p, plane);
    case Mode::kAverageGradient:
      return AverageGradient<T>(p, plane);
    case Mode::kMaximumGradient:
      return MaximumGradient<T>(p, plane);
  }
}

void Run(const Params& p) {
  const int64_t taps = std::max<int64_t>(Size(p, true) + Size(p, false), 1);
  const int64_t planes = std::max<int64_t>(cpu::kTask / taps, 1);
  cpu::ParallelFor(cpu::CeilDiv(p.planes, planes), [&](int64_t task) {
    for (int64_t plane = task * planes; plane < std::min(p.planes, (task + 1) * planes); ++plane) {
      if (p.dtype == DType::kF32) RunPlane<float>(p, plane);
      if (p.dtype == DType::kF64) RunPlane<double>(p, plane);
      if (p.dtype == DType::kI64) RunPlane<int64_t>(p, plane);
    }
  });
}

}  // namespace
}  // namespace anyacl::pool

namespace anyacl::cpu {

std::span<const Kernel> PoolKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<pool::Params, FitsAlways<pool::Params>, pool::Run>("windows")};
  return kernels;
}

}  // namespace anyacl::cpu
