// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elementary and special functions; see arithmetic-inl.h.

#define ANYACL_FUNCTION(Name)                                                     \
  struct Name {                                                                   \
    template <class V>                                                            \
    static ANYACL_DEVICE V Of(V x, const V*) {                                    \
      return HWY_NAMESPACE::Name(x);                                              \
    }                                                                             \
  };
ANYACL_FUNCTION(Acos)
ANYACL_FUNCTION(Acosh)
ANYACL_FUNCTION(Asin)
ANYACL_FUNCTION(Asinh)
ANYACL_FUNCTION(Atan)
ANYACL_FUNCTION(Atanh)
ANYACL_FUNCTION(Cos)
ANYACL_FUNCTION(Cosh)
ANYACL_FUNCTION(Erf)
ANYACL_FUNCTION(Erfc)
ANYACL_FUNCTION(Exp)
ANYACL_FUNCTION(Log)
ANYACL_FUNCTION(Sin)
ANYACL_FUNCTION(Sinh)
ANYACL_FUNCTION(Sqrt)
ANYACL_FUNCTION(Tan)
#undef ANYACL_FUNCTION

// Within 1.3 ulp: a polynomial around 0 (minimax, 2^-32), where the quotient of exponentials would lose digits.
HWY_INLINE Lanes<float> TanhOf(Lanes<float> x) {
  using V = Lanes<float>;
  const V size = Abs(x), z = x * x;
  V p = V(-0.0005696427f) * z + V(0.002847706f);
  p = p * z + V(-0.008504896f);
  p = p * z + V(0.02177058f);
  p = p * z + V(-0.05395333f);
  p = p * z + V(0.13333225f);
  p = p * z + V(-0.3333333f);
  const V far = CopySign(V(1) - V(2) / (HWY_NAMESPACE::Exp(size + size) + V(1)), x);
  return Select(size < V(0.8f), x + x * z * p, far);
}

struct Tanh {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (std::is_same_v<V, Lanes<float>>) return TanhOf(x);
    else return HWY_NAMESPACE::Tanh(x);
  }
};

// A function of single numbers, computed in double.
template <class T, class F>
HWY_INLINE Lanes<T> InDouble(Lanes<T> x, F f) {
  return PerLane(x, [&](T one) { return static_cast<T>(f(double{one})); });
}
template <class T, class F>
HWY_INLINE Lanes<T> InDouble(Lanes<T> x, Lanes<T> y, F f) {
  return PerLane(x, y, [&](T one, T other) { return static_cast<T>(f(double{one}, double{other})); });
}
template <class T, class F>
HWY_INLINE Complex<T> InDouble(Complex<T> z, F f) {
  const Wide w = f(Wide(z.re, z.im));
  return {static_cast<T>(w.real()), static_cast<T>(w.imag())};
}

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kLn10 = 2.30258509299404568402;

struct Atan2 {
  template <class V>
  static ANYACL_DEVICE V Of(V y, V x, const V*) {
    return InDouble(y, x, [](double a, double b) { return std::atan2(a, b); });
  }
};

struct Exp2 {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return HWY_NAMESPACE::Exp2(x);
    else return InDouble(x, [](Wide z) { return exp(z * kLn2); });
  }
};

// Without cancellation near 0.
struct Expm1 {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) {
      return HWY_NAMESPACE::Expm1(x);
    } else {
      return InDouble(x, [](Wide z) {
        const double half = std::sin(z.imag() / 2);
        const double grown = std::expm1(z.real());
        if (z.imag() == 0) return Wide(grown, z.imag());
        return Wide(grown * std::cos(z.imag()) - 2 * half * half, (grown + 1) * std::sin(z.imag()));
      });
    }
  }
};

struct Log10 {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return HWY_NAMESPACE::Log10(x);
    else return InDouble(x, [](Wide z) { return log(z) / kLn10; });
  }
};

struct Log2 {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return HWY_NAMESPACE::Log2(x);
    else return InDouble(x, [](Wide z) { return log(z) / kLn2; });
  }
};

struct Log1p {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) {
      return HWY_NAMESPACE::Log1p(x);
    } else {
      return InDouble(x, [](Wide z) {
        const double re = z.real(), im = z.imag();
        // |1 + z|^2 = 1 + re (2 + re) + im^2, kept as what is more than 1 where it is near 1
        const bool near = std::fabs(re) < 0.5 && std::fabs(im) < 0.5;
        const double length = near ? 0.5 * std::log1p(re * (2 + re) + im * im) : std::log(std::hypot(1 + re, im));
        return Wide(length, std::atan2(im, 1 + re));
      });
    }
  }
};

// psi(x), by reflection and recurrence up to where the asymptotic series holds.
inline HWY_NOINLINE double DigammaOf(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double sum = 0;
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();  // -infinity too
    double whole;
    sum = -kPi / std::tan(kPi * std::modf(x, &whole));
    x = 1 - x;
  }
  for (; x < 10; ++x) sum -= 1 / x;
  const double square = 1 / (x * x);
  const double series =
      square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square * (1.0 / 132 -
      square * (691.0 / 32760 - square / 12))))));
  return sum + (std::log(x) - 0.5 / x - (std::isinf(x) ? 0 : series));
}

struct Digamma {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return InDouble(x, [](double one) { return DigammaOf(one); });
  }
};

struct Lgamma {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return InDouble(x, [](double one) { return LogGamma(one); });
  }
};

struct LogAddExp {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return InDouble(a, b, [](double x, double y) {
      const double distance = x == y ? 0 : std::fabs(x - y);  // of equal infinities, too
      return (x > y ? x : y) + std::log1p(std::exp(-distance));
    });
  }
};

struct LogAddExp2 {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return InDouble(a, b, [](double x, double y) {
      const double distance = x == y ? 0 : std::fabs(x - y);
      return (x > y ? x : y) + std::log1p(std::exp2(-distance)) / kLn2;
    });
  }
};

// ln(z / (1 - z)); around 1/2, where that is ln(1 + a little), 2z - 1 is exact.
HWY_INLINE double LogitOf(double z) {
  return z > 0.25 && z < 0.75 ? std::log1p((2 * z - 1) / (1 - z)) : std::log(z / (1 - z));
}

struct Logit {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return InDouble(x, [](double z) { return LogitOf(z); });
  }
};

// s[0] = eps; what is below it counts as eps, what is above 1 - eps as that.
struct LogitClamped {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    const V high = V(1) - s[0];
    const V z = Select(x < s[0], s[0], Select(x > high, high, x));
    return InDouble(z, [](double one) { return LogitOf(one); });
  }
};

struct LogitGrad {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V dy, const V*) {
    const V nan(std::numeric_limits<typename V::Number>::quiet_NaN());
    return Select(x < V(0) || x > V(1), nan, dy / (x * (V(1) - x)));
  }
};

struct LogitGradClamped {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V dy, const V* s) {
    return Select(x < s[0] || x > V(1) - s[0], V(0), dy / (x * (V(1) - x)));
  }
};

struct Reciprocal {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return V(1) / x;
  }
};

struct Rsqrt {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return V(1) / HWY_NAMESPACE::Sqrt(x);
  }
};

struct Sinc {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V angle = x * V(static_cast<typename V::Number>(kPi));
    return Select(x == V(0), V(1), HWY_NAMESPACE::Sin(angle) / angle);
  }
};

// g * conj(1 - y^2)
struct TanhBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V y, const V*) {
    return g * Conjugate(V(1) - y * y);
  }
};

// 0 where x is 0, unless y is NaN.
struct XLogY {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V y, const V*) {
    return Select(x == V(0) && !IsNan(y), V(0), x * HWY_NAMESPACE::Log(y));
  }
};

struct Xlog1py {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V y, const V*) {
    return Select(x == V(0) && !IsNan(y), V(0), x * HWY_NAMESPACE::Log1p(y));
  }
};
