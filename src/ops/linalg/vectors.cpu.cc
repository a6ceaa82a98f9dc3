// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/linalg/vectors.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "core/scalar.h"
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::linalg {
namespace {

using pointwise::Compute;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double,
                                std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>;

// The product as its definition has it; the standard's corrects infinities, for which Python and PyTorch do nothing.
template <class T>
T Times(T a, T b) {
  return a * b;
}
template <class T>
std::complex<T> Times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Calls visit(T()) for the compute type.
template <class Visit>
void WithType(Compute compute, const Visit& visit) {
  switch (compute) {
    case Compute::kFloat:
      return visit(float());
    case Compute::kDouble:
      return visit(double());
    case Compute::kInt:
      return visit(int64_t());
    case Compute::kUnsigned:
      return visit(uint64_t());
    case Compute::kComplex:
      return visit(std::complex<float>());
    case Compute::kDoubleComplex:
      return visit(std::complex<double>());
  }
}

// ---- Dot ------------------------------------------------------------------------------------------------------------

template <class T>
void Dot(const DotParams& p) {
  constexpr int kLanes = 8;
  const T* const a = static_cast<const T*>(p.a);
  const T* const b = static_cast<const T*>(p.b);
  Wide<T> sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= p.count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) sums[l] += Times(static_cast<Wide<T>>(a[i + l]), static_cast<Wide<T>>(b[i + l]));
  }
  for (int l = 0; i + l < p.count; ++l) sums[l] += Times(static_cast<Wide<T>>(a[i + l]), static_cast<Wide<T>>(b[i + l]));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  *static_cast<T*>(p.out) = static_cast<T>(sums[0]);
}

void RunDot(const DotParams& p) {
  WithType(p.compute, [&](auto zero) { Dot<decltype(zero)>(p); });
}

// ---- Equal ----------------------------------------------------------------------------------------------------------

int64_t EqualScratch(const EqualParams& p) { return cpu::CeilDiv(p.count, cpu::kTask); }

void RunEqual(const EqualParams& p) {
  unsigned char* const same = static_cast<unsigned char*>(p.scratch);
  const int64_t tasks = cpu::CeilDiv(p.count, cpu::kTask);
  WithType(p.compute, [&](auto zero) {
    using T = decltype(zero);
    cpu::ParallelFor(tasks, [&](int64_t task) {
      bool all = true;
      for (int64_t i = task * cpu::kTask; i < std::min(p.count, (task + 1) * cpu::kTask); ++i) {
        all = all && static_cast<const T*>(p.a)[i] == static_cast<const T*>(p.b)[i];
      }
      same[task] = all;
    });
  });
  *static_cast<unsigned char*>(p.out) = std::all_of(same, same + tasks, [](unsigned char one) { return one != 0; });
}

// ---- Cross ----------------------------------------------------------------------------------------------------------

void RunCross(const CrossParams& p) {
  WithType(p.compute, [&](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kRows = cpu::kTask / 4;
    cpu::ParallelFor(cpu::CeilDiv(p.rows, kRows), [&](int64_t task) {
      for (int64_t row = task * kRows; row < std::min(p.rows, (task + 1) * kRows); ++row) {
        const T* const a = static_cast<const T*>(p.a) + 3 * row;
        const T* const b = static_cast<const T*>(p.b) + 3 * row;
        for (int i = 0; i < 3; ++i) {
          const int j = (i + 1) % 3, k = (i + 2) % 3;
          static_cast<T*>(p.out)[3 * row + i] = Times(a[j], b[k]) - Times(a[k], b[j]);
        }
      }
    });
  });
}

// ---- Distances ------------------------------------------------------------------------------------------------------

// NaN for every p, as std::max would not have it.
double Norm(const double p, int64_t length, const auto& difference) {
  double norm = 0;
  bool nan = false;
  for (int64_t i = 0; i < length; ++i) {
    const double d = std::fabs(difference(i));
    nan = nan || d != d;
    if (p == 0) norm += d != 0;
    else if (p == 1) norm += d;
    else if (p == 2) norm += d * d;
    else if (std::isinf(p)) norm = std::max(norm, d);
    else norm += std::pow(d, p);
  }
  if (nan) return std::nan("");
  if (p == 2) return std::sqrt(norm);
  return p == 0 || p == 1 || std::isinf(p) ? norm : std::pow(norm, 1 / p);
}

template <class T>
void Distances(const DistanceParams& p) {
  const T* const a = static_cast<const T*>(p.a);
  const T* const b = static_cast<const T*>(p.b);
  T* const out = static_cast<T*>(p.out);
  const auto norm = [&](const T* x, const T* y) {
    return static_cast<T>(Norm(p.p, p.length, [&](int64_t i) { return static_cast<double>(x[i]) - static_cast<double>(y[i]); }));
  };
  cpu::ParallelFor(p.batch * p.m, [&](int64_t row) {
    const T* const x = a + row * p.length;
    if (p.pairs) {  // row i has n - 1 - i of them, behind those of the rows before it
      T* const to = out + row * p.m - row * (row + 1) / 2;
      for (int64_t j = row + 1; j < p.m; ++j) to[j - row - 1] = norm(x, a + j * p.length);
      return;
    }
    const T* const others = b + row / p.m * p.n * p.length;
    for (int64_t j = 0; j < p.n; ++j) out[row * p.n + j] = norm(x, others + j * p.length);
  });
}

void RunDistance(const DistanceParams& p) { p.is_double ? Distances<double>(p) : Distances<float>(p); }

// What a difference contributes, without the gradient it is multiplied by.
double Slope(double p, double d, double distance) {
  if (distance == 0 || p == 0 || (p < 2 && d == 0)) return 0;
  const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
  if (p == 1) return sign;
  if (p == 2) return d / distance;
  if (std::isinf(p)) return std::fabs(d) == distance ? sign : 0;
  return sign * std::pow(std::fabs(d), p - 1) / std::pow(distance, p - 1);
}

double RoundedTo(DType dtype, double x) {
  switch (dtype) {
    case DType::kF16:
      return static_cast<double>(Half(x));
    case DType::kBF16:
      return static_cast<double>(BFloat16(x));
    case DType::kF32:
      return static_cast<float>(x);
    default:
      return x;
  }
}

template <class T>
void DistanceGradients(const DistanceGradParams& p) {
  cpu::ParallelFor(p.batch * p.m, [&](int64_t row) {
    const T* const x = static_cast<const T*>(p.a) + row * p.length;
    const T* const others = static_cast<const T*>(p.b) + row / p.m * p.n * p.length;
    const T* const grad = static_cast<const T*>(p.grad) + row * p.n;
    const T* const distance = static_cast<const T*>(p.distance) + row * p.n;
    for (int64_t i = 0; i < p.length; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < p.n; ++j) {
        double d = static_cast<double>(x[i]) - static_cast<double>(others[j * p.length + i]);
        if (std::isinf(p.p)) d = RoundedTo(p.element, d);  // as the distance was, which it is compared with
        sum += static_cast<double>(grad[j]) * Slope(p.p, d, static_cast<double>(distance[j]));
      }
      static_cast<T*>(p.out)[row * p.length + i] = static_cast<T>(sum);
    }
  });
}

void RunDistanceGrad(const DistanceGradParams& p) { p.is_double ? DistanceGradients<double>(p) : DistanceGradients<float>(p); }

// ---- Affine grids ---------------------------------------------------------------------------------------------------

double BaseOf(int64_t i, int64_t count, bool align_corners) {
  if (align_corners) return count == 1 ? 0 : -1 + 2 * static_cast<double>(i) / static_cast<double>(count - 1);
  return static_cast<double>(2 * i + 1) / static_cast<double>(count) - 1;
}

template <class T>
void AffineGrid(const AffineGridParams& p) {
  cpu::ParallelFor(p.n * p.d * p.h, [&](int64_t line) {
    const T* const theta = static_cast<const T*>(p.theta) + line / (p.d * p.h) * p.axes * (p.axes + 1);
    T* out = static_cast<T*>(p.out) + line * p.w * p.axes;
    const double y = BaseOf(line % p.h, p.h, p.align_corners);
    const double z = BaseOf(line / p.h % p.d, p.d, p.align_corners);
    for (int64_t i = 0; i < p.w; ++i) {
      const double base[3] = {BaseOf(i, p.w, p.align_corners), y, z};
      for (int j = 0; j < p.axes; ++j) {
        const T* const row = theta + j * (p.axes + 1);
        double sum = static_cast<double>(row[p.axes]);
        for (int axis = 0; axis < p.axes; ++axis) sum += static_cast<double>(row[axis]) * base[axis];
        *out++ = static_cast<T>(sum);
      }
    }
  });
}

void RunAffineGrid(const AffineGridParams& p) { p.is_double ? AffineGrid<double>(p) : AffineGrid<float>(p); }

// ---- Triangular systems ---------------------------------------------------------------------------------------------

template <class T>
void Triangular(const TriangularParams& p) {
  cpu::ParallelFor(p.batch * p.k, [&](int64_t column) {
    const T* const a = static_cast<const T*>(p.a) + column / p.k * p.n * p.n;
    const int64_t offset = column / p.k * p.n * p.k + column % p.k;
    const T* const b = static_cast<const T*>(p.b) + offset;
    T* const x = static_cast<T*>(p.out) + offset;
    const auto at = [&](int64_t i, int64_t j) {
      return static_cast<Wide<T>>(p.transpose ? a[j * p.n + i] : a[i * p.n + j]);
    };
    const bool from_end = p.upper != p.transpose;  // the last unknown is the first to be known
    for (int64_t step = 0; step < p.n; ++step) {
      const int64_t i = from_end ? p.n - 1 - step : step;
      Wide<T> sum = static_cast<Wide<T>>(b[i * p.k]);
      for (int64_t known = 0; known < step; ++known) {
        const int64_t j = from_end ? p.n - 1 - known : known;
        sum -= Times(at(i, j), static_cast<Wide<T>>(x[j * p.k]));
      }
      x[i * p.k] = static_cast<T>(p.unit ? sum : sum / at(i, i));
    }
  });
}

bool FitsTriangular(const TriangularParams& p) {
  return p.compute != Compute::kInt && p.compute != Compute::kUnsigned;
}

void RunTriangular(const TriangularParams& p) {
  WithType(p.compute, [&](auto zero) {
    if constexpr (!std::is_integral_v<decltype(zero)>) Triangular<decltype(zero)>(p);
  });
}

}  // namespace
}  // namespace anyacl::linalg

namespace anyacl::cpu {

using namespace linalg;  // NOLINT: the kernels of one header

std::span<const Kernel> DotKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<DotParams, FitsAlways<DotParams>, RunDot>("lanes")};
  return kernels;
}
std::span<const Kernel> EqualKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<EqualParams, FitsAlways<EqualParams>, RunEqual, EqualScratch>("blocks")};
  return kernels;
}
std::span<const Kernel> CrossKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<CrossParams, FitsAlways<CrossParams>, RunCross>("rows")};
  return kernels;
}
std::span<const Kernel> DistanceKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<DistanceParams, FitsAlways<DistanceParams>, RunDistance>("rows")};
  return kernels;
}
std::span<const Kernel> DistanceGradKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<DistanceGradParams, FitsAlways<DistanceGradParams>, RunDistanceGrad>("rows")};
  return kernels;
}
std::span<const Kernel> AffineGridKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<AffineGridParams, FitsAlways<AffineGridParams>, RunAffineGrid>("lines")};
  return kernels;
}
std::span<const Kernel> TriangularKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<TriangularParams, FitsTriangular, RunTriangular>("substitution")};
  return kernels;
}

}  // namespace anyacl::cpu
