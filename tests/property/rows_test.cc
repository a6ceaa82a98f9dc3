// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the engines of rows promise whatever the numbers are: rows of a soft-max add up to one, normalised rows have mean 0 and
// deviation 1, a row's bits depend on no other row, and neither a power of two nor (for soft-max) a summand changes a bit.
// That threads and layouts change nothing family_test says of every operator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/family.h"
#include "harness/session.h"
#include "ops/operators.h"

namespace anyacl {
namespace {

using harness::Between;
using harness::Flag;
using harness::In;
using harness::Int;
using harness::Ints;
using harness::Null;
using harness::Number;
using harness::Out;
using harness::Real;
using harness::RealArg;
using harness::TestArg;
using harness::TestCall;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;

const Operator& Named(const char* op) {
  for (const Operator* known : Operators()) {
    if (std::string_view(op) == known->contract.op()) return *known;
  }
  throw std::invalid_argument(fmt::format("no operator {}", op));
}

enum class Sum { kIsAny, kIsOne, kOfExponentialsIsOne, kIsZeroOfSquaresIsCount, kOfSquaresIsCount };

// A call whose first tensor is numbers in rows, and whose result under test has that shape.
struct Rows {
  const char* op;
  std::vector<TestArg> call;
  const char* out;
  Sum sum = Sum::kIsAny;
  // Tensors with an entry for each index of the first axis; what they give for it depends on no other index.
  std::vector<const char*> samples = {};
  bool shifts = false;              // a summand of the whole row changes nothing
  bool scales = false;              // a positive factor neither
  std::function<int64_t(int64_t)> row = {};  // that an element belongs to; else rows of the last axis
};

TestArg X(DType t, const Dims& dims) { return In(t, dims); }

std::vector<Rows> SoftMaxima(DType t, const Dims& dims) {
  return {
      {"aclnnSoftmax", {X(t, dims), Int(-1), Out(t, dims)}, "out", Sum::kIsOne, {"self", "out"}, true},
      {"aclnnLogSoftmax", {X(t, dims), Int(-1), Out(t, dims)}, "out", Sum::kOfExponentialsIsOne, {"self", "out"}},
  };
}

std::vector<Rows> Masked(DType t) {
  const Dims dims = {3, 2, 4, 50};
  return {
      {"aclnnScaledMaskedSoftmax", {X(t, dims), In(DType::kBool, {3, 1, 4, 50}), RealArg(0.5), Flag(false), Out(t, dims)}, "y", Sum::kIsOne,
       {"x", "mask", "y"}},
      {"aclnnMaskedSoftmaxWithRelPosBias", {X(t, dims), Null(), In(t, {2, 4, 50}), RealArg(0.5), Int(0), Out(t, dims)}, "out", Sum::kIsOne,
       {"x", "out"}},
  };
}

std::vector<Rows> Norms(DType t, int64_t rows, int64_t count) {
  const Dims dims = {rows, count}, ones = {rows, 1};
  const DType s = t == F64 ? F64 : F32;
  std::vector<Rows> table = {
      {"aclnnLayerNorm", {X(t, dims), Ints({count}), Null(), Null(), RealArg(0), Out(t, dims), Out(s, ones), Out(s, ones)}, "out",
       Sum::kIsZeroOfSquaresIsCount, {"input", "out", "meanOutOptional", "rstdOutOptional"}, false, true},
      {"aclnnLayerNorm", {X(t, dims), Ints({count}), In(t, {count}), In(t, {count}), RealArg(0.5), Out(t, dims), Out(s, ones), Out(s, ones)},
       "out", Sum::kIsAny, {"input", "out", "meanOutOptional", "rstdOutOptional"}},
      {"aclnnGroupNorm", {X(t, {rows, 4, count}), Null(), Null(), Int(rows), Int(4), Int(count), Int(4), RealArg(0), Out(t, {rows, 4, count}),
                          Out(t, {rows, 4}), Out(t, {rows, 4})}, "out", Sum::kIsZeroOfSquaresIsCount, {"self", "out", "meanOut", "rstdOut"}, false, true},
      {"aclnnBatchNorm", {X(t, {rows, 3, count}), Null(), Null(), Null(), Null(), Flag(true), RealArg(0.1), RealArg(0), Out(t, {rows, 3, count}),
                          Out(s, {3}), Out(s, {3})}, "output", Sum::kIsZeroOfSquaresIsCount, {}, false, true,
       [count](int64_t i) { return i / count % 3; }},
  };
  if (t == F64) return table;
  table.push_back({"aclnnRmsNorm", {X(t, dims), In(t, {count}, harness::Given({Number(1)})), RealArg(0), Out(t, dims), Out(F32, ones)}, "yOut",
                   Sum::kOfSquaresIsCount, {"x", "yOut", "rstdOut"}, false, true});
  table.push_back({"aclnnSwiGlu", {X(t, {rows, 2 * count}), Int(1), Out(t, {rows, count})}, "out", Sum::kIsAny, {"x", "out"}});
  return table;
}

std::vector<Rows> All(DType t) {
  std::vector<Rows> all;
  const auto add = [&](std::vector<Rows> rows) { all.insert(all.end(), rows.begin(), rows.end()); };
  add(SoftMaxima(t, {7, 5, 37}));
  add(SoftMaxima(t, {70, 600}));
  add(SoftMaxima(t, {3, 40000}));
  if (t != F64) add(Masked(t));
  add(Norms(t, 5, 37));
  add(Norms(t, 70, 600));
  add(Norms(t, 3, 40000));
  return all;
}

// A multiple of 1/64 in [-2, 2), plus `shift`.
std::vector<Number> Numbers(int64_t count, Real shift, Real factor, std::mt19937_64& random) {
  std::vector<Number> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back((static_cast<Real>(static_cast<int64_t>(random() % 256) - 128) / 64 + shift) * factor);
  return numbers;
}

class RowsTest : public testing::Test {
 protected:
  // The call with numbers in its inputs.
  TestCall CallOf(const Rows& rows, Real shift = 0, Real factor = 1) {
    const Operator& op = Named(rows.op);
    std::mt19937_64 random(11);
    TestCall call{rows.call, {}};
    for (size_t i = 0; i < call.args.size(); ++i) {
      TestArg& arg = call.args[i];
      const contract::Arg& role = op.contract.args()[i];
      if (!role.is_tensor() || !role.is_read() || arg.spec.null || arg.values[0].kind == harness::Values::kGiven) continue;
      const int64_t count = arg.spec.tensor.numel();
      if (arg.spec.tensor.dtype == DType::kBool) {
        std::vector<Number> bits;
        for (int64_t k = 0; k < count; ++k) bits.push_back(static_cast<Real>(random() & 1));
        arg.values = {harness::Given(bits)};
        continue;
      }
      arg.values = {harness::Given(i == 0 ? Numbers(count, shift, factor, random) : Numbers(count, 0, 1, random))};
    }
    return call;
  }

  // Elements of the outputs, by argument.
  std::vector<std::vector<unsigned char>> Run(const Rows& rows, const TestCall& call) {
    const Operator& op = Named(rows.op);
    harness::RunResult result = harness::RunCall(op, {rows.op, nullptr, nullptr}, call, session_.stream(), {.compare = false});
    EXPECT_EQ(result.problem, "");
    std::vector<std::vector<unsigned char>> outputs(call.args.size());
    size_t k = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (op.contract.args()[i].is_written() && !call.args[i].spec.null && k < result.outputs.size()) outputs[i] = result.outputs[k++];
    }
    return outputs;
  }

  void CheckSums(const Rows& rows, Real shift) {
    const TestCall call = CallOf(rows, shift);
    const int out = Named(rows.op).contract.ArgIndex(rows.out);
    const std::vector<unsigned char> bytes = Run(rows, call)[out];
    const Tensor& t = call.args[out].spec.tensor;
    const int64_t length = t.dims[t.rank() - 1];
    std::vector<Real> sums, squares, counts;
    for (int64_t i = 0; i < t.numel(); ++i) {
      const size_t row = rows.row ? rows.row(i) : i / length;
      for (auto* list : {&sums, &squares, &counts}) list->resize(std::max(list->size(), row + 1));
      const Real x = harness::DecodeNumber(t.dtype, &bytes[i * SizeOf(t.dtype)]).real();
      sums[row] += rows.sum == Sum::kOfExponentialsIsOne ? std::exp(x) : x;
      squares[row] += x * x;
      counts[row] += 1;
    }
    // Every number is rounded, up or down; logarithms are as far off as they are large. DOUBLE is what sums grow in.
    const Real unit = harness::UlpOf(t.dtype, 1) * (rows.sum == Sum::kOfExponentialsIsOne ? 8 : 2) * (t.dtype == F64 ? 8 : 1);
    for (size_t row = 0; row < sums.size(); ++row) {
      const Real n = counts[row];
      switch (rows.sum) {
        case Sum::kIsOne:
        case Sum::kOfExponentialsIsOne:
          ASSERT_NEAR(static_cast<double>(sums[row]), 1, static_cast<double>(unit)) << "row " << row;
          break;
        case Sum::kIsZeroOfSquaresIsCount:
          ASSERT_NEAR(static_cast<double>(sums[row] / n), 0, static_cast<double>(unit)) << "row " << row;
          [[fallthrough]];
        case Sum::kOfSquaresIsCount:
          ASSERT_NEAR(static_cast<double>(squares[row] / n), 1, static_cast<double>(2 * unit)) << "row " << row;
          break;
        case Sum::kIsAny:
          return;
      }
    }
  }

  // Index `at` of the first axis alone.
  TestCall Alone(const Rows& rows, TestCall call, int64_t at) {
    const Operator& op = Named(rows.op);
    for (const char* name : rows.samples) {
      TestArg& arg = call.args[op.contract.ArgIndex(name)];
      const int64_t size = arg.spec.tensor.numel() / arg.spec.tensor.dims[0];
      Dims dims = arg.spec.tensor.dims;
      dims[0] = 1;
      const bool given = !arg.values.empty() && arg.values[0].kind == harness::Values::kGiven;
      if (given) {
        const std::vector<Number>& all = arg.values[0].given;
        arg = In(arg.spec.tensor.dtype, dims, harness::Given({all.begin() + at * size, all.begin() + (at + 1) * size}));
      } else {
        arg = Out(arg.spec.tensor.dtype, dims);
      }
    }
    if (const int n = op.contract.ArgIndex("N"); n >= 0) call.args[n] = Int(1);
    return call;
  }

  harness::Session session_;
};

TEST_F(RowsTest, SumsAreWhatTheyMustBe) {
  for (DType t : {F32, F16, BF16, F64}) {
    for (const Rows& rows : All(t)) {
      SCOPED_TRACE(fmt::format("{} {} {}", rows.op, Name(t), ToString(rows.call[0].spec.tensor.dims)));
      CheckSums(rows, 0);
      // A mean far from 0 costs no digits of FLOAT.
      if (rows.sum == Sum::kIsZeroOfSquaresIsCount && t == F32) CheckSums(rows, 1000);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(RowsTest, ARowDependsOnNoOtherRow) {
  int64_t compared = 0;
  for (DType t : {F32, BF16}) {
    for (const Rows& rows : All(t)) {
      if (rows.samples.empty()) continue;
      SCOPED_TRACE(fmt::format("{} {} {}", rows.op, Name(t), ToString(rows.call[0].spec.tensor.dims)));
      const TestCall call = CallOf(rows);
      const auto together = Run(rows, call);
      for (int64_t at = 0; at < rows.call[0].spec.tensor.dims[0]; at += 13) {
        const auto alone = Run(rows, Alone(rows, call, at));
        for (size_t i = 0; i < alone.size(); ++i) {
          const size_t size = alone[i].size();
          ASSERT_TRUE(std::equal(alone[i].begin(), alone[i].end(), together[i].begin() + at * size)) << "index " << at << " alone has other bits";
          compared += size > 0;
        }
      }
    }
  }
  EXPECT_GT(compared, 100);
}

TEST_F(RowsTest, WhatChangesNothingChangesNoBit) {
  int changed = 0;
  for (DType t : {F32, F64}) {
    for (const Rows& rows : All(t)) {
      if (!rows.shifts && !rows.scales) continue;
      SCOPED_TRACE(fmt::format("{} {} {}", rows.op, Name(t), ToString(rows.call[0].spec.tensor.dims)));
      const int out = Named(rows.op).contract.ArgIndex(rows.out);
      const auto before = Run(rows, CallOf(rows))[out];
      EXPECT_EQ(before, Run(rows, rows.shifts ? CallOf(rows, 64) : CallOf(rows, 0, 0.25))[out]);
      ++changed;
    }
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace anyacl
