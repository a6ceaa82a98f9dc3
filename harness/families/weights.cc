// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Weights in FRACTAL_NZ and in few bits. Tensors in NZ have shapes here that fill their blocks, so that images and matrices have one size.
#include <cmath>
#include <string_view>

#include "harness/call.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I8 = DType::kI8, I32 = DType::kI32;

Real Slack(Real size, int64_t k) { return size * 0x1p-24L * static_cast<Real>(k + 2); }

// Where element (r, c) of a matrix [rows, columns] lies in its image.
int64_t PlaceInImage(int64_t rows, DType dtype, int64_t r, int64_t c) {
  const int64_t c0 = 32 / static_cast<int64_t>(SizeOf(dtype));
  return ((c / c0 * ((rows + 15) / 16) + r / 16) * 16 + r % 16) * c0 + c % c0;
}

bool IsExchanged(const Dims& strides) { return strides[strides.rank() - 1] != 1; }

// The matrices [batch, rows, columns] of a view of an image. `strides` are those of the view, which also say where its
// elements lie.
Host FromImage(const Host& view, const Dims& strides) {
  const int rank = view.dims.rank();
  const int64_t rows = view.dims[rank - 2], columns = view.dims[rank - 1], size = rows * columns;
  const bool exchanged = IsExchanged(strides);
  Checked<Number> memory(view.size());
  for (int64_t i = 0; i < view.size(); ++i) {
    const int64_t r = i % size / columns, c = i % columns;
    memory[i - i % size + (exchanged ? c * rows + r : r * columns + c)] = view[i];
  }
  Host matrices = view;
  for (int64_t i = 0; i < view.size(); ++i) {
    const int64_t r = i % size / columns, c = i % columns;
    matrices[i] = memory[i - i % size + (exchanged ? PlaceInImage(columns, view.dtype, c, r) : PlaceInImage(rows, view.dtype, r, c))];
  }
  return matrices;
}

Dims StorageOf(const Dims& dims, DType dtype) {
  const int rank = dims.rank();
  const int64_t c0 = 32 / static_cast<int64_t>(SizeOf(dtype));
  Dims storage;
  for (int i = 0; i + 2 < rank; ++i) storage.push_back(dims[i]);
  for (const int64_t dim : {dims[rank - 1] / c0, dims[rank - 2] / 16, int64_t{16}, c0}) storage.push_back(dim);
  return storage;
}

TestArg Exchanged(TestArg arg) {
  Tensor& t = arg.spec.tensor;
  const int last = t.rank() - 1;
  std::swap(t.dims[last], t.dims[last - 1]);
  t.strides = ContiguousStrides(t.dims);
  std::swap(t.dims[last], t.dims[last - 1]);
  std::swap(t.strides[last], t.strides[last - 1]);
  return std::move(arg).Layout("dense");
}
// A view of an image; `exchanged`: of that of the matrix with rows and columns exchanged.
TestArg Image(DType t, const Dims& dims, bool exchanged = false) {
  TestArg arg = In(t, dims).Layout("dense");
  arg.spec.tensor.format = Format::kFractalNZ;
  Dims matrix = dims;
  if (exchanged) std::swap(matrix[matrix.rank() - 1], matrix[matrix.rank() - 2]);
  arg.spec.tensor.storage = StorageOf(matrix, t);
  return exchanged ? Exchanged(std::move(arg)) : arg;
}

// ---- conversions ----

void SampleTransform(Calls& calls) {
  for (DType t : {F16, BF16, I8, DType::kU8}) {
    const auto tensor = [&](const Dims& dims) { return In(t, dims, t == DType::kU8 ? Whole(0, 255) : Between(-100, 100)); };
    calls.Add({tensor({32, 64})});
    calls.Add({tensor({3, 16, 32})});
    calls.Add({Exchanged(tensor({64, 32}))});
    calls.Add({tensor({0, 32})});
  }
}

void OracleTransform(HostCall& call) {
  const Host& before = call.In("mmWeightRef");
  Host& out = call.Out("mmWeightRef");
  const int rank = out.dims.rank();
  const int64_t rows = out.dims[rank - 2], columns = out.dims[rank - 1], size = rows * columns;
  const bool exchanged = IsExchanged(call.StridesOf("mmWeightRef"));
  Checked<Number> memory(out.size());
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t r = i % size / columns, c = i % columns;
    memory[i - i % size + (exchanged ? PlaceInImage(columns, out.dtype, c, r) : PlaceInImage(rows, out.dtype, r, c))] = before[i];
  }
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t r = i % size / columns, c = i % columns;
    out[i] = memory[i - i % size + (exchanged ? c * rows + r : r * columns + c)];
  }
}

void SampleCast(Calls& calls) {
  for (DType t : calls.TypesOf("srcTensor")) {
    const auto tensor = [&](const Dims& dims) { return In(t, dims, IsInteger(t) ? Whole(0, 100) : Between(-100, 100)); };
    TestArg described = Out(t, StorageOf({32, 64}, t)).Layout("dense");
    described.spec.tensor.format = Format::kFractalNZ;
    calls.Add({tensor({32, 64}), Image(t, {32, 64})});
    calls.Add({tensor({2, 16, 32}), Image(t, {2, 16, 32})});
    calls.Add({tensor({32, 64}), described});
    calls.Add({Image(t, {32, 64}), Out(t, {32, 64})});
    calls.Add({tensor({3, 5}), Out(t, {3, 5})});
  }
}

void OracleCast(HostCall& call) {
  const Host& from = call.In("srcTensor");
  Host& out = call.Out("dstTensor");
  const int rank = from.dims.rank();
  const int64_t rows = from.dims[rank - 2], columns = from.dims[rank - 1], size = rows * columns;
  if (call.FormatOf("srcTensor") == Format::kFractalNZ) {
    const Host matrices = FromImage(from, ContiguousStrides(from.dims));
    for (int64_t i = 0; i < out.size(); ++i) out[i] = matrices[i];
    return;
  }
  const bool image = call.FormatOf("dstTensor") == Format::kFractalNZ;
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t r = i % size / columns, c = i % columns;
    out[image ? i - i % size + PlaceInImage(rows, from.dtype, r, c) : i] = from[i];
  }
}

// ---- products ----

void SampleMatmulNz(Calls& calls) {
  const bool batched = std::string_view(calls.op().contract.op()) == "aclnnBatchMatMulWeightNz";
  for (DType t : {F16, BF16}) {
    for (DType out : {t, F32}) {
      for (const bool exchanged : {false, true}) {
        if (batched) {
          calls.Add({In(t, {3, 5, 48}), Image(t, {3, 48, 32}, exchanged), Out(out, {3, 5, 32}), Int(0)});
          calls.Add({In(t, {1, 5, 48}), Image(t, {3, 48, 32}, exchanged), Out(out, {3, 5, 32}), Int(0)});
        } else {
          calls.Add({In(t, {5, 48}), Image(t, {48, 32}, exchanged), Out(out, {5, 32}), Int(1)});
        }
      }
    }
    if (!batched) calls.Add({In(F32, {5, 48}), Image(t, {48, 32}), Out(t == F16 ? BF16 : F32, {5, 32}), Int(1)});
  }
  if (!batched) calls.Add({In(F32, {5, 48}), Image(F16, {48, 32}), Out(F16, {5, 32}), Int(1)});
}

struct Products {
  Checked<Real> value, size;
};
Products Multiply(const Host& a, const Host& b, const Dims& out) {
  const int rank = out.rank();
  const int64_t m = out[rank - 2], n = out[rank - 1], k = a.dims[rank - 1];
  Products products;
  for (int64_t i = 0; i < Numel(out); ++i) {
    const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
    const int64_t of_a = rank == 3 && a.dims[0] > 1 ? batch : 0, of_b = rank == 3 && b.dims[0] > 1 ? batch : 0;
    Real sum = 0, size = 0;
    for (int64_t j = 0; j < k; ++j) {
      const Real term = a.real((of_a * m + row) * k + j) * b.real((of_b * k + j) * n + column);
      sum += term;
      size += std::fabs(term);
    }
    products.value.push_back(sum);
    products.size.push_back(size);
  }
  return products;
}

void OracleMatmulNz(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const Products products = Multiply(self, FromImage(call.In("mat2"), call.StridesOf("mat2")), out.dims);
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = products.value[i];
    out.slack.push_back(Slack(products.size[i], self.dims[self.dims.rank() - 1]));
  }
}

void SampleAddmmNz(Calls& calls) {
  for (DType t : {F16, BF16}) {
    for (const bool exchanged : {false, true}) {
      calls.Add({In(t, {32}), In(t, {5, 48}), Image(t, {48, 32}, exchanged), Num(F32, 1), Num(F32, -0.5), Out(t, {5, 32}), Int(0)});
      calls.Add({In(F32, {5, 32}), In(t, {5, 48}), Image(t, {48, 32}, exchanged), Num(F32, 0), Num(F32, 1), Out(F32, {5, 32}), Int(0)});
    }
  }
}

void OracleAddmmNz(HostCall& call) {
  const Host &self = call.In("self"), &mat1 = call.In("mat1");
  Host& out = call.Out("out");
  const Real alpha = call.Scalar("alpha").real(), beta = call.Scalar("beta").real();
  const Products products = Multiply(mat1, FromImage(call.In("mat2"), call.StridesOf("mat2")), out.dims);
  for (int64_t i = 0; i < out.size(); ++i) {
    const Real added = beta == 0 ? 0 : beta * self.Broadcast(out.dims, i).real();
    out[i] = added + alpha * products.value[i];
    out.slack.push_back(std::fabs(alpha) * Slack(products.size[i], mat1.dims[1]) + (std::fabs(added) + std::fabs(alpha * products.value[i])) * 0x1p-22L);
  }
}

void SampleTbmmNz(Calls& calls) {
  for (DType t : {F16, BF16}) {
    for (const bool second : {false, true}) {
      calls.Add({In(t, {5, 2, 48}), Image(t, second ? Dims{2, 32, 48} : Dims{2, 48, 32}, second), Null(), Null(), Ints({1, 0, 2}),
                 Ints(second ? Checked<int64_t>{0, 2, 1} : Checked<int64_t>{0, 1, 2}), Ints({1, 0, 2}), Int(0), Int(1), Out(t, {5, 2, 32})});
    }
    calls.Add({In(t, {2, 5, 48}), Image(t, {2, 48, 32}), Null(), Null(), Ints({0, 1, 2}), Ints({0, 1, 2}), Ints({1, 0, 2}), Int(0), Int(1),
               Out(F32, {5, 2, 32})});
  }
  Checked<Number> words(64, static_cast<Real>(uint64_t{0x3f800000} | uint64_t{500} << 37));  // 1 and -12
  for (DType word : {DType::kI64, DType::kU64}) {
    calls.Add({In(F16, {2, 5, 48}), Image(F16, {2, 48, 32}), Null(), In(word, {64}, Given(words)), Ints({0, 1, 2}), Ints({0, 1, 2}), Ints({1, 0, 2}), Int(0),
               Int(1), Out(I8, {5, 1, 64})});
  }
  calls.Add({In(BF16, {2, 5, 48}), Image(BF16, {2, 48, 32}), Null(), Null(), Ints({0, 1, 2}), Ints({0, 1, 2}), Ints({1, 0, 2}), Int(0), Int(1), Out(F16, {5, 2, 32})});
}

void OracleTbmmNz(HostCall& call) {
  const Host& x1 = call.In("x1");
  const Host x2 = FromImage(call.In("x2"), call.StridesOf("x2"));
  Host& out = call.Out("out");
  const bool first = call.Ints("permX1")[0] == 1, second = call.Ints("permX2")[1] == 2;
  const int64_t batch = 2, m = 5, k = 48, n = 32;
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t row = i / n / batch, b = i / n % batch, column = i % n;
    Real sum = 0, size = 0;
    for (int64_t j = 0; j < k; ++j) {
      const Real term = x1.real((first ? row * batch + b : b * m + row) * k + j) * x2.real(second ? (b * n + column) * k + j : (b * k + j) * n + column);
      sum += term;
      size += std::fabs(term);
    }
    out[i] = sum;
    out.slack.push_back(Slack(size, k));
    if (!call.Has("scale")) continue;
    out[i] = std::fmin(127, std::fmax(-128, std::rint(sum) - 12));
    out.slack.back() = std::fabs(sum - std::floor(sum) - 0.5L) < 1e-3L ? 1 : 0;
  }
}

// ---- quantised weights ----

struct Quantised {
  DType x, weight;
  Dims scale;
  bool exchanged = false, offset = true;
  int64_t group = 0;
  DType bias = DType::kUndefined;
  int64_t m = 3, k = 70, n = 24;
};

void AddQuantised(Calls& calls, const Quantised& q) {
  const std::string_view name = calls.op().contract.op();
  const bool nz = name == "aclnnWeightQuantBatchMatmulNz", v3 = name == "aclnnWeightQuantBatchMatmulV3";
  const int64_t pack = q.weight == I32 ? 8 : 1;
  const Dims weight = {q.k, q.n / pack};
  TestArg w = nz ? Image(I8, weight, q.exchanged) : In(q.weight, weight, q.weight == I32 ? Whole(-2147483648LL, 2147483647) : Whole(-128, 127)).Layout("dense");
  if (nz) w.values[0] = Whole(-128, 127);
  if (q.exchanged && !nz) w = Exchanged(std::move(w));
  const auto factors = [&](Values values) {
    TestArg arg = In(q.x, q.scale, values).Layout("dense");
    return q.exchanged && q.scale.rank() == 2 && q.scale[0] > 1 ? Exchanged(std::move(arg)) : arg;
  };
  std::vector<TestArg> args = {In(q.x, {q.m, q.k}), std::move(w), factors(Between(0.01L, 0.1L)), q.offset ? factors(Whole(-8, 8)) : Null(), Null(), Null(),
                               q.bias == DType::kUndefined ? Null() : In(q.bias, q.group ? Dims{1, q.n} : Dims{q.n}), Int(q.group)};
  if (v3) args.push_back(Int(1));
  args.push_back(Out(q.x, {q.m, q.n}));
  calls.Add(std::move(args));
}

void SampleQuantised(Calls& calls) {
  const bool nz = std::string_view(calls.op().contract.op()) == "aclnnWeightQuantBatchMatmulNz";
  for (DType x : {F16, BF16}) {
    for (DType weight : {I8, I32, DType::kI4}) {
      if (nz && weight != I8) continue;
      for (const bool exchanged : {false, true}) {
        const int64_t k = nz ? 96 : 70, n = nz ? 64 : 24, groups = (k + 31) / 32;
        AddQuantised(calls, {.x = x, .weight = weight, .scale = {1}, .exchanged = exchanged, .bias = x, .k = k, .n = n});
        AddQuantised(calls, {.x = x, .weight = weight, .scale = {1, n}, .exchanged = exchanged, .offset = false, .k = k, .n = n});
        AddQuantised(calls, {.x = x, .weight = weight, .scale = {n}, .exchanged = exchanged, .bias = x == BF16 ? F32 : F16, .k = k, .n = n});
        AddQuantised(calls, {.x = x, .weight = weight, .scale = {groups, n}, .exchanged = exchanged, .group = 32, .bias = x, .k = k, .n = n});
      }
    }
  }
}

// Element (r, c) of the weight. INT4 has no numbers of its own here: its memory is what the harness fills memory with, and two
// elements that lie one behind the other share a byte.
int WeightAt(const Host& weight, const Dims& strides, int64_t n, int64_t r, int64_t c) {
  if (weight.dtype == I8) return static_cast<int>(weight.real(r * n + c));
  const bool packed = weight.dtype == I32;
  const uint32_t word = packed ? static_cast<uint32_t>(static_cast<int64_t>(weight.real(r * (n / 8) + c / 8))) : GuardedMemory::kPoison * 0x01010101u;
  const int64_t place = packed ? c : r * strides[0] + c * strides[1];
  const int nibble = static_cast<int>(word >> (place % 8 * 4) & 15);
  return nibble >= 8 ? nibble - 16 : nibble;
}

void OracleQuantised(HostCall& call) {
  const bool nz = call.FormatOf("weight") == Format::kFractalNZ;
  const Host &x = call.In("x"), &scale = call.In("antiquantScale");
  const Host weight = nz ? FromImage(call.In("weight"), call.StridesOf("weight")) : call.In("weight");
  Host& y = call.Out("y");
  const int64_t k = x.dims[1], n = y.dims[1], group = call.Int("antiquantGroupSize");
  const auto factor = [&](const Host& host, int64_t r, int64_t c) { return host.real(host.size() == 1 ? 0 : group > 0 ? r / group * n + c : c); };
  Checked<Real> numbers;
  for (int64_t r = 0; r < k; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      Real w = WeightAt(weight, call.StridesOf("weight"), n, r, c);
      if (call.Has("antiquantOffsetOptional")) w = Rounded(F32, w + factor(call.In("antiquantOffsetOptional"), r, c)).real();
      numbers.push_back(Rounded(x.dtype, Rounded(F32, w * factor(scale, r, c))).real());
    }
  }
  for (int64_t i = 0; i < y.size(); ++i) {
    Real sum = 0, size = 0;
    for (int64_t r = 0; r < k; ++r) {
      const Real term = x.real(i / n * k + r) * numbers[r * n + i % n];
      sum += term;
      size += std::fabs(term);
    }
    if (call.Has("biasOptional")) {
      sum += call.In("biasOptional").real(i % n);
      size += std::fabs(call.In("biasOptional").real(i % n));
    }
    y[i] = sum;
    y.slack.push_back(Slack(size, k + 1));
  }
}

constexpr char kWhole[] = "an image has the size of its matrix only as a whole";

}  // namespace

std::span<const Subject> WeightsSubjects() {
  static const Subject subjects[] = {
      {"aclnnTransMatmulWeight", SampleTransform, OracleTransform, {.dense_only = kWhole}},
      {"aclnnNpuFormatCast", SampleCast, OracleCast, {.dense_only = kWhole}},
      {"aclnnMatmulWeightNz", SampleMatmulNz, OracleMatmulNz},
      {"aclnnBatchMatMulWeightNz", SampleMatmulNz, OracleMatmulNz},
      {"aclnnAddmmWeightNz", SampleAddmmNz, OracleAddmmNz},
      {"aclnnTransposeBatchMatMulWeightNz", SampleTbmmNz, OracleTbmmNz},
      {"aclnnWeightQuantBatchMatmulV2", SampleQuantised, OracleQuantised},
      {"aclnnWeightQuantBatchMatmulV3", SampleQuantised, OracleQuantised},
      {"aclnnWeightQuantBatchMatmulNz", SampleQuantised, OracleQuantised},
  };
  return subjects;
}

}  // namespace anyacl::harness
