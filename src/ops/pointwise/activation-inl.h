// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas of activations and their gradients; see arithmetic-inl.h. Conditions are written so that NaN goes where the
// operator pages send it: through activations, and with the gradient g where a page says nothing else.

// A constant of formulas.
template <class V>
HWY_INLINE V Of(double value) {
  return V(static_cast<typename V::Number>(value));
}

// 0, but NaN for infinities (and NaN): what a product of infinity and 0 would be.
template <class V>
HWY_INLINE V ZeroIfFinite(V x) {
  return x - x;
}

// 1 / (1 + e^-x); nothing overflows that matters.
template <class V>
HWY_INLINE V SigmoidOf(V x) {
  return V(1) / (V(1) + Exp(-x));
}

// g * sigma * (1 + x * (1 - sigma)) with sigma = sigmoid of x; one exponential and one quotient give sigma and 1 - sigma.
template <class V>
HWY_INLINE V SwishSlope(V g, V x) {
  const V e = Exp(-Abs(x));
  const V larger = V(1) / (V(1) + e);
  const V smaller = e * larger;
  return g * Select(x < V(0), smaller, larger) * (V(1) + x * Select(x < V(0), larger, smaller));
}

// ln(1 + e^x)
template <class V>
HWY_INLINE V SoftplusOf(V x) {
  return Select(x > V(0), x, Select(IsNan(x), x, V(0))) + Log1p(Exp(-Abs(x)));
}

template <class V>
HWY_INLINE V Positive(V x) {  // NaN stays
  return Select(x <= V(0), V(0), x);
}

inline constexpr double kSeluScale = 1.0507009873554804934;
inline constexpr double kSeluAlpha = 1.6732632423543772848;

struct Relu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return Positive(x);
  }
};

// max(0, self + alpha * other). Integers: s[1] bits are too many, s[2] is 1 if there is a sign.
struct AddRelu {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V* s) {
    const V sum = a + s[0] * b;
    if constexpr (kIsWhole<V>) {
      const auto wrapped = static_cast<V>(static_cast<int64_t>(static_cast<uint64_t>(sum) << s[1]) >> s[1]);
      return s[2] == V(0) ? sum : Positive(wrapped);
    } else {
      return Positive(sum);
    }
  }
};

struct SquaredRelu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V positive = Positive(x);
    return positive * positive;
  }
};

struct LeakyRelu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(x > V(0), x, x * s[0]);
  }
};

struct LeakyReluBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return Select(x > V(0), g, g * s[0]);
  }
};

struct Prelu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V weight, const V*) {
    return Select(x > V(0), x, x * weight);
  }
};

struct PreluBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V weight, const V*) {
    return Select(x > V(0), g, g * weight);
  }
};

// What a position adds to the weight's gradient.
struct PreluWeightTerm {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    return Select(x > V(0), V(0), g * x);
  }
};

// s: alpha, scale, input scale
struct Elu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(x > V(0), s[1] * x, s[1] * s[0] * Expm1(x * s[2]));
  }
};

struct Celu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    const V bent = s[0] * Expm1(x / s[0]);
    return Positive(x) + Select(bent > V(0), V(0), bent);
  }
};

struct Selu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V scale = activation::Of<V>(kSeluScale);
    return scale * Select(x > V(0), x, activation::Of<V>(kSeluAlpha) * Expm1(x));
  }
};

// From the result y.
struct SeluBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V y, const V*) {
    const V scale = activation::Of<V>(kSeluScale);
    return Select(y <= V(0), g * (y + activation::Of<V>(kSeluScale * kSeluAlpha)), g * scale);
  }
};

// To the nearest whole number, for integers.
struct SeluBackwardRounded {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V y, const V* s) {
    return Round(SeluBackward::Of(g, y, s));
  }
};

// x (1 + tanh u) / 2 without the cancellation: the factor is the sigmoid of 2u.
template <class V>
HWY_INLINE V TwiceGeluArgument(V x) {
  return activation::Of<V>(1.5957691216057308) * (x + activation::Of<V>(0.044715) * x * x * x);
}

struct GeluTanh {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x / (V(1) + Exp(-TwiceGeluArgument(x)));
  }
};

// Beyond 40 the sigmoid is 0 or 1 and its slope 0, while powers of x overflow.
struct GeluTanhBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    const V most(40);
    const V near = Select(x > most, most, Select(x < -most, -most, x));
    const V u = TwiceGeluArgument(near);
    const V slope = activation::Of<V>(0.7978845608028654) + activation::Of<V>(0.10703222440890037) * near * near;
    const V sigma = SigmoidOf(u);
    return g * (sigma + V(2) * near * sigma * SigmoidOf(-u) * slope + ZeroIfFinite(x));
  }
};

struct GeluErf {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x * (V(0.5) * Erfc(x * activation::Of<V>(-0.70710678118654752440)));
  }
};

struct GeluErfBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    const V phi = activation::Of<V>(0.39894228040143267794) * Exp(x * x * V(-0.5));
    return g * (V(0.5) * Erfc(x * activation::Of<V>(-0.70710678118654752440)) + x * phi);
  }
};

struct FastGelu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x / (V(1) + Exp(activation::Of<V>(-1.702) * x));
  }
};

struct FastGeluBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    return SwishSlope(g, activation::Of<V>(1.702) * x);
  }
};

struct Silu {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return x / (V(1) + Exp(-x));
  }
};

struct SiluBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    return SwishSlope(g, x);
  }
};

struct Swish {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return x / (V(1) + Exp(-(s[0] * x)));
  }
};

struct SwishBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return SwishSlope(g, s[0] * x);
  }
};

struct Sigmoid {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return SigmoidOf(x);
  }
};

struct SigmoidBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V y, const V*) {
    return g * Conjugate((V(1) - y) * y);
  }
};

struct LogSigmoid {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return Select(x > V(0), V(0), x) - Log1p(Exp(-Abs(x)));
  }
};

struct LogSigmoidBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    return g / (V(1) + Exp(x));
  }
};

// The sixth is rounded to FLOAT in FLOAT, as everything.
struct Hardsigmoid {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V t = x * activation::Of<V>(1.0 / 6) + V(0.5);
    return Select(t <= V(0), V(0), Select(t >= V(1), V(1), t));
  }
};

struct HardsigmoidBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    return Select(x > V(-3) && x < V(3), g / V(6), V(0));
  }
};

struct Hardswish {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V t = x + V(3);
    return x * Select(t <= V(0), V(0), Select(t >= V(6), V(6), t)) / V(6);
  }
};

struct HardswishBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    const V slope = Select(x < V(-3), V(0), Select(x <= V(3), x / V(3) + V(0.5), V(1)));
    return g * slope;
  }
};

// The linear part without its ends.
struct HardswishBackwardV2 {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    const V slope = Select(x <= V(-3), V(0), Select(x < V(3), x / V(3) + V(0.5), V(1)));
    return g * slope;
  }
};

// s: min, max
struct HardtanhBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return Select((x > s[0] && x < s[1]) || IsNan(x), g, V(0));
  }
};

struct Hardshrink {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(Abs(x) <= s[0], V(0), x);
  }
};

struct HardshrinkBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return Select(x >= -s[0] && x <= s[0], V(0), g);
  }
};

struct Softshrink {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(x > s[0], x - s[0], Select(x < -s[0], x + s[0], Select(IsNan(x), x, V(0))));
  }
};

struct SoftshrinkBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return Select(Abs(x) > s[0] || IsNan(x), g, V(0));
  }
};

// s: lambda, bias; 0 for NaN.
struct Shrink {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(x < -s[0], x + s[1], Select(x > s[0], x - s[1], V(0)));
  }
};

// s: beta, threshold
struct Softplus {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    const V scaled = x * s[0];
    return Select(scaled > s[1], x, SoftplusOf(scaled) / s[0]);
  }
};

struct SoftplusBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    const V scaled = x * s[0];
    return Select(scaled > s[1], g, g / (V(1) + Exp(-scaled)));
  }
};

// With e = e^x the hyperbolic tangent of ln(1 + e) is n / (n + 2), n = e (e + 2); beyond 30 it is 1.
struct Mish {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    const V e = Exp(x);
    const V n = e * (e + V(2));
    return Select(x > V(30), x, x * (n / (n + V(2))));
  }
};

struct MishBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V*) {
    const V e = Exp(x);
    const V n = e * (e + V(2));
    const V t = n / (n + V(2));
    const V rest = V(4) * ((n + V(1)) / (n + V(2))) / (n + V(2));  // 1 - t^2
    const V slope = t + x * SigmoidOf(x) * rest;
    return g * Select(x > V(30), V(1) + ZeroIfFinite(x), slope);
  }
};

// Newton's method on erf, or on erfc where erf is near 1.
inline HWY_NOINLINE double ErfinvOf(double x) {
  const double a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? x * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (a < 1e-8) return x * 0.88622692545275801365;  // sqrt(pi) / 2
  const double rest = 1 - a;  // exact where it is small
  const double l = std::log(rest * (1 + a));
  const double b = 4.3307467508 + l / 2;  // 2 / (pi 0.147)
  double y = std::sqrt(std::sqrt(b * b - l / 0.147) - b);
  for (int i = 0; i < 3; ++i) {
    const double error = a < 0.5 ? std::erf(y) - a : rest - std::erfc(y);
    const double step = error * 0.88622692545275801365 * std::exp(y * y);
    y -= step / (1 + y * step);  // Halley
  }
  return std::copysign(y, x);
}

struct Erfinv {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    using T = typename V::Number;
    return PerLane(x, [](T one) { return static_cast<T>(ErfinvOf(one)); });
  }
};

// s: threshold, value
struct Threshold {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return Select(x <= s[0], s[1], x);
  }
};

struct ThresholdBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, const V* s) {
    return Select(x <= s[0], V(0), g);
  }
};

// 0 for NaN.
struct Heaviside {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V at_zero, const V*) {
    return Select(x == V(0), at_zero, Select(x > V(0), V(1), V(0)));
  }
};
