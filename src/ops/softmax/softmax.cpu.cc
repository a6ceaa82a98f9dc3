// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax/softmax.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/kernels.h"
#include "ops/pointwise/lanes-inl.h"
#include "ops/softmax/softmax_lines-inl.h"
#include "ops/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace softmax {
namespace HWY_NAMESPACE {

using anyacl::HWY_NAMESPACE::kSums;
using anyacl::HWY_NAMESPACE::SumOf;

constexpr int64_t kBlock = 256;

// to[i] = exp(from[i] - shift)
template <class T>
HWY_INLINE void Exponentials(const T* from, T shift, int64_t count, T* to) {
  using V = pointwise::HWY_NAMESPACE::Lanes<T>;
  const int64_t step = static_cast<int64_t>(V::Count());
  int64_t i = 0;
  for (; i + step <= count; i += step) Exp(V::Load(from + i) - V(shift)).Store(to + i);
  if (i == count) return;
  T part[V::kMost] = {};
  std::copy_n(from + i, count - i, part);
  Exp(V::Load(part) - V(shift)).Store(part);
  std::copy_n(part, count - i, to + i);
}

// NaN is passed over: it comes back in the sum.
template <class T>
HWY_INLINE T Largest(const T* x, int64_t count) {
  T most[kSums];
  std::fill_n(most, kSums, -std::numeric_limits<T>::infinity());
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
  }
  for (; i < count; ++i) most[0] = x[i] > most[0] ? x[i] : most[0];
  return *std::max_element(most, most + kSums);
}

template <class T>
HWY_INLINE double SumOfExponentials(const T* x, T most, int64_t count) {
  alignas(64) T e[kBlock];
  double sum = 0;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t size = std::min(kBlock, count - i);
    Exponentials(x + i, most, size, e);
    sum += SumOf(size, [&](int64_t k) { return static_cast<double>(e[k]); });
  }
  return sum;
}

template <class T>
HWY_INLINE void Softmax(const T* x, int64_t count, T* out) {
  Exponentials(x, Largest(x, count), count, out);
  const T sum = static_cast<T>(SumOf(count, [&](int64_t i) { return static_cast<double>(out[i]); }));
  for (int64_t i = 0; i < count; ++i) out[i] /= sum;
}

template <class T>
HWY_INLINE void LogSoftmax(const T* x, int64_t count, T* out) {
  const T most = Largest(x, count);
  const T log_sum = static_cast<T>(std::log(SumOfExponentials(x, most, count)));
  for (int64_t i = 0; i < count; ++i) out[i] = (x[i] - most) - log_sum;
}

template <class T>
HWY_INLINE void SoftmaxBackward(const T* g, const T* y, int64_t count, T* out) {
  const T sum = static_cast<T>(SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]) * static_cast<double>(y[i]); }));
  for (int64_t i = 0; i < count; ++i) out[i] = y[i] * (g[i] - sum);
}

template <class T>
HWY_INLINE void LogSoftmaxBackward(const T* g, const T* y, int64_t count, T* out) {
  const T sum = static_cast<T>(SumOf(count, [&](int64_t i) { return static_cast<double>(g[i]); }));
  alignas(64) T e[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t size = std::min(kBlock, count - i);
    Exponentials(y + i, T(0), size, e);
    for (int64_t k = 0; k < size; ++k) out[i + k] = g[i + k] - e[k] * sum;
  }
}

template <class T>
HWY_INLINE void CrossEntropy(const T* x, const T* labels, int64_t count, T* out, T* loss) {
  const T most = Largest(x, count);
  const double log_sum = std::log(SumOfExponentials(x, most, count));
  *loss = static_cast<T>(-SumOf(count, [&](int64_t i) {
    return static_cast<double>(labels[i]) * (static_cast<double>(x[i]) - static_cast<double>(most) - log_sum);
  }));
  Softmax(x, count, out);
  for (int64_t i = 0; i < count; ++i) out[i] -= labels[i];
}

void RunWide(const Params& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const double* const x = static_cast<const double*>(p.x) + row * p.count;
    const double* const y = p.y ? static_cast<const double*>(p.y) + row * p.count : nullptr;
    double* const out = static_cast<double*>(p.out) + row * p.count;
    switch (p.kind) {
      case Kind::kSoftmax:
        Softmax(x, p.count, out);
        break;
      case Kind::kLogSoftmax:
        LogSoftmax(x, p.count, out);
        break;
      case Kind::kSoftmaxBackward:
        SoftmaxBackward(x, y, p.count, out);
        break;
      case Kind::kLogSoftmaxBackward:
        LogSoftmaxBackward(x, y, p.count, out);
        break;
      case Kind::kCrossEntropy:  // of FLOAT alone
        break;
    }
  }
}

void RunCrossEntropy(const Params& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    CrossEntropy(static_cast<const float*>(p.x) + row * p.count, static_cast<const float*>(p.y) + row * p.count, p.count,
                 static_cast<float*>(p.out) + row * p.count, static_cast<float*>(p.loss) + row);
  }
}

template <class S>
void RunLines(const Params& p, int64_t begin, int64_t end) {
  const bool gradient = p.kind == Kind::kSoftmaxBackward || p.kind == Kind::kLogSoftmaxBackward;
  const bool stream = p.rows * p.count * static_cast<int64_t>(sizeof(S)) * (gradient ? 3 : 2) >= cpu::stream_bytes;
  for (int64_t row = begin; row < end; ++row) {
    const S* const x = static_cast<const S*>(p.x) + row * p.count;
    const S* const y = p.y ? static_cast<const S*>(p.y) + row * p.count : nullptr;
    S* const out = static_cast<S*>(p.out) + row * p.count;
    switch (p.kind) {
      case Kind::kSoftmax:
        SoftmaxOfLine(x, p.count, stream, out);
        break;
      case Kind::kLogSoftmax:
        LogSoftmaxOfLine(x, p.count, stream, out);
        break;
      case Kind::kSoftmaxBackward:
        SoftmaxBackwardOfLine(x, y, p.count, stream, out);
        break;
      case Kind::kLogSoftmaxBackward:
        LogSoftmaxBackwardOfLine(x, y, p.count, stream, out);
        break;
      case Kind::kCrossEntropy:
        break;
    }
  }
  simd::EndStream();
}

void RowsOf(const Params& p, int64_t begin, int64_t end) {
  if (p.wide) return RunWide(p, begin, end);
  if (p.kind == Kind::kCrossEntropy) return RunCrossEntropy(p, begin, end);
  simd::WithType(p.stored, [&](auto* type) { RunLines<std::remove_pointer_t<decltype(type)>>(p, begin, end); });
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::softmax {

HWY_EXPORT(RowsOf);

namespace {

void Run(const Params& p) {
  const auto rows_of = ANYACL_FAMILY_DISPATCH(RowsOf);
  const int64_t together = std::max<int64_t>(1, cpu::kTask / p.count);
  cpu::ParallelFor(cpu::CeilDiv(p.rows, together),
                   [&](int64_t task) { rows_of(p, task * together, std::min(p.rows, (task + 1) * together)); });
}

}  // namespace
}  // namespace anyacl::softmax

namespace anyacl::cpu {

std::span<const Kernel> SoftmaxKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<softmax::Params, FitsAlways, softmax::Run>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
