// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas that choose, bound, round and take apart; see arithmetic-inl.h.

struct Where {
  template <class V>
  static ANYACL_DEVICE V Of(V condition, V yes, V no, const V*) {
    return Select(condition != V(0), yes, no);
  }
};

// NaN where either is NaN.
struct Maximum {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    const V most = Select(a > b, a, b);  // b when that is NaN
    if constexpr (kIsLanes<V>) return Select(IsNan(a), a, most);
    else return most;
  }
};

struct Minimum {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    const V least = Select(a < b, a, b);
    if constexpr (kIsLanes<V>) return Select(IsNan(a), a, least);
    else return least;
  }
};

// min(max(x, low), high): high where low lies above it.
struct Clamp {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V low, V high, const V* s) {
    return Minimum::Of(Maximum::Of(x, low, s), high, s);
  }
};

// self * mask * scale
struct MaskedScale {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V mask, const V* s) {
    return x * mask * s[0];
  }
};

struct Ceil {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return HWY_NAMESPACE::Ceil(x);
  }
};

struct Floor {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return HWY_NAMESPACE::Floor(x);
  }
};

struct Trunc {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return HWY_NAMESPACE::Trunc(x);
  }
};

// x - trunc(x); a zero is +0.
struct Frac {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) {
      const V rest = x - HWY_NAMESPACE::Trunc(x);
      return Select(rest == V(0), V(0), rest);
    } else {
      return V(0);
    }
  }
};

struct Round {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return HWY_NAMESPACE::Round(x);
  }
};

// s[0] = 10^decimals
struct RoundToFraction {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return HWY_NAMESPACE::Round(x * s[0]) / s[0];
  }
};

// s[0] = 10^-decimals, or 0 for an integer type without that number
struct RoundToMultiple {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    if constexpr (kIsLanes<V>) {
      return HWY_NAMESPACE::Round(x / s[0]) * s[0];
    } else {
      if (s[0] == V(0)) return V(0);
      V quotient = x / s[0];
      const V rest = x % s[0];
      const uint64_t distance = static_cast<uint64_t>(rest < V(0) ? V(0) - rest : rest);
      const uint64_t other = static_cast<uint64_t>(s[0]) - distance;
      const bool odd = quotient % 2 != 0;
      if (distance > other || (distance == other && odd)) quotient += rest < V(0) ? static_cast<V>(-1) : V(1);
      return quotient * s[0];
    }
  }
};

// 0 for NaN. A complex number becomes one of length 1.
struct Sign {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsComplexNumber<V>) {
      using T = decltype(x.re);
      if (!std::isfinite(x.re) || !std::isfinite(x.im)) {
        const T nan = std::numeric_limits<T>::quiet_NaN();
        return {nan, nan};
      }
      if (x == V(0)) return x;
      const int scale = -std::ilogb(std::fmax(std::fabs(x.re), std::fabs(x.im)));  // |z| must not overflow
      const double re = std::scalbn(double{x.re}, scale), im = std::scalbn(double{x.im}, scale);
      const double length = std::hypot(re, im);
      return {static_cast<T>(re / length), static_cast<T>(im / length)};
    } else {
      return Select(x > V(0), V(1), Select(x < V(0), static_cast<V>(-1), V(0)));
    }
  }
};

// s: what stands for NaN, infinity and -infinity.
struct NanToNum {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    if constexpr (kIsComplexNumber<V>) {
      using T = decltype(x.re);
      const auto part = [&](T one) { return std::isnan(one) ? s[0].re : !std::isinf(one) ? one : one > 0 ? s[1].re : s[2].re; };
      return {part(x.re), part(x.im)};
    } else {
      const V infinity(std::numeric_limits<typename V::Number>::infinity());
      return Select(IsNan(x), s[0], Select(x == infinity, s[1], Select(x == -infinity, s[2], x)));
    }
  }
};

// Of a real number 0 or pi.
struct Angle {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsComplexNumber<V>) {
      return V(static_cast<decltype(x.re)>(std::atan2(double{x.im}, double{x.re})));
    } else {
      const V pi(static_cast<typename V::Number>(3.14159265358979323846));
      return Select(IsNan(x), x, Select(x < V(0), pi, V(0)));
    }
  }
};

// Of two real numbers.
struct ComplexOf {
  template <class V>
  static ANYACL_DEVICE V Of(V real, V imaginary, const V*) {
    return {real.re, imaginary.re};
  }
};

struct Polar {
  template <class V>
  static ANYACL_DEVICE V Of(V length, V angle, const V*) {
    using T = decltype(length.re);
    return {length.re * static_cast<T>(std::cos(double{angle.re})), length.re * static_cast<T>(std::sin(double{angle.re}))};
  }
};
