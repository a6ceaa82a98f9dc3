// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The places of a sample and their weights are computed once for all channels. No coordinate becomes an index before it is
// known to lie inside.
#include "ops/resize/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::resize {
namespace {

constexpr int64_t kOutside = -1;

template <class T>
int64_t IndexOf(T x, int64_t size) {
  return x >= 0 && x <= static_cast<T>(size - 1) ? static_cast<int64_t>(x) : kOutside;
}

// A coordinate in elements, and its derivative.
template <class T>
struct Coordinate {
  T x;
  T slope;
};

// On one axis.
template <class T>
struct AxisTaps {
  int count = 1;
  int64_t index[4] = {};
  T weight[4] = {1};
  T slope[4] = {};  // derivatives of the weights
};

template <class T>
class Axis {
 public:
  Axis(const GridSampleParams& p, int axis)
      : size_(p.size[axis]), volume_(p.axes == 3), sampling_(p.sampling), padding_(p.padding), align_(p.align_corners) {}

  AxisTaps<T> At(T g) const {
    const T size = static_cast<T>(size_);
    Coordinate<T> c = align_ ? Coordinate<T>{(g + 1) / 2 * (size - 1), (size - 1) / 2} : Coordinate<T>{((g + 1) * size - 1) / 2, size / 2};
    AxisTaps<T> taps;
    if (sampling_ == Sampling::kCubic) {
      Cubic(c, &taps);
      return taps;
    }
    c = Padded(c);
    if (sampling_ == Sampling::kNearest) {
      taps.index[0] = IndexOf(std::nearbyint(c.x), size_);
      return taps;
    }
    const T first = std::floor(c.x), t = c.x - first;
    taps.count = 2;
    for (int i = 0; i < 2; ++i) {
      taps.index[i] = IndexOf(first + static_cast<T>(i), size_);
      taps.weight[i] = i == 0 ? 1 - t : t;
      taps.slope[i] = i == 0 ? -c.slope : c.slope;
    }
    return taps;
  }

 private:
  Coordinate<T> Padded(Coordinate<T> c) const {
    if (padding_ == Padding::kZeros) return c;
    return Clamped(padding_ == Padding::kReflection ? Reflected(c) : c);
  }
  // NaN goes where PyTorch has it: to the first element of a plane, to the last one of a volume.
  Coordinate<T> Clamped(Coordinate<T> c) const {
    const T most = static_cast<T>(size_ - 1);
    if (std::isnan(c.x)) return {volume_ ? most : 0, 0};
    if (c.x <= 0) return {0, 0};
    return c.x >= most ? Coordinate<T>{most, 0} : c;
  }
  // About the outermost elements, or their outer edges.
  Coordinate<T> Reflected(Coordinate<T> c) const {
    const T low = align_ ? 0 : T(-0.5), span = static_cast<T>(align_ ? size_ - 1 : size_);
    if (span == 0) return {0, 0};
    const T away = std::abs(c.x - low), rest = std::fmod(away, span), stretches = std::floor(away / span);
    const T slope = c.x < low ? -c.slope : c.slope;
    return std::fmod(stretches, T(2)) == 0 ? Coordinate<T>{rest + low, slope} : Coordinate<T>{span - rest + low, -slope};
  }
  void Cubic(Coordinate<T> c, AxisTaps<T>* taps) const {
    constexpr T a = T(-0.75);
    const T first = std::floor(c.x), t = c.x - first;
    taps->count = 4;
    for (int i = 0; i < 4; ++i) {
      const T place = first + static_cast<T>(i - 1), d = std::abs(t - static_cast<T>(i - 1));
      const bool inner = i == 1 || i == 2;
      taps->index[i] = IndexOf(Padded({place, 0}).x, size_);
      taps->weight[i] = inner ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      const T rise = inner ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
      taps->slope[i] = (i < 2 ? rise : -rise) * c.slope;
    }
  }

  int64_t size_;
  bool volume_;
  Sampling sampling_;
  Padding padding_;
  bool align_;
};

// What one sample reads of a channel.
template <class T>
struct Tap {
  int64_t index;  // in the channel, or kOutside
  T weight;
  T slope[3];  // derivatives, along each axis
};
template <class T>
struct Sample {
  int count = 0;
  Tap<T> taps[16];
};

template <class T>
class Sampler {
 public:
  explicit Sampler(const GridSampleParams& p) : axes_{Axis<T>(p, 0), Axis<T>(p, 1), Axis<T>(p, 2)}, p_(p) {}

  Sample<T> At(int64_t n, int64_t place) const {
    const T* const g = static_cast<const T*>(p_.grid) + (n * p_.places + place) * p_.axes;
    const AxisTaps<T> x = axes_[0].At(g[0]), y = axes_[1].At(g[1]), z = p_.axes == 3 ? axes_[2].At(g[2]) : AxisTaps<T>();
    Sample<T> sample;
    for (int k = 0; k < z.count; ++k) {
      for (int j = 0; j < y.count; ++j) {
        for (int i = 0; i < x.count; ++i) {
          const bool outside = x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0;
          // In a plane nothing is times a weight, which may be no number; in a volume it is left out.
          if (outside && p_.axes == 3) continue;
          sample.taps[sample.count++] = {outside ? kOutside : (z.index[k] * p_.size[1] + y.index[j]) * p_.size[0] + x.index[i],
                                         x.weight[i] * y.weight[j] * z.weight[k],
                                         {x.slope[i] * y.weight[j] * z.weight[k], x.weight[i] * y.slope[j] * z.weight[k],
                                          x.weight[i] * y.weight[j] * z.slope[k]}};
        }
      }
    }
    return sample;
  }

 private:
  Axis<T> axes_[3];
  const GridSampleParams& p_;
};

int64_t ChannelSize(const GridSampleParams& p) { return p.size[0] * p.size[1] * p.size[2]; }

// Calls visit(n, place) for all places, in tasks of some of one image each.
template <class Visit>
void ForPlaces(const GridSampleParams& p, const Visit& visit) {
  const int64_t per_task = std::max<int64_t>(cpu::kTask / (8 * (p.channels + 8)), 1), tasks = cpu::CeilDiv(p.places, per_task);
  cpu::ParallelFor(p.batch * tasks, [&](int64_t task) {
    const int64_t first = task % tasks * per_task;
    for (int64_t place = first; place < std::min(p.places, first + per_task); ++place) visit(task / tasks, place);
  });
}

template <class T>
void Forward(const GridSampleParams& p) {
  const Sampler<T> sampler(p);
  const int64_t size = ChannelSize(p);
  ForPlaces(p, [&](int64_t n, int64_t place) {
    const Sample<T> sample = sampler.At(n, place);
    const T* x = static_cast<const T*>(p.input) + n * p.channels * size;
    T* y = static_cast<T*>(p.samples) + n * p.channels * p.places + place;
    for (int64_t c = 0; c < p.channels; ++c, x += size, y += p.places) {
      T sum = 0;
      for (int i = 0; i < sample.count; ++i) sum += (sample.taps[i].index < 0 ? 0 : x[sample.taps[i].index]) * sample.taps[i].weight;
      *y = sum;
    }
  });
}

template <class T>
void GridGradient(const GridSampleParams& p) {
  const Sampler<T> sampler(p);
  const int64_t size = ChannelSize(p);
  ForPlaces(p, [&](int64_t n, int64_t place) {
    const Sample<T> sample = sampler.At(n, place);
    const T* x = static_cast<const T*>(p.input) + n * p.channels * size;
    const T* dy = static_cast<const T*>(p.samples) + n * p.channels * p.places + place;
    T sums[3] = {};
    for (int64_t c = 0; c < p.channels; ++c, x += size, dy += p.places) {
      for (int i = 0; i < sample.count; ++i) {
        const Tap<T>& tap = sample.taps[i];
        const T product = (tap.index < 0 ? 0 : x[tap.index]) * *dy;
        for (int axis = 0; axis < p.axes; ++axis) sums[axis] += product * tap.slope[axis];
      }
    }
    T* const to = static_cast<T*>(p.grid_grad) + (n * p.places + place) * p.axes;
    for (int axis = 0; axis < p.axes; ++axis) to[axis] = p.sampling == Sampling::kNearest ? 0 : sums[axis];
  });
}

// A task owns some channels of an image and goes through all places in order.
template <class T>
void InputGradient(const GridSampleParams& p) {
  constexpr int64_t kChannels = 4;
  const Sampler<T> sampler(p);
  const int64_t size = ChannelSize(p), blocks = cpu::CeilDiv(p.channels, kChannels);
  cpu::ParallelFor(p.batch * blocks, [&](int64_t task) {
    const int64_t n = task / blocks, first = task % blocks * kChannels, count = std::min(kChannels, p.channels - first);
    T* const dx = static_cast<T*>(p.input_grad) + (n * p.channels + first) * size;
    const T* const dy = static_cast<const T*>(p.samples) + (n * p.channels + first) * p.places;
    std::fill_n(dx, count * size, T(0));
    for (int64_t place = 0; place < p.places; ++place) {
      const Sample<T> sample = sampler.At(n, place);
      for (int i = 0; i < sample.count; ++i) {
        if (sample.taps[i].index < 0) continue;
        for (int64_t c = 0; c < count; ++c) dx[c * size + sample.taps[i].index] += dy[c * p.places + place] * sample.taps[i].weight;
      }
    }
  });
}

template <class T>
void RunAs(const GridSampleParams& p) {
  if (p.input_grad) InputGradient<T>(p);
  if (p.grid_grad) GridGradient<T>(p);
  if (!p.input_grad && !p.grid_grad) Forward<T>(p);
}

void Run(const GridSampleParams& p) { p.dtype == DType::kF64 ? RunAs<double>(p) : RunAs<float>(p); }

}  // namespace
}  // namespace anyacl::resize

namespace anyacl::cpu {

std::span<const Kernel> GridSampleKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<resize::GridSampleParams, FitsAlways<resize::GridSampleParams>, resize::Run>("taps")};
  return kernels;
}

}  // namespace anyacl::cpu
