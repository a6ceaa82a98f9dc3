// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Inverses, determinants and factors of small matrices: eliminated and orthogonalized in long double, or put together again.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

// Of the type that LAPACK computes in.
Real UnitOf(DType t) { return std::ldexp(Real{1}, t == DType::kF64 || t == DType::kC128 ? -53 : -24); }
// What one rounding to an output's dtype costs beside that.
Real RoundingOf(DType t) { return t == DType::kF16 ? 0x1p-11L : t == DType::kBF16 ? 0x1p-8L : 0; }
bool IsComplexType(DType t) { return t == DType::kC64 || t == DType::kC128; }
bool IsNan(Number x) { return std::isnan(x.real()) || std::isnan(x.imag()); }
Number Nan(DType t) { return IsComplexType(t) ? Number(kNan, kNan) : Number(kNan); }

struct Matrix {
  int64_t rows = 0, columns = 0;
  Checked<Number> of = {};
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), of(rows * columns) {}
  Number& operator()(int64_t i, int64_t j) { return of[i * columns + j]; }
  const Number& operator()(int64_t i, int64_t j) const { return of[i * columns + j]; }
};

Matrix Identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
Matrix MatrixAt(const Host& host, int64_t index) {
  const int rank = host.dims.rank();
  Matrix m(host.dims[rank - 2], host.dims[rank - 1]);
  std::copy_n(host.values.begin() + index * m.rows * m.columns, m.of.size(), m.of.begin());
  return m;
}
int64_t CountOf(const Host& host) {
  int64_t count = 1;
  for (int i = 0; i + 2 < host.dims.rank(); ++i) count *= host.dims[i];
  return count;
}
Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}
Matrix Transpose(const Matrix& a, bool conjugate) {
  Matrix t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) t(j, i) = conjugate ? std::conj(a(i, j)) : a(i, j);
  }
  return t;
}
Real Norm(const Matrix& a) {  // no smaller than the largest singular value
  Real sum = 0;
  for (const Number& x : a.of) sum += std::norm(x);
  return std::sqrt(sum);
}
Real Distance(const Matrix& a, const Matrix& b) {
  Real most = 0;
  for (size_t i = 0; i < a.of.size(); ++i) {
    const Real one = std::abs(a.of[i] - b.of[i]);
    if (!(one <= most)) most = one;  // NaN too
  }
  return most;
}

// Elimination of [a | right] with the largest pivot of each column; returns the determinant, 0 where a is singular.
Number Eliminate(Matrix a, Matrix* right) {
  Number determinant = 1;
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t best = k;
    for (int64_t i = k; i < a.rows; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    }
    if (a(best, k) == Number(0)) return 0;
    for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(best, j));
    for (int64_t j = 0; j < right->columns; ++j) std::swap((*right)(k, j), (*right)(best, j));
    determinant *= best == k ? a(k, k) : -a(k, k);
    const Number pivot = a(k, k);
    for (int64_t j = 0; j < a.columns; ++j) a(k, j) /= pivot;
    for (int64_t j = 0; j < right->columns; ++j) (*right)(k, j) /= pivot;
    for (int64_t i = 0; i < a.rows; ++i) {
      const Number factor = a(i, k);
      if (i == k || factor == Number(0)) continue;
      for (int64_t j = 0; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
      for (int64_t j = 0; j < right->columns; ++j) (*right)(i, j) -= factor * (*right)(k, j);
    }
  }
  return determinant;
}

// Random numbers, larger on the diagonal: no matrix of them is near to a singular one.
Values Dominant(Calls& calls, const Dims& dims, DType t) {
  const int64_t n = dims[dims.rank() - 1];
  Checked<Number> given;
  const auto number = [&] { return static_cast<Real>(calls.random()() >> 11) * 0x1p-53L * 2 - 1; };
  for (int64_t i = 0; i < Numel(dims); ++i) {
    const bool diagonal = i % (n * n) % (n + 1) == 0;
    const Real real = number(), imaginary = number();
    given.push_back(Number(diagonal ? 2 * static_cast<Real>(n) + real : real, IsComplexType(t) ? imaginary : 0));
  }
  if (given.empty()) return {};
  return Given(given);
}

const Dims kSquares[] = {{1, 1, 1}, {1, 2, 2}, {2, 3, 3}, {2, 1, 5, 5}, {1, 33, 33}, {1, 70, 70}};

// ---- Inverse --------------------------------------------------------------------------------------------------------

void SampleInverse(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (const Dims& dims : kSquares) calls.Add({In(t, dims, Dominant(calls, dims, t)), Out(t, dims)});
    calls.Add({In(t, {1, 4, 4}), Out(t, {1, 4, 4})});
    calls.Add({In(t, {0, 3, 3}), Out(t, {0, 3, 3})});
    calls.Add({In(t, {2, 0, 0}), Out(t, {2, 0, 0})});
    calls.Add({In(t, {2, 2}, Given({2, 1, 1, 1})).Layout("transposed"), Out(t, {2, 2})});
    calls.Add({In(t, {3, 2, 2}, Given({1, 2, 2, 4, 0, 2, 4, 0, 0, 0, 0, 0})).Layout("offset"), Out(t, {3, 2, 2})}, "singular");
    TestCall& same = calls.Add({In(t, {3, 3}, Dominant(calls, {3, 3}, t)), Out(t, {3, 3})});
    same.same = {{1, 0}};
  }
  calls.Add({In(DType::kF64, {200, 3, 3}, Dominant(calls, {200, 3, 3}, DType::kF64)), Out(DType::kF64, {200, 3, 3})});
}

void OracleInverse(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  for (int64_t i = 0; i < CountOf(self); ++i) {
    const Matrix a = MatrixAt(self, i);
    Matrix inverse = Identity(a.rows);
    const bool singular = Eliminate(a, &inverse) == Number(0);
    const int64_t first = i * a.rows * a.rows;
    const Real condition = Norm(a) * Norm(inverse);
    for (size_t k = 0; k < inverse.of.size(); ++k) {
      out[first + static_cast<int64_t>(k)] = singular ? Nan(out.dtype) : inverse.of[k];
      out.slack.push_back(singular ? 0 : 8 * static_cast<Real>(a.rows) * UnitOf(out.dtype) * condition * Norm(inverse));
    }
  }
}

// ---- determinants ---------------------------------------------------------------------------------------------------

void SampleDeterminant(Calls& calls) {
  const bool has_sign = std::string_view(calls.op().contract.op()) == "aclnnSlogdet";
  const auto add = [&](DType t, const Dims& dims, Values values, DType result, DType other) {
    Dims batch;
    for (int i = 0; i + 2 < dims.rank(); ++i) batch.push_back(dims[i]);
    std::vector<TestArg> args = {In(t, dims, std::move(values))};
    if (dims.rank() == 2) args[0].layout = "transposed";
    if (has_sign) args.push_back(Out(other, batch));
    args.push_back(Out(result, batch));
    calls.Add(std::move(args));
  };
  for (DType t : calls.TypesOf("self")) {
    for (const Dims& dims : kSquares) add(t, dims, Dominant(calls, dims, t), t, t);
    add(t, {3, 3}, Dominant(calls, {3, 3}, t), t, t);
    for (int i = 0; i < 4; ++i) add(t, {1, 4, 4}, {}, t, t);
    add(t, {3, 2, 2}, Given({1, 2, 3, 4, 2, 1, 1, 1, -1, 2, 3, -6}), t, t);
    add(t, {1, 2, 2}, Given({1, 2, 2, 4}), t, t);
    add(t, {1, 3, 3}, Given({0}), t, t);
    add(t, {2, 0, 0}, {}, t, t);
    add(t, {0, 2, 2}, {}, t, t);
    const bool complex = IsComplexType(t);
    add(t, {1, 3, 3}, {}, complex ? DType::kC128 : DType::kF64, complex ? DType::kC64 : DType::kF32);
    if (!complex) add(t, {2, 2, 2}, {}, DType::kC64, DType::kC128);
  }
  const Number i(0, 1);
  add(DType::kC64, {2, 2, 2}, Given({i, 0, 0, i, -Number(1), 0, 0, i}), DType::kC64, DType::kC64);
}

void OracleDeterminant(HostCall& call) {
  const Host& self = call.In("self");
  Host& log = call.Out(call.HasArg("logOut") ? "logOut" : "out");
  Host* const sign = call.HasArg("signOut") ? &call.Out("signOut") : nullptr;
  const DType computed = self.dtype == DType::kF64 || self.dtype == DType::kC128 ? DType::kF64 : DType::kF32;
  log.computed = computed;
  if (sign) sign->computed = computed;
  for (int64_t i = 0; i < CountOf(self); ++i) {
    const Matrix a = MatrixAt(self, i);
    Matrix inverse = Identity(a.rows);
    const Number determinant = Eliminate(a, &inverse);
    const bool singular = determinant == Number(0);
    // A change E of the matrix changes ln(det) by the trace of its inverse times E.
    const Real n = static_cast<Real>(a.rows);
    const Real slack = singular ? 0 : 4 * (n + 1) * UnitOf(computed == DType::kF64 ? computed : DType::kF32) * (Norm(a) * Norm(inverse) + n);
    const Number phase = singular ? 0 : determinant / std::abs(determinant);
    log[i] = singular ? Number(-kInf) : Number(std::log(std::abs(determinant)));
    if (!sign && !singular && IsComplexType(self.dtype)) log[i] = std::log(determinant);
    if (!sign && !IsComplexType(self.dtype) && determinant.real() < 0) log[i] = kNan;
    log.slack.push_back(slack);
    if (!sign) continue;
    (*sign)[i] = phase;
    sign->slack.push_back(IsComplexType(self.dtype) ? slack : 0);
  }
}

// ---- Cholesky -------------------------------------------------------------------------------------------------------

void SampleCholesky(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (const bool upper : {false, true}) {
      for (const Dims& dims : kSquares) {
        if (dims[dims.rank() - 1] > 40 && RoundingOf(t) > 0) continue;
        calls.Add({In(t, dims, Dominant(calls, dims, t)), Flag(upper), Out(t, dims)});
      }
      calls.Add({In(t, {2, 2}, Given({4, 2, 2, 5})).Layout("transposed"), Flag(upper), Out(t, {2, 2})});
      calls.Add({In(t, {2, 2, 2}, Given({1, 2, 2, 1, kNan, 0, 0, 1})), Flag(upper), Out(t, {2, 2, 2})}, "not positive definite");
      calls.Add({In(t, {2, 0, 0}), Flag(upper), Out(t, {2, 0, 0})});
    }
  }
}

// By its definition, row after row.
bool CholeskyOf(const Matrix& a, Matrix* l) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      Number sum = i == j ? Number(a(i, i).real()) : a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= (*l)(i, k) * std::conj((*l)(j, k));
      if (i != j) (*l)(i, j) = sum / (*l)(j, j);
      else if (sum.real() > 0) (*l)(i, i) = std::sqrt(sum.real());
      else return false;
    }
  }
  return true;
}

void OracleCholesky(HostCall& call) {
  const Host& self = call.In("self");
  const bool upper = call.Flag("upper");
  Host& out = call.Out("out");
  for (int64_t i = 0; i < CountOf(self); ++i) {
    const Matrix whole = MatrixAt(self, i), a = upper ? Transpose(whole, true) : whole;
    const int64_t n = a.rows;
    Matrix l(n, n), inverse = Identity(n);
    const bool good = CholeskyOf(a, &l);
    if (good) Eliminate(l, &inverse);
    const Real slack = good ? 4 * static_cast<Real>(n) * UnitOf(self.dtype) * std::pow(Norm(l) * Norm(inverse), 2) * Norm(l) : 0;
    const Matrix want = upper ? Transpose(l, true) : l;
    for (int64_t k = 0; k < n * n; ++k) {
      const bool zero = upper ? k / n > k % n : k / n < k % n;
      out[i * n * n + k] = !good ? Nan(out.dtype) : want.of[k];
      out.slack.push_back(zero ? 0 : slack);
    }
  }
}

// ---- QR -------------------------------------------------------------------------------------------------------------

const Dims kOblongs[] = {{1, 1, 1}, {2, 2, 2}, {1, 5, 3}, {2, 3, 5}, {2, 1, 4, 4}, {1, 40, 7}, {1, 70, 50}, {1, 9, 40}};

Dims WithLast(Dims dims, int64_t rows, int64_t columns) {
  dims[dims.rank() - 2] = rows;
  dims[dims.rank() - 1] = columns;
  return dims;
}

void SampleQr(Calls& calls) {
  const bool has_mode = std::string_view(calls.op().contract.op()) == "aclnnLinalgQr";
  const auto add = [&](DType t, DType result, const Dims& dims, Values values, int mode, const char* layout = "") {
    const int64_t m = dims[dims.rank() - 2], n = dims[dims.rank() - 1], k = mode == 1 ? m : std::min(m, n);
    calls.Add({In(t, dims, std::move(values)).Layout(layout), has_mode ? Int(mode) : Flag(mode == 0),
               Out(result, mode == 2 ? Dims{0} : WithLast(dims, m, k)), Out(result, WithLast(dims, k, n))});
  };
  for (DType t : calls.TypesOf("self")) {
    for (int mode = 0; mode < (has_mode ? 3 : 2); ++mode) {
      for (const Dims& dims : kOblongs) add(t, t, dims, {}, mode);
      add(t, t, {2, 2}, Given({1, 2, 3, 4}), mode, "transposed");
      add(t, t, {1, 3, 2}, Given({0}), mode);
      add(t, t, {2, 3, 0}, {}, mode);
      add(t, t, {2, 0, 3}, {}, mode);
      add(t, t, {0, 3, 2}, {}, mode);
    }
    add(t, DType::kC128, {1, 4, 3}, {}, 0);
  }
  add(DType::kF32, DType::kF16, {1, 4, 3}, {}, 0);
}

// How far `q` is from orthonormal columns, `r` from a triangle and the product of both from `a`. The sign of R's diagonal is
// that of Householder's reflections: opposite to what stands there before one, so real, and -|x| in the first place for x > 0.
std::string WrongQr(const Matrix& a, const Matrix* q, const Matrix& r, Real unit, DType dtype) {
  const Real close = 8 * static_cast<Real>(std::max(a.rows, a.columns) + 1) * unit;
  for (int64_t i = 0; i < r.rows; ++i) {
    for (int64_t j = 0; j < std::min(i, r.columns); ++j) {
      if (r(i, j) != Number(0)) return fmt::format("R[{}, {}] is not 0", i, j);
    }
  }
  // R^H R = A^H A, whatever Q is.
  const Real products = Distance(Times(Transpose(r, true), r), Times(Transpose(a, true), a));
  if (!(products <= 4 * close * std::pow(Norm(a), 2))) return fmt::format("R^H R is {} from self^H self", static_cast<double>(products));
  if (r.columns > 0 && r.rows > 0 && a.rows > 1 && !IsComplexType(dtype)) {
    const Real first = a(0, 0).real(), left = r(0, 0).real();
    Real below = 0;
    for (int64_t i = 1; i < a.rows; ++i) below += std::norm(a(i, 0));
    if (below > 0 && first != 0 && (left > 0) == (first > 0)) return "R[0, 0] has the sign of self[0, 0]";
  }
  if (!q) return "";
  const Real unitary = Distance(Times(Transpose(*q, true), *q), Identity(q->columns)), whole = Distance(Times(*q, r), a);
  if (!(unitary <= 2 * close)) return fmt::format("Q^H Q is {} from the identity", static_cast<double>(unitary));
  if (!(whole <= 2 * close * Norm(a))) return fmt::format("Q R is {} from self", static_cast<double>(whole));
  return "";
}

std::string CheckQr(HostCall& call) {
  const Host &self = call.In("self"), &q = call.Out("Q"), &r = call.Out("R");
  const bool has_q = !call.HasArg("mode") || call.Int("mode") != 2;
  const Real unit = UnitOf(self.dtype) + UnitOf(r.dtype) + RoundingOf(r.dtype);
  for (int64_t i = 0; i < CountOf(self); ++i) {
    const Matrix a = MatrixAt(self, i), right = MatrixAt(r, i), left = has_q ? MatrixAt(q, i) : Matrix(0, 0);
    const std::string wrong = WrongQr(a, has_q ? &left : nullptr, right, unit, self.dtype);
    if (!wrong.empty()) return fmt::format("matrix {}: {}", i, wrong);
  }
  return "";
}

// ---- singular values ------------------------------------------------------------------------------------------------

void SampleSvd(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, Values values, bool full, bool vectors, const char* layout = "") {
    const int64_t m = dims[dims.rank() - 2], n = dims[dims.rank() - 1], k = std::min(m, n);
    Dims sigma;
    for (int i = 0; i + 2 < dims.rank(); ++i) sigma.push_back(dims[i]);
    sigma.push_back(k);
    const Dims u = vectors ? WithLast(dims, m, full ? m : k) : Dims{0}, v = vectors ? WithLast(dims, n, full ? n : k) : Dims{0};
    calls.Add({In(t, dims, std::move(values)).Layout(layout), Flag(full), Flag(vectors), Out(t, sigma), Out(t, u), Out(t, v)});
  };
  for (DType t : calls.TypesOf("input")) {
    for (const bool full : {false, true}) {
      for (const Dims& dims : kOblongs) add(t, dims, {}, full, true);
      for (const Dims& dims : {Dims{1, 5, 3}, Dims{2, 3, 5}, Dims{1, 40, 7}}) add(t, dims, {}, full, false);
      add(t, {2, 2}, Given({3, 0, 4, 5}), full, true, "transposed");
      add(t, {1, 3, 2}, Given({0}), full, true);
      add(t, {2, 3, 0}, {}, false, true);
      add(t, {2, 2, 2}, Given({1, 2, 3, kNan, 1, 2, 3, 4}), full, true, "dense");
      add(t, {2, 2, 2}, Given({1, 2, 3, 4, 1, 2, kInf, 4}), full, false, "dense");
    }
  }
}

std::string WrongSvd(const Matrix& a, const Checked<Real>& sigma, const Matrix* u, const Matrix* v, Real unit) {
  const int64_t k = static_cast<int64_t>(sigma.size());
  const Real close = 16 * static_cast<Real>(std::max(a.rows, a.columns)) * unit;
  // The squares of all of them, and the sum of their fourth powers, follow from the matrix alone.
  const Matrix squares = Times(Transpose(a, true), a);
  Real second = 0, fourth = 0;
  for (int64_t i = 0; i < k; ++i) {
    if (!(sigma[i] >= 0) || (i > 0 && sigma[i] > sigma[i - 1])) return fmt::format("sigma[{}] is not in order", i);
    second += sigma[i] * sigma[i];
    fourth += std::pow(sigma[i], 4);
  }
  const Real size = std::pow(Norm(a), 2);
  if (!(std::fabs(second - size) <= 4 * close * size)) return "the squares of sigma do not add up";
  if (!(std::fabs(fourth - std::pow(Norm(squares), 2)) <= 8 * close * size * size)) return "the fourth powers of sigma do not add up";
  if (!u) return "";
  if (!(Distance(Times(Transpose(*u, true), *u), Identity(u->columns)) <= close)) return "u has no orthonormal columns";
  if (!(Distance(Times(Transpose(*v, true), *v), Identity(v->columns)) <= close)) return "v has no orthonormal columns";
  Matrix scaled(a.rows, v->columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < k; ++j) scaled(i, j) = (*u)(i, j) * sigma[j];
  }
  const Real whole = Distance(Times(scaled, Transpose(*v, false)), a);
  return whole <= close * Norm(a) ? "" : fmt::format("u diag(sigma) v^T is {} from input", static_cast<double>(whole));
}

std::string CheckSvd(HostCall& call) {
  const Host &input = call.In("input"), &sigma = call.Out("sigma"), &u = call.Out("u"), &v = call.Out("v");
  const bool vectors = call.Flag("computeUV");
  if (input.size() == 0) return "";
  const int64_t k = sigma.dims[sigma.dims.rank() - 1];
  for (int64_t i = 0; i < CountOf(input); ++i) {
    const Matrix a = MatrixAt(input, i), left = vectors ? MatrixAt(u, i) : Matrix(0, 0), right = vectors ? MatrixAt(v, i) : Matrix(0, 0);
    Checked<Real> values;
    bool all_nan = true;
    for (int64_t j = 0; j < k; ++j) {
      const Number one = sigma[i * k + j];
      values.push_back(one.real());
      all_nan = all_nan && IsNan(one);
      if (one.imag() != 0 && !IsNan(one)) return fmt::format("sigma {} of matrix {} is not real", j, i);
    }
    if (std::any_of(a.of.begin(), a.of.end(), [](Number x) { return !std::isfinite(x.real()) || !std::isfinite(x.imag()); })) {
      const bool nan = all_nan && std::all_of(left.of.begin(), left.of.end(), IsNan) && std::all_of(right.of.begin(), right.of.end(), IsNan);
      if (!nan) return fmt::format("matrix {} has infinities or NaN, but a result", i);
      continue;
    }
    const std::string wrong = WrongSvd(a, values, vectors ? &left : nullptr, vectors ? &right : nullptr, UnitOf(input.dtype));
    if (!wrong.empty()) return fmt::format("matrix {}: {}", i, wrong);
  }
  return "";
}

}  // namespace

std::span<const Subject> FactorSubjects() {
  static const Subject subjects[] = {
      {"aclnnInverse", SampleInverse, OracleInverse},
      {"aclnnSlogdet", SampleDeterminant, OracleDeterminant},
      {"aclnnLogdet", SampleDeterminant, OracleDeterminant},
      {"aclnnLinalgCholesky", SampleCholesky, OracleCholesky},
      {"aclnnLinalgQr", SampleQr, nullptr, {.check = CheckQr}},
      {"aclnnQr", SampleQr, nullptr, {.check = CheckQr}},
      {"aclnnSvd", SampleSvd, nullptr, {.check = CheckSvd}},
  };
  return subjects;
}

}  // namespace anyacl::harness
