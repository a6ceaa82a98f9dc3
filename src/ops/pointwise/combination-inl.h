// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

struct Scaled {
  template <class V>
  static ANYACL_DEVICE V Of(V x, const V* s) {
    return s[0] * x;
  }
};

// beta * y + alpha * x
struct ScaledSum {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V y, const V* s) {
    return s[1] * y + s[0] * x;
  }
};

// mode 1: to nearest, ties to even; 2: down; 3: up; 4: ties away from 0; 5: towards 0; 6: to the odd neighbour; 7: what is left of 5
struct RoundOff {
  template <class V>
  static ANYACL_DEVICE V Of(V x, V mode, const V*) {
    const V down = HWY_NAMESPACE::Floor(x), cut = HWY_NAMESPACE::Trunc(x);
    const V part = HWY_NAMESPACE::Abs(x - cut);
    const V sign = Select(x < V(0), V(-1), V(1));
    const V away = cut + Select(part < V(0.5f), V(0), sign);
    const V half = down * V(0.5f);
    const V odd = Select(HWY_NAMESPACE::Floor(half) == half, down + V(1), down);
    V result = Select(mode == V(1), HWY_NAMESPACE::Round(x), x);
    result = Select(mode == V(2), down, result);
    result = Select(mode == V(3), HWY_NAMESPACE::Ceil(x), result);
    result = Select(mode == V(4), away, result);
    result = Select(mode == V(5), cut, result);
    result = Select(mode == V(6), Select(down == x, x, odd), result);
    return Select(mode == V(7), x - cut, result);
  }
};
