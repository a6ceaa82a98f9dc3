// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Reductions, element by element: every result is folded from the list of the elements that belong to it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using contract::ArgKind;

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

// ---- Samples --------------------------------------------------------------------------------------------------------

struct Case {
  DType self;
  Dims dims;
  Checked<int64_t> axes;  // for operators of one axis the first of them
  bool keep = false;
  std::vector<DType> outs = {};
  Values values = {};
  DType dtype = DType::kUndefined;  // the argument
  int64_t correction = 1;           // `unbiased` when it is not 0
  bool null_axes = false;
  bool noop = false;
  const Dims* out_dims = nullptr;  // if not what follows from the axes
};

Dims DimsWithout(const Dims& dims, const Checked<int64_t>& axes, bool all, bool keep) {
  Dims result;
  for (int i = 0; i < dims.rank(); ++i) {
    const bool gone = all || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + dims.rank() == i; });
    if (!gone) result.push_back(dims[i]);
    else if (keep) result.push_back(1);
  }
  return result;
}

void Add(Calls& calls, const Case& c, const char* label = "") {
  std::vector<TestArg> args;
  size_t outs = 0;
  bool single = false, listed = false, keeps = false;
  for (const contract::Arg& arg : calls.op().contract.args()) {
    const std::string_view name = arg.name;
    if (arg.kind == ArgKind::kInt && name != "dtype" && name != "correction") single = true;
    if (arg.kind == ArgKind::kIntArray) listed = true;
    if (name.starts_with("keep")) keeps = true;
  }
  const bool none_is_none = c.noop || std::string_view(calls.op().contract.op()) == "aclnnAminmax";
  const bool all = (!single && !listed) || (listed && c.axes.empty() && !none_is_none);
  const Dims out = c.out_dims ? *c.out_dims : DimsWithout(c.dims, c.axes, all, c.keep && keeps);
  for (const contract::Arg& arg : calls.op().contract.args()) {
    const std::string_view name = arg.name;
    switch (arg.kind) {
      case ArgKind::kInput:
        args.push_back(In(c.self, c.dims, c.values));
        break;
      case ArgKind::kIntArray:
        args.push_back(c.null_axes ? Null() : Ints(c.axes));
        break;
      case ArgKind::kBool:
        args.push_back(Flag(name.starts_with("keep") ? c.keep : name.starts_with("noop") ? c.noop : c.correction != 0));
        break;
      case ArgKind::kInt:
        args.push_back(Int(name == "dtype"        ? static_cast<int64_t>(c.dtype)
                           : name == "correction" ? c.correction
                                                  : c.axes.at(0)));
        break;
      default:
        args.push_back(Out(c.outs.at(std::min(outs, c.outs.size() - 1)), out));
        ++outs;
    }
  }
  calls.Add(std::move(args), label);
}

bool Has(const Calls& calls, std::string_view name) {
  return std::any_of(calls.op().contract.args().begin(), calls.op().contract.args().end(),
                     [&](const contract::Arg& arg) { return std::string_view(arg.name).starts_with(name); });
}
bool HasKind(const Calls& calls, ArgKind kind) {
  return std::any_of(calls.op().contract.args().begin(), calls.op().contract.args().end(),
                     [&](const contract::Arg& arg) { return arg.kind == kind; });
}
bool OneAxis(const Calls& calls) {
  return std::any_of(calls.op().contract.args().begin(), calls.op().contract.args().end(), [&](const contract::Arg& arg) {
    const std::string_view name = arg.name;
    return arg.kind == ArgKind::kInt && name != "dtype" && name != "correction";
  });
}

// Shapes that go every way through an engine of rows, columns and pieces. `base` says the dtypes and values.
void AddShapes(Calls& calls, Case base, bool large) {
  const auto add = [&](const Dims& dims, Checked<int64_t> axes, bool keep = false) {
    Case c = base;
    c.dims = dims;
    c.axes = std::move(axes);
    c.keep = keep;
    if (!c.values.given.empty() && Numel(dims) != static_cast<int64_t>(c.values.given.size())) c.values = {};
    Add(calls, c);
  };
  const bool list = HasKind(calls, ArgKind::kIntArray);
  const bool single = OneAxis(calls);
  const bool whole = !list && !single;
  add({2, 3, 5}, whole ? Checked<int64_t>{} : Checked<int64_t>{1}, true);
  if (whole) {
    add({}, {});
    add({7, 11}, {});
    if (large) add({33001}, {});
    return;
  }
  add({2, 3, 5}, {-1});
  add({4, 37}, {1}, true);
  add({5, 20}, {0});
  add({}, {0});
  add({1}, {-1}, true);
  if (list) {
    add({2, 3, 4, 5}, {1, -1}, true);
    add({3, 2, 20}, {0, 1});
    add({}, {});
    add({2, 3, 5}, {});
    add({2, 2}, {0, 1}, true);
  }
  if (!large) return;
  add({33001}, {0});
  add({33, 133}, {0});
  add({40, 1000}, {1});
  add({3500, 20}, {0}, true);
  add({2000, 3}, {0});
  add({12000, 3}, {1});
  if (list) add({5, 20, 4, 30}, {0, 2});
}

Values SmallNumbers(DType t) {
  if (t == DType::kBool) return Whole(0, 1);
  if (IsFloating(t) || IsComplex(t)) return Between(-3, 3);
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64 ? Whole(0, 9) : Whole(-9, 9);
}

// Operators with an argument `dtype`.
void SampleNamed(Calls& calls) {
  const bool mean = std::string_view(calls.op().contract.op()) == "aclnnMean";
  const bool nansum = std::string_view(calls.op().contract.op()) == "aclnnReduceNansum";
  for (DType t : calls.TypesOf("self")) {
    const DType named = t == DType::kU16 || t == DType::kU32 || t == DType::kU64 ? DType::kI64
                        : mean && t == DType::kBool                             ? DType::kF32
                                                                                : t;
    // Long products of complex numbers must not overflow: infinities of theirs have no one form.
    const bool product = std::string_view(calls.op().contract.op()).starts_with("aclnnProd");
    const Values values = product && IsComplex(t) ? Between(-0.7L, 0.7L) : SmallNumbers(t);
    AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {named}, .values = values, .dtype = named},
              t == DType::kF32 || t == DType::kF64 || t == DType::kC64 || t == DType::kI32);
  }
  for (DType named : calls.TypesOf("out")) {
    for (DType t : {DType::kF32, DType::kI32, DType::kBool}) {
      const bool fits = ConvertsTo(t, named) && (!mean || t != DType::kBool || !IsInteger(named));
      if ((mean || nansum) && !fits) continue;
      const Checked<int64_t> axes = HasKind(calls, ArgKind::kIntArray) || OneAxis(calls) ? Checked<int64_t>{1} : Checked<int64_t>{};
      Add(calls, {.self = t, .dims = {4, 40}, .axes = axes, .outs = {named},
                  .values = IsFloating(t) ? Between(0, 3) : SmallNumbers(t), .dtype = named});
      Add(calls, {.self = t, .dims = {3, 0}, .axes = axes, .outs = {named}, .dtype = named});
    }
  }
}

void SampleSum(Calls& calls) {
  SampleNamed(calls);
  const Values ones = Given(Checked<Number>(6, 1.9L));
  for (DType named : {DType::kI32, DType::kI64, DType::kBool}) {
    Add(calls, {.self = DType::kF32, .dims = {3, 2}, .axes = {1}, .outs = {named}, .values = ones, .dtype = named});
  }
  Add(calls, {.self = DType::kF32, .dims = {2, 2}, .axes = {1}, .outs = {DType::kBool},
              .values = Given({kNan, 0, 0, 0}), .dtype = DType::kBool});
  Add(calls, {.self = DType::kF32, .dims = {4, 2}, .axes = {1}, .outs = {DType::kF32},
              .values = Given({kNan, 1, kInf, 1, kInf, -kInf, -kInf, 2}), .dtype = DType::kF32});
  Add(calls, {.self = DType::kC64, .dims = {6}, .axes = {0}, .outs = {DType::kF32}, .dtype = DType::kF32});
  const Dims one = {1};
  Add(calls, {.self = DType::kF32, .dims = {3, 2}, .axes = {}, .outs = {DType::kF32}, .dtype = DType::kF32, .out_dims = &one});
  const Dims other = {2, 4};  // an empty tensor's result is not compared
  Add(calls, {.self = DType::kF32, .dims = {2, 0, 4}, .axes = {1}, .keep = true, .outs = {DType::kF32},
              .dtype = DType::kF32, .out_dims = &other});
  Add(calls, {.self = DType::kF16, .dims = {2, 1000}, .axes = {1}, .outs = {DType::kF16}, .values = Between(0, 100), .dtype = DType::kF16});
  Add(calls, {.self = DType::kF64, .dims = {5}, .axes = {0}, .outs = {DType::kF64}, .values = Given({1e16L, 1, -1e16L, 1e-3L, 3}), .dtype = DType::kF64});
  Add(calls, {.self = DType::kI64, .dims = {4}, .axes = {0}, .outs = {DType::kI64}, .values = Hostile(), .dtype = DType::kI64});
  Add(calls, {.self = DType::kI32, .dims = {9}, .axes = {0}, .outs = {DType::kI32}, .values = Hostile(), .dtype = DType::kI32});
}

void SampleNansum(Calls& calls) {
  SampleNamed(calls);
  for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    Add(calls, {.self = t, .dims = {3, 3}, .axes = {1}, .outs = {t},
                .values = Given({kNan, 1, 2, kInf, kNan, 1, kNan, kNan, kNan}), .dtype = t});
  }
}

void SampleMean(Calls& calls) {
  SampleNamed(calls);
  Add(calls, {.self = DType::kI32, .dims = {2, 2}, .axes = {1}, .outs = {DType::kI32}, .values = Given({1, 2, -4, 1}), .dtype = DType::kI32});
  Add(calls, {.self = DType::kI32, .dims = {3}, .axes = {}, .outs = {DType::kF16}, .values = Given({1, 2, 4}), .dtype = DType::kF32});
  Add(calls, {.self = DType::kF32, .dims = {3}, .axes = {}, .outs = {DType::kF32}, .values = Given({1, 2, 4.0009765625L}), .dtype = DType::kF16});
}

void SampleProduct(Calls& calls) {
  SampleNamed(calls);
  const Checked<int64_t> axes = {0};
  Add(calls, {.self = DType::kU8, .dims = {3}, .axes = axes, .outs = {DType::kBool}, .values = Given({2, 3, 4}), .dtype = DType::kBool});
  Add(calls, {.self = DType::kF32, .dims = {3}, .axes = axes, .outs = {DType::kBool}, .values = Given({2, kNan, 4}), .dtype = DType::kBool});
  Add(calls, {.self = DType::kI32, .dims = {3}, .axes = axes, .outs = {DType::kI32}, .values = Given({70000, 70000, 3})});  // no dtype
  Add(calls, {.self = DType::kF16, .dims = {3}, .axes = axes, .outs = {DType::kF16}, .values = Given({300, 300, 1.0L / 300}), .dtype = DType::kF16});
}

// Every output has self's dtype, or one of its own list.
void SamplePlain(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const char* const self = op == "aclnnReduceLogSum" ? "data" : "self";
  for (DType t : calls.TypesOf(self)) {
    Case base = {.self = t, .dims = {}, .axes = {}, .outs = {t}, .values = SmallNumbers(t)};
    if (op == "aclnnReduceLogSum") base.values = Between(0, 3);
    AddShapes(calls, base, t == DType::kF32 || t == DType::kI64);
    if (!Has(calls, "noop")) continue;
    base.dims = {2, 3};
    base.noop = true;
    Add(calls, base);
    base.axes = {0};
    Add(calls, base);
  }
  if (op == "aclnnMeanV2" || op == "aclnnReduceLogSum") {
    Add(calls, {.self = DType::kF32, .dims = {3, 0}, .axes = {1}, .outs = {DType::kF32}});
    Add(calls, {.self = DType::kF32, .dims = {3, 0}, .axes = {}, .outs = {DType::kF32}});
  }
}

const Checked<Number> kNans = {1, 5, 5, kNan, 2, kNan, 3, 3, kNan, -kInf, -kInf, -kInf, kInf, 1, kNan};

void SampleExtremes(Calls& calls) {
  SamplePlain(calls);
  const std::string_view op = calls.op().contract.op();
  const bool single = OneAxis(calls), list = HasKind(calls, ArgKind::kIntArray);
  for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    const Checked<int64_t> axes = single || list ? Checked<int64_t>{1} : Checked<int64_t>{};
    Add(calls, {.self = t, .dims = {5, 3}, .axes = axes, .outs = {t}, .values = Given(kNans)});
    Checked<Number> numbers(37 * 20, -kInf);
    numbers[400] = kNan;
    numbers[500] = 3;
    Add(calls, {.self = t, .dims = {37, 20}, .axes = single || list ? Checked<int64_t>{0} : axes, .outs = {t}, .values = Given(numbers)});
  }
  Add(calls, {.self = DType::kF32, .dims = {3, 0}, .axes = single || list ? Checked<int64_t>{0} : Checked<int64_t>{},
              .outs = {DType::kF32}});
  if (op == "aclnnAminmax") Add(calls, {.self = DType::kI32, .dims = {3, 2}, .axes = {}, .outs = {DType::kI32}});
}

// Max and Min: any dtype into any.
void SampleWhole(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {t}, .values = SmallNumbers(t)}, t == DType::kF32);
    for (DType out : calls.TypesOf("out")) {
      Add(calls, {.self = t, .dims = {3, 3}, .axes = {}, .outs = {out}, .values = t == DType::kBool ? Whole(0, 1) : Whole(0, 100)});
    }
  }
  Add(calls, {.self = DType::kF32, .dims = {3}, .axes = {}, .outs = {DType::kF32}, .values = Given({1, kNan, 3})});
  const Dims one = {1};
  Add(calls, {.self = DType::kF32, .dims = {3}, .axes = {}, .outs = {DType::kF32}, .out_dims = &one});
}

void SamplePlaces(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool values = op == "aclnnMaxDim" || op == "aclnnMinDim";
  for (DType t : calls.TypesOf("self")) {
    for (DType index : {DType::kI64, DType::kI32}) {
      const std::vector<DType> outs = values ? std::vector<DType>{t, index} : std::vector<DType>{index};
      Case base = {.self = t, .dims = {}, .axes = {}, .outs = outs, .values = Whole(0, t == DType::kBool ? 1 : 5)};
      AddShapes(calls, base, index == DType::kI64 && (t == DType::kI64 || t == DType::kF32));
      if (!IsFloating(t)) continue;
      base.values = Given(kNans);
      base.dims = {5, 3};
      base.axes = {1};
      Add(calls, base);
    }
  }
  Checked<Number> late(200000, 1);
  late[100001] = late[150000] = 2;
  late[77] = late[99999] = 0;
  const std::vector<DType> outs = values ? std::vector<DType>{DType::kF32, DType::kI64} : std::vector<DType>{DType::kI64};
  Add(calls, {.self = DType::kF32, .dims = {200000}, .axes = {0}, .outs = outs, .values = Given(late)});
}

void SampleTruth(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (DType out : {DType::kBool, DType::kU8}) {
      const Values values = t == DType::kBool ? Whole(0, 1) : Whole(0, 3);
      AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {out}, .values = values}, t == DType::kF32 && out == DType::kBool);
      Add(calls, {.self = t, .dims = {4, 50}, .axes = {1}, .outs = {out}, .values = Whole(1, 1)});
      Add(calls, {.self = t, .dims = {4, 50}, .axes = {1}, .outs = {out}, .values = Whole(0, 0)});
      Add(calls, {.self = t, .dims = {4, 0}, .axes = {1}, .outs = {out}});
    }
  }
  Add(calls, {.self = DType::kF16, .dims = {2, 2}, .axes = {1}, .outs = {DType::kBool}, .values = Given({1, 0, 2, kNan})});
  Add(calls, {.self = DType::kC64, .dims = {2, 2}, .axes = {1}, .outs = {DType::kBool},
              .values = Given({Number(0, 1), Number(0, 0), Number(1, 0), Number(0, kNan)})});
}

void SampleVariance(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool pair = op == "aclnnVarMean" || op == "aclnnStdMeanCorrection";
  const char* const out_name = op == "aclnnVarMean" ? "varOut" : "out";
  for (DType t : calls.TypesOf("self")) {
    AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {t}}, t == DType::kF32 || t == DType::kF64);
    AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {t}, .values = Between(1000, 1001), .correction = 0}, false);
    if (op == "aclnnStdMeanCorrection") continue;
    for (DType out : calls.TypesOf(out_name)) {
      Add(calls, {.self = t, .dims = {3, 4}, .axes = {0}, .outs = {out, t}});
      Add(calls, {.self = t, .dims = {3, 4}, .axes = {0}, .outs = {t, out}});
    }
  }
  const Dims none = {};
  for (int64_t correction : {-2, 0, 1, 2, 3, 4}) {
    Add(calls, {.self = DType::kF32, .dims = {2, 2}, .axes = {1}, .outs = {DType::kF32}, .values = Given({5, 5, 1, 3}), .correction = correction});
    Add(calls, {.self = DType::kF32, .dims = {1}, .axes = {0}, .outs = {DType::kF32}, .correction = correction});
  }
  Add(calls, {.self = DType::kF32, .dims = {3, 4}, .axes = {}, .outs = {DType::kF32}, .null_axes = true});
  Add(calls, {.self = DType::kF32, .dims = {3, 4}, .axes = {}, .keep = true, .outs = {DType::kF32}, .null_axes = true});
  if (op.starts_with("aclnnStd")) {
    Add(calls, {.self = DType::kF32, .dims = {3, 4}, .axes = {}, .keep = true, .outs = {DType::kF32}, .out_dims = &none});
  }
  Add(calls, {.self = DType::kF32, .dims = {3, 0}, .axes = {1}, .outs = {DType::kF32}});
  Add(calls, {.self = DType::kF32, .dims = {3, 0}, .axes = {1}, .outs = {DType::kF32}, .correction = -3});
  Add(calls, {.self = DType::kF32, .dims = {2, 3}, .axes = {1}, .outs = {DType::kF32}, .values = Given({1, kNan, 2, 1, kInf, 2})});
  if (pair) Add(calls, {.self = DType::kF32, .dims = {2, 2}, .axes = {1}, .outs = {DType::kF32}, .values = Given({1, 3, 2, 2}), .correction = 0});
}

void SampleLogSumExp(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    const DType out = IsFloating(t) ? t : DType::kF32;
    AddShapes(calls, {.self = t, .dims = {}, .axes = {}, .outs = {out}, .values = SmallNumbers(t)}, t == DType::kF32);
    Add(calls, {.self = t, .dims = {2, 0}, .axes = {1}, .outs = {out}});
    for (DType other : calls.TypesOf("out")) Add(calls, {.self = t, .dims = {5, 3}, .axes = {1}, .outs = {other}, .values = SmallNumbers(t)});
  }
  for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    Add(calls, {.self = t, .dims = {6, 2}, .axes = {1}, .outs = {t},
                .values = Given({-kInf, -kInf, kInf, 1, kInf, kNan, -kInf, 2, 1000, 1000, kNan, -kInf})});
  }
}

// ---- Oracles --------------------------------------------------------------------------------------------------------

// The elements of self that each result is made of, in their order.
struct Slices {
  Checked<Checked<int64_t>> of;
  explicit Slices(const HostCall& call, const Host& self, const Host& out) {
    Checked<bool> gone(self.dims.rank(), true);
    if (call.HasArg("dim") || call.HasArg("dims") || call.HasArg("axes")) {
      const char* const name = call.HasArg("dim") ? "dim" : call.HasArg("dims") ? "dims" : "axes";
      Checked<int64_t> axes;
      bool named = true;
      if (call.KindOf(name) == ArgKind::kInt) {
        axes = {call.Int(name)};
      } else if (call.Has(name)) {
        axes = call.Ints(name);
        named = !axes.empty();
      } else {
        named = false;
      }
      if (named) {
        for (int i = 0; i < self.dims.rank(); ++i) {
          gone[i] = std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + self.dims.rank() == i; });
        }
      }
    }
    of.resize(out.size());
    for (int64_t i = 0; i < self.size(); ++i) {
      const Checked<int64_t> at = self.Position(i);
      int64_t k = 0;
      for (int axis = 0; axis < self.dims.rank(); ++axis) {
        if (!gone[axis]) k = k * self.dims[axis] + at[axis];
      }
      of.at(k).push_back(i);
    }
  }
};

const char* FirstInput(const HostCall& call) { return call.HasArg("data") ? "data" : "self"; }

bool CopiesOnly(const HostCall& call) {
  for (const char* noop : {"noopWithEmptyAxes", "noopWithEmptyDims"}) {
    if (call.HasArg(noop) && call.Flag(noop)) {
      const char* const axes = call.HasArg("axes") ? "axes" : call.HasArg("dims") ? "dims" : "dim";
      return call.Ints(axes).empty();
    }
  }
  return call.HasArg("minOut") && call.HasArg("dim") && call.KindOf("dim") != ArgKind::kInt && call.Ints("dim").empty();
}

void CopyTo(const Host& from, Host& to) { to.values = from.values; }

bool IsExact(DType t) { return IsInteger(t) || t == DType::kBool; }
Real EpsilonOf(DType t) { return t == DType::kF64 || t == DType::kC128 ? std::ldexp(Real{1}, -100) : std::ldexp(Real{1}, -53); }

// kNan: NaN counts as 0.
void SumOracle(HostCall& call, bool skip_nan, bool mean, bool log) {
  const Host& self = call.In(FirstInput(call));
  Host& out = call.HasArg("reduce") ? call.Out("reduce") : call.Out("out");
  const DType dtype = call.HasArg("dtype") ? static_cast<DType>(call.Int("dtype")) : self.dtype;
  if (CopiesOnly(call) && self.size() > 0) return CopyTo(self, out);
  const Slices slices(call, self, out);
  for (int64_t k = 0; k < out.size(); ++k) {
    Number sum = 0;
    Real size = 0;
    bool any = false;
    for (int64_t i : slices.of[k]) {
      Number x = self.dtype == dtype ? self[i] : Rounded(dtype, self[i]);
      if (skip_nan && std::isnan(x.real())) x = 0;
      any = any || x != Number(0);
      sum = IsExact(dtype) ? Rounded(DType::kI64, sum + x) : sum + x;
      size += std::abs(x);
    }
    const Real n = static_cast<Real>(slices.of[k].size());
    if (dtype == DType::kBool) sum = any;
    if (mean && IsExact(dtype)) sum = n == 0 ? Number(0) : Number(std::trunc(sum.real() / n));
    else if (mean && n == 0) sum = IsComplex(dtype) ? Number(kNan, kNan) : Number(kNan);
    else if (mean) sum /= n;
    Real slack = IsExact(dtype) ? 0 : (n + 2) * EpsilonOf(dtype) * (mean ? size / std::max<Real>(n, 1) : size);
    if (mean && !IsComplex(dtype)) {
      if (out.dtype != dtype && !IsExact(dtype)) slack += UlpOf(dtype, sum.real());  // rounded to dtype, perhaps the other way
      sum = Rounded(dtype, sum);
    }
    if (log && n > 0) {
      slack = slack / std::abs(sum) + 2 * EpsilonOf(DType::kF32);
      sum = std::log(sum.real());
    }
    out[k] = sum;
    out.slack.push_back(std::isfinite(slack) ? slack : 0);
  }
}

void OracleSum(HostCall& call) { SumOracle(call, false, false, false); }
void OracleNansum(HostCall& call) { SumOracle(call, true, false, false); }
void OracleMean(HostCall& call) { SumOracle(call, false, true, false); }
void OracleLogSum(HostCall& call) { SumOracle(call, false, false, true); }

void OracleProduct(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const auto named = static_cast<DType>(call.Int("dtype"));
  const DType dtype = named == DType::kUndefined ? self.dtype : named;
  const Slices slices(call, self, out);
  for (int64_t k = 0; k < out.size(); ++k) {
    Number product = 1;
    uint64_t wrapped = 1;
    for (int64_t i : slices.of[k]) {
      const Number x = self.dtype == dtype ? self[i] : Rounded(dtype, self[i]);
      product *= x;
      if (IsExact(dtype)) wrapped *= static_cast<uint64_t>(static_cast<int64_t>(x.real()));
    }
    if (dtype == DType::kBool) out[k] = wrapped != 0;
    else if (IsExact(dtype)) out[k] = static_cast<Real>(static_cast<int64_t>(wrapped));
    else out[k] = product;
    const Real n = static_cast<Real>(slices.of[k].size());
    const Real slack = IsExact(dtype) ? 0 : 4 * n * std::ldexp(std::abs(product), -53);
    out.slack.push_back(std::isfinite(slack) ? slack : 0);
  }
}

// Place in `slice` of its first extreme; NaN is beyond everything.
size_t PlaceOf(const Host& self, const Checked<int64_t>& slice, bool largest) {
  size_t best = 0;
  for (size_t j = 0; j < slice.size(); ++j) {
    const Real x = self.real(slice[j]), y = self.real(slice[best]);
    if (std::isnan(y)) break;
    if (std::isnan(x) || (largest ? x > y : x < y)) best = j;
  }
  return best;
}

void ExtremeOracle(HostCall& call, bool largest, const char* value, const char* place) {
  const Host& self = call.In("self");
  Host* const values = value ? &call.Out(value) : nullptr;
  Host* const places = place ? &call.Out(place) : nullptr;
  if (CopiesOnly(call)) return CopyTo(self, *values);
  const Slices slices(call, self, values ? *values : *places);
  for (size_t k = 0; k < slices.of.size(); ++k) {
    const size_t best = PlaceOf(self, slices.of[k], largest);
    if (values) (*values)[k] = Rounded(self.dtype, self[slices.of[k][best]]);
    if (places) (*places)[k] = static_cast<Real>(best);
  }
}

void OracleMax(HostCall& call) {
  if (call.In("self").size() == 0) {  // left as it was
    call.Out("out").values.clear();
    return;
  }
  ExtremeOracle(call, true, "out", call.HasArg("indices") ? "indices" : nullptr);
}
void OracleMin(HostCall& call) {
  if (call.In("self").size() == 0) {
    call.Out("out").values.clear();
    return;
  }
  ExtremeOracle(call, false, "out", call.HasArg("indices") ? "indices" : nullptr);
}
void OracleArgMax(HostCall& call) { ExtremeOracle(call, true, nullptr, "out"); }
void OracleArgMin(HostCall& call) { ExtremeOracle(call, false, nullptr, "out"); }
void OracleMinMax(HostCall& call) {
  if (call.In("self").size() == 0) {
    call.Out("minOut").values.clear();
    call.Out("maxOut").values.clear();
    return;
  }
  ExtremeOracle(call, false, "minOut", nullptr);
  ExtremeOracle(call, true, "maxOut", nullptr);
}

void TruthOracle(HostCall& call, bool all) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const Slices slices(call, self, out);
  for (int64_t k = 0; k < out.size(); ++k) {
    bool truth = all;
    for (int64_t i : slices.of[k]) {
      const bool one = Rounded(DType::kBool, self[i]) != Number(0);
      truth = all ? truth && one : truth || one;
    }
    out[k] = truth;
  }
}
void OracleAll(HostCall& call) { TruthOracle(call, true); }
void OracleAny(HostCall& call) { TruthOracle(call, false); }

void VarianceOracle(HostCall& call, const char* variance, const char* mean_out, bool root) {
  const Host& self = call.In("self");
  Host& out = call.Out(variance);
  Host* const means = mean_out ? &call.Out(mean_out) : nullptr;
  const Slices slices(call, self, out);
  const Real correction = call.HasArg("unbiased") ? (call.Flag("unbiased") ? 1 : 0) : static_cast<Real>(call.Int("correction"));
  const Real epsilon = std::ldexp(Real{1}, self.dtype == DType::kF64 ? -51 : -52);
  for (int64_t k = 0; k < out.size(); ++k) {
    const Real n = static_cast<Real>(slices.of[k].size());
    Real sum = 0, size = 0, squares = 0;
    for (int64_t i : slices.of[k]) sum += self.real(i), size = std::max(size, std::fabs(self.real(i)));
    const Real mean = n == 0 ? kNan : sum / n;
    for (int64_t i : slices.of[k]) squares += (self.real(i) - mean) * (self.real(i) - mean);
    const Real result = n == 0 ? kNan : squares / std::max<Real>(0, n - correction);
    out[k] = root ? std::sqrt(result) : result;
    // What rounding the mean and the differences to DOUBLE does, relative to the squares and to the numbers themselves.
    Real slack = (n + 4) * epsilon * result + 4 * epsilon * epsilon * size * size + 2 * epsilon * size * std::sqrt(result);
    if (root) slack = result > 0 ? slack / std::sqrt(result) : std::sqrt(slack);
    out.slack.push_back(std::isfinite(slack) ? slack : 0);
    if (means) {
      (*means)[k] = mean;
      means->slack.push_back(std::isfinite(size) ? (n + 2) * epsilon * size : 0);
    }
  }
}
void OracleVariance(HostCall& call) { VarianceOracle(call, "out", nullptr, false); }
void OracleVarMean(HostCall& call) { VarianceOracle(call, "varOut", "meanOut", false); }
void OracleStd(HostCall& call) { VarianceOracle(call, "out", nullptr, true); }
void OracleStdMean(HostCall& call) { VarianceOracle(call, "stdOut", "meanOut", true); }

void OracleLogSumExp(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const Slices slices(call, self, out);
  for (int64_t k = 0; k < out.size(); ++k) {
    Real most = -kInf;
    bool nan = false;
    for (int64_t i : slices.of[k]) {
      nan = nan || std::isnan(self.real(i));
      most = std::max(most, self.real(i));
    }
    const Real shift = std::isinf(most) ? 0 : most;
    Real sum = 0;
    for (int64_t i : slices.of[k]) sum += std::exp(self.real(i) - shift);
    out[k] = nan ? kNan : std::log(sum) + shift;
    if (IsFloating(self.dtype) && self.dtype != DType::kF64) out.computed = DType::kF32;
    const Real n = static_cast<Real>(slices.of[k].size());
    const Real slack = (n + 8) * std::ldexp(1 + std::fabs(shift), -52);
    out.slack.push_back(std::isfinite(out.real(k)) ? slack : 0);
  }
}

}  // namespace

std::span<const Subject> ReductionSubjects() {
  static constexpr Limits kExact = {.ulps = 0};
  static constexpr Limits kUntouched = {.ulps = 0, .partial = true};  // nothing is written for an empty tensor
  static const Subject subjects[] = {
      {"aclnnReduceSum", SampleSum, OracleSum},
      {"aclnnReduceNansum", SampleNansum, OracleNansum},
      {"aclnnMean", SampleMean, OracleMean},
      {"aclnnMeanV2", SamplePlain, OracleMean},
      {"aclnnProd", SampleProduct, OracleProduct},
      {"aclnnProdDim", SampleProduct, OracleProduct},
      {"aclnnAmax", SampleExtremes, OracleMax, kExact},
      {"aclnnAmin", SampleExtremes, OracleMin, kExact},
      {"aclnnMaxV2", SampleExtremes, OracleMax, kExact},
      {"aclnnMax", SampleWhole, OracleMax, kExact},
      {"aclnnMin", SampleWhole, OracleMin, kExact},
      {"aclnnAminmax", SampleExtremes, OracleMinMax, kExact},
      {"aclnnAminmaxAll", SampleExtremes, OracleMinMax, kUntouched},
      {"aclnnAminmaxDim", SampleExtremes, OracleMinMax, kExact},
      {"aclnnMaxDim", SamplePlaces, OracleMax, kExact},
      {"aclnnMinDim", SamplePlaces, OracleMin, kExact},
      {"aclnnArgMax", SamplePlaces, OracleArgMax, kExact},
      {"aclnnArgMin", SamplePlaces, OracleArgMin, kExact},
      {"aclnnAll", SampleTruth, OracleAll, kExact},
      {"aclnnAny", SampleTruth, OracleAny, kExact},
      {"aclnnVar", SampleVariance, OracleVariance},
      {"aclnnVarCorrection", SampleVariance, OracleVariance},
      {"aclnnVarMean", SampleVariance, OracleVarMean},
      {"aclnnStd", SampleVariance, OracleStd},
      {"aclnnStdMeanCorrection", SampleVariance, OracleStdMean},
      {"aclnnLogSumExp", SampleLogSumExp, OracleLogSumExp},
      {"aclnnReduceLogSum", SamplePlain, OracleLogSum},
  };
  return subjects;
}

}  // namespace anyacl::harness
