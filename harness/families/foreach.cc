// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Entry by entry, by name: the oracle reads the name as a person would.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using contract::ArgKind;
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// Result of one element: its numbers x1, x2, x3 (as many as there are), the scalar s.
using Formula = std::function<Real(Real x, Real y, Real z, Real s)>;

Real Larger(Real a, Real b) { return std::isnan(a) || a > b ? a : b; }
Real Smaller(Real a, Real b) { return std::isnan(a) || a < b ? a : b; }
Real SignOf(Real x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
Real Mix(Real a, Real b, Real w) { return std::fabs(w) < 0.5L ? a + w * (b - a) : b - (b - a) * (1 - w); }
Real RoundedOff(Real x, Real mode) {
  const Real down = std::floor(x);
  if (mode == 1) return std::nearbyint(x);
  if (mode == 2) return down;
  if (mode == 3) return std::ceil(x);
  if (mode == 4) return std::round(x);
  if (mode == 5) return std::trunc(x);
  if (mode == 6) return down == x ? x : std::fmod(down, 2) != 0 ? down : down + 1;
  return mode == 7 ? x - std::trunc(x) : x;
}

struct Entry {
  Formula formula;
  double ulps = 0.5;
  bool whole_power = false;
  Values values = {};
};

// By the name without aclnnForeach and without its form.
const std::map<std::string, Entry>& Entries() {
  static const auto* const entries = new std::map<std::string, Entry>{
      {"Abs", {[](Real x, Real, Real, Real) { return std::fabs(x); }}},
      {"Acos", {[](Real x, Real, Real, Real) { return std::acos(x); }, 2, false, Between(-1, 1)}},
      {"ACos", {[](Real x, Real, Real, Real) { return std::acos(x); }, 2, false, Between(-1, 1)}},
      {"Asin", {[](Real x, Real, Real, Real) { return std::asin(x); }, 2, false, Between(-1, 1)}},
      {"Atan", {[](Real x, Real, Real, Real) { return std::atan(x); }, 2}},
      {"Cos", {[](Real x, Real, Real, Real) { return std::cos(x); }, 2}},
      {"Cosh", {[](Real x, Real, Real, Real) { return std::cosh(x); }, 2}},
      {"Erf", {[](Real x, Real, Real, Real) { return std::erf(x); }, 2}},
      {"Erfc", {[](Real x, Real, Real, Real) { return std::erfc(x); }, 3}},
      {"Log", {[](Real x, Real, Real, Real) { return std::log(x); }, 2, false, Between(0, 4)}},
      {"Log10", {[](Real x, Real, Real, Real) { return std::log10(x); }, 2, false, Between(0, 4)}},
      {"Log1p", {[](Real x, Real, Real, Real) { return std::log1p(x); }, 2, false, Between(-1, 4)}},
      {"Log2", {[](Real x, Real, Real, Real) { return std::log2(x); }, 2, false, Between(0, 4)}},
      {"Reciprocal", {[](Real x, Real, Real, Real) { return 1 / x; }}},
      {"Sigmoid", {[](Real x, Real, Real, Real) { return 1 / (1 + std::exp(-x)); }, 2}},
      {"Sin", {[](Real x, Real, Real, Real) { return std::sin(x); }, 2}},
      {"Sinh", {[](Real x, Real, Real, Real) { return std::sinh(x); }, 2}},
      {"Tan", {[](Real x, Real, Real, Real) { return std::tan(x); }, 2}},
      {"Tanh", {[](Real x, Real, Real, Real) { return std::tanh(x); }, 2}},
      {"Sqrt", {[](Real x, Real, Real, Real) { return std::sqrt(x); }}},
      {"Exp", {[](Real x, Real, Real, Real) { return std::exp(x); }, 2}},
      {"Expm1", {[](Real x, Real, Real, Real) { return std::expm1(x); }, 2}},
      {"Neg", {[](Real x, Real, Real, Real) { return -x; }}},
      {"Sign", {[](Real x, Real, Real, Real) { return SignOf(x); }}},
      {"Zero", {[](Real, Real, Real, Real) { return Real{0}; }}},
      {"Copy", {[](Real x, Real, Real, Real) { return x; }}},
      {"Add", {[](Real x, Real y, Real, Real s) { return x + s * y; }}},
      {"Sub", {[](Real x, Real y, Real, Real s) { return x - s * y; }}},
      {"Mul", {[](Real x, Real y, Real, Real s) { return x * s * y; }}},
      {"Div", {[](Real x, Real y, Real, Real s) { return x / (s * y); }}},
      {"Maximum", {[](Real x, Real y, Real, Real s) { return Larger(x, s * y); }}},
      {"Minimum", {[](Real x, Real y, Real, Real s) { return Smaller(x, s * y); }}},
      {"Pow", {[](Real x, Real y, Real, Real s) { return std::pow(x, s * y); }, 3, true, Between(0.25L, 3)}},
      {"Lerp", {[](Real x, Real y, Real, Real s) { return Mix(x, y, s); }}},
      {"Addcdiv", {[](Real x, Real y, Real z, Real s) { return x + s * y / z; }}},
      {"Addcmul", {[](Real x, Real y, Real z, Real s) { return x + s * y * z; }}},
      {"RoundOffNumber", {[](Real x, Real, Real, Real s) { return RoundedOff(x, s); }, 0.5, false, Between(-4, 4)}},
  };
  return *entries;
}

std::string BaseOf(std::string_view op) {
  op.remove_prefix(std::string_view("aclnnForeach").size());
  for (const std::string_view form : {"ScalarAndTensor", "ScalarInplace", "ListInplace", "Inplace", "ScalarList", "ScalarV2", "ListV2", "Scalar",
                                      "List", "V2"}) {
    if (op.size() <= form.size() || !op.ends_with(form)) continue;
    op.remove_suffix(form.size());
    break;
  }
  return std::string(op);
}

// What the lists of an operator are, in the order of its arguments.
struct Layout {
  Checked<int> lists;
  int number = -1;
  int out;
  bool in_place;
};
Layout LayoutOf(const Operator& op) {
  Layout layout{{}, -1, 0, true};
  const auto args = op.contract.args();
  for (int i = 0; i < static_cast<int>(args.size()); ++i) {
    if (std::string_view(args[i].name) == "out") {
      layout.out = i;
      layout.in_place = false;
    } else if (args[i].is_tensor_list()) {
      layout.lists.push_back(i);
    } else {
      layout.number = i;
    }
  }
  if (layout.in_place) layout.out = layout.lists[0];
  return layout;
}

const std::vector<Dims>& Shapes() {
  static const auto* const shapes = new std::vector<Dims>{{3, 5}, {7}, {}, {0, 2}, {2, 3, 11}};
  return *shapes;
}

TestArg ListOf(DType t, bool is_out, const Values& values, bool longer) {
  std::vector<TestArg> tensors;
  for (const Dims& dims : Shapes()) {
    Dims room = dims;
    if (longer && room.rank() > 0) room[0] += 1;
    tensors.push_back(is_out ? Out(t, room) : In(t, dims, values));
  }
  return List(tensors);
}

TestArg NumberArg(const Operator& op, const Layout& layout, DType t, Real value) {
  const contract::Arg& arg = op.contract.args()[layout.number];
  const DType wide = IsInteger(t) ? DType::kI64 : DType::kF64;
  if (arg.kind == ArgKind::kScalar) return Num(IsInteger(t) ? DType::kI64 : DType::kF64, value);
  if (arg.kind == ArgKind::kScalarList) {
    Checked<Real> values;
    for (size_t i = 0; i < Shapes().size(); ++i) values.push_back(value + static_cast<Real>(i % 2));
    return NumList(wide, values);
  }
  if (std::string_view(arg.name) == "scalars") return In(t, {static_cast<int64_t>(Shapes().size())}, Between(1, 3));
  const DType number = IsInteger(t) ? DType::kI32 : t == DType::kF16 ? DType::kF16 : DType::kF32;
  return In(number, {1}, Given({value}));
}

void Sample(Calls& calls) {
  const Operator& op = calls.op();
  const std::string base = BaseOf(op.contract.op());
  const Entry& entry = Entries().at(base);
  const Layout layout = LayoutOf(op);
  const bool copies = base == "Copy";
  for (DType t : calls.TypesOf(op.contract.args()[layout.lists[0]].name)) {
    constexpr Real kModes[] = {1, 2, 3, 4, 5, 6, 7, 9}, kFactors[] = {2, 1};
    std::span<const Real> numbers = kFactors;
    if (base == "RoundOffNumber") numbers = kModes;
    if (layout.number < 0) numbers = numbers.first(1);
    for (const Real number : numbers) {
      for (const bool longer : {false, true}) {
        std::vector<TestArg> args(op.contract.args().size());
        Values values = entry.values;
        if (IsInteger(t) && base == "Pow") values = harness::Whole(0, 4);
        if (IsInteger(t) && base.starts_with("Exp")) values = harness::Whole(0, 6);
        for (int list : layout.lists) args[list] = ListOf(t, false, values, false);
        if (!layout.in_place) args[layout.out] = ListOf(t, true, {}, longer);
        if (layout.number >= 0) args[layout.number] = NumberArg(op, layout, t, base == "Lerp" ? number / 4 : number);
        bool strict = false;  // handwritten operators want equal shapes
        for (const contract::Rule& rule : op.contract.rules()) {
          strict = strict || (rule.kind == contract::RuleKind::kSameShape && std::string_view(rule.args[0]) == "out");
        }
        if (longer && (layout.in_place || strict)) continue;
        TestCall& call = calls.Add(std::move(args));
        if (!layout.in_place && !longer && number == 1) call.same = {{layout.out, layout.lists[0]}};
        if (layout.lists[0] > layout.out) call.same.clear();
      }
    }
  }
  if (copies) calls.Add({ListOf(DType::kF32, false, {}, false), ListOf(DType::kBF16, true, {}, false)});
}

Real WholePower(Real x, Real y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (std::fmod(y, 2) == 0 ? 1 : -1) : 0;
  return std::pow(x, y);
}

void Oracle(HostCall& call, const Operator& op) {
  const Layout layout = LayoutOf(op);
  const auto args = op.contract.args();
  const std::string base = BaseOf(op.contract.op());
  const Entry& entry = Entries().at(base);
  const char* const first = args[layout.lists[0]].name;
  const bool from_number = layout.number >= 0 && layout.number < layout.lists[0];
  for (int item = 0; item < call.Count(first); ++item) {
    const Host& x = call.In(first, item);
    const DType unit = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    Host& out = call.Out(args[layout.out].name, item);
    out.values.resize(x.size());  // of a longer output the first elements
    Real number = 1;
    if (layout.number >= 0) {
      const contract::Arg& arg = args[layout.number];
      if (arg.is_tensor()) {
        const Host& numbers = call.In(arg.name);
        number = numbers.real(numbers.size() > 1 ? item : 0);
      } else {
        number = call.Scalar(arg.name, arg.is_list() ? item : 0).real();
        // A scalar that the formula multiplies with is a FLOAT.
        if (!IsInteger(x.dtype)) number = Rounded(unit, number).real();
      }
    }
    for (int64_t i = 0; i < x.size(); ++i) {
      const Real a = x.real(i);
      const Real b = layout.lists.size() > 1 ? call.In(args[layout.lists[1]].name, item).real(i) : 1;
      Real c = layout.lists.size() > 2 ? call.In(args[layout.lists[2]].name, item).real(i) : 1;
      Real s = number;
      if (base == "Lerp" && layout.number < 0) std::swap(c, s);
      Real value = from_number ? std::pow(number, a) : entry.formula(a, b, c, s);
      if (IsInteger(x.dtype)) {
        if (base == "Pow") value = from_number ? WholePower(number, a) : WholePower(a, s * b);
        if (base.starts_with("Exp")) {
          const bool is_signed = x.dtype != DType::kU8;
          const Real most = is_signed ? std::ldexp(Real{1}, static_cast<int>(8 * SizeOf(x.dtype)) - 1) - 1 : 255;
          value = std::fmin(std::fmax(std::nearbyint(value), is_signed ? -most - 1 : 0), most);
        }
        if (base == "RoundOffNumber") value = a;
      }
      out[i] = value;
      // Sums and products before the last step are rounded, too.
      const Real size = std::fabs(a) + std::fabs(s * b) + std::fabs(s * b * c) + std::fabs(b);
      const bool sums = base == "Add" || base == "Sub" || base == "Lerp" || base == "Addcmul" || base == "Addcdiv";
      if (!sums || IsInteger(x.dtype)) continue;
      Real spread = base == "Addcdiv" ? std::fabs(a) + std::fabs(s * b / c) : size;
      if (!std::isfinite(spread)) spread = 0;
      out.slack.push_back(4 * UlpOf(unit, spread));
    }
  }
}

void OracleOfCall(HostCall& call) { Oracle(call, call.op()); }

void SampleNorm(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    for (double p : {2.0, 1.0, 0.0, 3.5, static_cast<double>(kInfinity), -static_cast<double>(kInfinity)}) {
      std::vector<TestArg> x, out;
      for (const Dims& dims : Shapes()) {
        x.push_back(In(t, dims));
        out.push_back(Out(t, dims.rank() == 1 ? Dims{1} : Dims{}));
      }
      calls.Add({List(x), Num(DType::kF64, p), List(out)});
    }
  }
  calls.Add({List({In(DType::kF32, {200, 300})}), Num(DType::kI64, 2), List({Out(DType::kF32, {})})});
}
void OracleNorm(HostCall& call) {
  const Real p = call.Scalar("scalar").real();
  for (int item = 0; item < call.Count("x"); ++item) {
    const Host& x = call.In("x", item);
    Real sum = p == -kInfinity ? kInfinity : 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      const Real size = std::fabs(x.real(i));
      if (p == kInfinity) sum = Larger(sum, size);
      else if (p == -kInfinity) sum = Smaller(sum, size);
      else sum += p == 0 ? (size != 0) : std::pow(size, p);
    }
    call.Out("out", item)[0] = std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / p);
  }
}

void SampleUnscale(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    for (const Values& values : {Between(-2, 2), Hostile()}) {
      std::vector<TestArg> x;
      for (const Dims& dims : Shapes()) x.push_back(In(t, dims, values));
      calls.Add({List(x), In(DType::kF32, {1}, Given({0})), In(DType::kF32, {1}, Given({0.25L}))});
      calls.Add({List(x), In(DType::kF32, {}, Given({3})), In(DType::kF32, {}, Given({0.125L}))});
    }
  }
}
void OracleUnscale(HostCall& call) {
  Real found = call.In("foundInf").real(0);
  for (int item = 0; item < call.Count("scaledGrads"); ++item) {
    const Host& x = call.In("scaledGrads", item);
    for (int64_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x.real(i))) found = 1;
      call.Out("scaledGrads", item)[i] = x.real(i) * call.In("invScale").real(0);
    }
  }
  call.Out("foundInf")[0] = found;
}

}  // namespace

std::span<const Subject> ForeachSubjects() {
  static const auto* const subjects = [] {
    auto* const list = new std::vector<Subject>;
    for (const anyacl::Entry& entry : anyacl::Entries()) {
      const std::string_view name = entry.op;
      if (!name.starts_with("aclnnForeach") || name == "aclnnForeachNorm" || name == "aclnnForeachNonFiniteCheckAndUnscale") continue;
      list->push_back({entry.op, Sample, OracleOfCall, {.ulps = Entries().at(BaseOf(entry.op)).ulps, .partial = true}});
    }
    list->push_back({"aclnnForeachNorm", SampleNorm, OracleNorm, {.ulps = 2}});
    list->push_back({"aclnnForeachNonFiniteCheckAndUnscale", SampleUnscale, OracleUnscale});
    return list;
  }();
  return *subjects;
}

}  // namespace anyacl::harness
