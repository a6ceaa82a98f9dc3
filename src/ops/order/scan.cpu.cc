// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/scan.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::order {
namespace {

using pointwise::Compute;

template <class T>
bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

// FLOAT runs in DOUBLE and is rounded at each output; integers wrap.
template <class T>
struct RunningType {
  using Type = T;
};
template <>
struct RunningType<float> {
  using Type = double;
};
template <>
struct RunningType<int64_t> {
  using Type = uint64_t;
};
template <>
struct RunningType<std::complex<float>> {
  using Type = std::complex<double>;
};

template <class T>
T Times(T a, T b) {
  return a * b;
}
// Without the standard's rules for infinities.
std::complex<double> Times(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
void SumRow(const ScanParams& p, const T* x, T* y) {
  using Running = typename RunningType<T>::Type;
  Running sum = 0;
  const int64_t step = p.reverse ? -1 : 1;
  int64_t i = p.reverse ? p.length - 1 : 0;
  for (int64_t count = 0; count < p.length; ++count, i += step) {
    const Running before = sum;
    sum += static_cast<Running>(x[i]);
    y[i] = static_cast<T>(p.exclusive ? before : sum);
  }
}

template <class T>
void ProductRow(const ScanParams& p, const T* x, T* y) {
  using Running = typename RunningType<T>::Type;
  Running product = 1;
  for (int64_t i = 0; i < p.length; ++i) {
    product = Times(product, static_cast<Running>(x[i]));
    y[i] = static_cast<T>(product);
  }
}

// An equal element takes over, and once there was a NaN every later one.
template <class T, bool kLargest>
void ExtremeRow(const ScanParams& p, const T* x, T* y, int64_t* places) {
  T best = x[0];
  int64_t place = 0;
  for (int64_t i = 0; i < p.length; ++i) {
    if (IsNan(x[i]) || (!IsNan(best) && (kLargest ? x[i] >= best : x[i] <= best))) {
      best = x[i];
      place = i;
    }
    y[i] = best;
    places[i] = place;
  }
}

template <class T>
void ScanRow(const ScanParams& p, int64_t row) {
  const T* const x = static_cast<const T*>(p.in) + row * p.length;
  T* const y = static_cast<T*>(p.out) + row * p.length;
  if (p.op == Scan::kSum) return SumRow(p, x, y);
  if (p.op == Scan::kProduct) return ProductRow(p, x, y);
  if constexpr (std::is_arithmetic_v<T>) {
    int64_t* const places = static_cast<int64_t*>(p.places) + row * p.length;
    p.op == Scan::kMax ? ExtremeRow<T, true>(p, x, y, places) : ExtremeRow<T, false>(p, x, y, places);
  }
}

template <class T>
void ScanRows(const ScanParams& p) {
  const int64_t per_task = std::max<int64_t>(1, cpu::kTask / p.length);
  cpu::ParallelFor(cpu::CeilDiv(p.rows, per_task), [&](int64_t task) {
    for (int64_t row = task * per_task; row < std::min(p.rows, (task + 1) * per_task); ++row) ScanRow<T>(p, row);
  });
}

void Run(const ScanParams& p) {
  switch (p.compute) {
    case Compute::kFloat:
      return ScanRows<float>(p);
    case Compute::kDouble:
      return ScanRows<double>(p);
    case Compute::kInt:
      return ScanRows<int64_t>(p);
    case Compute::kUnsigned:
      return ScanRows<uint64_t>(p);
    case Compute::kComplex:
      return ScanRows<std::complex<float>>(p);
    case Compute::kDoubleComplex:
      return ScanRows<std::complex<double>>(p);
  }
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

std::span<const Kernel> ScanKernels() {
  using order::ScanParams;
  static constexpr Kernel kernels[] = {MakeKernel<ScanParams, FitsAlways<ScanParams>, order::Run>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
