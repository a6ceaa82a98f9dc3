// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas: V is a vector of real numbers, an integer or a complex number; s are the scalars of the call.

struct Fill {
  template <class V>
  static ANYACL_DEVICE V Of(const V* s) {
    return s[0];
  }
};

struct Copy {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x;
  }
};

struct Plus {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a + b;
  }
};

// self + alpha * other
struct Add {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V* s) {
    return a + s[0] * b;
  }
};

struct Minus {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a - b;
  }
};

// self - alpha * other
struct Sub {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V* s) {
    return a - s[0] * b;
  }
};

struct Mul {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a * b;
  }
};

struct Div {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a / b;
  }
};

// Integers divided by 0 are -1 (all bits set) and never trap; the least one divided by -1 is itself.
template <class V>
HWY_INLINE V Quotient(V a, V b) {
  if (b == 0) return static_cast<V>(-1);
  if (std::is_signed_v<V> && b == static_cast<V>(-1)) return V(0) - a;
  return a / b;
}
template <class V>
HWY_INLINE V Rest(V a, V b) {  // b is not 0
  return std::is_signed_v<V> && b == static_cast<V>(-1) ? V(0) : a % b;
}
template <class V>
HWY_INLINE bool SignsDiffer(V a, V b) {
  return std::is_signed_v<V> && (a < V(0)) != (b < V(0));
}

struct TruncDivide {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    if constexpr (kIsWhole<V>) return Quotient(a, b);
    else return Trunc(a / b);
  }
};

// As PyTorch: the exact quotient rounded down where the rounded one would lie above it (1 // 0.1 is 9).
struct FloorDivide {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    if constexpr (kIsWhole<V>) {
      if (b == 0) return static_cast<V>(-1);
      return Rest(a, b) != 0 && SignsDiffer(a, b) ? Quotient(a, b) - 1 : Quotient(a, b);
    } else {
      return PerLane(a, b, [](auto x, auto y) {
        using T = decltype(x);
        if (y == 0) return x / y;
        const T r = Modulo(x, y);
        T q = (x - r) / y;
        if (r != 0 && (y < 0) != (r < 0)) q -= 1;
        if (q == 0) return std::copysign(T(0), x / y);
        const T floor = std::floor(q);
        return q - floor > T(0.5) ? floor + 1 : floor;
      });
    }
  }
};

// Sign of the dividend.
struct Fmod {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    if constexpr (kIsWhole<V>) return b == 0 ? static_cast<V>(-1) : Rest(a, b);
    else return PerLane(a, b, [](auto x, auto y) { return Modulo(x, y); });
  }
};

// Sign of the divisor.
struct Remainder {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    if constexpr (kIsWhole<V>) {
      if (b == 0) return a;
      const V r = Rest(a, b);
      return r != 0 && SignsDiffer(r, b) ? r + b : r;
    } else {
      return PerLane(a, b, [](auto x, auto y) {
        const auto r = Modulo(x, y);
        return r != 0 && (r < 0) != (y < 0) ? r + y : r;
      });
    }
  }
};

template <class V>
HWY_INLINE V WholePower(V base, V exponent) {
  if (exponent < V(0)) {
    if (base == V(1)) return 1;
    if (base != static_cast<V>(-1)) return 0;
    return exponent % 2 != 0 ? static_cast<V>(-1) : V(1);
  }
  V result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

template <class T>
HWY_INLINE Complex<T> ComplexPower(Complex<T> z, Complex<T> w) {
  if (z == Complex<T>(0)) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    return w.re > 0 ? Complex<T>(0) : Complex<T>(nan, nan);
  }
  const Wide power = exp(Wide(w.re, w.im) * log(Wide(z.re, z.im)));
  return {static_cast<T>(power.real()), static_cast<T>(power.imag())};
}

// Integers wrap; with a negative exponent all but 1 and -1 are 0.
struct Pow {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    if constexpr (kIsWhole<V>) return WholePower(a, b);
    else if constexpr (kIsComplexNumber<V>) return ComplexPower(a, b);
    else return PerLane(a, b, [](auto x, auto y) { return Power(x, y); });
  }
};

struct Square {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x * x;
  }
};

struct Cube {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x * x * x;
  }
};

struct InverseSquare {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return V(1) / (x * x);
  }
};

struct Gcd {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    uint64_t x = static_cast<uint64_t>(a < V(0) ? V(0) - a : a);
    uint64_t y = static_cast<uint64_t>(b < V(0) ? V(0) - b : b);
    while (y != 0) {
      const uint64_t rest = x % y;
      x = y;
      y = rest;
    }
    return static_cast<V>(x);
  }
};

// By s[0] bits and more, or by a negative number: 0.
struct LeftShift {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V n, const V* s) {
    return n < V(0) || n >= s[0] ? V(0) : static_cast<V>(static_cast<uint64_t>(a) << n);
  }
};

// s[0] is the width. Signed numbers (s[1] is 1) run out to 0 or -1 by their sign, others to 0.
struct RightShift {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V n, const V* s) {
    if (n < V(0) || n >= s[0] - s[1]) return a < V(0) ? static_cast<V>(-1) : V(0);
    return a >> n;
  }
};

struct BitwiseAnd {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a & b;
  }
};

struct BitwiseOr {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a | b;
  }
};

struct BitwiseXor {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return a ^ b;
  }
};

struct BitwiseNot {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return ~x;
  }
};

struct Neg {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsWhole<V>) return V(0) - x;
    else return -x;
  }
};

// Of a complex number a real one.
struct Abs {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsWhole<V>) return x < V(0) ? V(0) - x : x;
    else if constexpr (kIsComplexNumber<V>) return V(static_cast<decltype(x.re)>(std::hypot(double{x.re}, double{x.im})));
    else return HWY_NAMESPACE::Abs(x);
  }
};

// self + value * tensor1 * tensor2
struct Addcmul {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, V c, const V* s) {
    return a + s[0] * b * c;
  }
};

// self + value * tensor1 / tensor2
struct Addcdiv {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, V c, const V* s) {
    if constexpr (kIsWhole<V>) return a + Quotient(static_cast<V>(s[0] * b), c);
    else return a + s[0] * b / c;
  }
};

// From whichever end is nearer.
struct Lerp {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, V w, const V*) {
    if constexpr (kIsComplexNumber<V>) {
      return std::hypot(w.re, w.im) < 0.5 ? a + w * (b - a) : b - (b - a) * (V(1) - w);
    } else {
      return Select(HWY_NAMESPACE::Abs(w) < V(0.5), a + w * (b - a), b - (b - a) * (V(1) - w));
    }
  }
};
