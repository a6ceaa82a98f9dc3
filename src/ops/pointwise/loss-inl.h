// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas of losses and their gradients; see arithmetic-inl.h. Operands are those of the headers, in their order: g the
// incoming gradient, x what is judged, t the target, w a weight, p the weight of positive targets. s[0] divides a gradient
// (1 unless the loss is a mean), s[1] is beta.

template <class V>
HWY_INLINE V AtLeast(V x, double least) {  // NaN stays
  const V bound(static_cast<typename V::Number>(least));
  return Select(x < bound, bound, x);
}

template <class V>
HWY_INLINE V SigmoidOf(V x) {
  return V(1) / (V(1) + Exp(-x));
}

// ln(1 + e^x) without overflow
template <class V>
HWY_INLINE V SoftplusOf(V x) {
  return Select(x > V(0), x, Select(IsNan(x), x, V(0))) + Log1p(Exp(-HWY_NAMESPACE::Abs(x)));
}

struct MseLoss {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V*) {
    return (x - t) * (x - t);
  }
};

struct MseLossBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    return V(2) * (x - t) * g / s[0];
  }
};

struct L1Loss {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V*) {
    const V d = x - t;
    if constexpr (kIsWhole<V>) return static_cast<int64_t>(d) < 0 ? V(0) - d : d;
    else return HWY_NAMESPACE::Abs(d);
  }
};

// The sign of NaN is 0.
struct L1LossBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    return Select(x > t, V(1), Select(x < t, V(-1), V(0))) * g / s[0];
  }
};

struct SmoothL1Loss {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V* s) {
    const V d = HWY_NAMESPACE::Abs(x - t);
    return Select(d < s[1], V(0.5) * d * d / s[1], d - V(0.5) * s[1]);
  }
};

// With beta 0 the first test takes 0, too.
struct SmoothL1LossBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    const V d = x - t;
    return Select(d <= -s[1], -g, Select(d >= s[1], g, g * d / s[1])) / s[0];
  }
};

struct BceLoss {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, V w, const V*) {
    return w * ((t - V(1)) * AtLeast(Log1p(-x), -100) - t * AtLeast(Log(x), -100));
  }
};

struct BceBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, V w, const V* s) {
    return (x - t) / AtLeast((V(1) - x) * x, 1e-12) * g * w / s[0];
  }
};

struct BceWithLogits {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, V w, V p, const V*) {
    const V positive = V(1) + (p - V(1)) * t;
    return w * ((V(1) - t) * x + positive * (Log1p(Exp(-HWY_NAMESPACE::Abs(x))) + AtLeast(-x, 0)));
  }
};

// The weight is in g.
struct BceWithLogitsBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, V p, const V* s) {
    return g * ((p * t + (V(1) - t)) * SigmoidOf(x) - p * t) / s[0];
  }
};

// g * w * (log sigma(-x) - p * log sigma(x)); log sigma(x) = -softplus(-x)
struct BceTargetGradient {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V w, V p, const V* s) {
    return g * w * (p * SoftplusOf(-x) - SoftplusOf(x)) / s[0];
  }
};

struct SoftMarginLoss {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V*) {
    return SoftplusOf(-t * x);
  }
};

struct SoftMarginLossBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    return -t * SigmoidOf(-t * x) * g / s[0];
  }
};

struct KlDiv {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V*) {
    return Select(t == V(0), V(0), t * Log(t)) - t * x;
  }
};

struct KlDivLog {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V t, const V*) {
    return Exp(t) * (t - x);
  }
};

struct KlDivBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V t, const V* s) {
    return -t * g / s[0];
  }
};

struct KlDivLogBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V t, const V* s) {
    return -Exp(t) * g / s[0];
  }
};

// NaN where t is not positive: what the slope of t ln t would be.
struct KlDivTargetBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    const V slope = Log(t) + V(1) - x;
    return g * Select(t > V(0), slope, V(std::numeric_limits<typename V::Number>::quiet_NaN())) / s[0];
  }
};

struct KlDivLogTargetBackward {
  template <class V>
  static ANYACL_DEVICE V Of(V g, V x, V t, const V* s) {
    return g * Exp(t) * (t - x + V(1)) / s[0];
  }
};
