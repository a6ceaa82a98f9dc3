// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Operators that choose, bound, round and take apart.
#include <cmath>

#include "core/codes.h"
#include "core/promotion.h"
#include "ops/pointwise/any.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/tables.h"

namespace anyacl::pointwise {
namespace {

using namespace contract;
using types::kBool;
using types::kComplex;
using types::kDouble;
using types::kFloat3;
using types::kInt5;
using types::kInt5Bool;
using types::kInt8;

constexpr DTypeSet kHalfComplex = {DType::kC32};

// Whole numbers are what they are.
Status RunRounding(PassCall& call) {
  if (IsInteger(call.computed)) call.formula = Formula::kCopy;
  return call.Run();
}

// 10^|decimals|, which for integers may lie beyond them.
Status RunRoundDecimals(PassCall& call) {
  const int64_t decimals = call.Arg("decimals").integer;
  const bool whole = IsInteger(call.computed);
  if (whole && decimals >= 0) {
    call.formula = Formula::kCopy;
  } else if (whole) {
    int64_t power = 1;
    const int64_t largest = call.computed == DType::kI64 ? INT64_MAX : (int64_t{1} << (8 * SizeOf(call.computed))) / 2 - 1;
    for (int64_t i = decimals; i < 0 && power != 0; ++i) power = power > largest / 10 ? 0 : power * 10;
    call.formula = Formula::kRoundToMultiple;
    call.SetScalar(0, Scalar::OfInt(power), DType::kI64);
  } else if (decimals != 0) {
    call.formula = decimals > 0 ? Formula::kRoundToFraction : Formula::kRoundToMultiple;
    call.SetScalar(0, Scalar::Of(DType::kF64, std::pow(10.0, std::fabs(static_cast<double>(decimals)))));
  }
  return call.Run();
}

Status RunNanToNum(PassCall& call) {
  const bool whole = IsInteger(call.computed) || call.computed == DType::kBool;
  const char* const names[] = {"nan", "posinf", "neginf"};
  for (int i = 0; i < 3; ++i) call.SetScalar(i, Scalar::Of(DType::kF64, call.Arg(names[i]).real), call.computed);
  if (whole) call.formula = Formula::kCopy;
  return call.Run();
}

Status RunInResultType(PassCall& call) {
  call.computed = call.out.dtype;
  return call.Run();
}

Status RunLogit(PassCall& call) {
  const double eps = call.Arg("eps").real;
  if (eps >= 0) {
    call.formula = call.formula == Formula::kLogit ? Formula::kLogitClamped : Formula::kLogitGradClamped;
    call.SetScalar(0, Scalar::Of(DType::kF64, eps));
  }
  return call.Run();
}

// (dtype, dtype) for a set, on the newest product or on others too.
void AddSame(std::vector<TypeRow>* rows, const Types& types) {
  for (DType t : (types.newest | types.others).List()) {
    unsigned bits = types.others.Has(t) ? kAllProducts.bits : kOnly950.bits;
    if (t == DType::kBF16) bits &= kNewer.bits;
    rows->push_back({{t, t}, {bits}});
  }
}

void DeclareRounding(Declarations* d) {
  using enum Result;
  const DTypeSet words = {DType::kI32, DType::kI64};
  const DTypeSet whole = kFloats | kInt5;
  Declare(d, {.name = "Ceil", .formula = Formula::kCeil, .summary = "Rounded up.", .texts = {"out = ceil(self)"},
              .types = {whole, kFloats}, .result = kSame, .plan = RunRounding});
  Declare(d, {.name = "Floor", .formula = Formula::kFloor, .summary = "Rounded down.", .texts = {"out = floor(self)"},
              .types = kFloats | kInt8, .result = kSame, .formats = Formats::kPublic, .plan = RunRounding});
  Declare(d, {.name = "Trunc", .formula = Formula::kTrunc, .summary = "Rounded towards zero.", .texts = {"out = trunc(self)"},
              .types = {whole, kFloat3}, .result = kSame, .plan = RunRounding});
  Declare(d, {.name = "Frac", .formula = Formula::kFrac, .summary = "What is left of the point; of integers nothing.",
              .texts = {"out = self - trunc(self)"}, .types = {whole, kFloat3 | kInt5}, .result = kSame});
  Declare(d, {.name = "Round", .formula = Formula::kRound, .summary = "Rounded to the nearest whole number, halves to the even one.",
              .texts = {"out = round(self)"}, .types = {whole, kFloats | words}, .result = kSame, .formats = Formats::kPublic,
              .plan = RunRounding});
  Declare(d, {.name = "RoundDecimals", .formula = Formula::kRound,
              .summary = "Rounded to a number of decimals, or of zeros when that is negative.",
              .texts = {"out = round(self * 10^decimals) / 10^decimals"}, .types = {whole, kFloats | words}, .result = kSame,
              .formats = Formats::kPublic, .plan = RunRoundDecimals});
}

void DeclareParts(Declarations* d) {
  using enum Result;
  using enum DType;
  const std::vector<TypeRow> lengths = {{{kC32, kF16}, kOnly950}, {{kC64, kF32}, kNewer}, {{kC128, kF64}, kOnly950}};
  std::vector<TypeRow> abs = lengths;
  AddSame(&abs, kReals);
  Declare(d, {.name = "Abs", .formula = Formula::kAbs, .summary = "Absolute value; of integers it wraps.", .texts = {"out = |self|"},
              .types = {kNumbers | kHalfComplex, kReals | DTypeSet{kC64}}, .result = kPairs, .pairs = abs,
              .formats = Formats::kSameAndPublic});
  Declare(d, {.name = "Neg", .formula = Formula::kNeg, .summary = "Every element with the other sign; integers wrap.",
              .texts = {"out = -self"},
              .types = {kFloats | kInt5 | kComplex, kFloats | kComplex | DTypeSet{kI8, kI32, kI64}}});
  const DTypeSet signs = kFloats | kComplex | types::kBool | DTypeSet{kI32, kI64};
  Declare(d, {.name = "Sign", .formula = Formula::kSign, .summary = "1, 0 or -1; a complex number becomes one of length 1.",
              .texts = {"result = self / |self|, 0 at 0"}, .types = {signs | kInt5, signs}, .result = kSame});
  Declare(d, {.name = "Square", .formula = Formula::kSquare, .summary = "Square of every element; integers wrap.",
              .texts = {"out = self^2"}, .types = kFloat3 | DTypeSet{kI32, kI64}, .result = kSame,
              .formats = Formats::kSameAndPublic, .products = kOnly950});
  Declare(d, {.name = "NanToNum", .formula = Formula::kNanToNum, .summary = "NaN and infinities replaced by numbers.",
              .types = {kNumbers, kFloat3 | kInt5Bool}, .result = kSame, .products = kNewer, .plan = RunNanToNum});
  std::vector<TypeRow> angles = {{{kF64, kF64}, kOnly950}, {{kC64, kF32}}, {{kC128, kF64}, kOnly950}};
  AddSame(&angles, kFloat3);
  for (DType t : kInt5Bool.List()) angles.push_back({{t, kF32}});
  Declare(d, {.name = "AngleV2", .formula = Formula::kAngle, .summary = "Angle of numbers: 0 or pi, or that of a complex one.",
              .types = {kNumbers, kFloat3 | kInt5Bool | DTypeSet{kC64}}, .whole = kF32, .result = kPairs, .pairs = angles,
              .products = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::k200I})});
  const DTypeSet real_parts = DTypeSet{kF32, kF16, kC64};
  Declare(d, {.name = "Real", .formula = Formula::kCopy, .summary = "Real part of complex numbers; real ones are copied.",
              .types = {real_parts | DTypeSet{kC32, kC128}, real_parts | DTypeSet{kC32, kC128}}, .result = kPairs,
              .pairs = {{{kC64, kF32}}, {{kC32, kF16}}, {{kC128, kF64}}, {{kF32, kF32}}, {{kF16, kF16}}},
              .formats = Formats::kPublic});
  Declare(d, {.name = "Complex", .formula = Formula::kComplexOf, .summary = "Complex numbers of their parts.",
              .texts = {"out = real + i imag"}, .types = DTypeSet{kF16, kF32, kF64}, .equal_types = true, .result = kPairs,
              .pairs = {{{kF16, kC32}}, {{kF32, kC64}}, {{kF64, kC128}}}, .formats = Formats::kSameAndPublic,
              .empty = Empty::kNulls, .plan = RunInResultType});
  Declare(d, {.name = "Polar", .formula = Formula::kPolar, .summary = "Complex numbers of their length and angle.",
              .texts = {"out = input * (cos(angle) + i sin(angle))"}, .types = {DTypeSet{kF32, kF64}, DTypeSet{kF32}},
              .equal_types = true, .result = kPairs, .pairs = {{{kF32, kC64}}, {{kF64, kC128}, kOnly950}},
              .formats = Formats::kSameAndPublic, .plan = RunInResultType});
  const Types logit = {kFloats, kFloat3};
  Declare(d, {.name = "Logit", .formula = Formula::kLogit, .summary = "Logarithm of the odds; eps bounds the input if not negative.",
              .texts = {"out = ln(input / (1 - input))"}, .types = logit, .result = kSame, .shape_code = code::kTiling,
              .products = kNewer, .plan = RunLogit});
  Declare(d, {.name = "LogitGrad", .formula = Formula::kLogitGrad, .summary = "Gradient of the logarithm of the odds.",
              .texts = {"out = dy / (x (1 - x))"}, .types = logit, .equal_types = true, .result = kSame,
              .shape_code = code::kTiling, .same_shape = true, .products = kNewer, .plan = RunLogit});
}

// --- selection -----------------------------------------------------------------------------------

// A dtype as wide whose elements travel bit by bit.
DType BitsOf(DType t) {
  switch (SizeOf(t)) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kU16;
    case 4:
      return DType::kU32;
    case 8:
      return DType::kI64;
    default:
      return t;
  }
}

// Nothing is computed: where no dtype changes, NaN keep their payloads.
Status RunWhere(PassCall& call) {
  const DType dtype = call.out.dtype;
  const bool same = call.inputs[1].dtype == dtype && call.inputs[2].dtype == dtype;
  call.inputs[0].dtype = DType::kBool == call.inputs[0].dtype ? DType::kBool : DType::kU8;
  if (same && dtype != DType::kBool) {
    call.computed = BitsOf(dtype);
    for (int k : {1, 2}) call.inputs[k].dtype = call.computed;
    call.out.dtype = call.computed;
  }
  return call.Run();
}

// Of a call with one bound only, the function of two numbers.
Status RunClamp(PassCall& call) {
  if (call.inputs.size() == 2) call.formula = call.values[1].given() ? Formula::kMaximum : Formula::kMinimum;
  return call.Run();
}

std::vector<Rule> BoundRules(const Form& form) { return {OneGiven({form.names[1], form.names[2]})}; }

std::string CheckOrder(Values values, Product) {
  const Scalar &low = *values[1].scalar, &high = *values[2].scalar;
  const bool above = IsInteger(low.dtype) ? low.AsInt() > high.AsInt() : low.AsDouble() > high.AsDouble();
  if (!above) return "";
  return "must not be above clipValueMax, got " + std::to_string(low.AsDouble()) + " and " + std::to_string(high.AsDouble());
}
std::vector<Rule> OrderRules(const Form&) {
  return {Custom("clipValueMin", "must not be above clipValueMax", CheckOrder)};
}

void DeclareBounds(Declarations* d) {
  const DTypeSet list = kFloats | kInt5;
  const Types types = {list | kBool, list};
  const struct {
    const char* name;
    Formula formula;
    const char* summary;
    const char* text;
    Empty empty;
    std::vector<const char*> optional = {};
  } kRows[] = {
      {"Clamp", Formula::kClamp, "Bounded by numbers.", "out = min(max(self, clipValueMin), clipValueMax)",
       Empty::kAllButDeduction, {"clipValueMin", "clipValueMax"}},
      {"ClampMin", Formula::kMaximum, "Bounded from below by a number.", "out = max(self, clipValueMin)", Empty::kAllButDeduction},
      {"ClampMax", Formula::kMinimum, "Bounded from above by a number.", "out = min(self, clipValueMax)", Empty::kAllButDeduction},
      {"ClampTensor", Formula::kClamp, "Bounded by tensors.", "out = min(max(self, clipValueMin), clipValueMax)",
       Empty::kTypesAndRank, {"clipValueMin", "clipValueMax"}},
      {"ClampMinTensor", Formula::kMaximum, "Bounded from below by a tensor.", "out = max(self, clipValueMin)", Empty::kTypesAndRank},
      {"ClampMaxTensor", Formula::kMinimum, "Bounded from above by a tensor.", "out = min(self, max)", Empty::kTypesAndRank},
  };
  for (const auto& row : kRows) {
    const bool both = row.formula == Formula::kClamp;
    const bool one = row.name == std::string("ClampMin") || row.name == std::string("ClampMax");
    std::vector<const char*> nulls;
    if (one) nulls.push_back(row.formula == Formula::kMaximum ? "clipValueMin" : "clipValueMax");
    if (row.name == std::string("ClampMinTensor")) nulls.push_back("clipValueMin");
    if (row.name == std::string("ClampMaxTensor")) nulls.push_back("max");
    Declare(d, {.name = row.name, .formula = row.formula, .summary = row.summary, .texts = {row.text}, .types = types,
                .optional = row.optional, .null_order = nulls, .computed = list, .results = list, .empty = row.empty,
                .first_rules = both ? BoundRules : nullptr, .plan = both ? RunClamp : nullptr});
  }
  Declare(d, {.name = "Hardtanh", .formula = Formula::kClamp, .summary = "Bounded by two numbers of the input's dtype.",
              .texts = {"out = min(max(self, clipValueMin), clipValueMax)"}, .types = list, .scalar_types = list, .aside = 6,
              .result = Result::kSame, .rules = OrderRules});
}

// --- masks ---------------------------------------------------------------------------------------

// The value becomes one of the tensor's dtype first, as every tensor that is converted.
Status RunMaskedFillTensor(PassCall& call) {
  Operand& value = call.inputs[1];
  if (value.dtype != call.out.dtype) {
    const Operand converted = call.plan.ScratchOperand("converted value", call.out.dtype, value.dims);
    ANYACL_RETURN_IF_ERROR(AddCopy(call.plan, value, converted));
    value = converted;
  }
  return call.Run();
}

std::string CheckFillValue(Values values, Product) {
  const DType self = values[0].tensor->dtype, value = values[2].tensor->dtype;
  if (IsComplex(self) || !IsComplex(value)) return "";
  return "must be real for a tensor of real numbers, got " + Name(value);
}

std::vector<Rule> FillTensorRules(const Form&) {
  return {Rank("value", 0, 0), Custom("value", "must be real for a tensor of real numbers", CheckFillValue)};
}

std::vector<Rule> ScaleRules(const Form& form) { return {SameFormat({form.names[0], form.out})}; }

Status RunMaskedScale(PassCall& call) {
  call.SetScalar(0, Scalar::Of(DType::kF64, call.Arg("scale").real));
  return call.Run();
}

void DeclareMasks(Declarations* d) {
  Declare(d, {.name = "SWhere", .formula = Formula::kWhere, .summary = "Elements of one tensor or of another, as a third says.",
              .texts = {"out = condition ? self : other"}, .types = kNumbers | kInt8,
              .own = {DTypeSet{DType::kBool, DType::kU8}, kNumbers | kInt8, kNumbers | kInt8},
              .null_order = {"self", "other", "condition"}, .aside = 1,
              .results = {kNumbers | kInt8 | kHalfComplex, kNumbers | kInt8}, .plan = RunWhere});
  const DTypeSet few = kFloat3 | kBool | DTypeSet{DType::kI8, DType::kI32, DType::kI64};
  const Types filled = {kNumbers, few};
  const Types mask = kBool;
  Declare(d, {.name = "MaskedFillScalar", .formula = Formula::kWhere, .summary = "A number where a mask is true.",
              .texts = {"selfRef = mask ? value : selfRef"}, .types = filled, .own = {filled, mask, {}}, .order = {1, 2, 0},
              .aside = 6, .result = Result::kSame});
  Declare(d, {.name = "MaskedFillTensor", .formula = Formula::kWhere, .summary = "The one element of a tensor where a mask is true.",
              .texts = {"selfRef = mask ? value : selfRef"}, .types = filled, .own = {filled, mask, filled}, .order = {1, 2, 0},
              .aside = 6, .result = Result::kSame, .rules = FillTensorRules, .plan = RunMaskedFillTensor});
  Declare(d, {.name = "MaskedScale", .formula = Formula::kMaskedScale, .summary = "A tensor times a mask of numbers times a scale.",
              .texts = {"y = self * mask * scale"}, .types = kFloat3,
              .own = {kFloat3, DTypeSet{DType::kF32, DType::kF16, DType::kU8, DType::kI8}}, .aside = 2, .as = DType::kF32,
              .result = Result::kSame, .same_shape = true, .products = kOnly950, .rules = ScaleRules, .plan = RunMaskedScale});
}

// --- one value of many ---------------------------------------------------------------------------

// out = whether the formula is true anywhere, or the opposite.
Status RunAny(PassCall& call, Formula formula, const Dims& dims, bool invert) {
  Operand truths = call.plan.ScratchOperand("truths", DType::kBool, dims);
  ANYACL_RETURN_IF_ERROR(
      AddPass(call.plan, formula, call.computed, call.inputs, truths, call.scalars, call.options));
  auto& params = call.plan.MakeParams<AnyParams>();
  params.count = Numel(dims);
  params.invert = invert;
  call.plan.Bind(truths, params.in);
  call.plan.Bind(call.out, params.out);
  return call.plan.ChooseKernel("any");
}

// Few elements are compared as a tensor with a number, many as two tensors.
Status RunIsInScalarTensor(PassCall& call) {
  constexpr int64_t kMany = 10;
  const Tensor& elements = *call.values[1].tensor;
  const Scalar& element = *call.values[0].scalar;
  if (elements.numel() >= kMany && Promote(elements.dtype, element.dtype) != DType::kUndefined) {
    call.computed = Promote(elements.dtype, element.dtype);
    for (ScalarUse& use : call.scalars) use.as = call.computed;
  }
  return RunAny(call, Formula::kEqual, elements.dims, call.Arg("invert").flag);
}

std::vector<Rule> NoDims(const Form& form) { return {Rank(form.out, 0, 0)}; }

void DeclareSingleValues(Declarations* d) {
  Declare(d, {.name = "IsInScalarTensor", .formula = Formula::kEqual, .summary = "Whether a number is among the elements of a tensor.",
              .types = kFloats | kInt5, .scalar_types = kFloats | kInt5, .result = Result::kAny, .results = kBool,
              .own_shape = true, .runs_empty = true, .rules = NoDims, .plan = RunIsInScalarTensor});
}

// --- conversion ----------------------------------------------------------------------------------

std::vector<Rule> CastRules(const Form& form) {
  return {DTypeArg("dtype", RowsOf(kEverything | kHalfComplex, kEverything)), DTypeIs(form.out, "dtype")};
}

Status RunCast(PassCall& call) { return AddCopy(call.plan, call.inputs[0], call.out); }

void DeclareConversion(Declarations* d) {
  const Types types = {kEverything | kHalfComplex, kEverything};
  Declare(d, {.name = "Cast", .summary = "Elements converted to another dtype.", .types = types, .result = Result::kAny,
              .results = types, .rules = CastRules, .plan = RunCast});
}

}  // namespace

void DeclareSelections(Declarations* declarations) {
  DeclareRounding(declarations);
  DeclareParts(declarations);
  DeclareBounds(declarations);
  DeclareMasks(declarations);
  DeclareSingleValues(declarations);
  DeclareConversion(declarations);
}

}  // namespace anyacl::pointwise
