// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The words of lanes-inl.h on a GPU, where a thread has one number and a vector of lanes is just that: so the formulas have
// one text. What is long is a function that is called, because formulas are applied several times in a kernel.
#ifndef ANYACL_OPS_POINTWISE_LANES_CUH_
#define ANYACL_OPS_POINTWISE_LANES_CUH_

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// What the formulas call their functions and their namespace by; on the CPU Highway has them.
#define ANYACL_DEVICE __device__
#define HWY_INLINE __device__ __forceinline__
#define HWY_NOINLINE __device__ __noinline__
#define HWY_NAMESPACE device

namespace anyacl {
namespace pointwise {
namespace device {

// A class, not T itself: words and operators of formulas mean vectors by it, and integers by integers.
template <class T>
struct Lanes {
  using Number = T;
  T v;

  Lanes() = default;
  HWY_INLINE Lanes(T value) : v(value) {}  // NOLINT: constants in formulas

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return a.v + b.v; }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return a.v - b.v; }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return a.v * b.v; }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return a.v / b.v; }
  friend HWY_INLINE Lanes operator-(Lanes a) { return -a.v; }
  friend HWY_INLINE bool operator<(Lanes a, Lanes b) { return a.v < b.v; }
  friend HWY_INLINE bool operator>(Lanes a, Lanes b) { return a.v > b.v; }
  friend HWY_INLINE bool operator<=(Lanes a, Lanes b) { return a.v <= b.v; }
  friend HWY_INLINE bool operator>=(Lanes a, Lanes b) { return a.v >= b.v; }
  friend HWY_INLINE bool operator==(Lanes a, Lanes b) { return a.v == b.v; }
  friend HWY_INLINE bool operator!=(Lanes a, Lanes b) { return a.v != b.v; }

  friend HWY_INLINE bool IsNan(Lanes a) { return a.v != a.v; }
  friend HWY_INLINE Lanes CopySign(Lanes a, Lanes sign) { return std::copysign(a.v, sign.v); }
};

#define ANYACL_LANES(Name, function)     \
  template <class T>                     \
  HWY_INLINE Lanes<T> Name(Lanes<T> x) { \
    return std::function(x.v);              \
  }
ANYACL_LANES(Abs, fabs)
ANYACL_LANES(Ceil, ceil)
ANYACL_LANES(Floor, floor)
ANYACL_LANES(Round, rint)  // half to even
ANYACL_LANES(Sqrt, sqrt)
ANYACL_LANES(Trunc, trunc)
#undef ANYACL_LANES

template <class T>
inline constexpr bool kIsLanes = false;
template <class T>
inline constexpr bool kIsLanes<Lanes<T>> = true;
template <class T>
inline constexpr bool kIsWhole = std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>;

template <class V>
HWY_INLINE V Select(bool condition, V yes, V no) {
  return condition ? yes : no;
}

template <class T, class F>
HWY_INLINE Lanes<T> PerLane(Lanes<T> x, F f) {
  return f(x.v);
}
template <class T, class F>
HWY_INLINE Lanes<T> PerLane(Lanes<T> x, Lanes<T> y, F f) {
  return f(x.v, y.v);
}

// ---- Complex numbers -----------------------------------------------------------------------------------------------

// What std::complex<double> is on the CPU: the standard library's is no code for GPUs.
struct Wide {
  double re, im;
  Wide() = default;
  HWY_INLINE Wide(double real, double imaginary = 0) : re(real), im(imaginary) {}  // NOLINT
  HWY_INLINE double real() const { return re; }
  HWY_INLINE double imag() const { return im; }
  friend HWY_INLINE Wide operator+(Wide a, Wide b) { return {a.re + b.re, a.im + b.im}; }
  friend HWY_INLINE Wide operator-(Wide a, Wide b) { return {a.re - b.re, a.im - b.im}; }
  friend HWY_INLINE Wide operator*(Wide a, Wide b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend HWY_INLINE Wide operator*(Wide a, double b) { return {a.re * b, a.im * b}; }
  friend HWY_INLINE Wide operator/(Wide a, double b) { return {a.re / b, a.im / b}; }
};
HWY_INLINE Wide Turned(Wide z) { return {-z.im, z.re}; }      // iz
HWY_INLINE Wide TurnedBack(Wide z) { return {z.im, -z.re}; }  // -iz
HWY_INLINE Wide Mirrored(Wide z) { return {z.re, -z.im}; }

// The divisor is brought near 1 first; infinities and zeros as in C's annex G.
inline HWY_NOINLINE Wide Divided(Wide a, Wide b) {
  const double size = fmax(fabs(b.re), fabs(b.im));
  const bool scales = size > 0 && std::isfinite(size);
  const int by = scales ? -ilogb(size) : 0;
  const double re = scalbn(b.re, by), im = scalbn(b.im, by);
  const double length = re * re + im * im;
  Wide q(scalbn((a.re * re + a.im * im) / length, by), scalbn((a.im * re - a.re * im) / length, by));
  if (!(std::isnan(q.re) && std::isnan(q.im))) return q;
  const auto unit = [](double x) { return copysign(std::isinf(x) ? 1.0 : 0.0, x); };
  if (length == 0 && !(std::isnan(a.re) && std::isnan(a.im))) {
    const double infinity = copysign(std::numeric_limits<double>::infinity(), b.re);
    return {infinity * a.re, infinity * a.im};
  }
  if ((std::isinf(a.re) || std::isinf(a.im)) && std::isfinite(b.re) && std::isfinite(b.im)) {
    const double x = unit(a.re), y = unit(a.im), infinity = std::numeric_limits<double>::infinity();
    return {infinity * (x * b.re + y * b.im), infinity * (y * b.re - x * b.im)};
  }
  if (std::isinf(size) && std::isfinite(a.re) && std::isfinite(a.im)) {
    const double x = unit(b.re), y = unit(b.im);
    return {0.0 * (a.re * x + a.im * y), 0.0 * (a.im * x - a.re * y)};
  }
  return q;
}

inline HWY_NOINLINE Wide exp(Wide z) {
  const double length = ::exp(z.re);
  if (z.im == 0) return {length, z.im};
  double sine, cosine;
  sincos(z.im, &sine, &cosine);
  return {length * cosine, length * sine};
}

// Near 1 the length is kept as what it is more than 1.
inline HWY_NOINLINE Wide log(Wide z) {
  const double x = fabs(z.re), y = fabs(z.im), large = fmax(x, y), small = fmin(x, y);
  const bool near = large > 0.5 && large < 1.5;
  const double length = near ? 0.5 * log1p((large - 1) * (large + 1) + small * small) : ::log(hypot(x, y));
  return {length, atan2(z.im, z.re)};
}

inline HWY_NOINLINE Wide sqrt(Wide z) {
  if (z.re == 0 && z.im == 0) return {0, z.im};
  if (std::isinf(z.im)) return {fabs(z.im), z.im};
  // Scaled by 2^-2 where the length could overflow, by 2^54 where halves could be lost.
  const double size = fmax(fabs(z.re), fabs(z.im));
  const int by = size > 0x1p1020 ? -2 : size < 0x1p-960 ? 54 : 0;
  const double re = scalbn(z.re, by), im = scalbn(z.im, by);
  const double root = ::sqrt((fabs(re) + hypot(re, im)) * 0.5);
  const Wide w = re >= 0 ? Wide(root, im / (2 * root)) : Wide(fabs(im) / (2 * root), copysign(root, im));
  return {scalbn(w.re, -by / 2), scalbn(w.im, -by / 2)};
}

inline HWY_NOINLINE Wide sinh(Wide z) {
  double sine, cosine;
  sincos(z.im, &sine, &cosine);
  return z.im == 0 ? Wide(::sinh(z.re), z.im) : Wide(::sinh(z.re) * cosine, ::cosh(z.re) * sine);
}

inline HWY_NOINLINE Wide cosh(Wide z) {
  double sine, cosine;
  sincos(z.im, &sine, &cosine);
  return z.im == 0 ? Wide(::cosh(z.re), z.re * z.im) : Wide(::cosh(z.re) * cosine, ::sinh(z.re) * sine);
}

// Kahan's: by the tangent of the imaginary part and the hyperbolic sine of the real one.
inline HWY_NOINLINE Wide tanh(Wide z) {
  if (fabs(z.re) > 22) {
    double sine, cosine;
    sincos(z.im, &sine, &cosine);
    return {copysign(1.0, z.re), 4 * sine * cosine * ::exp(-2 * fabs(z.re))};
  }
  const double t = ::tan(z.im), s = ::sinh(z.re);
  const double beta = 1 + t * t, divisor = 1 + beta * s * s;
  return {beta * ::sqrt(1 + s * s) * s / divisor, t / divisor};
}

// The inverse functions by roots of 1 + z and 1 - z (Kahan, Branch cuts for complex elementary functions), in which signs
// of zeros choose the side of a cut.
inline HWY_NOINLINE Wide acos(Wide z) {
  const Wide less = sqrt(Wide(1 - z.re, -z.im)), more = sqrt(Wide(1 + z.re, z.im));
  return {2 * atan2(less.re, more.re), ::asinh((Mirrored(more) * less).im)};
}
inline HWY_NOINLINE Wide asin(Wide z) {
  const Wide less = sqrt(Wide(1 - z.re, -z.im)), more = sqrt(Wide(1 + z.re, z.im));
  return {atan2(z.re, (less * more).re), ::asinh((Mirrored(less) * more).im)};
}
inline HWY_NOINLINE Wide acosh(Wide z) {
  const Wide less = sqrt(Wide(z.re - 1, z.im)), more = sqrt(Wide(z.re + 1, z.im));
  return {::asinh((Mirrored(less) * more).re), 2 * atan2(less.im, more.re)};
}
inline HWY_NOINLINE Wide atanh(Wide z) {
  const double x = fabs(z.re), y = z.im, square = y * y;
  const double re = 0.25 * log1p(4 * x / ((1 - x) * (1 - x) + square));
  return {copysign(re, z.re), 0.5 * atan2(2 * y, (1 - x) * (1 + x) - square)};
}
HWY_INLINE Wide asinh(Wide z) { return TurnedBack(asin(Turned(z))); }
HWY_INLINE Wide atan(Wide z) { return TurnedBack(atanh(Turned(z))); }
HWY_INLINE Wide sin(Wide z) { return TurnedBack(sinh(Turned(z))); }
HWY_INLINE Wide cos(Wide z) { return cosh(Turned(z)); }
HWY_INLINE Wide tan(Wide z) { return TurnedBack(tanh(Turned(z))); }

template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  HWY_INLINE Complex(T real, T imaginary = 0) : re(real), im(imaginary) {}                              // NOLINT
  HWY_INLINE explicit Complex(Wide z) : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}
  HWY_INLINE explicit operator Wide() const { return {re, im}; }

  friend HWY_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend HWY_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend HWY_INLINE Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend HWY_INLINE Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend HWY_INLINE Complex operator/(Complex a, Complex b) { return Complex(Divided(Wide(a), Wide(b))); }
  friend HWY_INLINE bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend HWY_INLINE bool operator!=(Complex a, Complex b) { return !(a == b); }
};
template <class T>
inline constexpr bool kIsComplexNumber = false;
template <class T>
inline constexpr bool kIsComplexNumber<Complex<T>> = true;

template <class T>
HWY_INLINE Complex<T> Conjugate(Complex<T> z) {
  return {z.re, -z.im};
}
template <class V>
HWY_INLINE V Conjugate(V x) {
  return x;
}

// ---- Functions -----------------------------------------------------------------------------------------------------

// FLOAT goes through double where CUDA's own function may be off by more than two ulps, or is long anyway.
#define ANYACL_FUNCTION(Name, function, Through)                                  \
  inline HWY_NOINLINE double Long##Name(double x) { return std::function(x); }    \
  template <class T>                                                              \
  HWY_INLINE Lanes<T> Name(Lanes<T> x) {                                          \
    if constexpr (std::is_same_v<T, double> || std::is_same_v<Through, double>) { \
      return static_cast<T>(Long##Name(x.v));                                     \
    } else {                                                                      \
      return std::function(x.v);                                                  \
    }                                                                             \
  }
#define ANYACL_COMPLEX_FUNCTION(Name, function)    \
  template <class T>                               \
  HWY_INLINE Complex<T> Name(Complex<T> z) {       \
    return Complex<T>(device::function(Wide(z)));  \
  }
#define ANYACL_BOTH(Name, function, Through)   \
  ANYACL_FUNCTION(Name, function, Through)     \
  ANYACL_COMPLEX_FUNCTION(Name, function)

ANYACL_BOTH(Acos, acos, double)
ANYACL_BOTH(Acosh, acosh, double)
ANYACL_BOTH(Asin, asin, double)
ANYACL_BOTH(Asinh, asinh, double)
ANYACL_BOTH(Atan, atan, double)
ANYACL_BOTH(Atanh, atanh, double)
ANYACL_BOTH(Cos, cos, double)
ANYACL_BOTH(Cosh, cosh, double)
ANYACL_BOTH(Exp, exp, float)
ANYACL_BOTH(Log, log, float)
ANYACL_BOTH(Sin, sin, double)
ANYACL_BOTH(Sinh, sinh, double)
ANYACL_BOTH(Tan, tan, double)
ANYACL_BOTH(Tanh, tanh, double)
ANYACL_FUNCTION(Erf, erf, double)
ANYACL_FUNCTION(Erfc, erfc, double)
ANYACL_FUNCTION(Exp2, exp2, float)
ANYACL_FUNCTION(Expm1, expm1, float)
ANYACL_FUNCTION(Log10, log10, double)
ANYACL_FUNCTION(Log1p, log1p, float)
ANYACL_FUNCTION(Log2, log2, float)
ANYACL_COMPLEX_FUNCTION(Sqrt, sqrt)
#undef ANYACL_BOTH
#undef ANYACL_FUNCTION
#undef ANYACL_COMPLEX_FUNCTION

inline HWY_NOINLINE double Modulo(double x, double y) { return ::fmod(x, y); }
inline HWY_NOINLINE float Modulo(float x, float y) { return ::fmodf(x, y); }
inline HWY_NOINLINE double Power(double x, double y) { return ::pow(x, y); }
HWY_INLINE float Power(float x, float y) { return static_cast<float>(Power(double{x}, double{y})); }
inline HWY_NOINLINE double LogGamma(double x) { return ::lgamma(x); }

}  // namespace device
}  // namespace pointwise
}  // namespace anyacl

#endif  // ANYACL_OPS_POINTWISE_LANES_CUH_
