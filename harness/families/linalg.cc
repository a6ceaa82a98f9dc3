// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Small vectors and matrices, by the definitions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/promotion.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

bool IsExact(DType t) { return IsInteger(t) || t == DType::kBool; }
Values Numbers(DType t) {
  if (t == DType::kBool) return Whole(0, 1);
  return IsExact(t) ? Whole(0, 9) : Between(-2, 2);
}
constexpr Real kEpsilon = 0x1p-52L;  // sums are formed in DOUBLE

// ---- Dot, Trace, Equal, Cross ---------------------------------------------------------------------------------------

void SampleDot(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (int64_t n : {0, 1, 7, 33, 1000}) {
      calls.Add({In(t, {n}, IsExact(t) ? Whole(0, 100) : Between(-2, 2)), In(t, {n}, IsExact(t) ? Whole(0, 100) : Between(-2, 2)), Out(t, {})});
    }
  }
  calls.Add({In(DType::kF16, {2}, Given({300, 300})), In(DType::kF16, {2}, Given({300, -300})), Out(DType::kF16, {})});
}

void OracleDot(HostCall& call) {
  const Host &a = call.In("self"), &b = call.In("tensor");
  Host& out = call.Out("out");
  Real size = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    out[0] += a[i] * b[i];
    size += std::abs(a[i] * b[i]);
  }
  if (IsExact(out.dtype)) out[0] = Rounded(out.dtype, Rounded(DType::kI64, out[0]));
  else out.slack.push_back((a.size() + 2) * kEpsilon * size);
}

void SampleTrace(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    const DType out = IsExact(t) ? DType::kI64 : t;
    for (const Dims& dims : {Dims{3, 3}, Dims{5, 70}, Dims{70, 40}, Dims{0, 3}}) calls.Add({In(t, dims, Numbers(t)), Out(out, {})});
  }
}

void OracleTrace(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  Real size = 0;
  for (int64_t i = 0; i < std::min(self.dims[0], self.dims[1]); ++i) {
    out[0] += self[i * self.dims[1] + i];
    size += std::abs(self[i * self.dims[1] + i]);
  }
  out.slack.push_back(IsExact(out.dtype) ? 0 : 80 * kEpsilon * size);
}

void SampleEqual(Calls& calls) {
  const auto add = [&](DType a, const Dims& dims_a, Values va, DType b, const Dims& dims_b, Values vb) {
    calls.Add({In(a, dims_a, va), In(b, dims_b, vb), Out(DType::kBool, {1})});
  };
  for (DType t : calls.TypesOf("self")) {
    const Values bits = Given({1, 0, 1, 1, 0, 1});
    add(t, {2, 3}, bits, t, {2, 3}, bits);
    add(t, {2, 3}, bits, t, {2, 3}, Given({1, 0, 1, 1, 1, 1}));
    add(t, {2, 3}, bits, t, {3, 2}, bits);
    add(t, {}, Given({1}), t, {1}, Given({1}));
    add(t, {0, 2}, {}, t, {0, 2}, {});
    if (Promote(t, DType::kF32) != DType::kUndefined) {
      add(t, {2, 3}, bits, DType::kF32, {2, 3}, bits);
      add(DType::kF32, {2, 3}, bits, t, {2, 3}, bits);
    }
  }
  add(DType::kF32, {2}, Given({1, kNan}), DType::kF32, {2}, Given({1, kNan}));
  add(DType::kF32, {2}, Given({0, -0.0L}), DType::kF32, {2}, Given({-0.0L, 0}));
  add(DType::kC64, {1}, Given({Number(1, 2)}), DType::kC64, {1}, Given({Number(1, 3)}));
  Checked<Number> many(70000, 3), late = many;
  late[69999] = 4;
  add(DType::kI32, {70000}, Given(many), DType::kI32, {70000}, Given(late));
  add(DType::kI32, {70000}, Given(many), DType::kI32, {70000}, Given(many));
}

void OracleEqual(HostCall& call) {
  const Host &self = call.In("self"), &other = call.In("other");
  bool same = self.dims == other.dims;
  const DType computed = Promote(self.dtype, other.dtype);
  for (int64_t i = 0; same && i < self.size(); ++i) same = Rounded(computed, self[i]) == Rounded(computed, other[i]);
  call.Out("out")[0] = same;
}

void SampleCross(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {4, 3}, Numbers(t)), In(t, {4, 3}, Numbers(t)), Int(1), Out(t, {4, 3})});
    calls.Add({In(t, {3, 4}, Numbers(t)), In(t, {3, 4}, Numbers(t)), Int(-2), Out(t, {3, 4})});
    calls.Add({In(t, {2, 1, 3}, Numbers(t)), In(t, {5, 3}, Numbers(t)), Int(2), Out(t, {2, 5, 3})});
    calls.Add({In(t, {3}, Numbers(t)), In(t, {2, 3}, Numbers(t)), Int(0), Out(t, {2, 3})});
  }
  calls.Add({In(DType::kF32, {0, 3}), In(DType::kF32, {0, 3}), Int(1), Out(DType::kF32, {0, 3})});
}

void OracleCross(HostCall& call) {
  const Host &self = call.In("self"), &other = call.In("other");
  Host& out = call.Out("out");
  const int64_t dim = call.Int("dim");
  const size_t axis = static_cast<size_t>(dim < 0 ? dim + out.dims.rank() : dim + out.dims.rank() - self.dims.rank());
  for (int64_t i = 0; i < out.size(); ++i) {
    Checked<int64_t> j = out.Position(i), k = j;
    j[axis] = (j[axis] + 1) % 3;
    k[axis] = (k[axis] + 2) % 3;
    const int64_t at_j = out.Index(j), at_k = out.Index(k);
    const Number a = self.Broadcast(out.dims, at_j) * other.Broadcast(out.dims, at_k);
    const Number b = self.Broadcast(out.dims, at_k) * other.Broadcast(out.dims, at_j);
    out[i] = a - b;
    const DType unit = out.dtype == DType::kF64 || out.dtype == DType::kC128 ? DType::kF64 : DType::kF32;
    out.slack.push_back(IsExact(out.dtype) ? 0 : 4 * UlpOf(unit, std::abs(a) + std::abs(b)));
  }
}

// ---- Distances ------------------------------------------------------------------------------------------------------

Real NormOf(const Checked<Real>& d, Real p) {
  Real sum = 0, most = 0, count = 0;
  for (const Real x : d) {
    if (std::isnan(x)) return kNan;
    count += x != 0;
    most = std::max(most, std::fabs(x));
    sum += std::pow(std::fabs(x), p);
  }
  return p == 0 ? count : std::isinf(p) ? most : std::pow(sum, 1 / p);
}

const Real kNorms[] = {0, 0.5L, 1, 2, 3, kInf};

void SampleCdist(Calls& calls) {
  for (DType t : calls.TypesOf("x1")) {
    for (const Real p : kNorms) {
      const int64_t mode = p == 2 ? 2 : 0;
      calls.Add({In(t, {3, 4}), In(t, {5, 4}), RealArg(static_cast<double>(p)), Int(mode), Out(t, {3, 5})});
      calls.Add({In(t, {2, 1, 3, 2}), In(t, {3, 4, 2}), RealArg(static_cast<double>(p)), Int(mode), Out(t, {2, 3, 3, 4})});
    }
    calls.Add({In(t, {3, 0}), In(t, {5, 0}), RealArg(1), Int(0), Out(t, {3, 5})});
    calls.Add({In(t, {0, 3}), In(t, {5, 3}), RealArg(1), Int(0), Out(t, {0, 5})});
    calls.Add({In(t, {1, 2}, Given({1, kNan})), In(t, {1, 2}), RealArg(static_cast<double>(kInf)), Int(0), Out(t, {1, 1})});
    calls.Add({In(t, {1, 2}, Given({0, 0})), In(t, {2, 2}, Given({3, 4, 1, 0})), RealArg(2), Int(2), Out(t, {1, 2})});
  }
}

void OracleCdist(HostCall& call) {
  const Host &a = call.In("x1"), &b = call.In("x2");
  Host& out = call.Out("out");
  const Real p = call.Real("p");
  const int rank = out.dims.rank();
  const int64_t m = a.dims[a.dims.rank() - 1];
  for (int64_t i = 0; i < out.size(); ++i) {
    const Checked<int64_t> at = out.Position(i);
    Checked<Real> d;
    const auto row = [&](const Host& t, int64_t r, int64_t k) {
      int64_t index = 0;
      for (int axis = 0; axis + 2 < t.dims.rank(); ++axis) {
        const int64_t size = t.dims[axis];
        index = index * size + (size == 1 ? 0 : at[axis + rank - t.dims.rank()]);
      }
      return t.real((index * t.dims[t.dims.rank() - 2] + r) * m + k);
    };
    for (int64_t k = 0; k < m; ++k) d.push_back(row(a, at[rank - 2], k) - row(b, at[rank - 1], k));
    out[i] = NormOf(d, p);
    out.slack.push_back(std::isfinite(out.real(i)) ? 40 * std::ldexp(out.real(i), -52) : 0);
  }
}

void SamplePdist(Calls& calls) {
  const bool scalar = std::string_view(calls.op().contract.op()) == "aclnnPdistForward";
  const auto norm = [&](Real p) { return scalar ? Num(DType::kF32, p) : RealArg(static_cast<double>(p)); };
  for (DType t : calls.TypesOf("self")) {
    for (const Real p : kNorms) calls.Add({In(t, {5, 3}), norm(p), Out(t, {10})});
    calls.Add({In(t, {1, 3}), norm(2), Out(t, {0})});
    calls.Add({In(t, {0, 3}), norm(2), Out(t, {0})});
    calls.Add({In(t, {3, 0}), norm(2), Out(t, {3})});
    calls.Add({In(t, {3, 1}, Given({0, 1, 4})), norm(2), Out(t, {3})});
  }
}

void OraclePdist(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const Real p = call.HasArg("p") ? static_cast<Real>(call.Real("p")) : call.Scalar("pScalar").real();
  const int64_t m = self.dims[1];
  int64_t next = 0;
  for (int64_t i = 0; i < self.dims[0]; ++i) {
    for (int64_t j = i + 1; j < self.dims[0]; ++j) {
      Checked<Real> d;
      for (int64_t k = 0; k < m; ++k) d.push_back(self.real(i * m + k) - self.real(j * m + k));
      out[next++] = NormOf(d, p);
      out.slack.push_back(40 * std::ldexp(out.real(next - 1), -52));
    }
  }
}

void SampleCdistBackward(Calls& calls) {
  for (DType t : calls.TypesOf("grad")) {
    for (const Real p : {Real{0}, Real{0.5L}, Real{1}, Real{1.5L}, Real{2}, Real{3}, Real{-1}, kInf}) {
      // Distances that some of the differences are exactly, and some that are 0.
      calls.Add({In(t, {3, 4}), In(t, {3, 2}, Whole(-2, 2)), In(t, {4, 2}, Whole(-2, 2)), In(t, {3, 4}, Whole(0, 4)),
                 RealArg(static_cast<double>(p)), Out(t, {3, 2})});
      calls.Add({In(t, {2, 3, 4}), In(t, {2, 3, 2}), In(t, {1, 4, 2}), In(t, {2, 3, 4}, Between(1, 2)),
                 RealArg(static_cast<double>(p)), Out(t, {2, 3, 2})});
    }
    calls.Add({In(t, {3, 0}), In(t, {3, 2}), In(t, {0, 2}), In(t, {3, 0}), RealArg(1), Out(t, {3, 2})});
  }
}

void OracleCdistBackward(HostCall& call) {
  const Host &grad = call.In("grad"), &a = call.In("x1"), &b = call.In("x2"), &distance = call.In("cdist");
  Host& out = call.Out("out");
  const Real p = call.Real("p") == -1 ? kInf : static_cast<Real>(call.Real("p"));
  const int rank = out.dims.rank();
  const int64_t m = out.dims[rank - 1], rows = out.dims[rank - 2], others = b.dims[rank - 2];
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t k = i % m, row = i / m % rows, batch = i / m / rows;
    Real sum = 0, size = 0;
    for (int64_t j = 0; j < others; ++j) {
      const int64_t b_batch = rank > 2 && b.dims[0] > 1 ? batch : 0;
      const Real d = a.real(i) - b.real((b_batch * others + j) * m + k);
      const Real g = grad.real((batch * rows + row) * others + j), c = distance.real((batch * rows + row) * others + j);
      const Real sign = d > 0 ? 1 : d < 0 ? -1 : 0;
      Real slope;
      if (c == 0 || p == 0 || (p < 2 && d == 0)) slope = 0;
      else if (std::isinf(p)) slope = Rounded(out.dtype, std::fabs(d)).real() == c ? sign : 0;
      else slope = sign * std::pow(std::fabs(d) / c, p - 1);
      sum += g * slope;
      size += std::fabs(g * slope);
    }
    out[i] = sum;
    out.slack.push_back(100 * std::ldexp(size, -52));
  }
}

// ---- Affine grids, triangular systems -------------------------------------------------------------------------------

void SampleAffineGrid(Calls& calls) {
  for (DType t : calls.TypesOf("theta")) {
    for (bool align : {false, true}) {
      calls.Add({In(t, {2, 2, 3}), Ints({2, 3, 4, 5}), Flag(align), Out(t, {2, 4, 5, 2})});
      calls.Add({In(t, {1, 2, 3}), Ints({1, 1, 1, 1}), Flag(align), Out(t, {1, 1, 1, 2})});
      calls.Add({In(t, {2, 3, 4}), Ints({2, 1, 3, 4, 2}), Flag(align), Out(t, {2, 3, 4, 2, 3})});
    }
  }
}

void OracleAffineGrid(HostCall& call) {
  const Host& theta = call.In("theta");
  Host& out = call.Out("out");
  const int64_t axes = out.dims.rank() - 2;
  const auto base = [&](int64_t i, int64_t n) -> Real {
    if (call.Flag("alignCorners")) return n == 1 ? 0 : -1 + 2 * static_cast<Real>(i) / static_cast<Real>(n - 1);
    return static_cast<Real>(2 * i + 1) / static_cast<Real>(n) - 1;
  };
  for (int64_t i = 0; i < out.size(); ++i) {
    const Checked<int64_t> at = out.Position(i);
    const int64_t row = (at[0] * axes + at[axes + 1]) * (axes + 1);
    Real sum = theta.real(row + axes), size = std::fabs(sum);
    for (int64_t k = 0; k < axes; ++k) {  // x runs along the last axis
      const Real term = theta.real(row + k) * base(at[axes - k], out.dims[static_cast<int>(axes - k)]);
      sum += term;
      size += std::fabs(term);
    }
    out[i] = sum;
    out.slack.push_back(10 * std::ldexp(size, -52));
  }
}

void SampleTriangular(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (int flags = 0; flags < 8; ++flags) {
      const auto add = [&](const Dims& b, const Dims& a, const Dims& x, const Dims& m, bool with_m) {
        calls.Add({In(t, b), In(t, a, Between(1, 2)), Flag(flags & 1), Flag(flags & 2), Flag(flags & 4), Out(t, x), with_m ? Out(t, m) : Null()});
      };
      add({3, 2}, {3, 3}, {3, 2}, {3, 3}, true);
      add({2, 1, 4, 3}, {3, 4, 4}, {2, 3, 4, 3}, {2, 3, 4, 4}, true);
      add({5, 1}, {5, 5}, {5, 1}, {}, false);
    }
    calls.Add({In(t, {0, 2}), In(t, {0, 0}), Flag(true), Flag(false), Flag(false), Out(t, {0, 2}), Out(t, {0, 0})});
  }
  calls.Add({In(DType::kF32, {2, 1}, Given({2, 7})), In(DType::kF32, {2, 2}, Given({2, 9, 3, 5})), Flag(false), Flag(false), Flag(false),
             Out(DType::kF32, {2, 1}), Out(DType::kF32, {2, 2})});
}

void OracleTriangular(HostCall& call) {
  const Host &b = call.In("self"), &a = call.In("A");
  Host& x = call.Out("xOut");
  const int rank = x.dims.rank();
  const int64_t n = x.dims[rank - 2], k = x.dims[rank - 1];
  if (call.Has("mOut")) {
    Host& m = call.Out("mOut");
    for (int64_t i = 0; i < m.size(); ++i) m[i] = a.Broadcast(m.dims, i);
  }
  Dims a_dims = x.dims;
  a_dims[rank - 1] = n;
  const bool upper = call.Flag("upper"), transpose = call.Flag("transpose"), unit = call.Flag("unitriangular");
  const Real epsilon = x.dtype == DType::kF64 || x.dtype == DType::kC128 ? std::ldexp(Real{1}, -53) : std::ldexp(Real{1}, -24);
  x.slack.assign(x.size(), 0);
  for (int64_t column = 0; column < x.size() / std::max<int64_t>(n, 1); ++column) {
    const int64_t batch = column / k;
    const auto place = [&](int64_t i) { return (batch * n + i) * k + column % k; };
    const auto at = [&](int64_t i, int64_t j) {
      if (transpose) std::swap(i, j);
      if (unit && i == j) return Number(1);
      if (upper ? i > j : i < j) return Number(0);
      return a.Broadcast(a_dims, (batch * n + i) * n + j);
    };
    // What an error of each known one does to the next, on top of its own rounding.
    Checked<bool> known(n, false);
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = upper != transpose ? n - 1 - step : step;
      Number sum = b.Broadcast(x.dims, place(i));
      Real error = 0, size = std::abs(sum);
      for (int64_t j = 0; j < n; ++j) {
        if (!known[j]) continue;
        sum -= at(i, j) * x[place(j)];
        size += std::abs(at(i, j) * x[place(j)]);
        error += std::abs(at(i, j)) * (x.slack[place(j)] + 2 * epsilon * std::abs(x[place(j)]));
      }
      x[place(i)] = sum / at(i, i);
      x.slack[place(i)] = (error + 4 * static_cast<Real>(n) * epsilon * size) / std::abs(at(i, i));
      known[i] = true;
    }
  }
}

}  // namespace

std::span<const Subject> LinalgSubjects() {
  static const Subject subjects[] = {
      {"aclnnDot", SampleDot, OracleDot},
      {"aclnnTrace", SampleTrace, OracleTrace},
      {"aclnnEqual", SampleEqual, OracleEqual, {.ulps = 0}},
      {"aclnnLinalgCross", SampleCross, OracleCross},
      {"aclnnCdist", SampleCdist, OracleCdist},
      {"aclnnCdistBackward", SampleCdistBackward, OracleCdistBackward, {.ulps = 1}},
      {"aclnnPdist", SamplePdist, OraclePdist},
      {"aclnnPdistForward", SamplePdist, OraclePdist},
      {"aclnnAffineGrid", SampleAffineGrid, OracleAffineGrid},
      {"aclnnTriangularSolve", SampleTriangular, OracleTriangular},
  };
  return subjects;
}

}  // namespace anyacl::harness
