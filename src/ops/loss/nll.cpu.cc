// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Sums are kept in double with what each addition lost: within parts of a fixed length, and the parts one after the other.
// So threads change no bit.
#include "ops/loss/nll.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/loss/reductions.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::loss {
namespace {

using pointwise::Compute;
using pointwise::RunConversion;

// Where element `sample` of the first axes is; the sample's axes are those of `shape`.
int64_t OffsetOf(const View& v, const View& shape, int64_t sample) {
  int64_t offset = 0;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    offset += sample % shape.dims[axis] * v.strides[axis];
    sample /= shape.dims[axis];
  }
  return offset;
}

// Single elements of a view as numbers of T, or back.
template <class T>
constexpr Compute kComputeOf = sizeof(T) == 8 ? (std::is_same_v<T, double> ? Compute::kDouble : Compute::kInt) : Compute::kFloat;

template <class T>
class Reader {
 public:
  explicit Reader(const View& v) : view_(v), size_(static_cast<int64_t>(SizeOf(v.dtype))) {
    if (v.data) load_ = pointwise::LoadConversion(v.dtype, kComputeOf<T>);
  }
  T At(int64_t offset) const {
    T value;
    load_(static_cast<const unsigned char*>(view_.data) + offset * size_, 1, &value, 1, 1);
    return value;
  }
  void Run(int64_t offset, int64_t step, int64_t count, T* to) const {
    load_(static_cast<const unsigned char*>(view_.data) + offset * size_, step, to, 1, count);
  }
  bool given() const { return load_ != nullptr; }

 private:
  const View& view_;
  int64_t size_;
  RunConversion load_ = nullptr;
};

// The class of a sample, or -1 where it does not count.
class Classes {
 public:
  Classes(const View& target, int64_t classes, int64_t ignored) : target_(target), numbers_(target), classes_(classes), ignored_(ignored) {}
  int64_t Of(int64_t sample) const {
    const int64_t y = numbers_.At(OffsetOf(target_, target_, sample));
    return y == ignored_ || y < 0 || y >= classes_ ? -1 : y;
  }

 private:
  const View& target_;
  Reader<int64_t> numbers_;
  int64_t classes_, ignored_;
};

template <class T>
class Weights {
 public:
  explicit Weights(const View& v) : numbers_(v), stride_(v.strides[0]) {}
  T Of(int64_t c) const { return numbers_.given() ? numbers_.At(c * stride_) : T(1); }
  void Run(int64_t first, int64_t count, T* to) const {
    if (numbers_.given()) numbers_.Run(first * stride_, stride_, count, to);
    else std::fill_n(to, count, T(1));
  }

 private:
  Reader<T> numbers_;
  int64_t stride_;
};

class Sum {
 public:
  void Add(double x) {
    const double sum = sum_ + x, part = sum - sum_;
    lost_ += (sum_ - (sum - part)) + (x - part);
    sum_ = sum;
  }
  double Value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

struct Sums {
  Sum loss, weight;
};

// Adds up what visit(i, &sums) finds in each sample.
template <class Visit>
Sums SumParts(int64_t samples, double* parts, const Visit& visit) {
  const int64_t count = cpu::CeilDiv(samples, kNllPart);
  cpu::ParallelFor(count, [&](int64_t part) {
    Sums own;
    for (int64_t i = part * kNllPart; i < std::min(samples, (part + 1) * kNllPart); ++i) visit(i, &own);
    parts[2 * part] = own.loss.Value();
    parts[2 * part + 1] = own.weight.Value();
  });
  Sums all;
  for (int64_t part = 0; part < count; ++part) {
    all.loss.Add(parts[2 * part]);
    all.weight.Add(parts[2 * part + 1]);
  }
  return all;
}

// Sum over c of w[c] * x[c] of one sample.
template <class T>
double WeightedSum(const Reader<T>& x, int64_t row, int64_t step, const Weights<T>& weights, int64_t classes) {
  constexpr int64_t kBlock = 256;
  T numbers[kBlock], factors[kBlock];
  double sum = 0;
  for (int64_t c = 0; c < classes; c += kBlock) {
    const int64_t count = std::min(kBlock, classes - c);
    x.Run(row + c * step, step, count, numbers);
    weights.Run(c, count, factors);
    for (int64_t k = 0; k < count; ++k) sum += static_cast<double>(factors[k]) * static_cast<double>(numbers[k]);
  }
  return sum;
}

template <class T>
void Forward(const NllParams& p) {
  const Reader<T> x(p.x);
  const Classes classes(p.target, p.classes, p.ignored);
  const Weights<T> weights(p.weight);
  const int64_t step = p.x.rank > 0 ? p.x.strides[p.x.rank - 1] : 0;  // without samples x is none
  T* const out = static_cast<T*>(p.out);
  const Sums all = SumParts(p.samples, static_cast<double*>(p.parts), [&](int64_t i, Sums* sums) {
    const int64_t y = classes.Of(i);
    double loss = 0;
    if (y >= 0) {
      const int64_t row = OffsetOf(p.x, p.target, i);
      const T weight = weights.Of(y);
      loss = static_cast<double>(-weight * x.At(row + y * step));
      sums->weight.Add(static_cast<double>(weight));
      if (p.smoothing != 0) {
        const double every = WeightedSum(x, row, step, weights, p.classes);
        loss = (1 - p.smoothing) * loss - p.smoothing / static_cast<double>(p.classes) * every;
      }
    }
    if (p.reduction == kNone) out[i] = static_cast<T>(loss);
    else sums->loss.Add(loss);
  });
  const double loss = all.loss.Value(), weight = all.weight.Value();
  if (p.reduction != kNone) *out = static_cast<T>(p.reduction == kMean ? loss / weight : loss);
  if (p.total) *static_cast<T*>(p.total) = p.reduction != kNone || p.single ? static_cast<T>(weight) : T(0);
}

void RunForward(const NllParams& p) { p.wide ? Forward<double>(p) : Forward<float>(p); }

template <class T>
void Backward(const NllBackwardParams& p) {
  const Reader<T> gradient(p.gradient), total(p.total);
  const Classes classes(p.target, p.classes, p.ignored);
  const Weights<T> weights(p.weight);
  const RunConversion store = pointwise::StoreConversion(kComputeOf<T>, p.out.dtype);
  const int64_t size = static_cast<int64_t>(SizeOf(p.out.dtype)), step = p.out.strides[p.out.rank - 1];
  const T divisor = p.mean ? total.At(0) : T(1);
  cpu::ParallelFor(cpu::CeilDiv(p.samples, kNllPart), [&](int64_t part) {
    for (int64_t i = part * kNllPart; i < std::min(p.samples, (part + 1) * kNllPart); ++i) {
      const int64_t y = classes.Of(i);
      if (y < 0) continue;
      const T value = -weights.Of(y) * gradient.At(OffsetOf(p.gradient, p.target, i)) / divisor;
      store(&value, 1, static_cast<unsigned char*>(p.out.data) + (OffsetOf(p.out, p.target, i) + y * step) * size, 1, 1);
    }
  });
}

void RunBackward(const NllBackwardParams& p) { p.wide ? Backward<double>(p) : Backward<float>(p); }

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> NllKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::NllParams, FitsAlways, loss::RunForward>("samples")};
  return kernels;
}

std::span<const Kernel> NllBackwardKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::NllBackwardParams, FitsAlways, loss::RunBackward>("samples")};
  return kernels;
}

}  // namespace anyacl::cpu
