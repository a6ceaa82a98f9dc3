// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Formulas whose result is 1 or 0; see arithmetic-inl.h. Comparisons with NaN are false, only NotEqual is true.

template <class V, class M>
HWY_INLINE V OneIf(M condition) {
  return Select(condition, V(1), V(0));
}

struct Equal {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a == b);
  }
};

struct NotEqual {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a != b);
  }
};

struct Greater {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a > b);
  }
};

struct GreaterEqual {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a >= b);
  }
};

struct Less {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a < b);
  }
};

struct LessEqual {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V*) {
    return OneIf<V>(a <= b);
  }
};

struct LogicalNot {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return OneIf<V>(x == V(0));
  }
};

struct IsFinite {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return OneIf<V>(x - x == V(0));  // NaN for infinities and NaN
    else if constexpr (kIsComplexNumber<V>) return OneIf<V>(std::isfinite(x.re) && std::isfinite(x.im));
    else return V(1);
  }
};

template <class V>
HWY_INLINE V Infinity() {
  return V(std::numeric_limits<typename V::Number>::infinity());
}

struct IsInf {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    return OneIf<V>(Abs(x) == Infinity<V>());
  }
};

struct IsPosInf {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return OneIf<V>(x == Infinity<V>());
    else return V(0);
  }
};

struct IsNegInf {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return OneIf<V>(x == -Infinity<V>());
    else return V(0);
  }
};

// The bit: true for -0 and for NaN that have it.
struct Signbit {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V*) {
    if constexpr (kIsLanes<V>) return OneIf<V>(CopySign(V(1), x) < V(0));
    else return OneIf<V>(x < V(0));
  }
};

// s: rtol, atol, whether NaN equals NaN. Integers are compared exactly, and in FLOAT with the tolerances (which come as
// the bits of floats).
struct IsClose {
  template <class V>
  static ANYACL_DEVICE V Of(V a, V b, const V* s) {
    if constexpr (kIsLanes<V>) {
      const V distance = Abs(a - b);
      const auto near = distance <= s[1] + s[0] * Abs(b) && distance < Infinity<V>();
      const auto both_nan = IsNan(a) && IsNan(b) && s[2] != V(0);
      return OneIf<V>(a == b || near || both_nan);
    } else if constexpr (kIsComplexNumber<V>) {
      const auto distance = std::hypot(a.re - b.re, a.im - b.im);
      const auto is_nan = [](V z) { return std::isnan(z.re) || std::isnan(z.im); };
      const bool near = std::isfinite(distance) && distance <= s[1].re + s[0].re * std::hypot(b.re, b.im);
      return OneIf<V>(a == b || near || (s[2].re != 0 && is_nan(a) && is_nan(b)));
    } else {
      const auto tolerance = [&](int i) { return std::bit_cast<float>(static_cast<uint32_t>(s[i])); };
      const float distance = std::fabs(static_cast<float>(a) - static_cast<float>(b));
      return OneIf<V>(a == b || distance <= tolerance(1) + tolerance(0) * std::fabs(static_cast<float>(b)));
    }
  }
};
