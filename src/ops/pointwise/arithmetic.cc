// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Arithmetic of two and three operands.
#include <cmath>
#include <limits>

#include "core/promotion.h"
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

constexpr DTypeSet kC32 = {DType::kC32};
constexpr DTypeSet kI16 = {DType::kI16};
constexpr DTypeSet kI64 = {DType::kI64};
// What modulo and the ternary forms are documented for: no INT16, no BOOL.
constexpr DTypeSet kFewer = kFloats | DTypeSet{DType::kI8, DType::kU8, DType::kI32, DType::kI64};

bool IsOne(const Scalar& scalar) { return scalar.AsComplex() == std::complex<double>(1); }

// Without the product when alpha is 1: an infinity times 1 + 0i would be NaN.
Status RunSum(PassCall& call) {
  if (IsOne(call.scalars[0].value)) call.formula = call.formula == Formula::kAdd ? Formula::kPlus : Formula::kMinus;
  return call.Run();
}

void DeclareSums(Declarations* d) {
  const std::vector<const char*> alpha = {"alpha"};
  Declare(d, {.name = "Add", .formula = Formula::kAdd, .summary = "Sum of two tensors, the second one times a number.",
              .texts = {"out = self + alpha * other"}, .types = kNumbers, .scalars = alpha, .plan = RunSum});
  Declare(d, {.name = "Adds", .formula = Formula::kAdd, .summary = "Sum of a tensor and a number.",
              .texts = {"out = self + alpha * other"}, .types = kNumbers, .scalars = alpha, .plan = RunSum});
  Declare(d, {.name = "AddV3", .formula = Formula::kAdd,
              .summary = "Sum of a number and a tensor; the in-place form writes into other.",
              .texts = {"out = self + alpha * other"},
              .types = {kNumbers, kFloat3 | DTypeSet{DType::kI32, DType::kI8}}, .scalars = alpha, .plan = RunSum});
  Declare(d, {.name = "Sub", .formula = Formula::kSub, .summary = "Difference of two tensors, the second one times a number.",
              .texts = {"out = self - alpha * other"}, .types = kNumbers, .scalars = alpha, .plan = RunSum});
  Declare(d, {.name = "Subs", .formula = Formula::kSub, .summary = "Difference of a tensor and a number.",
              .texts = {"out = self - alpha * other"}, .types = kNumbers, .scalars = alpha, .plan = RunSum});
  Declare(d, {.name = "Rsub", .formula = Formula::kSub, .summary = "Difference of two tensors, the second one first.",
              .texts = {"out = other - alpha * self"}, .types = kFloats | kInt5 | kComplex, .order = {1, 0}, .scalars = alpha,
              .plan = RunSum});
  Declare(d, {.name = "Rsubs", .formula = Formula::kSub, .summary = "Difference of a number and a tensor.",
              .texts = {"out = other - alpha * self"}, .types = kFloats | kInt5 | kComplex,
              .scalar_types = kFloats | kInt5 | kComplex, .order = {1, 0}, .scalars = alpha, .plan = RunSum});
}

void DeclareProducts(Declarations* d) {
  const Types computed = {kEverything, kNumbers};
  Declare(d, {.name = "Mul", .formula = Formula::kMul, .summary = "Product of two tensors.", .texts = {"out = self * other"},
              .types = kNumbers, .computed = computed, .results = {kEverything | kC32, kNumbers}, .any_rank_in_place = true,
              .keep_zero_dim = true});
  Declare(d, {.name = "Muls", .formula = Formula::kMul, .summary = "Product of a tensor and a number.",
              .texts = {"out = self * other"}, .types = kNumbers, .computed = computed,
              .results = {kEverything | kC32, kNumbers}, .any_rank = true, .keep_scalars = true});
  Declare(d, {.name = "Div", .formula = Formula::kDiv, .summary = "True quotient of two tensors; integers are divided in FLOAT.",
              .texts = {"out = self / other"}, .types = kNumbers, .null_order = {"out", "other", "self"}, .computed = computed,
              .whole = DType::kF32, .formats = Formats::kPublic, .keep_zero_dim = true});
  Declare(d, {.name = "Divs", .formula = Formula::kDiv, .summary = "True quotient of a tensor and a number.",
              .texts = {"out = self / other"}, .types = kNumbers, .scalar_types = kNumbers, .computed = computed,
              .whole = DType::kF32, .formats = Formats::kPublic, .keep_scalars = true});
}

// --- quotients by mode ---------------------------------------------------------------------------

constexpr int kTrueDivision = 0;

Formula FormulaOfMode(int64_t mode) {
  return mode == kTrueDivision ? Formula::kDiv : mode == 1 ? Formula::kTruncDivide : Formula::kFloorDivide;
}

Status RunDivMod(PassCall& call) {
  const int64_t mode = call.Arg("mode").integer;
  call.formula = FormulaOfMode(mode);
  const bool whole = IsInteger(call.computed);
  if (mode == kTrueDivision && whole) call.computed = DType::kF32;
  for (ScalarUse& use : call.scalars) {
    if (whole && mode == kTrueDivision) use.as = DType::kUndefined;
  }
  return call.Run();
}

// self, other, mode, out in both forms, but for the in-place result.
template <bool kTensor, bool kInPlace>
std::string CheckTrueDivision(Values values, Product) {
  const auto is_whole = [](DType t) { return IsInteger(t) || t == DType::kBool; };
  const DType other = kTensor ? values[1].tensor->dtype : values[1].scalar->dtype;
  const DType out = values[kInPlace ? 0 : 3].tensor->dtype;
  if (values[2].integer != kTrueDivision || !is_whole(values[0].tensor->dtype) || !is_whole(other) || !is_whole(out)) return "";
  return "must have a dtype that FLOAT converts to when mode is 0, got " + Name(out);
}

template <bool kTensor>
std::string CheckMode(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const DType other = kTensor ? values[1].tensor->dtype : values[1].scalar->dtype;
  const bool empty = self.empty() || (kTensor && values[1].tensor->empty());
  if (empty || values[2].integer == kTrueDivision || (!IsComplex(self.dtype) && !IsComplex(other))) return "";
  return "must be 0 for complex numbers, got " + std::to_string(values[2].integer);
}

template <bool kTensor>
std::vector<Rule> DivModRules(const Form& form) {
  return {Custom(form.out, "must have a dtype that FLOAT converts to when mode is 0",
                 form.in_place ? CheckTrueDivision<kTensor, true> : CheckTrueDivision<kTensor, false>),
          Custom("mode", "must be 0 for complex numbers", CheckMode<kTensor>), OneOf("mode", {0, 1, 2})};
}

void DeclareQuotients(Declarations* d) {
  const std::vector<std::string> texts = {"mode 0: out = self / other", "mode 1: out = trunc(self / other)",
                                          "mode 2: out = floor(self / other)"};
  Declare(d, {.name = "DivMod", .formula = Formula::kDiv, .summary = "Quotient of two tensors, rounded as mode says.",
              .texts = texts, .types = kNumbers, .null_order = {"out", "other", "self"}, .truth = DType::kF32,
              .formats = Formats::kPublic, .keep_zero_dim = true, .rules = DivModRules<true>, .plan = RunDivMod});
  Declare(d, {.name = "DivMods", .formula = Formula::kDiv, .summary = "Quotient of a tensor and a number, rounded as mode says.",
              .texts = texts, .types = kNumbers, .scalar_types = kNumbers, .truth = DType::kF32, .formats = Formats::kPublic,
              .keep_scalars = true, .rules = DivModRules<false>, .plan = RunDivMod});
  Declare(d, {.name = "FloorDivide", .formula = Formula::kFloorDivide, .summary = "Quotient of two tensors, rounded down.",
              .texts = {"out = floor(self / other)"}, .types = kReals, .truth = DType::kF32});
  Declare(d, {.name = "FloorDivides", .formula = Formula::kFloorDivide,
              .summary = "Quotient of a tensor and a number, rounded down.", .texts = {"out = floor(self / other)"},
              .types = kReals, .scalar_types = kReals, .truth = DType::kF32, .keep_scalars = true});

  const Types fmod_types = {kReals, kFewer};
  const Types fmod_computed = {kFloats | kInt5, kFewer};
  Declare(d, {.name = "FmodTensor", .formula = Formula::kFmod,
              .summary = "Remainder of the quotient rounded towards zero: it has the sign of self.",
              .texts = {"out = self - trunc(self / other) * other"}, .types = fmod_types, .computed = fmod_computed,
              .results = fmod_computed});
  Declare(d, {.name = "FmodScalar", .formula = Formula::kFmod,
              .summary = "Remainder of the quotient by a number, rounded towards zero: it has the sign of self.",
              .texts = {"out = self - trunc(self / other) * other"}, .types = fmod_types, .scalar_types = fmod_types,
              .computed = fmod_computed, .results = fmod_computed});
  const Types remainder_computed = {kFloats | kInt5, kFloats | DTypeSet{DType::kI32, DType::kI64}};
  const std::vector<std::string> remainder = {"out = self - floor(self / other) * other"};
  Declare(d, {.name = "RemainderTensorTensor", .formula = Formula::kRemainder,
              .summary = "Remainder of the quotient rounded down: it has the sign of other.", .texts = remainder,
              .types = kReals, .computed = remainder_computed});
  Declare(d, {.name = "RemainderTensorScalar", .formula = Formula::kRemainder,
              .summary = "Remainder of the quotient by a number, rounded down: it has the sign of other.", .texts = remainder,
              .types = kReals, .computed = remainder_computed});
  Declare(d, {.name = "RemainderScalarTensor", .formula = Formula::kRemainder,
              .summary = "Remainder of the quotient of a number, rounded down: it has the sign of other.", .texts = remainder,
              .types = kReals, .computed = remainder_computed, .results = remainder_computed});
}

// --- powers --------------------------------------------------------------------------------------

// Numbers whose power has a plain formula, as PyTorch takes them.
Status RunPowTensorScalar(PassCall& call) {
  const Scalar& exponent = *call.values[1].scalar;
  const std::complex<double> w = exponent.AsComplex();
  const bool whole = IsInteger(call.computed);
  const Operand base = call.inputs[0];
  if (w == 0.0) {
    call.SetScalar(0, Scalar::OfInt(1));
    call.inputs.clear();
    call.formula = Formula::kFill;
    return call.Run();
  }
  const struct {
    double exponent;
    Formula formula;
    bool for_whole;
  } kPlain[] = {{1, Formula::kCopy, true},        {2, Formula::kSquare, true},       {3, Formula::kCube, true},
                {0.5, Formula::kSqrt, false},     {-0.5, Formula::kRsqrt, false},    {-1, Formula::kReciprocal, false},
                {-2, Formula::kInverseSquare, false}};
  for (const auto& plain : kPlain) {
    if (w != plain.exponent || (whole && !plain.for_whole) || (IsComplex(call.computed) && plain.exponent < 0)) continue;
    call.formula = plain.formula;
    call.inputs = {base};
  }
  return call.Run();
}

Status RunPowScalarTensor(PassCall& call) {
  if (IsOne(*call.values[0].scalar)) {
    call.SetScalar(0, Scalar::OfInt(1));
    call.inputs.clear();
    call.formula = Formula::kFill;
  }
  return call.Run();
}

double LargestOf(DType t) {
  switch (t) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kU8:
      return 255;
    case DType::kI8:
      return 127;
    case DType::kI16:
      return 32767;
    case DType::kI32:
      return 2147483647;
    default:  // FLOAT takes what does not fit as infinity, as PyTorch does
      return std::numeric_limits<double>::infinity();
  }
}

std::string CheckExponent(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const Scalar& exponent = *values[1].scalar;
  if (self.empty() || IsComplex(exponent.dtype)) return "";
  const DType computed = PromoteScalar(self.dtype, exponent.dtype);
  const double value = exponent.AsDouble();
  if (IsInteger(computed) && value < 0) {
    return "must not be negative for integers, got " + std::to_string(exponent.AsInt());
  }
  if (!std::isfinite(value) || std::fabs(value) <= LargestOf(computed)) return "";
  return "must be a finite number of " + Name(computed) + ", got " + std::to_string(value);
}

std::vector<Rule> ExponentRules(const Form&) {
  return {Custom("exponent", "must be a finite number of the computed dtype, and not negative for integers", CheckExponent)};
}

void DeclarePowers(Declarations* d) {
  const std::vector<std::string> texts = {"out = self ^ exponent"};
  Declare(d, {.name = "PowTensorTensor", .formula = Formula::kPow,
              .summary = "Power of two tensors; integers wrap, and are 0 (or 1, -1) for negative exponents.", .texts = texts,
              .types = kNumbers, .computed = kFloats | kInt5 | kComplex});
  Declare(d, {.name = "PowTensorScalar", .formula = Formula::kPow, .summary = "Power of a tensor with one exponent.",
              .texts = texts, .types = kNumbers, .scalar_types = kNumbers, .rules = ExponentRules, .plan = RunPowTensorScalar});
  Declare(d, {.name = "PowScalarTensor", .formula = Formula::kPow, .summary = "Power of one base with many exponents.",
              .texts = texts, .types = kNumbers, .scalar_types = kNumbers, .plan = RunPowScalarTensor});
}

// --- functions of two numbers --------------------------------------------------------------------

Status RunInResultType(PassCall& call) {
  call.computed = call.out.dtype;
  return call.Run();
}

std::vector<Rule> BothConvert(const Form& form) {
  return {ResultConverts(form.names[0], form.out), ResultConverts(form.names[1], form.out)};
}

void DeclareFunctionsOfTwo(Declarations* d) {
  Declare(d, {.name = "Atan2", .formula = Formula::kAtan2, .summary = "Angle of the point (other, self).",
              .texts = {"out = atan2(self, other)"}, .types = kReals, .whole = DType::kF32, .result = Result::kAny,
              .results = kFloats, .any_in_place = true});
  Declare(d, {.name = "Maximum", .formula = Formula::kMaximum, .summary = "The larger of two numbers, NaN if either is.",
              .texts = {"out = max(self, other)"}, .types = kReals, .zero_dim = true, .results = kReals});
  Declare(d, {.name = "Minimum", .formula = Formula::kMinimum, .summary = "The smaller of two numbers, NaN if either is.",
              .texts = {"out = min(self, other)"}, .types = kReals, .zero_dim = true, .results = kReals});
  const Types log_types = kFloats | kInt8 | kBool;
  const Types log_results = {kFloats, kFloat3};
  Declare(d, {.name = "LogAddExp", .formula = Formula::kLogAddExp, .summary = "Logarithm of a sum of exponentials.",
              .texts = {"out = ln(e^self + e^other)"}, .types = log_types, .as = DType::kF32, .result = Result::kAny,
              .results = log_results, .formats = Formats::kSameAndPublic, .rules = BothConvert, .plan = RunInResultType});
  Declare(d, {.name = "LogAddExp2", .formula = Formula::kLogAddExp2, .summary = "Logarithm of a sum of powers of 2, to base 2.",
              .texts = {"out = log2(2^self + 2^other)"}, .types = log_types, .as = DType::kF32, .result = Result::kAny,
              .results = log_results, .formats = Formats::kSameAndPublic, .rules = BothConvert, .plan = RunInResultType});
  const Types xlogy = {kReals, kFloat3 | kInt5Bool};
  const std::vector<std::string> xlogy_text = {"out = self * ln(other), 0 where self is 0"};
  Declare(d, {.name = "XLogYTensor", .formula = Formula::kXLogY, .summary = "A number times the logarithm of another.",
              .texts = xlogy_text, .types = xlogy, .whole = DType::kF32});
  Declare(d, {.name = "XLogYScalarSelf", .formula = Formula::kXLogY, .summary = "One number times many logarithms.",
              .texts = xlogy_text, .types = xlogy, .scalar_types = kReals, .whole = DType::kF32, .keep_scalars = true});
  Declare(d, {.name = "XLogYScalarOther", .formula = Formula::kXLogY, .summary = "Numbers times one logarithm.",
              .texts = xlogy_text, .types = xlogy, .scalar_types = kReals, .whole = DType::kF32, .keep_scalars = true});
  Declare(d, {.name = "Xlog1py", .formula = Formula::kXlog1py, .summary = "A number times the logarithm of 1 and another.",
              .texts = {"z = x * ln(1 + y), 0 where x is 0"}, .types = kFloat3, .equal_types = true, .result = Result::kSame,
              .formats = Formats::kPublic});
}

// --- integers ------------------------------------------------------------------------------------

Status RunShift(PassCall& call) {
  const Value& by = call.values[1];
  const bool scalar = !call.plan.op().contract.args()[1].is_tensor();
  if (scalar) call.computed = Promote(call.values[0].tensor->dtype, by.scalar->dtype);
  constexpr DTypeSet kSigned = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  for (ScalarUse& use : call.scalars) use.as = call.computed;
  call.SetScalar(0, Scalar::OfInt(static_cast<int64_t>(8 * SizeOf(call.computed))), DType::kI64);
  call.SetScalar(1, Scalar::OfInt(kSigned.Has(call.computed)), DType::kI64);
  return call.Run();
}

std::string CheckShift(Values values, Product) {
  const DType self = values[0].tensor->dtype, by = values[1].scalar->dtype;
  if (values[0].tensor->empty() || Promote(self, by) != DType::kUndefined) return "";
  return "must have a dtype that shifts " + Name(self) + ", got " + Name(by);
}

std::vector<Rule> ShiftRules(const Form&) {
  return {Custom("shiftBits", "must have a dtype that is promoted together with that of self", CheckShift)};
}

void DeclareIntegers(Declarations* d) {
  Declare(d, {.name = "Gcd", .formula = Formula::kGcd, .summary = "Greatest common divisor, never negative.",
              .texts = {"out = gcd(self, other)"}, .types = kInt5Bool,
              .computed = {kInt5, {DType::kI16, DType::kI32, DType::kI64}}, .results = kInt8});
  Declare(d, {.name = "LeftShift", .formula = Formula::kLeftShift, .summary = "Bits moved up; 0 when moved beyond the width.",
              .texts = {"out = self << shiftBits"}, .types = kInt8, .results = kInt8, .formats = Formats::kPublic,
              .empty = Empty::kAllButDeduction, .plan = RunShift});
  Declare(d, {.name = "LeftShifts", .formula = Formula::kLeftShift,
              .summary = "Bits moved up by one number; 0 when moved beyond the width.", .texts = {"out = self << shiftBits"},
              .types = kInt8, .scalar_types = kInt8, .results = kInt8, .formats = Formats::kPublic,
              .empty = Empty::kAllButDeduction, .rules = ShiftRules, .plan = RunShift});
  Declare(d, {.name = "RightShift", .formula = Formula::kRightShift, .summary = "Bits moved down, the sign kept.",
              .texts = {"out = input >> shiftBits"}, .types = kInt8, .results = kInt8, .empty = Empty::kAllButDeduction,
              .plan = RunShift});

  const DTypeSet few = kInt5Bool | DTypeSet{DType::kU16};
  const Types more = {kInt8 | kBool, few};
  const struct {
    const char* name;
    Formula formula;
    const char* summary;
    const char* text;
    Types types;
    bool scalar;
    Formats formats;
  } kBits[] = {
      {"BitwiseAndTensor", Formula::kBitwiseAnd, "Bits that both tensors have.", "out = self & other", more, false, Formats::kPublic},
      {"BitwiseAndTensorOut", Formula::kBitwiseAnd, "Bits that both tensors have.", "out = self & other", more, false,
       Formats::kSameAndPublic},
      {"BitwiseAndScalar", Formula::kBitwiseAnd, "Bits that a tensor and a number have.", "out = self & other", more, true,
       Formats::kPublic},
      {"BitwiseOrTensor", Formula::kBitwiseOr, "Bits that either tensor has.", "out = self | other", kInt8 | kBool, false,
       Formats::kAny},
      {"BitwiseOrScalar", Formula::kBitwiseOr, "Bits that a tensor or a number has.", "out = self | other", more, true, Formats::kAny},
      {"BitwiseXorTensor", Formula::kBitwiseXor, "Bits that one of two tensors has.", "out = self ^ other",
       {kInt8 | kBool, kInt5Bool}, false, Formats::kAny},
      {"BitwiseXorScalar", Formula::kBitwiseXor, "Bits that either a tensor or a number has.", "out = self ^ other",
       {kInt8 | kBool, kInt5Bool}, true, Formats::kAny},
  };
  for (const auto& bits : kBits) {
    Declare(d, {.name = bits.name, .formula = bits.formula, .summary = bits.summary, .texts = {bits.text}, .types = bits.types,
                .scalar_types = bits.scalar ? bits.types : Types(), .formats = bits.formats});
  }
}

// --- three operands ------------------------------------------------------------------------------

void DeclareTernary(Declarations* d) {
  const Types cmul = {kFewer | kI16 | kComplex, kFewer};
  Declare(d, {.name = "Addcmul", .formula = Formula::kAddcmul, .summary = "A tensor plus a multiple of the product of two others.",
              .texts = {"out = self + value * tensor1 * tensor2"}, .types = cmul, .scalars = {"value"},
              .formats = Formats::kPublic, .real_scalars = true, .keep_scalars = true});
  Declare(d, {.name = "Addcdiv", .formula = Formula::kAddcdiv, .summary = "A tensor plus a multiple of the quotient of two others.",
              .texts = {"out = self + value * tensor1 / tensor2"}, .types = {kNumbers, kFloats | kI64}, .scalars = {"value"},
              .computed = {kFloats | kI64 | kComplex, kFloats | kI64}, .real_scalars = true, .keep_scalars = true});
  const Types lerp = {kFloats | kComplex, kFloat3};
  Declare(d, {.name = "Lerp", .formula = Formula::kLerp, .summary = "Linear interpolation between two tensors.",
              .texts = {"out = self + weight * (end - self)"}, .types = lerp, .equal_types = true, .result = Result::kSame,
              .any_rank = true});
  Declare(d, {.name = "Lerps", .formula = Formula::kLerp, .summary = "Linear interpolation between two tensors with one weight.",
              .texts = {"out = self + weight * (end - self)"}, .types = lerp, .aside = 4, .equal_types = true,
              .result = Result::kListed, .results = {kFloats | kComplex, kFloats}, .any_rank = true, .keep_scalars = true});
}

}  // namespace

void DeclareArithmetic(Declarations* declarations) {
  DeclareSums(declarations);
  DeclareProducts(declarations);
  DeclareQuotients(declarations);
  DeclarePowers(declarations);
  DeclareFunctionsOfTwo(declarations);
  DeclareIntegers(declarations);
  DeclareTernary(declarations);
}

}  // namespace anyacl::pointwise
