// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas of gated units, once per SIMD target: Of(a, b, g, c, s, out) gives out[0] and, where there are two results, out[1].
// c is gelu(b), a row's weight or the threshold; s are the scalars of gated.h.
#if defined(ANYACL_OPS_GATED_FORMULAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_GATED_FORMULAS_INL_H_
#undef ANYACL_OPS_GATED_FORMULAS_INL_H_
#else
#define ANYACL_OPS_GATED_FORMULAS_INL_H_
#endif

#include <cmath>

#include "ops/pointwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace gated {
namespace HWY_NAMESPACE {

template <class T>
using Lanes = pointwise::HWY_NAMESPACE::Lanes<T>;
using pointwise::HWY_NAMESPACE::PerLane;

// ---- functions ----

// 1 / (1 + exp(-x)), without overflow.
template <class V>
HWY_INLINE V Logistic(V x) {
  const V e = Exp(-Abs(x));
  return Select(x < V(0), e, V(1)) / (V(1) + e);
}
template <class V>
HWY_INLINE V Silu(V x) {
  return x * Logistic(x);
}
template <class T>
HWY_INLINE Lanes<T> Tanh(Lanes<T> x) {
  return PerLane(x, [](T one) { return std::tanh(one); });
}
// 1 - tanh(x)^2, without cancellation.
template <class V>
HWY_INLINE V TanhSlope(V x) {
  const V q = Exp(V(-2) * Abs(x));
  return V(4) * q / ((V(1) + q) * (V(1) + q));
}
template <class V>
HWY_INLINE V AtMost(V x, V limit) {  // NaN stays
  return Select(x > limit, limit, x);
}
template <class V>
HWY_INLINE V Within(V x, V limit) {
  return Select(x < -limit, -limit, AtMost(x, limit));
}

struct GeluErf {
  template <class T>
  static HWY_INLINE Lanes<T> Of(Lanes<T> x) {
    return PerLane(x, [](T one) {
      const double v = static_cast<double>(one);
      return static_cast<T>(0.5 * v * std::erfc(-v * 0.70710678118654752440));
    });
  }
  template <class T>
  static HWY_INLINE Lanes<T> Slope(Lanes<T> x) {
    return PerLane(x, [](T one) {
      const double v = static_cast<double>(one);
      return static_cast<T>(0.5 * std::erfc(-v * 0.70710678118654752440) + v * (0.39894228040143267794 * std::exp(-0.5 * v * v)));
    });
  }
};

struct GeluTanh {
  // 0.5 * (1 + tanh(u)) = s(2 * u)
  template <class V>
  static HWY_INLINE V Twice(V x) {
    return V(1.59576912160573071176) * (x + V(0.044715) * x * x * x);
  }
  template <class V>
  static HWY_INLINE V Of(V x) {
    return x * Logistic(Twice(x));
  }
  template <class V>
  static HWY_INLINE V Slope(V x) {
    const V twice = Twice(x);
    const V q = Exp(-Abs(twice));
    // Far out q is 0 and x * x may be infinite.
    const V steep = x * (V(1.59576912160573071176) + V(0.21406449226339958)* x * x) * q / ((V(1) + q) * (V(1) + q));
    return Logistic(twice) + Select(q == V(0), V(0) * x, steep);
  }
};

// ---- formulas ----

struct Glu {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V*, V* out) {
    out[0] = a * Logistic(b);
  }
};
struct GluBackward {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V g, V, const V*, V* out) {
    out[0] = g * Logistic(b);
    out[1] = out[0] * a * Logistic(-b);
  }
};
template <class Gelu>
struct GeGlu {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V*, V* out) {
    out[1] = Gelu::Of(b);
    out[0] = a * out[1];
  }
};
template <class Gelu>
struct GeGluBackward {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V g, V gelu, const V*, V* out) {
    out[0] = g * gelu;
    out[1] = g * a * Gelu::Slope(b);
  }
};
struct SwiGlu {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V*, V* out) {
    out[0] = Silu(a) * b;
  }
};
struct SwiGluBackward {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V g, V, const V*, V* out) {
    const V sigma = Logistic(a);
    out[0] = g * b * sigma * (V(1) + a * Logistic(-a));
    out[1] = g * a * sigma;
  }
};
struct Clipped {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V* s, V* out) {
    const V gate = AtMost(a, s[1]);
    out[0] = gate * Logistic(s[0] * gate) * (Within(b, s[1]) + s[2]);
  }
};
struct ClippedSilu {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V* s, V* out) {
    out[0] = AtMost(Silu(a), s[1]) * Within(b, s[1]);
  }
};
struct ClippedBackward {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V g, V, const V* s, V* out) {
    const V gate = AtMost(a, s[1]);
    const V x = s[0] * gate;
    const V sigma = Logistic(x);
    const V inside_a = Select(a <= s[1], V(1), V(0));
    const V inside_b = Select(b >= -s[1], V(1), V(0)) * Select(b <= s[1], V(1), V(0));
    out[0] = g * (Within(b, s[1]) + s[2]) * sigma * (V(1) + x * Logistic(-x)) * inside_a;
    out[1] = g * gate * sigma * inside_b;
  }
};
struct SwiGluGroup {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V weight, const V*, V* out) {
    out[0] = Silu(a) * b * weight;
  }
};
struct SwiGluGroupClipped {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V weight, const V* s, V* out) {
    out[0] = Silu(AtMost(a, s[0])) * Within(b, s[0]) * weight;
  }
};
template <bool kTwice>
struct Situ {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V, const V* s, V* out) {
    const V up = kTwice ? s[1] * Tanh(b / s[1]) : b;
    out[0] = s[0] * Tanh(a / s[0]) * Logistic(a) * up;
  }
};
template <bool kTwice>
struct SituBackward {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V g, V, const V* s, V* out) {
    const V x = a / s[0];
    const V t = Tanh(x);
    const V sigma = Logistic(a);
    const V up = kTwice ? s[1] * Tanh(b / s[1]) : b;
    out[0] = g * up * sigma * (TanhSlope(x) + s[0] * t * Logistic(-a));
    out[1] = g * (s[0] * t * sigma) * (kTwice ? TanhSlope(b / s[1]) : V(1));
  }
};
struct Fatrelu {
  template <class V>
  static HWY_INLINE void Of(V a, V b, V, V threshold, const V*, V* out) {
    out[0] = Select(a > threshold, a, V(0)) * b;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace gated
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
