// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Quantised numbers by their definitions. Where an exact quotient or product is so near the middle of two whole numbers (or, of the
// other ways to round, so near one) that FLOAT cannot tell, the neighbour is as good.
#include <cmath>
#include <string>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I8 = DType::kI8;

Real RoundedBy(std::string_view mode, Real x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "trunc" ? std::trunc(x) : std::nearbyint(x);
}

// What a number that is known to `error` may become in INT8.
void Put(Host& y, int64_t i, std::string_view mode, Real x, Real error) {
  const auto saturated = [](Real v) { return std::fmin(std::fmax(v, -128), 127); };
  y[i] = saturated(RoundedBy(mode, x));
  const bool open = saturated(RoundedBy(mode, x - error)) != saturated(RoundedBy(mode, x + error));
  y.slack.push_back(open ? 1 : 0);
}

// The element of scales along one axis of x that belongs to x's element i. Without an axis they are aligned at the last one.
Real ScaleAt(const Host& scales, const Host& x, int64_t i, int axis) {
  if (scales.size() == 1) return scales.real(0);
  if (axis >= 0) return scales.real(x.Position(i)[axis]);
  return scales.Broadcast(x.dims, i).real();
}

int AxisOf(const HostCall& call) {
  const int rank = call.In("x").dims.rank();
  if (!call.HasArg("axis")) return rank - 1;
  const auto axis = static_cast<int>(call.Int("axis"));
  return axis < 0 ? axis + rank : axis;
}

void OracleQuant(HostCall& call) {
  const Host &x = call.In("x"), &scale = call.In("scale");
  Host& y = call.Out("y");
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real s = ScaleAt(scale, x, i, AxisOf(call)), offset = call.Has("offset") ? ScaleAt(call.In("offset"), x, i, AxisOf(call)) : 0;
    const Real product = x.real(i) * s * (call.Flag("sqrtMode") ? s : 1), t = product + offset;
    const bool exact = product == std::nearbyint(product * 4) / 4 && offset == std::nearbyint(offset * 4) / 4;
    Put(y, i, call.Text("roundMode"), t, exact ? 0 : (2 * std::fabs(product) + std::fabs(t)) * 0x1p-23L);
  }
}

// Products of quarters: the middle of two whole numbers is met, exactly.
Values Quarters() {
  Checked<Number> numbers;
  for (int i = 0; i < 60; ++i) numbers.push_back(static_cast<Real>(i - 30) / 2);
  return Given(numbers);
}

void SampleQuant(Calls& calls) {
  const bool has_axis = calls.op().contract.ArgIndex("axis") >= 0;
  const auto add = [&](TestArg x, TestArg scale, TestArg offset, bool root, const char* mode, int64_t axis) {
    const Dims dims = x.spec.tensor.dims;
    std::vector<TestArg> args = {std::move(x), std::move(scale), std::move(offset), Flag(root), Text(mode), Int(2)};
    if (has_axis) args.push_back(Int(axis));
    args.push_back(Out(I8, dims));
    calls.Add(std::move(args));
  };
  for (const DType t : {F32, F16, BF16}) {
    for (const char* mode : {"round", "ceil", "floor", "trunc"}) {
      add(In(t, {3, 4, 5}, Quarters()), In(t, {5}, Given({0.5, 1, 2, -1, 4})), Null(), false, mode, -1);
      add(In(t, {6, 9}, Between(-50, 50)), In(t, {1, 9}, Between(-3, 3)), In(t, {1, 9}, Between(-9, 9)), true, mode, 1);
    }
    add(In(t, {7, 5}, Between(-300, 300)), In(t, {1}, Between(1, 2)), In(t, {1}, Between(-2, 2)), false, "round", -1);
    if (has_axis) {
      add(In(t, {2, 7, 5}, Between(-60, 60)), In(t, {7}), In(t, {7}), false, "round", -2);
      add(In(t, {2, 7, 5}, Between(-60, 60)), In(t, {1, 7, 1}), In(t, {1, 7, 1}), true, "floor", 1);
    }
  }
  add(In(F32, {4, 3}), In(F16, {3}), In(F16, {3}), false, "round", -1);
  add(In(F32, {4, 3}), In(BF16, {3}), In(BF16, {3}), false, "round", -1);
  add(In(F32, {2, 0, 3}), In(F32, {3}), Null(), false, "round", -1);
}

void OracleAntiQuant(HostCall& call) {
  const Host &x = call.In("x"), &scale = call.In("scale");
  Host& y = call.Out("y");
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real s = ScaleAt(scale, x, i, -1), offset = call.Has("offset") ? ScaleAt(call.In("offset"), x, i, -1) : 0;
    y[i] = (x.real(i) + offset) * s * (call.Flag("sqrtMode") ? s : 1);
    y.slack.push_back(std::fabs(y[i].real()) * 0x1p-22L);
  }
}

void SampleAntiQuant(Calls& calls) {
  for (const DType s : {F32, BF16}) {
    for (const DType y : {F16, BF16}) {
      const int64_t type = y == F16 ? 1 : 27;
      const auto x = [](const Dims& dims) { return In(I8, dims, Whole(-128, 127)); };
      calls.Add({x({3, 4, 5}), In(s, {5}), In(s, {5}), Int(type), Flag(false), Out(y, {3, 4, 5})});
      calls.Add({x({3, 4, 5}), In(s, {4, 1}), Null(), Int(type), Flag(true), Out(y, {3, 4, 5})});
      calls.Add({x({6, 7}), In(s, {1, 1}), In(s, {1, 1}), Int(type), Flag(true), Out(y, {6, 7})});
      calls.Add({x({0, 7}), In(s, {1}), Null(), Int(type), Flag(false), Out(y, {0, 7})});
    }
  }
}

void OracleDynamic(HostCall& call) {
  constexpr const char* kSmooth = "smoothScalesOptional";
  const Host& x = call.In("x");
  Host &y = call.Out("yOut"), &scale = call.Out("scaleOut");
  const int64_t columns = x.dims[x.dims.rank() - 1];
  for (int64_t row = 0; row < scale.size(); ++row) {
    const auto t = [&](int64_t i) { return x.real(row * columns + i) * (call.Has(kSmooth) ? call.In(kSmooth).real(i) : 1); };
    Real most = 0;
    for (int64_t i = 0; i < columns; ++i) most = std::fmax(most, std::fabs(t(i)));
    scale[row] = most / 127;
    scale.slack.push_back(most / 127 * 0x1p-22L);
    for (int64_t i = 0; i < columns; ++i) {
      const Real q = most == 0 ? 0 : t(i) * 127 / most;
      Put(y, row * columns + i, "round", q, std::fabs(q) * 0x1p-21L);
    }
  }
}

void SampleDynamic(Calls& calls) {
  const std::string_view name = calls.op().contract.op();
  const int version = name.back() == 't' ? 1 : name.back() - '0';
  const auto add = [&](DType t, const Dims& dims, bool smooth, Values values) {
    Dims rows = dims;
    rows.resize(dims.rank() - 1);
    std::vector<TestArg> args = {In(t, dims, std::move(values)), smooth ? In(t, {dims[dims.rank() - 1]}) : Null()};
    if (version >= 2) args.insert(args.end(), {Null(), Int(2)});
    if (version >= 3) args.insert(args.end(), {Flag(true), Text("pertoken")});
    if (version >= 4) args.push_back(RealArg(0));
    args.insert(args.end(), {Out(I8, dims), Out(F32, rows)});
    if (version >= 2) args.push_back(Null());
    calls.Add(std::move(args));
  };
  for (const DType t : {F16, BF16}) {
    add(t, {5, 9}, false, {});
    add(t, {2, 3, 40}, true, Between(-30, 30));
    add(t, {3, 4}, true, Whole(0, 0));
    add(t, {3, 0}, false, {});
    add(t, {0, 4}, true, {});
  }
}

}  // namespace

std::span<const Subject> QuantSubjects() {
  static const Subject subjects[] = {{"aclnnAscendQuant", SampleQuant, OracleQuant},
                                     {"aclnnAscendQuantV3", SampleQuant, OracleQuant},
                                     {"aclnnAscendAntiQuant", SampleAntiQuant, OracleAntiQuant},
                                     {"aclnnDynamicQuant", SampleDynamic, OracleDynamic},
                                     {"aclnnDynamicQuantV2", SampleDynamic, OracleDynamic},
                                     {"aclnnDynamicQuantV3", SampleDynamic, OracleDynamic},
                                     {"aclnnDynamicQuantV4", SampleDynamic, OracleDynamic}};
  return subjects;
}

}  // namespace anyacl::harness
