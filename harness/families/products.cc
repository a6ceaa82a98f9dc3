// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products with rules of their own, by their definitions.
#include <bit>
#include <cmath>

#include "core/promotion.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64, I8 = DType::kI8, I32 = DType::kI32, I64 = DType::kI64;

// A sum of products and of its magnitudes.
struct Sum {
  Real value = 0, size = 0;
  int64_t terms = 0;
  void Add(Real term) {
    value += term;
    size += std::fabs(term);
    ++terms;
  }
  Real Slack() const { return size * 0x1p-24L * static_cast<Real>(terms + 2); }
};

// ---- Addmv ----

void SampleAddmv(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    const Values values = t == DType::kBool ? Whole(0, 1) : IsInteger(t) ? Hostile() : Between(-2, 2);
    const auto add = [&](const Dims& self, const Dims& mat, TestArg alpha, TestArg beta) {
      calls.Add({In(t, self, values), In(t, mat, values), In(t, {mat[1]}, values), std::move(alpha), std::move(beta), Out(t, {mat[0]}), Int(0)});
    };
    for (const auto& [alpha, beta] : {std::pair{1.0, 1.0}, {-2.0, 3.0}, {0.0, 1.0}, {1.0, 0.0}, {0.0, 0.0}}) {
      add({3}, {3, 5}, Num(F32, alpha), Num(I64, beta));
    }
    add({1}, {3, 5}, Num(F64, 1), Num(F32, 2));
    add({1}, {3, 5}, Num(F64, 0), Num(F32, 2));
    add({}, {4, 5}, Num(F64, 1.5), Num(F32, 1.9));
    add({3}, {3, 0}, Num(F32, 1), Num(F32, 1));
    add({0}, {0, 4}, Num(F32, 1), Num(F32, 1));
    add({70}, {70, 300}, Num(F32, 1), Num(F32, 1));
  }
  calls.Add({In(F32, {3}), In(I32, {3, 5}), In(F16, {5}), Num(F32, 1), Num(F32, 0.5), Out(F64, {3}), Int(0)});
  calls.Add({In(I32, {3}), In(I8, {3, 5}), In(I64, {5}), Num(F32, 1), Num(F32, 1), Out(F16, {3}), Int(3)});
  calls.Add({In(F32, {3}, Given({NAN})), In(F32, {3, 5}), In(F32, {5}), Num(F32, 1), Num(F32, 0), Out(F32, {3}), Int(0)});
}

void OracleAddmv(HostCall& call) {
  const Host &self = call.In("self"), &mat = call.In("mat"), &vec = call.In("vec");
  Host& out = call.Out("out");
  const DType type = Promote(Promote(self.dtype, mat.dtype), vec.dtype);
  Real alpha = call.Scalar("alpha").real(), beta = call.Scalar("beta").real();
  const bool truth = type == DType::kBool, whole = IsInteger(type);
  if (whole) alpha = std::trunc(alpha), beta = std::trunc(beta);
  if (truth) alpha = alpha != 0, beta = beta != 0;
  out.computed = type == F64 ? F64 : F32;
  for (int64_t i = 0; i < out.size(); ++i) {
    Sum sum;
    uint64_t exact = 0;  // wraps
    for (int64_t k = 0; k < vec.size(); ++k) {
      const Real a = mat.real(i * vec.size() + k), b = vec.real(k);
      sum.Add(a * b);
      if (whole) exact += static_cast<uint64_t>(static_cast<int64_t>(a)) * static_cast<uint64_t>(static_cast<int64_t>(b));
    }
    const Real added = beta == 0 ? 0 : self.Broadcast(out.dims, i).real();
    if (whole) {
      const auto bits = [](Real x) { return static_cast<uint64_t>(static_cast<int64_t>(x)); };
      const uint64_t total = bits(alpha) * exact + bits(beta) * bits(added);
      out[i] = Rounded(type, static_cast<Real>(static_cast<int64_t>(total)));
      continue;
    }
    if (truth) {
      out[i] = (alpha != 0 && sum.value != 0) || (beta != 0 && added != 0);
      continue;
    }
    const Real product = alpha == 0 ? 0 : alpha * sum.value;
    out[i] = product + beta * added;
    const Real unit = type == F64 ? 0x1p-29L : 1;
    out.slack.push_back(unit * (std::fabs(alpha) * sum.Slack() + (std::fabs(product) + std::fabs(beta * added)) * 0x1p-22L));
  }
}

// ---- Gemm ----

void SampleGemm(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    for (const int64_t trans_a : {0, 1}) {
      for (const int64_t trans_b : {0, -1}) {
        calls.Add({In(t, trans_a ? Dims{5, 3} : Dims{3, 5}), In(t, trans_b ? Dims{4, 5} : Dims{5, 4}), In(t, {4}), RealArg(1.5), RealArg(-2), Int(trans_a),
                   Int(trans_b), Out(t, {3, 4}), Int(0)});
      }
    }
    calls.Add({In(t, {3, 5}), In(t, {5, 4}), In(t, {3, 1}, Given({NAN})), RealArg(1), RealArg(0), Int(0), Int(0), Out(t, {3, 4}), Int(1)});
    calls.Add({In(t, {3, 5}), In(t, {5, 4}), In(t, {}), RealArg(0), RealArg(1), Int(0), Int(0), Out(t, {3, 4}), Int(1)});
    calls.Add({In(t, {3, 0}), In(t, {0, 4}), In(t, {3, 4}), RealArg(1), RealArg(2), Int(0), Int(0), Out(t, {3, 4}), Int(1)});
    calls.Add({In(t, {0, 2}), In(t, {2, 4}), In(t, {0, 4}), RealArg(1), RealArg(2), Int(0), Int(0), Out(t, {0, 4}), Int(1)});
  }
}

void OracleGemm(HostCall& call) {
  const Host &a = call.In("A"), &b = call.In("B"), &c = call.In("C");
  Host& out = call.Out("out");
  const bool trans_a = call.Int("transA") != 0, trans_b = call.Int("transB") != 0;
  const int64_t m = out.dims[0], n = out.dims[1], k = a.dims[trans_a ? 0 : 1];
  const Real alpha = static_cast<Real>(call.Real("alpha")), beta = static_cast<Real>(call.Real("beta"));
  for (int64_t i = 0; i < out.size(); ++i) {
    Sum sum;
    for (int64_t j = 0; j < k; ++j) sum.Add(a.real(trans_a ? j * m + i / n : i / n * k + j) * b.real(trans_b ? i % n * k + j : j * n + i % n));
    const Real added = beta == 0 ? 0 : beta * c.Broadcast(out.dims, i).real();
    out[i] = (alpha == 0 ? 0 : alpha * sum.value) + added;
    out.slack.push_back(std::fabs(alpha) * sum.Slack() + (std::fabs(alpha * sum.value) + std::fabs(added)) * 0x1p-22L);
  }
}

// ---- Einsum ----

void SampleEinsum(Calls& calls) {
  for (DType t : calls.TypesOf("tensors")) {
    const Values values = IsInteger(t) ? Hostile() : Between(-2, 2);
    for (const char* equation : {"abcd,abced->abce", "ijkl,ijkml->ijkm"}) {
      calls.Add({List({In(t, {2, 3, 1, 5}, values), In(t, {2, 3, 1, 4, 5}, values)}), Text(equation), Out(t, {2, 3, 1, 4})});
    }
    calls.Add({List({In(t, {3}, values), In(t, {5}, values)}), Text("a,b->ab"), Out(t, {3, 5})});
    calls.Add({List({In(t, {0}, values), In(t, {5}, values)}), Text("x,y->xy"), Out(t, {0, 5})});
  }
}

void OracleEinsum(HostCall& call) {
  const Host &x = call.In("tensors", 0), &y = call.In("tensors", 1);
  Host& out = call.Out("output");
  const bool outer = x.dims.rank() == 1;
  const int64_t k = outer ? 1 : x.dims[3], lines = outer ? y.size() : y.dims[3];
  for (int64_t i = 0; i < out.size(); ++i) {
    Sum sum;
    uint64_t exact = 0;
    for (int64_t j = 0; j < k; ++j) {
      const Number a = x[i / lines * k + j], b = y[outer ? i % lines : i * k + j];
      sum.Add(a.real() * b.real());
      if (!IsInteger(out.dtype)) continue;
      const auto bits = [&](Number n) { return out.dtype == DType::kU64 ? static_cast<uint64_t>(n.real()) : static_cast<uint64_t>(static_cast<int64_t>(n.real())); };
      exact += bits(a) * bits(b);
    }
    out[i] = sum.value;
    if (IsInteger(out.dtype)) out[i] = out.dtype == DType::kU64 ? static_cast<Real>(exact) : Rounded(out.dtype, static_cast<Real>(static_cast<int64_t>(exact))).real();
    out.slack.push_back(IsInteger(out.dtype) || outer ? 0 : sum.Slack());
  }
}

// ---- TransposeBatchMatMul ----

TestArg Word(int64_t count) {
  Checked<Number> words;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t scale = std::bit_cast<uint32_t>(0.5f + 2 * static_cast<float>(i)) & ~0x1fffu, offset = static_cast<uint64_t>(i * 37 % 512);
    words.push_back(static_cast<Real>(scale | offset << 37));
  }
  return In(I64, {count}, Given(words));
}

void SampleTbmm(Calls& calls) {
  const auto add = [&](DType t, DType out, bool first, bool second, int64_t split, TestArg scale, const Dims& out_dims, Dims sizes) {
    const int64_t batch = sizes[0], m = sizes[1], k = sizes[2], n = sizes[3];
    calls.Add({In(t, first ? Dims{m, batch, k} : Dims{batch, m, k}), In(t, second ? Dims{batch, n, k} : Dims{batch, k, n}), Null(), std::move(scale),
               Ints(first ? Checked<int64_t>{1, 0, 2} : Checked<int64_t>{0, 1, 2}), Ints(second ? Checked<int64_t>{0, 2, 1} : Checked<int64_t>{0, 1, 2}),
               Ints({1, 0, 2}), Int(0), Int(split), Out(out, out_dims)});
  };
  for (DType t : {F32, F16, BF16}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) {
        add(t, t, first, second, 1, Null(), {3, 4, 6}, {4, 3, 5, 6});
        add(t, F32, first, second, 2, Null(), {2, 3, 12}, {4, 3, 5, 6});
        add(t, F16, first, second, 4, Null(), {4, 3, 6}, {4, 3, 5, 6});
      }
    }
  }
  add(F16, I8, true, false, 1, Word(24), {3, 1, 24}, {4, 3, 5, 6});
  TestArg words = Word(24);
  words.spec.tensor.dtype = DType::kU64;
  add(F16, I8, false, true, 1, words, {3, 1, 24}, {4, 3, 5, 6});
}

void OracleTbmm(HostCall& call) {
  const Host &x1 = call.In("x1"), &x2 = call.In("x2");
  Host& out = call.Out("out");
  const bool first = call.Ints("permX1")[0] == 1, second = call.Ints("permX2")[1] == 2;
  const int64_t batch = x2.dims[0], m = x1.dims[first ? 0 : 1], k = x1.dims[2], n = x2.dims[second ? 1 : 2], part = batch / call.Int("batchSplitFactor");
  const bool quantised = call.Has("scale");
  for (int64_t i = 0; i < out.size(); ++i) {
    // [f, M, B / f * N], which for f = 1 has the order of [M, B, N].
    const int64_t row = i / (part * n) % m, column = i % n, b = i / (part * n * m) * part + i / n % part;
    Sum sum;
    for (int64_t j = 0; j < k; ++j) {
      sum.Add(x1.real(((first ? row * batch + b : b * m + row)) * k + j) * x2.real(second ? (b * n + column) * k + j : (b * k + j) * n + column));
    }
    out[i] = sum.value;
    out.slack.push_back(sum.Slack());
    if (!quantised) continue;
    const auto word = static_cast<uint64_t>(call.In("scale").real(i % (batch * n)));
    const Real scale = std::bit_cast<float>(static_cast<uint32_t>(word));
    const int64_t raw = static_cast<int64_t>(word >> 37 & 511), offset = raw >= 256 ? raw - 512 : raw;
    out[i] = std::fmin(127, std::fmax(-128, std::rint(sum.value * scale) + static_cast<Real>(offset)));
    // A product near the middle between two whole numbers may go either way.
    const Real middle = std::fabs(sum.value * scale - std::floor(sum.value * scale) - 0.5L);
    out.slack.back() = middle < 1e-3L * (1 + std::fabs(scale)) ? 1 : 0;
  }
}

// ---- TransQuantParamV2 ----

void SampleWords(Calls& calls) {
  for (DType t : {I64, DType::kU64}) {
    calls.Add({In(F32, {7}), In(F32, {7}, Between(-300, 300)), Out(t, {7})});
    calls.Add({In(F32, {1, 7}), Null(), Out(t, {7})});
    calls.Add({In(F32, {1}), In(F32, {1, 6}, Between(-9, 9)), Out(t, {1, 6})});
    calls.Add({In(F32, {6}), In(F32, {1}, Given({-2.5L})), Out(t, {6})});
  }
}

void OracleWords(HostCall& call) {
  const Host& scale = call.In("scale");
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(scale.real(scale.size() == 1 ? 0 : i)));
    Real offset = 0;
    if (call.Has("offset")) offset = std::rint(call.In("offset").real(call.In("offset").size() == 1 ? 0 : i));
    offset = std::fmin(255, std::fmax(-256, offset));
    const auto nine = static_cast<uint64_t>(offset < 0 ? offset + 512 : offset);
    out[i] = static_cast<Real>((bits >> 13 << 13) + (nine << 37));
  }
}

}  // namespace

std::span<const Subject> ProductsSubjects() {
  static const Subject subjects[] = {
      {"aclnnAddmv", SampleAddmv, OracleAddmv},
      {"aclnnGemm", SampleGemm, OracleGemm},
      {"aclnnEinsum", SampleEinsum, OracleEinsum},
      {"aclnnTransposeBatchMatMul", SampleTbmm, OracleTbmm},
      {"aclnnTransQuantParamV2", SampleWords, OracleWords},
  };
  return subjects;
}

}  // namespace anyacl::harness
