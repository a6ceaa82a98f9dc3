// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Parts of a fixed length are summed in DOUBLE, eight lanes each, and the parts one after the other: the same bits for any
// number of threads.
#include "ops/foreach/list_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Combines term(x) of all numbers of a part.
template <class T, class Term, class Combine>
double Part(const T* x, int64_t count, double start, const Term& term, const Combine& combine) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = combine(lanes[k], term(x[i + k]));
  }
  for (; i < count; ++i) lanes[0] = combine(lanes[0], term(x[i]));
  for (int64_t k = 1; k < kLanes; ++k) lanes[0] = combine(lanes[0], lanes[k]);
  return lanes[0];
}

template <class T, class Term, class Combine>
double Reduce(const ListReduceParams& p, double start, const Term& term, const Combine& combine) {
  const T* const x = static_cast<const T*>(p.x);
  const int64_t parts = cpu::CeilDiv(p.count, kListReducePart);
  cpu::ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = part * kListReducePart;
    p.parts[part] = Part(x + begin, std::min(kListReducePart, p.count - begin), start, term, combine);
  });
  double all = start;
  for (int64_t part = 0; part < parts; ++part) all = combine(all, p.parts[part]);
  return all;
}

double Largest(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double Smallest(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double Sum(double a, double b) { return a + b; }

template <class T>
double Norm(const ListReduceParams& params) {
  const double p = params.p;
  const auto magnitude = [](T x) { return std::fabs(static_cast<double>(x)); };
  if (p == kInfinity) return params.count == 0 ? 0 : Reduce<T>(params, 0, magnitude, Largest);
  if (p == -kInfinity) return Reduce<T>(params, kInfinity, magnitude, Smallest);
  if (p == 0) return Reduce<T>(params, 0, [](T x) { return x != 0 ? 1.0 : 0.0; }, Sum);
  if (p == 1) return Reduce<T>(params, 0, magnitude, Sum);
  if (p == 2) return std::sqrt(Reduce<T>(params, 0, [](T x) { return static_cast<double>(x) * x; }, Sum));
  return std::pow(Reduce<T>(params, 0, [&](T x) { return std::pow(magnitude(x), p); }, Sum), 1 / p);
}

template <class T>
void RunOf(const ListReduceParams& p) {
  if (p.what == ListReduce::kNorm) {
    *static_cast<T*>(p.result) = static_cast<T>(Norm<T>(p));
    return;
  }
  // x - x is 0 unless x is not finite; then it is NaN, and so is the sum.
  if (Reduce<T>(p, 0, [](T x) { return static_cast<double>(x - x); }, Sum) != 0) *static_cast<float*>(p.result) = 1;
}

void Run(const ListReduceParams& p) { p.wide ? RunOf<double>(p) : RunOf<float>(p); }

}  // namespace

namespace cpu {

std::span<const Kernel> ListReduceKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<ListReduceParams, FitsAlways<ListReduceParams>, Run>("parts")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
