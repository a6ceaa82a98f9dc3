// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Numbers that formulas are written in, compiled once per SIMD target: Lanes<float> and Lanes<double> are vectors,
// integers are plain (compilers vectorise their loops), complex numbers are pairs. Comparisons of lanes give a mask per
// lane, those of integers a bool; Select takes both.
#if defined(ANYACL_OPS_POINTWISE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_POINTWISE_LANES_INL_H_
#undef ANYACL_OPS_POINTWISE_LANES_INL_H_
#else
#define ANYACL_OPS_POINTWISE_LANES_INL_H_
#endif

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpu/simd-inl.h"
#include "hwy/highway.h"

// The formulas have one text for CPUs and GPUs: there (lanes.cuh) it says where their functions run.
#undef ANYACL_DEVICE
#define ANYACL_DEVICE

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace pointwise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct LaneMask {
  hn::Mask<hn::ScalableTag<T>> m;
  friend HWY_INLINE LaneMask operator&&(LaneMask a, LaneMask b) { return {hn::And(a.m, b.m)}; }
  friend HWY_INLINE LaneMask operator||(LaneMask a, LaneMask b) { return {hn::Or(a.m, b.m)}; }
  friend HWY_INLINE LaneMask operator!(LaneMask a) { return {hn::Not(a.m)}; }
};

template <class T>
struct Lanes {
  using Number = T;
  using D = hn::ScalableTag<T>;
  using Vector = hn::Vec<D>;
  using Mask = LaneMask<T>;
  static HWY_INLINE size_t Count() { return hn::Lanes(D()); }
  static constexpr size_t kMost = hn::MaxLanes(D());

  Vector v;

  HWY_INLINE Lanes() = default;
  HWY_INLINE Lanes(Vector vector) : v(vector) {}                    // NOLINT: the same
  HWY_INLINE Lanes(T value) : v(hn::Set(D(), value)) {}             // NOLINT: constants in formulas
  static HWY_INLINE Lanes Load(const T* p) { return hn::LoadU(D(), p); }
  HWY_INLINE void Store(T* p) const { hn::StoreU(v, D(), p); }

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE Lanes operator-(Lanes a) { return hn::Neg(a.v); }
  friend HWY_INLINE Mask operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE Mask operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE Mask operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE Mask operator>=(Lanes a, Lanes b) { return {hn::Ge(a.v, b.v)}; }
  friend HWY_INLINE Mask operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }
  friend HWY_INLINE Mask operator!=(Lanes a, Lanes b) { return {hn::Not(hn::Eq(a.v, b.v))}; }  // true for NaN

  friend HWY_INLINE Lanes Select(Mask mask, Lanes yes, Lanes no) { return hn::IfThenElse(mask.m, yes.v, no.v); }
  friend HWY_INLINE Mask IsNan(Lanes a) { return {hn::IsNaN(a.v)}; }
  friend HWY_INLINE Lanes CopySign(Lanes a, Lanes sign) { return hn::CopySign(a.v, sign.v); }
};

#define ANYACL_LANES(Name)                     \
  template <class T>                           \
  HWY_INLINE Lanes<T> Name(Lanes<T> x) {       \
    return hn::Name(x.v);                      \
  }
ANYACL_LANES(Abs)
ANYACL_LANES(Ceil)
ANYACL_LANES(Floor)
ANYACL_LANES(Round)  // half to even
ANYACL_LANES(Sqrt)
ANYACL_LANES(Trunc)
#undef ANYACL_LANES

// The same words for integers and complex numbers.
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

// Applies a function of single numbers lane by lane: for what has no vector code.
template <class T, class F>
HWY_INLINE Lanes<T> PerLane(Lanes<T> x, F f) {
  T values[Lanes<T>::kMost];
  x.Store(values);
  for (size_t i = 0; i < Lanes<T>::Count(); ++i) values[i] = f(values[i]);
  return Lanes<T>::Load(values);
}
template <class T, class F>
HWY_INLINE Lanes<T> PerLane(Lanes<T> x, Lanes<T> y, F f) {
  T values[Lanes<T>::kMost], others[Lanes<T>::kMost];
  x.Store(values);
  y.Store(others);
  for (size_t i = 0; i < Lanes<T>::Count(); ++i) values[i] = f(values[i], others[i]);
  return Lanes<T>::Load(values);
}

// A product as it is, rounded: where the vectors of GCC 12 hold real and imaginary parts in turns, they fuse products and sums
// (fmaddsub) whatever -ffp-contract says, and other layouts would have other bits.
template <class T>
HWY_INLINE T Rounded(T product) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86
  asm("" : "+x"(product));
#endif
  return product;
}

// What complex numbers are computed in where it matters.
using Wide = std::complex<double>;

// A complex number of T; one at a time.
template <class T>
struct Complex {
  T re, im;
  HWY_INLINE Complex() = default;
  HWY_INLINE Complex(T real, T imaginary = 0) : re(real), im(imaginary) {}                   // NOLINT
  HWY_INLINE Complex(std::complex<T> z) : re(z.real()), im(z.imag()) {}                      // NOLINT
  HWY_INLINE std::complex<T> Std() const { return {re, im}; }

  friend HWY_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend HWY_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend HWY_INLINE Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend HWY_INLINE Complex operator*(Complex a, Complex b) {
    return {Rounded(a.re * b.re) - Rounded(a.im * b.im), Rounded(a.re * b.im) + Rounded(a.im * b.re)};
  }
  friend HWY_INLINE Complex operator/(Complex a, Complex b) { return Complex(a.Std() / b.Std()); }
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

// Functions of the standard library. FLOAT goes through double where the library's own function is not known to stay within
// an ulp; a complex FLOAT always does.
#define ANYACL_FUNCTION(Name, function, Through)                                            \
  HWY_INLINE Lanes<float> Name(Lanes<float> x) {                                            \
    return PerLane(x, [](float one) { return static_cast<float>(function(Through(one))); }); \
  }                                                                                         \
  HWY_INLINE Lanes<double> Name(Lanes<double> x) {                                          \
    return PerLane(x, [](double one) { return function(one); });                            \
  }
#define ANYACL_COMPLEX_FUNCTION(Name, function)                                                            \
  HWY_INLINE Complex<float> Name(Complex<float> z) {                                                       \
    const std::complex<double> w = function(std::complex<double>(z.re, z.im));                             \
    return {static_cast<float>(w.real()), static_cast<float>(w.imag())};                                   \
  }                                                                                                        \
  HWY_INLINE Complex<double> Name(Complex<double> z) { return Complex<double>(function(z.Std())); }

ANYACL_FUNCTION(Acos, std::acos, double)
ANYACL_FUNCTION(Acosh, std::acosh, double)
ANYACL_FUNCTION(Asin, std::asin, double)
ANYACL_FUNCTION(Asinh, std::asinh, double)
ANYACL_FUNCTION(Atan, std::atan, double)
ANYACL_FUNCTION(Atanh, std::atanh, double)
ANYACL_FUNCTION(Cos, std::cos, float)
ANYACL_FUNCTION(Cosh, std::cosh, double)
ANYACL_FUNCTION(Erf, std::erf, double)
ANYACL_FUNCTION(Erfc, std::erfc, double)
ANYACL_FUNCTION(Exp2, std::exp2, float)
ANYACL_FUNCTION(Expm1, std::expm1, double)
ANYACL_FUNCTION(Log, std::log, float)
ANYACL_FUNCTION(Log10, std::log10, double)
ANYACL_FUNCTION(Log1p, std::log1p, double)
ANYACL_FUNCTION(Log2, std::log2, float)
ANYACL_FUNCTION(Sin, std::sin, float)
ANYACL_FUNCTION(Sinh, std::sinh, double)
ANYACL_FUNCTION(Tan, std::tan, double)
ANYACL_FUNCTION(Tanh, std::tanh, double)
ANYACL_COMPLEX_FUNCTION(Acos, std::acos)
ANYACL_COMPLEX_FUNCTION(Acosh, std::acosh)
ANYACL_COMPLEX_FUNCTION(Asin, std::asin)
ANYACL_COMPLEX_FUNCTION(Asinh, std::asinh)
ANYACL_COMPLEX_FUNCTION(Atan, std::atan)
ANYACL_COMPLEX_FUNCTION(Atanh, std::atanh)
ANYACL_COMPLEX_FUNCTION(Cos, std::cos)
ANYACL_COMPLEX_FUNCTION(Cosh, std::cosh)
ANYACL_COMPLEX_FUNCTION(Exp, std::exp)
ANYACL_COMPLEX_FUNCTION(Log, std::log)
ANYACL_COMPLEX_FUNCTION(Sin, std::sin)
ANYACL_COMPLEX_FUNCTION(Sinh, std::sinh)
ANYACL_COMPLEX_FUNCTION(Sqrt, std::sqrt)
ANYACL_COMPLEX_FUNCTION(Tan, std::tan)
ANYACL_COMPLEX_FUNCTION(Tanh, std::tanh)
#undef ANYACL_FUNCTION
#undef ANYACL_COMPLEX_FUNCTION

HWY_INLINE Lanes<float> Exp(Lanes<float> x) { return cpu::HWY_NAMESPACE::Exp(x.v); }
HWY_INLINE Lanes<double> Exp(Lanes<double> x) {
  return PerLane(x, [](double one) { return std::exp(one); });
}

template <class T>
HWY_INLINE T Modulo(T x, T y) {
  return std::fmod(x, y);
}
template <class T>
HWY_INLINE T Power(T x, T y) {
  return std::pow(x, y);
}
HWY_INLINE double LogGamma(double x) {
  int sign;  // lgamma would leave it in a variable of the process
  return lgamma_r(x, &sign);
}

}  // namespace HWY_NAMESPACE
}  // namespace pointwise
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
